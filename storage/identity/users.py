"""Users of organizations: created by their first token or with an account, found by id, handle and prefix."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import NotFound
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument, UserDocumentId
from storage.identity.handles.changes import HandleChanges
from storage.identity.handles.names import ProfileChanges, ProfileFields, store_names
from storage.identity.handles.reserved import ReservedHandles
from storage.identity.handles.suggestions import free_handle, suggest_handle
from storage.identity.records import User, user_document_id, user_record
from storage.identity.roles import Role, narrow_roles
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session
from storage.mongo.batch_loader import BatchLoader
from storage.mongo.clock import DatabaseClock
from storage.mongo.text_index.names import fold_for_comparison, search_terms

_LAST_CHARACTER = "\U0010ffff"
USER_FIELDS = dict.fromkeys(
    (
        *("handle", "name", "roles", "followers", "following", "email"),
        *("roles_granted", "deactivated_at", "erasing_at", "service", "avatar", "presence_hidden", "bio", "banner"),
    ),
    1,
)
"""Projection to the fields of a `User`."""

ROLE_LIFETIME_DAYS = 90
"""Days for which a user keeps a role after the last token that had it, for work that is done later for the user."""

ROLE_SEEN_EVERY = timedelta(days=1)
"""The time of a role is written again only if it is older than this."""


class UserStore:
    """Creates, updates and reads users."""

    def __init__(
        self,
        mongo: Mongo,
        clock: DatabaseClock,
        roles_last_days: int = ROLE_LIFETIME_DAYS,
        has_roles_from_tokens: bool = True,
    ) -> None:
        self._mongo = mongo
        self._clock = clock
        self.roles_last_days = roles_last_days
        self._has_roles_from_tokens = has_roles_from_tokens
        self._profile_changes = ProfileChanges(mongo)
        self._handle_changes = HandleChanges(mongo, ReservedHandles(mongo))
        self._users: AsyncCollection[UserDocument] = mongo["users"]
        self._documents: BatchLoader[tuple[str, str], UserDocument] = BatchLoader(self._load_documents)
        self._by_id: BatchLoader[tuple[str, str], User] = BatchLoader(self._load)
        self._lasting_roles: BatchLoader[tuple[str, str], frozenset[Role]] = BatchLoader(self._load_lasting_roles)

    async def sign_in(
        self,
        organization_id: str,
        id_: str,
        roles: Sequence[Role] | None,
        name: str | None,
        handle: str | None,
        email: str | None = None,
        *,
        is_email_verified: bool = False,
        session: Session | None = None,
    ) -> User:
        """Returns the user that a token describes. The first token creates the user, and later tokens update it.

        The mail address comes from the newest token, and so does the name until the user chooses one. The roles come
        from the newest token until roles are granted. If roles don't come from tokens, a user without granted roles is
        at most a MEMBER. Only the first token counts for the handle. `lasting_roles` also counts roles of earlier
        tokens. Without `roles`, a new user is a MEMBER, and the roles of others stay. With `session`, everything is
        part of its transaction.
        """
        roles = None if roles is None else self._limited(roles)
        while True:
            stored = await self._find_document(organization_id, id_, session)
            if stored is None:
                new_roles = (Role.MEMBER,) if roles is None else roles
                stored = await self._create(organization_id, id_, new_roles, name, handle, session)
            user = await self._update(stored, roles, name, _email_fields(stored, email, is_email_verified), session)
            if user is not None:
                return user

    async def _find_document(self, organization_id: str, id_: str, session: Session | None) -> UserDocument | None:
        """Returns the user's document as it is now. Concurrent calls without a session are batched."""
        if session is None:
            return await self._documents.get((organization_id, id_))
        return await self._users.find_one({"_id": user_document_id(organization_id, id_)}, session=session)

    async def _load_documents(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], UserDocument]:
        ids = [user_document_id(organization, id_) for organization, id_ in keys]
        users: list[UserDocument] = await self._mongo.find("users", {"_id": {"$in": ids}})
        return {(user["_id"]["org"], user["_id"]["id"]): user for user in users}

    async def _update(
        self,
        stored: UserDocument,
        roles: Sequence[Role] | None,
        name: str | None,
        email_fields: Document,
        session: Session | None,
    ) -> User | None:
        """Stores the claims of a token, unless an erasure of the user was requested. Returns the user.

        Returns None if roles were granted, the handle was changed, the name was chosen or the erasure was requested
        since `stored` was read: a token must not undo any of these.
        """
        if "erasing_at" in stored:
            return user_record(stored)
        changes: Document = {}
        if roles is not None and not stored.get("roles_granted"):
            changes["roles"] = [role.value for role in roles]
        if name and name != stored["name"] and "name_chosen_at" not in stored:
            changes["name"] = name
        changes |= email_fields
        seen_roles = self._roles_to_renew(stored, changes.get("roles", ()), await self._clock.now())
        if not seen_roles and all(stored.get(key) == value for key, value in changes.items()):
            return user_record(stored)
        return await self._change(stored, changes, seen_roles, session)

    @staticmethod
    def _roles_to_renew(stored: UserDocument, token_roles: Sequence[str], now: datetime) -> list[str]:
        """Returns the roles of a token whose stored time is missing or a day old. Granted roles need no times."""
        if stored.get("roles_granted"):
            return []
        seen = stored.get("role_seen")
        if seen is None:
            # An earlier version stored no times. The days of the roles that it stored are counted from now.
            return sorted({*token_roles, *stored["roles"]})
        return [role for role in token_roles if role not in seen or now - seen[role] >= ROLE_SEEN_EVERY]

    async def _create(
        self,
        organization_id: str,
        id_: str,
        roles: Sequence[Role],
        name: str | None,
        handle: str | None,
        session: Session | None,
    ) -> UserDocument:
        """Creates the user, unless a concurrent first request has created it. Returns the user's document."""

        async def work(session: Session) -> UserDocument:
            stored = await self._find_document(organization_id, id_, session)
            if stored is not None:
                return stored
            # A change of a handle reserves the old one in its transaction. So each transaction sees the handle as
            # taken or as reserved, or conflicts with the change.
            free = await free_handle(self._mongo, organization_id, suggest_handle(handle or id_, name), session)
            document = new_user_document(user_document_id(organization_id, id_), free, name or handle or id_, roles)
            await self._users.insert_one(document, session=session)
            return document

        return await self._mongo.transact(work) if session is None else await work(session)

    async def _change(
        self, stored: UserDocument, changes: Document, seen_roles: Sequence[str], session: Session | None
    ) -> User | None:
        if "name" not in changes:
            return await self._store(stored, changes, seen_roles, session)

        async def work(session: Session) -> User | None:
            user = await self._store(stored, changes, seen_roles, session)
            if user is not None:
                await store_names(self._mongo, stored, {"name": user.name}, session)
            return user

        return await self._mongo.transact(work) if session is None else await work(session)

    async def _store(
        self, stored: UserDocument, changes: Document, seen_roles: Sequence[str], session: Session | None
    ) -> User | None:
        update: Document = {"$set": changes}
        if seen_roles:
            update["$currentDate"] = {f"role_seen.{role}": True for role in seen_roles}
        query: Document = {"_id": stored["_id"], "erasing_at": {"$exists": False}}
        if "name" in changes:
            # The copies of the name are stored with the handle, which the user may have changed meanwhile.
            query |= {"handle": stored["handle"], "name_chosen_at": {"$exists": False}}
        if "roles" in changes:
            query["roles_granted"] = {"$exists": False}
        if (await self._users.update_one(query, update, session=session)).matched_count == 0:
            return None
        new_document: Any = {**stored, **changes}
        return user_record(new_document)

    def roles_of_request(self, user: User, token_roles: frozenset[Role]) -> frozenset[Role]:
        """Returns the roles of a request of `user` with a token.

        A token narrows granted roles. A user without granted roles has the token's roles, or at most MEMBER if roles
        do not come from tokens.
        """
        if user.has_granted_roles or not self._has_roles_from_tokens:
            return narrow_roles(user.roles, token_roles)
        return token_roles

    def _limited(self, roles: Sequence[Role]) -> Sequence[Role]:
        """Returns what a user without granted roles gets of the roles of a token."""
        return roles if self._has_roles_from_tokens else [*narrow_roles((Role.MEMBER,), frozenset(roles))]

    async def change_profile(self, actor: Actor, fields: ProfileFields) -> User:
        """Changes the profile of the actor. See `ProfileChanges.change`."""
        return await self._profile_changes.change(actor, fields)

    async def change_handle(self, actor: Actor, handle: str) -> User:
        """Gives the actor another handle. See `HandleChanges.change`."""
        return await self._handle_changes.change(actor, handle)

    async def find(self, organization_id: str, id_: str) -> User | None:
        """Returns the user of that id, or None."""
        return await self._by_id.get((organization_id, id_))

    async def get(self, organization_id: str, id_: str) -> User:
        """Returns the user of that id. Raises: NotFound."""
        user = await self.find(organization_id, id_)
        if user is None:
            raise NotFound("user", id_)
        return user

    async def verified_address(self, user: UserKey) -> str | None:
        """Returns the user's mail address if it is verified, otherwise None."""
        query = {"_id": user_document_id(*user)}
        found: list[UserDocument] = await self._mongo.find("users", query, {"email": 1, "email_verified": 1}, limit=1)
        return found[0].get("email") if found and found[0].get("email_verified") else None

    async def last_handle(self, organization_id: str, last_id: str | None) -> str | None:
        """Returns the handle of the last user of a page, or None before the first page. Raises: NotFound."""
        return None if last_id is None else (await self.get(organization_id, last_id)).handle

    async def lasting_roles(self, organization_id: str, id_: str) -> frozenset[Role]:
        """Returns the roles that the user has for work without a token. Roles that they include are not listed.

        A deactivated user has none, and a user with granted roles has these. Any other user has the roles of recent
        tokens. A role lasts for `roles_last_days` after the last token that had it, or up to a day longer. A later
        token without the role does not end it. Raises: NotFound.
        """
        roles = await self._lasting_roles.get((organization_id, id_))
        if roles is None:
            raise NotFound("user", id_)
        return roles

    async def get_all(self, organization_id: str, ids: Sequence[str]) -> list[User]:
        """Returns the user of each id, in the order of the ids. Raises: NotFound if a user does not exist."""
        # A page of fifty messages has few authors, so most ids are duplicates.
        distinct = set(ids)
        users_by_key = await self._by_id.find([(organization_id, id_) for id_ in distinct])
        try:
            users = {id_: users_by_key[organization_id, id_] for id_ in distinct}
        except KeyError as missing:
            raise NotFound("user", missing.args[0][1]) from None
        return [users[id_] for id_ in ids]

    async def find_or_none(self, organization_id: str, ids: Sequence[str | None]) -> list[User | None]:
        """Returns the user of each id, in the order of the ids; None for the id None and for an unknown id."""
        distinct = {id_ for id_ in ids if id_ is not None}
        users = {user.id: user for user in await self.find_many(organization_id, distinct)}
        return [None if id_ is None else users.get(id_) for id_ in ids]

    async def find_many(self, organization_id: str, ids: Iterable[str]) -> list[User]:
        """Returns the users of these ids that exist, in the order of the ids."""
        return await self._by_id.get_many([(organization_id, id_) for id_ in ids])

    async def find_each(self, organization_id: str, ids: Sequence[Sequence[str]]) -> list[list[User]]:
        """Returns, for each list of ids, the users that exist. Reads all lists at once."""
        if not any(ids):
            return [[] for _ in ids]
        users_by_key = await self._by_id.find([(organization_id, id_) for each in ids for id_ in each])
        users = [[users_by_key.get((organization_id, id_)) for id_ in each] for each in ids]
        return [[user for user in each if user is not None] for each in users]

    async def find_handles(self, organization_id: str, handles: Iterable[str]) -> dict[str, User]:
        """Returns the users that have one of the handles, by handle, with one read. Leaves out erased people."""
        distinct = list(set(handles))
        if not distinct:
            return {}
        query = {"_id.org": organization_id, "handle": {"$in": distinct}, "erasing_at": {"$exists": False}}
        cursor = self._users.find(query)
        return {document["handle"]: user_record(document) for document in await cursor.to_list(None)}

    async def search(self, organization_id: str, query: str, limit: int, community_id: str | None = None) -> list[User]:
        """Returns users whose handle, name or a word of the name starts with the query, by handle.

        Leaves out erased people. If `community_id` is not None, members of the community come first.
        """
        terms = {"$elemMatch": prefix_range(query)}
        users: dict[str, User] = {}
        if community_id is not None:
            members = {"community": community_id, "search": terms}
            cursor = self._mongo["memberships"].find(members, {"user": 1}).sort("handle", 1).limit(limit)
            ids = [membership["user"] for membership in await cursor.to_list(None)]
            users = {user.id: user for user in await self.find_many(organization_id, ids) if not user.is_erased}
        if len(users) < limit:
            others = {"_id.org": organization_id, "search": terms, "_id.id": {"$nin": list(users)}}
            others["erasing_at"] = {"$exists": False}
            cursor = self._users.find(others).sort("handle", 1).limit(limit - len(users))
            users |= {user["_id"]["id"]: user_record(user) for user in await cursor.to_list(None)}
        return list(users.values())

    async def _load(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], User]:
        ids = [user_document_id(organization, id_) for organization, id_ in keys]
        users: list[UserDocument] = await self._mongo.find("users", {"_id": {"$in": ids}}, USER_FIELDS)
        return {(user["_id"]["org"], user["_id"]["id"]): user_record(user) for user in users}

    async def _load_lasting_roles(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], frozenset[Role]]:
        ids = [user_document_id(organization, id_) for organization, id_ in keys]
        fields = dict.fromkeys(("roles", "role_seen", "roles_granted", "deactivated_at"), 1)
        users: list[UserDocument] = await self._mongo.find("users", {"_id": {"$in": ids}}, fields)
        since = await self._clock.now() - timedelta(days=self.roles_last_days) - ROLE_SEEN_EVERY
        return {(user["_id"]["org"], user["_id"]["id"]): self._roles_since(user, since) for user in users}

    def _roles_since(self, user: UserDocument, since: datetime) -> frozenset[Role]:
        if "deactivated_at" in user:
            return frozenset()
        if user.get("roles_granted"):
            return frozenset(map(Role, user["roles"]))
        seen = user.get("role_seen")
        roles = user["roles"] if seen is None else [role for role, at in seen.items() if at > since]
        return frozenset(self._limited([Role(role) for role in roles]))


def _email_fields(stored: UserDocument, email: str | None, is_verified: bool) -> Document:
    """Returns the fields to store for the mail address of a token. A token without an address changes nothing."""
    if not email:
        return {}
    # Users without a verified address have no field, so that their tokens cause no write.
    has_field = is_verified or "email_verified" in stored
    return {"email": email, "email_verified": is_verified} if has_field else {"email": email}


def new_user_document(id_: UserDocumentId, handle: str, name: str, roles: Sequence[Role]) -> UserDocument:
    """Returns the document of a user whose roles are not granted yet."""
    return {
        "_id": id_,
        "handle": handle,
        "name": name,
        "search": search_terms(handle, name),
        "roles": [role.value for role in roles],
        "followers": 0,
        "following": 0,
        "at": datetime.now(UTC),
    }


def prefix_range(query: str) -> Document:
    """Returns the condition that a string of `search` starts with the query."""
    folded = fold_for_comparison(query)
    return {"$gte": folded, "$lt": folded + _LAST_CHARACTER}
