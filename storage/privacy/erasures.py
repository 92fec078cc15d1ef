"""Requests to erase users, and the progress of the erasures. storage/privacy/steps.py has the steps."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import BadUserInput, Forbidden, NotFound
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.invitation_creators import revoke_invitations
from storage.identity.administration import USERS
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.handles.reserved import ReservedHandles
from storage.identity.records import user_document_id
from storage.identity.rights import lock_actor
from storage.identity.roles import Role
from storage.identity.sessions import SessionStore
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session, due_filter, literals, seconds_from_now
from storage.privacy.documents import ERASURES, ErasureDocument

BEGIN_AFTER_S = 30
"""An erasure begins this long after its request. Requests and jobs that began earlier have ended by then."""

CLAIMED_S = 15
"""How long a worker's claim lasts. Each batch of documents renews it."""

POSTPONED_S = 1
"""An erasure that waits for other work, such as the removal of posts from feeds, tries again after this time."""


class ErasureState(Enum):
    """State of an erasure."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True)
class UserErasure:
    """An erasure as read from the database."""

    organization_id: str
    user_id: str
    state: ErasureState
    requested_at: datetime
    requested_by_id: str
    steps_done: int
    completed_at: datetime | None

    @property
    def person(self) -> UserKey:
        """The person to erase."""
        return UserKey(self.organization_id, self.user_id)


class ErasureStore:
    """Stores requests and their progress. Workers claim requests."""

    def __init__(self, mongo: Mongo, access: AccessChanges, sessions: SessionStore) -> None:
        self._mongo = mongo
        self._access = access
        self._sessions = sessions
        self._handles = ReservedHandles(mongo)
        self._erasures: AsyncCollection[ErasureDocument] = mongo[ERASURES]

    async def request(self, actor: Actor, user_id: str, handle: str) -> UserErasure:
        """Ends the user's access for good, and stores a request to erase everything about the user. Idempotent.

        Raises: NotFound; BadUserInput if the handle is not the user's; Forbidden if the actor is neither the user nor
        an administrator, and for administrators who request the erasure of themselves.
        """
        key = user_document_id(actor.organization_id, user_id)

        async def work(session: Session) -> ErasureDocument:
            if actor.user_id != user_id:
                await lock_actor(self._mongo, actor, session)
            user: UserDocument | None = await self._mongo[USERS].find_one({"_id": key}, session=session)
            if user is None:
                raise NotFound("user", user_id)
            earlier: ErasureDocument | None = await self._erasures.find_one({"_id": key}, session=session)
            if "erasing_at" in user and earlier is not None:
                return earlier
            _check(actor, user, handle)
            return await self._begin(actor, user, session)

        return _record(await self._mongo.transact(work))

    async def _begin(self, actor: Actor, user: UserDocument, session: Session) -> ErasureDocument:
        deactivate = [{"$set": {"erasing_at": "$$NOW", "deactivated_at": {"$ifNull": ["$deactivated_at", "$$NOW"]}}}]
        deactivated = await self._mongo.find_one_and_update(USERS, {"_id": user["_id"]}, deactivate, session)
        at, key = deactivated["erasing_at"], UserKey(*user["_id"].values())  # type: ignore[arg-type]
        entry = audit_document(actor, AuditAction.USER_ERASED, TargetKind.USER, key.user_id, at)
        await AuditLog(self._mongo).insert(entry, session)
        await self._access.record(key, at, session)
        await self._sessions.end_all_in_transaction(session, key)
        await revoke_invitations(self._mongo, deactivated, actor, at, session)
        await self._handles.reserve(key.organization_id, user["handle"], session)
        fields = {"at": "$$NOW", **literals({"requested_by": actor.user_id, "steps_done": 0, "changed": 0})}
        update = [{"$set": {**fields, "due": seconds_from_now(BEGIN_AFTER_S)}}]
        erasure: ErasureDocument = await self._mongo.find_one_and_update(
            ERASURES, {"_id": user["_id"]}, update, session, upsert=True
        )
        return erasure

    async def find(self, organization_id: str, user_id: str) -> UserErasure | None:
        """Returns the erasure of a user, or None."""
        document = await self._erasures.find_one({"_id": user_document_id(organization_id, user_id)})
        return None if document is None else _record(document)

    async def list_erasures(self, organization_id: str, after: str | None, limit: int) -> list[UserErasure]:
        """Returns a page of erasures, the newest first. It follows the erasure of the user `after`, if given.

        Raises: NotFound if `after` has no erasure.
        """
        query: Document = {"_id.org": organization_id}
        if after is not None:
            last = await self.find(organization_id, after)
            if last is None:
                raise NotFound("erasure of the user", after)
            query["$or"] = [
                {"at": {"$lt": last.requested_at}},
                {"at": last.requested_at, "_id.id": {"$lt": last.user_id}},
            ]
        order = [("at", -1), ("_id.id", -1)]
        rows: list[ErasureDocument] = await self._mongo.find(ERASURES, query, sort=order, limit=limit)
        return [_record(row) for row in rows]

    async def claim(self) -> UserErasure | None:
        """Claims an erasure that is due, or returns None."""
        query = due_filter("due")
        document = await self._mongo.write_past_orphans(
            lambda: self._erasures.find_one_and_update(
                query, _due_in(CLAIMED_S), sort=[("due", 1)], return_document=ReturnDocument.AFTER
            )
        )
        return None if document is None else _record(document)

    async def add_progress(self, erasure: UserErasure, changed: int) -> None:
        """Counts changed objects, and renews the claim."""
        await self._continue(erasure, {"changed": {"$add": ["$changed", changed]}})

    async def finish_step(self, erasure: UserErasure, step: int) -> None:
        """Stores that a step is completed, and renews the claim. Steps are counted from 0."""
        await self._continue(erasure, {"steps_done": {"$max": ["$steps_done", step + 1]}})

    async def postpone(self, erasure: UserErasure) -> None:
        """Ends the claim. The erasure is due again a second later."""
        await self._update({**_key(erasure), "due": {"$exists": True}}, _due_in(POSTPONED_S))

    async def complete(self, erasure: UserErasure) -> None:
        """Stores that all steps are done."""
        change: list[Document] = [{"$set": {"completed_at": "$$NOW"}}, {"$unset": "due"}]
        await self._update({**_key(erasure), "completed_at": {"$exists": False}}, change)

    async def _continue(self, erasure: UserErasure, fields: Document) -> None:
        query = {**_key(erasure), "due": {"$exists": True}}
        await self._update(query, [{"$set": fields}, *_due_in(CLAIMED_S)])

    async def _update(self, query: Document, update: list[Document]) -> None:
        """Updates an erasure. A process that was killed in a transaction may have left a lock on it."""
        await self._mongo.write_past_orphans(lambda: self._erasures.update_one(query, update))


def _check(actor: Actor, user: UserDocument, handle: str) -> None:
    if handle.strip().removeprefix("@") != user["handle"]:
        raise BadUserInput("handle", "the handle of the user to erase, as a confirmation")
    if actor.user_id == user["_id"]["id"] and Role.ADMIN.value in user["roles"]:
        raise Forbidden("Another administrator has to erase your account.")


def _key(erasure: UserErasure) -> Document:
    return {"_id": user_document_id(erasure.organization_id, erasure.user_id)}


def _due_in(delay_s: int) -> list[Document]:
    return [{"$set": {"due": seconds_from_now(delay_s)}}]


def _record(document: ErasureDocument) -> UserErasure:
    completed_at = document.get("completed_at")
    state = ErasureState.COMPLETED if completed_at else ErasureState.PENDING
    if completed_at is None and document["steps_done"]:
        state = ErasureState.RUNNING
    return UserErasure(
        organization_id=document["_id"]["org"],
        user_id=document["_id"]["id"],
        state=state,
        requested_at=document["at"],
        requested_by_id=document["requested_by"],
        steps_done=document["steps_done"],
        completed_at=completed_at,
    )
