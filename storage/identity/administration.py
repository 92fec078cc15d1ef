"""Administration of an organization's users: their roles, and whether they may sign in."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, Forbidden, NotFound
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.invitation_creators import revoke_invitations
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.records import User, user_document_id, user_record
from storage.identity.rights import lock_actor
from storage.identity.roles import Role
from storage.identity.sessions import SessionStore
from storage.identity.users import USER_FIELDS, prefix_range
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session

USERS = "users"


@dataclass(frozen=True, slots=True)
class UserFilter:
    """Which users to list. None selects all."""

    prefix: str | None = None
    """Prefix of a handle, a name or a word of a name."""

    role: Role | None = None
    is_deactivated: bool | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a user's document, and its audit entry."""

    action: AuditAction
    update: Document
    details: dict[str, str]


class UserAdministration:
    """Lists users for administrators, and changes their roles and states.

    Each change locks the documents of the user and of the administrator. If two administrators take each other's role
    away at the same time, only one of them succeeds. An organization therefore keeps its last administrator.
    """

    def __init__(self, mongo: Mongo, audit: AuditLog, access: AccessChanges, sessions: SessionStore) -> None:
        self._mongo = mongo
        self._audit = audit
        self._access = access
        self._sessions = sessions
        self._users: AsyncCollection[UserDocument] = mongo[USERS]

    async def list_users(
        self, organization_id: str, user_filter: UserFilter, after_handle: str | None, limit: int
    ) -> list[User]:
        """Returns users ordered by handle: those after `after_handle`, or from the first if it is None."""
        query: Document = {"_id.org": organization_id}
        if user_filter.prefix is not None:
            query["search"] = {"$elemMatch": prefix_range(user_filter.prefix)}
        if user_filter.role is not None:
            query["roles"] = user_filter.role.value
        if user_filter.is_deactivated is not None:
            query["deactivated_at"] = {"$exists": user_filter.is_deactivated}
        if after_handle is not None:
            query["handle"] = {"$gt": after_handle}
        rows = await self._mongo.find(USERS, query, USER_FIELDS, sort=[("handle", 1)], limit=limit)
        return [user_record(row) for row in rows]

    async def set_roles(self, actor: Actor, user_id: str, roles: Collection[Role]) -> User:
        """Replaces a user's roles. From then on, tokens can narrow the roles but not change them.

        Raises: NotFound; Forbidden if the actor is the user, or is no administrator any more; Conflict for
        an erased user.
        """
        values = sorted(role.value for role in roles)

        def plan(user: UserDocument, at: datetime) -> _Change | None:
            if user.get("roles_granted") and sorted(user["roles"]) == values:
                return None
            details = {"before": ", ".join(sorted(user["roles"])), "after": ", ".join(values)}
            update = {"$set": {"roles": values, "roles_granted": True}}
            return _Change(AuditAction.USER_ROLES_SET, update, details)

        return await self._change(actor, user_id, plan)

    async def deactivate(self, actor: Actor, user_id: str, reason: str) -> User:
        """Ends a user's sessions, and access until an administrator reactivates the user. Idempotent.

        Raises: NotFound; Forbidden if the actor is the user, or is no administrator any more; Conflict for
        an erased user.
        """

        def plan(user: UserDocument, at: datetime) -> _Change | None:
            if "deactivated_at" in user:
                return None
            return _Change(AuditAction.USER_DEACTIVATED, {"$set": {"deactivated_at": at}}, {"reason": reason})

        return await self._change(actor, user_id, plan)

    async def reactivate(self, actor: Actor, user_id: str) -> User:
        """Lets a deactivated user sign in again, with the roles from before. Idempotent.

        Raises: NotFound; Forbidden if the actor is the user, or is no administrator any more; Conflict for
        an erased user.
        """

        def plan(user: UserDocument, at: datetime) -> _Change | None:
            if "deactivated_at" not in user:
                return None
            return _Change(AuditAction.USER_REACTIVATED, {"$unset": {"deactivated_at": ""}}, {})

        return await self._change(actor, user_id, plan)

    async def end_sessions(self, actor: Actor, user_id: str, reason: str, session_id: str | None = None) -> int:
        """Ends all sessions of a user, or only one. The user keeps access and may sign in again.

        Returns how many sessions have ended; 0 if there were none. Raises: NotFound, also for a session that has ended;
        Forbidden if the actor is no administrator any more.
        """
        key = UserKey(actor.organization_id, user_id)

        async def work(session: Session) -> int:
            at = await lock_actor(self._mongo, actor, session)
            if await self._users.find_one({"_id": user_document_id(*key)}, {"_id": 1}, session=session) is None:
                raise NotFound("user", user_id)
            count = await self._end_sessions(session, key, session_id)
            if count:
                details = {"sessions": str(count), "reason": reason}
                entry = audit_document(actor, AuditAction.USER_SESSIONS_ENDED, TargetKind.USER, user_id, at, **details)
                await self._audit.insert(entry, session)
                await self._access.record(key, at, session)
            return count

        return await self._mongo.transact(work)

    async def _end_sessions(self, session: Session, user: UserKey, session_id: str | None) -> int:
        if session_id is None:
            return await self._sessions.end_all_in_transaction(session, user)
        await self._sessions.end_in_transaction(session, user, session_id)
        return 1

    async def _change(
        self, actor: Actor, user_id: str, plan: Callable[[UserDocument, datetime], _Change | None]
    ) -> User:
        organization_id = actor.organization_id
        if actor.user_id == user_id:
            raise Forbidden("Another administrator has to change your roles and your access.")

        async def work(session: Session) -> User:
            at = await lock_actor(self._mongo, actor, session)
            user = await self._users.find_one({"_id": user_document_id(organization_id, user_id)}, session=session)
            if user is None:
                raise NotFound("user", user_id)
            if "erasing_at" in user:
                raise Conflict("The user was erased, or is being erased.")
            change = plan(user, at)
            if change is None:
                return user_record(user)
            entry = audit_document(actor, change.action, TargetKind.USER, user_id, at, **change.details)
            await self._audit.insert(entry, session)
            await self._access.record(UserKey(organization_id, user_id), at, session)
            if change.action is not AuditAction.USER_ROLES_SET:
                # A sign-in that read the user before the deactivation may have begun a session after it.
                await self._sessions.end_all_in_transaction(session, UserKey(organization_id, user_id))
            key = {"_id": user["_id"]}
            updated: UserDocument = await self._mongo.find_one_and_update(USERS, key, change.update, session)
            await revoke_invitations(self._mongo, updated, actor, at, session)
            return user_record(updated)

        return await self._mongo.transact(work)
