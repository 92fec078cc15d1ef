"""Users of organizations: who they are, whom they blocked, whom they follow. Everything is scoped to an organization.

A user exists from the first authenticated request. Roles are those of the newest token seen.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from urllib.parse import quote, unquote

from pymongo.errors import DuplicateKeyError

from storage.among import values_among
from storage.errors import NotFound
from storage.events import Stream
from storage.gather import Gather
from storage.mongo import Document, Mongo, Session

MAX_HANDLE = 30
SEARCH_TERMS = 8
_LAST = "\U0010ffff"
FIELDS = dict.fromkeys(("handle", "name", "roles", "followers", "following", "email"), 1)
"""What a record is made of."""


class Role(Enum):
    """What a token may do. ADMIN includes OPERATOR includes MEMBER; SERVICE stands alone (semantics.md, 8)."""

    MEMBER = "MEMBER"
    OPERATOR = "OPERATOR"
    SERVICE = "SERVICE"
    ADMIN = "ADMIN"


INCLUDED: dict[Role, frozenset[Role]] = {
    Role.MEMBER: frozenset({Role.MEMBER}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.MEMBER}),
    Role.ADMIN: frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER}),
    Role.SERVICE: frozenset({Role.SERVICE}),
}


@lru_cache(maxsize=64)
def with_included(roles: frozenset[Role] | tuple[Role, ...]) -> frozenset[Role]:
    """The roles and those that they include."""
    return frozenset().union(*(INCLUDED[role] for role in roles))


# Not frozen: a page makes fifty, and freezing triples what one costs.
@dataclass(slots=True)
class User:
    """A person of an organization. `id` is the token's `sub`, unique within the organization only."""

    id: str
    handle: str
    name: str
    organization_id: str
    roles: tuple[Role, ...]
    follower_count: int
    following_count: int
    email: str | None = None


