"""Changes of handles by their users (ADR 95)."""

from datetime import datetime, timedelta

from storage.errors import Conflict, RateLimited
from storage.identity.audit import Actor
from storage.identity.documents import FormerHandle, UserDocument
from storage.identity.handles.names import USERS, store_names
from storage.identity.handles.reserved import ReservedHandles
from storage.identity.records import User, user_document_id, user_record
from storage.identity.rights import lock_actor
from storage.identity.roles import Role
from storage.indexes.lifetimes import HANDLES_KEPT_S
from storage.mongo import Document, Mongo, Session

HANDLE_PAUSE_DAYS = 30
"""Days after a change of the handle until the next one. The first change of a user is always allowed."""


class HandleChanges:
    """Changes handles. The old handle is reserved for its user in the same transaction."""

    def __init__(self, mongo: Mongo, reserved: ReservedHandles) -> None:
        self._mongo = mongo
        self._reserved = reserved

    async def change(self, actor: Actor, handle: str) -> User:
        """Gives the actor another handle. Does nothing if the actor has this handle. Returns the user.

        Raises: Conflict if another user has the handle, or it is reserved for one; RateLimited if the last change is
        too recent; Forbidden without the role MEMBER.
        """
        query = {"_id": user_document_id(actor.organization_id, actor.user_id)}

        async def work(session: Session) -> User:
            # Locks the user's document: of concurrent changes and erasures, each sees the one before it.
            at = await lock_actor(self._mongo, actor, session, Role.MEMBER)
            stored: list[UserDocument] = await self._mongo.find(USERS, query, session=session)
            user = stored[0]
            if user["handle"] == handle:
                return user_record(user)
            _require_pause(user, at)
            await self._require_free(user, handle, at, session)
            return await self._store(user, handle, at, session)

        return await self._mongo.transact(work)

    async def _require_free(self, user: UserDocument, handle: str, at: datetime, session: Session) -> None:
        """Raises Conflict if the user can't have the handle. The unique index decides between concurrent changes."""
        organization_id = user["_id"]["org"]
        query = {"_id.org": organization_id, "handle": handle}
        is_taken = bool(await self._mongo.find(USERS, query, {"_id": 1}, limit=1, session=session))
        is_own = any(each["handle"] == handle for each in _kept(user, at))
        if is_taken or (not is_own and await self._reserved.is_reserved(organization_id, handle, session)):
            raise Conflict(f"The handle {handle} is taken, or was until recently. Choose another one.")

    async def _store(self, user: UserDocument, handle: str, at: datetime, session: Session) -> User:
        old = user["handle"]
        former = [each for each in _kept(user, at) if each["handle"] not in (old, handle)]
        changes: Document = {"handle": handle, "handle_changed_at": at}
        changes["former_handles"] = [*former, {"handle": old, "at": at}]
        changed = await store_names(self._mongo, user, changes, session)
        await self._reserved.reserve(user["_id"]["org"], old, session)
        return user_record(changed)


def _require_pause(user: UserDocument, at: datetime) -> None:
    """Raises RateLimited if the user has changed the handle recently."""
    if "handle_changed_at" not in user:
        return
    possible_at = user["handle_changed_at"] + timedelta(days=HANDLE_PAUSE_DAYS)
    if possible_at > at:
        days = -((at - possible_at) // timedelta(days=1))
        message = f"You can change your handle again in {days} day{'' if days == 1 else 's'}."
        raise RateLimited(message, -((at - possible_at) // timedelta(milliseconds=1)))


def _kept(user: UserDocument, at: datetime) -> list[FormerHandle]:
    """Returns the former handles that are still reserved for the user."""
    since = at - timedelta(seconds=HANDLES_KEPT_S)
    return [each for each in user.get("former_handles", []) if each["at"] > since]
