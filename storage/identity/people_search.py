"""Search of people by the beginnings of their handles and names."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.identity.records import User, user_record
from storage.identity.users import USER_FIELDS, UserStore, prefix_range
from storage.mongo import Document, Mongo
from storage.mongo.text_index.clauses import ExcerptFragment
from storage.mongo.text_index.names import fold_for_comparison, highlighted_name


@dataclass(frozen=True, slots=True)
class PersonMatch:
    """A person who matches a query."""

    user: User
    name_excerpt: Sequence[ExcerptFragment]
    handle_excerpt: Sequence[ExcerptFragment]


@dataclass(frozen=True, slots=True)
class PeopleQuery:
    """Prefixes that a person must have, and the community that the person must have joined, if it is not None."""

    prefixes: Sequence[str]
    community_id: str | None = None


@dataclass(frozen=True, slots=True)
class PeopleSearch:
    """Finds people, without those whose erasure was requested."""

    mongo: Mongo
    users: UserStore

    async def page(
        self, organization_id: str, query: PeopleQuery, after_handle: str | None, limit: int
    ) -> list[PersonMatch]:
        """Returns matching people by handle: those after `after_handle`, or from the first if it is None."""
        if query.community_id is None:
            found = await self._of_organization(organization_id, query, after_handle, limit)
        else:
            found = await self._of_community(organization_id, query, after_handle, limit)
        folded = [fold_for_comparison(each) for each in query.prefixes]
        return [
            PersonMatch(user, highlighted_name(user.name, folded), highlighted_name(user.handle, folded))
            for user in found
        ]

    async def _of_organization(
        self, organization_id: str, query: PeopleQuery, after_handle: str | None, limit: int
    ) -> list[User]:
        filter_ = {"_id.org": organization_id, "erasing_at": {"$exists": False}, **_condition(query, after_handle)}
        rows = await self.mongo.find("users", filter_, USER_FIELDS, sort=[("handle", 1)], limit=limit)
        return [user_record(row) for row in rows]

    async def _of_community(
        self, organization_id: str, query: PeopleQuery, after_handle: str | None, limit: int
    ) -> list[User]:
        found: list[User] = []
        while len(found) < limit:
            filter_ = {"community": query.community_id, **_condition(query, after_handle)}
            size = limit - len(found)
            rows = await self.mongo.find(
                "memberships", filter_, {"user": 1, "handle": 1}, sort=[("handle", 1)], limit=size
            )
            members = await self.users.find_many(organization_id, [row["user"] for row in rows])
            # People who are being erased are members for some seconds more.
            found += [user for user in members if not user.is_erased]
            if len(rows) < size:
                break
            after_handle = rows[-1]["handle"]
        return found


def _condition(query: PeopleQuery, after_handle: str | None) -> Document:
    """Returns the condition on a user or a membership, which have the same fields for it."""
    condition: Document = {"$and": [{"search": {"$elemMatch": prefix_range(each)}} for each in query.prefixes]}
    if after_handle is not None:
        condition["handle"] = {"$gt": after_handle}
    return condition
