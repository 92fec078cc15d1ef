"""A small schema with the limits of documents, for tests. Its resolvers record that they have run."""

from collections.abc import AsyncIterator

import strawberry

from server.graphql.documents import DocumentCache
from server.graphql.limits_extension import limits_extension

RESOLVED: list[str] = []
"""The resolvers that have run, by name."""


@strawberry.type
class User:
    id: strawberry.ID

    @strawberry.field
    def friends(self, limit: int = 10) -> list["User"]:
        RESOLVED.append("friends")
        return [User(id=strawberry.ID("2"))][:limit]

    @strawberry.field
    def friend(self) -> "User":
        return User(id=strawberry.ID("3"))


@strawberry.type
class Query:
    @strawberry.field
    def user(self, id: strawberry.ID) -> User:
        RESOLVED.append("user")
        return User(id=id)


@strawberry.type
class Mutation:
    @strawberry.mutation
    def rename(self, name: str) -> User:
        RESOLVED.append("rename")
        return User(id=strawberry.ID("1"))


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def users(self) -> AsyncIterator[User]:
        RESOLVED.append("users")
        yield User(id=strawberry.ID("1"))


def new_schema() -> strawberry.Schema:
    return strawberry.Schema(Query, Mutation, Subscription, extensions=[limits_extension(DocumentCache())])


SCHEMA = new_schema()

COSTLY_QUERY = "query Q($n: Int!) { user(id: 1) { friends(limit: 199) { friends(limit: $n) { id } } } }"
"""A query that costs 1 + 199 * (1 + n)."""


def nested_query(levels: int, field: str = "friend") -> str:
    """Returns a query for a user that is nested to this number of levels."""
    return "{ user(id: 1) {" + f"{field} {{" * (levels - 2) + "id" + "}" * (levels - 2) + "} }"
