"""Creates, rotates, revokes and lists service keys, each change with its entry of the audit log."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import BadUserInput, Conflict, NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey, store_key
from storage.identity.access_changes import AccessChanges
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import ServiceKeyDocument, StoredSecret, UserDocument
from storage.identity.handles.suggestions import free_handle, suggest_handle
from storage.identity.keys.records import IssuedKey, NewServiceKey, ServiceKey, key_record
from storage.identity.keys.scopes import roles_of_scopes
from storage.identity.keys.secrets import key_digest, new_key_text
from storage.identity.records import user_document_id
from storage.identity.rights import lock_actor
from storage.identity.users import new_user_document
from storage.ids import UserKey, new_id
from storage.mongo import Document, Mongo, Session
from storage.mongo.clock import DatabaseClock
from storage.secrets.rotation import rotated

SERVICE_KEYS = "service_keys"
MAX_ACTIVE_KEYS = 100

_PlannedUpdate = tuple[Document, AuditAction, dict[str, str]]
"""The update of a key, and the action and the details of its audit entry."""


class ServiceKeyStore:
    """The service keys of organizations. Each change locks the administrator who makes it."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._clock = DatabaseClock(mongo)
        self._audit = AuditLog(mongo)
        self._access = AccessChanges(mongo)
        self._keys: AsyncCollection[ServiceKeyDocument] = mongo[SERVICE_KEYS]
        self._users: AsyncCollection[UserDocument] = mongo["users"]

    async def create(self, actor: Actor, new: NewServiceKey, key: IdempotencyKey | None = None) -> IssuedKey:
        """Creates a key and its service account. A repeated idempotency key returns the same key without its secret.

        Raises: Forbidden for an actor who is no administrator any more; BadUserInput for an expiry in the past;
        Conflict for a hundred active keys, and for an idempotency key with other arguments.
        """
        id_ = new_id()
        text = new_key_text(id_)

        async def work(session: Session) -> None:
            at = await lock_actor(self._mongo, actor, session)
            await store_key(self._mongo, key, id_, session)
            if new.expires_at is not None and new.expires_at <= at:
                raise BadUserInput("expiresAt", "an instant in the future")
            await self._require_room(actor.organization_id, at, session)
            await self._insert(actor, id_, text, new, at, session)

        try:
            await self._mongo.transact(work)
        except DuplicateRequest as earlier:
            return IssuedKey(await self.get(actor.organization_id, earlier.result_id), None)
        return IssuedKey(await self.get(actor.organization_id, id_), text)

    async def _require_room(self, organization_id: str, at: datetime, session: Session) -> None:
        active = {"org": organization_id, "$or": [{"ends_at": {"$exists": False}}, {"ends_at": {"$gt": at}}]}
        found = await self._mongo.find(SERVICE_KEYS, active, {"_id": 1}, limit=MAX_ACTIVE_KEYS, session=session)
        if len(found) >= MAX_ACTIVE_KEYS:
            raise Conflict(f"An organization has at most {MAX_ACTIVE_KEYS} active service keys. Revoke one first.")

    async def _insert(
        self, actor: Actor, id_: str, text: str, new: NewServiceKey, at: datetime, session: Session
    ) -> None:
        organization_id = actor.organization_id
        roles = sorted(roles_of_scopes(new.scopes), key=lambda role: role.value)
        handle = await free_handle(self._mongo, organization_id, suggest_handle(new.name), session)
        account = new_user_document(user_document_id(organization_id, id_), handle, new.name, roles)
        account |= {"roles_granted": True, "service": True, "at": at}
        await self._users.insert_one(account, session=session)
        document: ServiceKeyDocument = {
            "_id": id_,
            "org": organization_id,
            "name": new.name,
            "scopes": list(new.scopes),
            "secrets": [{"digest": key_digest(text)}],
            "created_at": at,
            "created_by": actor.user_id,
        }
        details = {"name": new.name, "scopes": ", ".join(new.scopes)}
        if new.expires_at is not None:
            document["expires_at"] = document["ends_at"] = new.expires_at
            details["expiresAt"] = new.expires_at.isoformat()
        await self._keys.insert_one(document, session=session)
        action, kind = AuditAction.SERVICE_KEY_CREATED, TargetKind.SERVICE_KEY
        await self._audit.insert(audit_document(actor, action, kind, id_, at, **details), session)

    async def rotate(self, actor: Actor, id_: str, grace_s: int, key: IdempotencyKey | None = None) -> IssuedKey:
        """Issues a new secret. The present secret stays valid for `grace_s` seconds.

        A repeated idempotency key issues no further secret. Raises: NotFound; Forbidden as in `create`; Conflict for a
        key that has ended, or that has too many valid secrets.
        """
        text = new_key_text(id_)

        async def plan(document: ServiceKeyDocument, at: datetime, session: Session) -> _PlannedUpdate:
            await store_key(self._mongo, key, id_, session)
            if _has_ended(document, at):
                raise Conflict("The service key has ended. Create a new one.")
            newest: StoredSecret = {"digest": key_digest(text), "by": actor.user_id}
            secrets = rotated(document["secrets"], newest, at, grace_s)
            return {"$set": {"secrets": secrets}}, AuditAction.SERVICE_KEY_ROTATED, {"graceS": str(grace_s)}

        try:
            return IssuedKey(await self._change(actor, id_, plan), text)
        except DuplicateRequest:
            return IssuedKey(await self.get(actor.organization_id, id_), None)

    async def revoke(self, actor: Actor, id_: str) -> ServiceKey:
        """Ends a key for good. Idempotent; a key that has expired stays as it is. Raises: NotFound, Forbidden."""

        async def plan(document: ServiceKeyDocument, at: datetime, session: Session) -> _PlannedUpdate | None:
            if _has_ended(document, at):
                return None
            return {"$set": {"revoked_at": at, "ends_at": at}}, AuditAction.SERVICE_KEY_REVOKED, {}

        return await self._change(actor, id_, plan)

    async def _change(
        self,
        actor: Actor,
        id_: str,
        plan: Callable[[ServiceKeyDocument, datetime, Session], Awaitable[_PlannedUpdate | None]],
    ) -> ServiceKey:
        """Applies the planned update, and makes every process authenticate the key again."""

        async def work(session: Session) -> ServiceKey:
            at = await lock_actor(self._mongo, actor, session)
            query = {"_id": id_, "org": actor.organization_id}
            document = await self._keys.find_one(query, session=session)
            if document is None:
                raise NotFound("service key", id_)
            planned = await plan(document, at, session)
            if planned is None:
                return key_record(document, at)
            update, action, details = planned
            entry = audit_document(actor, action, TargetKind.SERVICE_KEY, id_, at, **details)
            await self._audit.insert(entry, session)
            await self._access.record(UserKey(actor.organization_id, id_), at, session)
            return key_record(await self._mongo.find_one_and_update(SERVICE_KEYS, query, update, session), at)

        return await self._mongo.transact(work)

    async def now(self) -> datetime:
        """Returns the database's time, by which keys expire."""
        return await self._clock.now()

    async def get(self, organization_id: str, id_: str) -> ServiceKey:
        """Returns the organization's key of that id. Raises: NotFound."""
        document = await self._keys.find_one({"_id": id_, "org": organization_id})
        if document is None:
            raise NotFound("service key", id_)
        return key_record(document, await self._clock.now())

    async def list_keys(self, organization_id: str, after: str | None, limit: int) -> list[ServiceKey]:
        """Returns keys, the newest first: those after the key `after`, or from the newest if it is None."""
        query: Document = {"org": organization_id}
        if after is not None:
            query["_id"] = {"$lt": (await self.get(organization_id, after)).id}
        rows: list[ServiceKeyDocument] = await self._mongo.find(SERVICE_KEYS, query, sort=[("_id", -1)], limit=limit)
        now = await self._clock.now()
        return [key_record(row, now) for row in rows]


def _has_ended(document: ServiceKeyDocument, at: datetime) -> bool:
    return "ends_at" in document and document["ends_at"] <= at
