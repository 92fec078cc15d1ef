"""Users of organizations, found by id, by handle and by the beginnings of their names.

A user exists from the first authenticated request. Roles are those of the newest token seen.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pymongo.errors import DuplicateKeyError

from storage.batch_loader import BatchLoader
from storage.errors import NotFound
from storage.identity.records import Role, User, user_document_id, user_record
from storage.mongo import Document, Mongo

MAX_HANDLE = 30
SEARCH_TERMS = 8
_LAST = "\U0010ffff"
FIELDS = dict.fromkeys(("handle", "name", "roles", "followers", "following", "email"), 1)
"""What a record is made of."""


class UserStore:
    """Users, found by id, by handle and by the beginnings of their names."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._users = mongo["users"]
        self._by_id: BatchLoader[tuple[str, str], User] = BatchLoader(self._load)

    async def sign_in(
        self,
        organization_id: str,
        id_: str,
        roles: Sequence[Role],
        name: str | None,
        handle: str | None,
        email: str | None = None,
    ) -> User:
        """The user as the token describes them, created on first sight.

        The handle is given once and stays, since texts mention it; the name and the mail address follow the token.
        """
        known = await self._users.find_one({"_id": user_document_id(organization_id, id_)})
        if known is None:
            known = await self._create(organization_id, id_, roles, name, handle)
        changes: Document = {"roles": [role.value for role in roles]}
        if name:
            changes["name"] = name
        if email:
            changes["email"] = email
        if all(known.get(key) == value for key, value in changes.items()):
            return user_record(known)
        return await self._change(known, changes)

    async def _create(
        self, organization_id: str, id_: str, roles: Sequence[Role], name: str | None, handle: str | None
    ) -> Document:
        base = normalize_handle(handle or id_)
        document: Document = {
            "_id": user_document_id(organization_id, id_),
            "name": name or handle or id_,
            "roles": [role.value for role in roles],
            "followers": 0,
            "following": 0,
            "at": datetime.now(UTC),
        }
        for number in range(1, 1_000_000):
            suffix = "" if number == 1 else f"-{number}"
            chosen = base[: MAX_HANDLE - len(suffix)] + suffix
            document |= {"handle": chosen, "search": search_terms(chosen, document["name"])}
            try:
                await self._users.insert_one(document)
            except DuplicateKeyError:
                # Somebody has the handle, or a second request of the same new user was faster.
                known: Document | None = await self._users.find_one({"_id": document["_id"]})
                if known is not None:
                    return known
            else:
                return document
        raise AssertionError("a million users of one handle")

    async def _change(self, known: Document, changes: Document) -> User:
        if "name" in changes:
            changes["search"] = search_terms(known["handle"], changes["name"])
            member = {"org": known["_id"]["org"], "user": known["_id"]["id"]}
            await self._mongo["memberships"].update_many(member, {"$set": {"search": changes["search"]}})
        await self._users.update_one({"_id": known["_id"]}, {"$set": changes})
        return user_record(known | changes)

    async def find(self, organization_id: str, id_: str) -> User | None:
        """The user of that id, or None."""
        return await self._by_id.get((organization_id, id_))

    async def get(self, organization_id: str, id_: str) -> User:
        """The user of that id. Raises: NotFound."""
        user = await self.find(organization_id, id_)
        if user is None:
            raise NotFound("user", id_)
        return user

    async def get_all(self, organization_id: str, ids: Sequence[str]) -> list[User]:
        """Each of the ids', in their order. Raises: NotFound when one does not exist."""
        # Few wrote much of what is shown together.
        distinct = set(ids)
        found = await self._by_id.find([(organization_id, id_) for id_ in distinct])
        try:
            users = {id_: found[organization_id, id_] for id_ in distinct}
        except KeyError as missing:
            raise NotFound("user", missing.args[0][1]) from None
        return [users[id_] for id_ in ids]

    async def find_each(self, organization_id: str, ids: Sequence[Sequence[str]]) -> list[list[User]]:
        """As `find_many`, for several lists of ids at once."""
        if not any(ids):
            return [[] for _ in ids]
        found = await self._by_id.find([(organization_id, id_) for each in ids for id_ in each])
        there = [[found.get((organization_id, id_)) for id_ in each] for each in ids]
        return [[user for user in each if user is not None] for each in there]

    async def find_many(self, organization_id: str, ids: Iterable[str]) -> list[User]:
        """Those of the ids that exist, in their order."""
        return await self._by_id.get_many([(organization_id, id_) for id_ in ids])

    async def _load(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], User]:
        wanted = [user_document_id(organization, id_) for organization, id_ in keys]
        users = await self._mongo.find("users", {"_id": {"$in": wanted}}, FIELDS)
        return {(user["_id"]["org"], user["_id"]["id"]): user_record(user) for user in users}

    async def find_handles(self, organization_id: str, handles: Iterable[str]) -> dict[str, User]:
        """Those of the handles that somebody has, by handle; one read."""
        wanted = list(set(handles))
        if not wanted:
            return {}
        cursor = self._users.find({"_id.org": organization_id, "handle": {"$in": wanted}})
        return {document["handle"]: user_record(document) for document in await cursor.to_list(None)}

    async def search(self, organization_id: str, query: str, limit: int, community_id: str | None = None) -> list[User]:
        """Users whose handle, name or a word of it begins with the query, by handle; a community's members first."""
        terms = {"$elemMatch": _beginning(query)}
        found: dict[str, User] = {}
        if community_id is not None:
            members = {"community": community_id, "search": terms}
            rows = self._mongo["memberships"].find(members, {"user": 1}).sort("handle", 1).limit(limit)
            ids = [row["user"] for row in await rows.to_list(None)]
            found = {user.id: user for user in await self.find_many(organization_id, ids)}
        if len(found) < limit:
            others = {"_id.org": organization_id, "search": terms, "_id.id": {"$nin": list(found)}}
            cursor = self._users.find(others).sort("handle", 1).limit(limit - len(found))
            found |= {user["_id"]["id"]: user_record(user) for user in await cursor.to_list(None)}
        return list(found.values())


def normalize_handle(text: str) -> str:
    """The text as a handle, `[a-z0-9_]{1,30}`: accents dropped, everything else an underscore."""
    if re.fullmatch(f"[a-z0-9_]{{1,{MAX_HANDLE}}}", text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "_", plain).strip("_")[:MAX_HANDLE] or "user"


def fold(text: str) -> str:
    """How texts are compared when people search: compatibility forms and case folded."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def search_terms(handle: str, name: str) -> list[str]:
    """Everything whose beginning finds the user: the handle, the name and its words."""
    folded = fold(name)
    return list(dict.fromkeys([handle, folded, *folded.split()]))[:SEARCH_TERMS]


def _beginning(query: str) -> Document:
    folded = fold(query)
    return {"$gte": folded, "$lt": folded + _LAST}
