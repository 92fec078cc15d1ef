"""Requests to erase users, and the progress of the erasures. storage/privacy/steps.py has the steps."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import BadUserInput, Forbidden, NotFound
from storage.identity.access_changes import AccessChanges, UserKey
from storage.identity.administration import USERS
from storage.identity.administrators import lock_administrator
from storage.identity.audit import AUDIT, Actor, AuditAction, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.handles import ReservedHandles
from storage.identity.privacy_rules import Person
from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.identity.sessions import SessionStore
from storage.mongo import Document, Mongo, Session, older_than
from storage.privacy.documents import ERASURES, ErasureDocument

BEGIN_AFTER_S = 30
"""How long an erasure waits, so that requests and jobs that began before it have ended."""

CLAIMED_S = 15
"""How long a worker's claim lasts. Each batch of documents renews it."""

WAIT_S = 1
"""How long an erasure waits for other work, such as the removal of posts from feeds."""


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
    changed_objects: int
    completed_at: datetime | None

    @property
    def person(self) -> Person:
        """The person to erase."""
        return Person(self.organization_id, self.user_id)


class ErasureStore:
    """Stores requests, and hands them out to workers."""

    def __init__(self, mongo: Mongo, access: AccessChanges, sessions: SessionStore) -> None:
        self._mongo = mongo
        self._access = access
        self._sessions = sessions
        self._handles = ReservedHandles(mongo)
        self._erasures: AsyncCollection[ErasureDocument] = mongo[ERASURES]

    async def request(self, actor: Actor, user_id: str, handle: str) -> UserErasure:
        """Ends the user's access for good, and has everything about the user erased. Idempotent.

        Raises: NotFound; BadUserInput if the handle is not the user's; Forbidden if the actor is neither the user nor
        an administrator, or is an administrator and the user.
        """
        key = user_document_id(actor.organization_id, user_id)

        async def work(session: Session) -> ErasureDocument:
            if actor.user_id != user_id:
                await lock_administrator(self._mongo, actor, session)
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
        end = [{"$set": {"erasing_at": "$$NOW", "deactivated_at": {"$ifNull": ["$deactivated_at", "$$NOW"]}}}]
        erasing = await self._mongo.find_one_and_update(USERS, {"_id": user["_id"]}, end, session)
        at, key = erasing["erasing_at"], UserKey(*user["_id"].values())  # type: ignore[arg-type]
        entry = audit_document(actor, AuditAction.USER_ERASED, TargetKind.USER, key.user_id, at)
        await self._mongo[AUDIT].insert_one(entry, session=session)
        await self._access.record(key, at, session)
        await self._sessions.end_all_in(session, key)
        await self._handles.reserve(key.organization_id, user["handle"], session)
        fields = {"requested_by": actor.user_id, "at": "$$NOW", "steps_done": 0, "changed": 0}
        due = {"due": {"$add": ["$$NOW", BEGIN_AFTER_S * 1000]}}
        update = [{"$set": {**fields, **due}}]
        erasure: ErasureDocument = await self._mongo.find_one_and_update(
            ERASURES, {"_id": user["_id"]}, update, session, upsert=True
        )
        return erasure

    async def find(self, organization_id: str, user_id: str) -> UserErasure | None:
        """Returns the erasure of a user, or None."""
        document = await self._erasures.find_one({"_id": user_document_id(organization_id, user_id)})
        return None if document is None else _record(document)

    async def list_erasures(self, organization_id: str, after: str | None, limit: int) -> list[UserErasure]:
        """Returns erasures, the newest first: those before that of the user `after`, or from the newest.

        Raises: NotFound if `after` has no erasure.
        """
        query: Document = {"_id.org": organization_id}
        if after is not None:
            last = await self.find(organization_id, after)
            if last is None:
                raise NotFound("erasure of the user", after)
            query["at"] = {"$lt": last.requested_at}
        rows: list[ErasureDocument] = await self._mongo.find(ERASURES, query, sort=[("at", -1)], limit=limit)
        return [_record(row) for row in rows]

    async def claim(self) -> UserErasure | None:
        """Claims an erasure that is due, or returns None."""
        query = {"due": {"$exists": True}, **older_than("due", 0)}
        document = await self._erasures.find_one_and_update(
            query, _due_in(CLAIMED_S), sort=[("due", 1)], return_document=ReturnDocument.AFTER
        )
        return None if document is None else _record(document)

    async def add_progress(self, erasure: UserErasure, changed: int) -> None:
        """Counts changed objects, and renews the claim."""
        await self._continue(erasure, {"changed": {"$add": ["$changed", changed]}})

    async def finish_step(self, erasure: UserErasure, step: int) -> None:
        """Stores that a step is done, counted from 0, and renews the claim."""
        await self._continue(erasure, {"steps_done": {"$max": ["$steps_done", step + 1]}})

    async def postpone(self, erasure: UserErasure) -> None:
        """Ends the claim, and continues a second later."""
        await self._erasures.update_one({**_key(erasure), "due": {"$exists": True}}, _due_in(WAIT_S))

    async def complete(self, erasure: UserErasure) -> None:
        """Stores that all steps are done."""
        change: list[Document] = [{"$set": {"completed_at": "$$NOW"}}, {"$unset": "due"}]
        await self._erasures.update_one({**_key(erasure), "completed_at": {"$exists": False}}, change)

    async def _continue(self, erasure: UserErasure, fields: Document) -> None:
        query = {**_key(erasure), "due": {"$exists": True}}
        await self._erasures.update_one(query, [{"$set": fields}, *_due_in(CLAIMED_S)])


def _check(actor: Actor, user: UserDocument, handle: str) -> None:
    if handle.strip().removeprefix("@") != user["handle"]:
        raise BadUserInput("handle", "the handle of the user to erase, as a confirmation")
    if actor.user_id == user["_id"]["id"] and Role.ADMIN.value in user["roles"]:
        raise Forbidden("Another administrator has to erase your account.")


def _key(erasure: UserErasure) -> Document:
    return {"_id": user_document_id(erasure.organization_id, erasure.user_id)}


def _due_in(delay_s: int) -> list[Document]:
    return [{"$set": {"due": {"$add": ["$$NOW", delay_s * 1000]}}}]


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
        changed_objects=document["changed"],
        completed_at=completed_at,
    )
