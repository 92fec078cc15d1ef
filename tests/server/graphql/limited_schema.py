"""A small schema for tests of the limits of documents."""

from collections.abc import AsyncIterator

import strawberry


@strawberry.type
class User:
    id: strawberry.ID

    @strawberry.field
    def friends(self, limit: int = 10) -> list["User"]:
        return [User(id=strawberry.ID("2"))][:limit]

    @strawberry.field
    def friend(self) -> "User":
        return User(id=strawberry.ID("3"))


@strawberry.type
class Query:
    @strawberry.field
    def user(self, id: strawberry.ID) -> User:
        return User(id=id)


@strawberry.type
class Mutation:
    @strawberry.mutation
    def rename(self, name: str) -> User:
        return User(id=strawberry.ID("1"))


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def users(self) -> AsyncIterator[User]:
        yield User(id=strawberry.ID("1"))


SCHEMA = strawberry.Schema(Query, Mutation, Subscription)

COSTLY_QUERY = "query Q($n: Int!) { user(id: 1) { friends(limit: 199) { friends(limit: $n) { id } } } }"
"""A query that costs 1 + 199 * (1 + n)."""


def nested_query(levels: int, field: str = "friend") -> str:
    """Returns a query for a user that is nested to this number of levels."""
    return "{ user(id: 1) {" + f"{field} {{" * (levels - 2) + "id" + "}" * (levels - 2) + "} }"