class UserStore:
    """Users, found by id, by handle and by the beginnings of their names."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._users = mongo["users"]
        self._by_id: Gather[tuple[str, str], User] = Gather(self._load)

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
        known = await self._users.find_one({"_id": _user_id(organization_id, id_)})
        if known is None:
            known = await self._create(organization_id, id_, roles, name, handle)
        changes: Document = {"roles": [role.value for role in roles]}
        if name:
            changes["name"] = name
        if email:
            changes["email"] = email
        if all(known.get(key) == value for key, value in changes.items()):
            return _user(known)
        return await self._change(known, changes)

    async def _create(
        self, organization_id: str, id_: str, roles: Sequence[Role], name: str | None, handle: str | None
    ) -> Document:
        base = normalize_handle(handle or id_)
        document: Document = {
            "_id": _user_id(organization_id, id_),
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
                known = await self._users.find_one({"_id": document["_id"]})
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
        return _user(known | changes)

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
        wanted = [_user_id(organization, id_) for organization, id_ in keys]
        users = await self._mongo.find("users", {"_id": {"$in": wanted}}, FIELDS)
        return {(user["_id"]["org"], user["_id"]["id"]): _user(user) for user in users}

    async def find_handles(self, organization_id: str, handles: Iterable[str]) -> dict[str, User]:
        """Those of the handles that somebody has, by handle; one read."""
        wanted = list(set(handles))
        if not wanted:
            return {}
        cursor = self._users.find({"_id.org": organization_id, "handle": {"$in": wanted}})
        return {document["handle"]: _user(document) for document in await cursor.to_list(None)}

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
            found |= {user["_id"]["id"]: _user(user) for user in await cursor.to_list(None)}
        return list(found.values())


class RelationStore:
    """Who blocked and who follows whom."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._blocks = mongo["blocks"]
        self._follows = mongo["follows"]
        self._blocked: Gather[tuple[str, str], frozenset[str]] = Gather(self._load_blocked)
        self._blockers: Gather[tuple[str, str], frozenset[str]] = Gather(self._load_blockers)
        self._following: Gather[tuple[str, str, str], bool] = Gather(self._load_following)

    async def blocked_by(self, organization_id: str, user_id: str) -> frozenset[str]:
        """The ids of all whom the user blocked."""
        return await self._blocked.get((organization_id, user_id)) or frozenset()

    async def blocking_among(self, organization_id: str, user_ids: Collection[str]) -> frozenset[str]:
        """Those of the users, at most 1000, who blocked anybody."""
        wanted = {"org": organization_id, "user": {"$in": list(user_ids)}}
        return frozenset(await values_among(self._mongo, "blocks", "user", wanted))

    async def blockers_of(self, organization_id: str, user_id: str) -> frozenset[str]:
        """The ids of all who blocked the user."""
        return await self._blockers.get((organization_id, user_id)) or frozenset()

    async def follows(self, organization_id: str, follower: str, followee: str) -> bool:
        """Whether the one follows the other."""
        return await self._following.get((organization_id, follower, followee)) is not None

    async def _load_blocked(self, users: Sequence[tuple[str, str]]) -> dict[tuple[str, str], frozenset[str]]:
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        wanted = [{"org": organization, "user": user} for organization, user in users]
        fields = {"_id": 0, "org": 1, "user": 1, "blocked": 1}
        for row in await self._mongo.find("blocks", {"$or": wanted}, fields):
            found[row["org"], row["user"]].add(row["blocked"])
        return {user: frozenset(blocked) for user, blocked in found.items()}

    async def _load_blockers(self, users: Sequence[tuple[str, str]]) -> dict[tuple[str, str], frozenset[str]]:
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        wanted = [{"org": organization, "blocked": user} for organization, user in users]
        for row in await self._blocks.find({"$or": wanted}).to_list(None):
            found[row["org"], row["blocked"]].add(row["user"])
        return {user: frozenset(blockers) for user, blockers in found.items()}

    async def _load_following(self, pairs: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], bool]:
        wanted = [{"org": organization, "follower": one, "followee": other} for organization, one, other in pairs]
        cursor = self._follows.find({"$or": wanted})
        return {(row["org"], row["follower"], row["followee"]): True for row in await cursor.to_list(None)}

    async def block(self, organization_id: str, user_id: str, blocked_id: str) -> None:
        """Blocks; it ends follows both ways. One transaction; blocking twice changes nothing."""
        row = {"org": organization_id, "user": user_id, "blocked": blocked_id}

        async def work(session: Session) -> None:
            await self._blocks.update_one(
                row, {"$setOnInsert": {"at": datetime.now(UTC)}}, upsert=True, session=session
            )
            await self._end_follow(organization_id, user_id, blocked_id, session)
            await self._end_follow(organization_id, blocked_id, user_id, session)

        await self._mongo.transact(work)

    async def _end_follow(self, organization_id: str, follower: str, followee: str, session: Session) -> None:
        row = {"org": organization_id, "follower": follower, "followee": followee}
        gone = await self._follows.delete_one(row, session=session)
        # Written in any case: a follow that is made at the same moment writes it too, and one of the two starts over.
        change = {"_id": {"o": organization_id, "f": follower, "e": followee}}
        await self._mongo["follow_changes"].update_one(
            change, [{"$set": {"at": "$$NOW"}}], upsert=True, session=session
        )
        if gone.deleted_count:
            users = self._mongo["users"]
            one, other = _user_id(organization_id, follower), _user_id(organization_id, followee)
            await users.update_one({"_id": one}, {"$inc": {"following": -1}}, session=session)
            await users.update_one({"_id": other}, {"$inc": {"followers": -1}}, session=session)

    async def unblock(self, organization_id: str, user_id: str, blocked_id: str) -> None:
        """Ends a block; without one nothing changes."""
        await self._blocks.delete_one({"org": organization_id, "user": user_id, "blocked": blocked_id})


def user_stream(organization_id: str, user_id: str) -> Stream:
    """The stream of what only this user hears."""
    return Stream("user", f"{quote(organization_id, safe='')}/{user_id}")


def stream_owner(stream: Stream) -> tuple[str, str]:
    """Organization and user of a user's stream."""
    organization_id, _, user_id = stream.id.partition("/")
    return unquote(organization_id), user_id


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


@lru_cache(maxsize=64)
def _roles(names: tuple[str, ...]) -> tuple[Role, ...]:
    return tuple(Role(name) for name in names)


def _user_id(organization_id: str, id_: str) -> Document:
    return {"org": organization_id, "id": id_}


def _user(document: Document) -> User:
    id_ = document["_id"]
    # In the order of the fields: naming them costs as much as the record.
    return User(
        id_["id"],
        document["handle"],
        document["name"],
        id_["org"],
        _roles(tuple(document["roles"])),
        document["followers"],
        document["following"],
        document.get("email"),
    )
