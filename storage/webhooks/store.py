"""Creates, changes and deletes webhooks, each change with its entry of the audit log."""

import base64
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey, store_key
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.mongo.clock import DatabaseClock
from storage.secrets.credentials import CredentialCipher
from storage.secrets.rotation import rotated
from storage.secrets.webhook_keys import PREFIX
from storage.webhooks.documents import WebhookDocument, WebhookPositionDocument, WebhookSecret
from storage.webhooks.positions import POSITIONS, filter_of_webhook
from storage.webhooks.records import (
    DisabledReason,
    IssuedWebhook,
    NewWebhook,
    Webhook,
    WebhookFilter,
    WebhookFormat,
    webhook_record,
)

WEBHOOKS = "webhooks"
MAX_WEBHOOKS = 20
SECRET_BYTES = 32

OVERLAP_S = 60
"""After a change of what is sent, streams without a position begin this long before the change.

A search of the log may find events of the last seconds only after the change.
"""


@dataclass(frozen=True, slots=True)
class WebhookManager:
    """An ADMIN, or a service key, which manages the webhooks that read as this key."""

    actor: Actor
    key_id: str | None = None
    """None for an ADMIN."""

    @property
    def role(self) -> Role:
        """The role that the manager needs."""
        return Role.ADMIN if self.key_id is None else Role.SERVICE

    def query(self, id_: str) -> Document:
        """Returns the filter for a webhook that the manager may change."""
        of_key = {} if self.key_id is None else {"key": self.key_id}
        return {"_id": id_, "org": self.actor.organization_id, **of_key}


@dataclass(frozen=True, slots=True)
class _Plan:
    """The update of a webhook, and the action and the details of its audit entry."""

    update: Document
    action: AuditAction
    details: dict[str, str]


_PlanChange = Callable[[WebhookDocument, datetime, Session], Awaitable[_Plan | None]]


class WebhookStore:
    """The webhooks of organizations."""

    def __init__(self, mongo: Mongo, cipher: CredentialCipher, audit: AuditLog, clock: DatabaseClock) -> None:
        self._mongo, self._cipher, self._audit, self._clock = mongo, cipher, audit, clock
        self._webhooks: AsyncCollection[WebhookDocument] = mongo[WEBHOOKS]
        self._positions: AsyncCollection[WebhookPositionDocument] = mongo[POSITIONS]

    async def create(self, manager: WebhookManager, new: NewWebhook, key: IdempotencyKey | None) -> IssuedWebhook:
        """Creates a webhook, which sends later events. A repeated key returns it without its secret.

        Raises: Forbidden for an actor who lost the role; Conflict for 20 webhooks, and for an idempotency key with
        other arguments; Unavailable without encryption keys.
        """
        id_, secret = new_id(), _new_secret()
        sealed: WebhookSecret = {"secret": self._cipher.seal(secret, id_)}
        organization_id = manager.actor.organization_id

        async def work(session: Session) -> None:
            at = await lock_actor(self._mongo, manager.actor, session, manager.role)
            await store_key(self._mongo, key, id_, session)
            found = await self._mongo.find(
                WEBHOOKS, {"org": organization_id}, {"_id": 1}, limit=MAX_WEBHOOKS, session=session
            )
            if len(found) >= MAX_WEBHOOKS:
                raise Conflict(f"An organization has at most {MAX_WEBHOOKS} webhooks. Delete one first.")
            document = _new_document(id_, manager.actor, new, sealed, at)
            await self._webhooks.insert_one(document, session=session)
            details = {"name": new.name, "url": new.url, "serviceKeyId": new.key_id}
            await self._record(manager, AuditAction.WEBHOOK_CREATED, id_, at, session, details)

        try:
            await self._mongo.transact(work)
        except DuplicateRequest as earlier:
            return IssuedWebhook(await self.get(manager, earlier.result_id), None)
        return IssuedWebhook(await self.get(manager, id_), secret)

    async def change(
        self,
        manager: WebhookManager,
        id_: str,
        name: str,
        url: str,
        filter_: WebhookFilter,
        format_: WebhookFormat | None = None,
    ) -> Webhook:
        """Replaces the name, the address and what is sent. A format of None stays. Idempotent.

        Raises: NotFound, Forbidden.
        """

        async def plan(document: WebhookDocument, at: datetime, _session: Session) -> _Plan | None:
            fields: Document = {"name": name, "url": url, **_filter_fields(filter_)}
            if format_ is not None:
                fields["format"] = format_.value
            if all(document.get(field) == value for field, value in fields.items()):
                return None
            fields["start"] = at - timedelta(seconds=OVERLAP_S)
            update = _interrupting(document, fields, at)
            return _Plan(update, AuditAction.WEBHOOK_CHANGED, {"name": name, "url": url})

        return await self._change(manager, id_, plan)

    async def rotate(
        self, manager: WebhookManager, id_: str, grace_s: int, key: IdempotencyKey | None
    ) -> IssuedWebhook:
        """Issues a new secret. For `grace_s` seconds, requests are also signed by the present one.

        A repeated idempotency key issues no further secret. Raises: NotFound, Forbidden; Conflict while too many
        secrets are valid; Unavailable without encryption keys.
        """
        secret = _new_secret()
        sealed: WebhookSecret = {"secret": self._cipher.seal(secret, id_)}

        async def plan(document: WebhookDocument, at: datetime, session: Session) -> _Plan:
            await store_key(self._mongo, key, id_, session)
            stored = rotated(document["secrets"], sealed, at, grace_s)
            update = _interrupting(document, {"secrets": stored}, at)
            return _Plan(update, AuditAction.WEBHOOK_SECRET_ROTATED, {"graceS": str(grace_s)})

        try:
            return IssuedWebhook(await self._change(manager, id_, plan), secret)
        except DuplicateRequest:
            return IssuedWebhook(await self.get(manager, id_), None)

    async def disable(self, manager: WebhookManager, id_: str) -> Webhook:
        """Stops sending. Idempotent. Raises: NotFound, Forbidden."""

        async def plan(document: WebhookDocument, at: datetime, _session: Session) -> _Plan | None:
            if "disabled_at" in document:
                return None
            update = disabling_update(at, DisabledReason.REQUESTED)
            return _Plan(update, AuditAction.WEBHOOK_DISABLED, {})

        return await self._change(manager, id_, plan)

    async def enable(self, manager: WebhookManager, id_: str) -> Webhook:
        """Sends again, beginning with the events that were not delivered. Idempotent. Raises: NotFound, Forbidden."""

        async def plan(document: WebhookDocument, at: datetime, _session: Session) -> _Plan | None:
            if "disabled_at" not in document:
                return None
            since = document.get("failing_since", document["disabled_at"]) - timedelta(seconds=OVERLAP_S)
            names = ("disabled_at", "disabled_reason", "failing_since", "failing_message", "error", "notice_due")
            fields: Document = {"due": at, "scan": {"since": since, "rewinds": False}}
            update = {"$set": fields, "$unset": dict.fromkeys(names, ""), "$inc": {"marks": 1}}
            return _Plan(update, AuditAction.WEBHOOK_ENABLED, {})

        return await self._change(manager, id_, plan)

    async def replay_since(self, manager: WebhookManager, id_: str, since: datetime) -> Webhook:
        """Sends all events since an instant again, as far as the log has them.

        Raises: NotFound, Forbidden; Conflict for a disabled webhook.
        """

        async def plan(document: WebhookDocument, at: datetime, _session: Session) -> _Plan:
            _require_enabled(document)
            update = _interrupting(document, {"scan": {"since": since, "rewinds": True}}, at)
            return _Plan(update, AuditAction.WEBHOOK_REPLAYED, {"since": since.isoformat()})

        return await self._change(manager, id_, plan)

    async def replay_after(self, manager: WebhookManager, id_: str, digest: str, epoch: str, n: int) -> Webhook:
        """Sends the events of one stream after event `n` again. `digest` identifies the stream.

        Raises: NotFound, Forbidden; Conflict for a disabled webhook, or if no event of the stream was ever sent.
        """

        async def plan(document: WebhookDocument, at: datetime, session: Session) -> _Plan:
            _require_enabled(document)
            fields = {"n": n, "epoch": epoch, "waiting_since": at, "at": at}
            query = {"_id.w": id_, "digest": digest, "last": {"$gte": n}}
            moved = await self._positions.update_one(query, {"$set": fields}, session=session)
            if not moved.matched_count:
                raise Conflict("The webhook has sent no event of the cursor's stream.")
            return _Plan(_interrupting(document, {}, at), AuditAction.WEBHOOK_REPLAYED, {})

        return await self._change(manager, id_, plan)

    async def delete(self, manager: WebhookManager, id_: str) -> None:
        """Deletes a webhook. Raises: NotFound, Forbidden."""

        async def work(session: Session) -> None:
            at = await lock_actor(self._mongo, manager.actor, session, manager.role)
            document = await self._webhooks.find_one_and_delete(manager.query(id_), session=session)
            if document is None:
                raise NotFound("webhook", id_)
            details = {"name": document["name"], "url": document["url"]}
            await self._record(manager, AuditAction.WEBHOOK_DELETED, id_, at, session, details)

        await self._mongo.transact(work)
        # After the commit: the positions of a busy webhook are too many for a transaction, and expire anyway.
        await self._positions.delete_many(filter_of_webhook(id_))

    async def get(self, manager: WebhookManager, id_: str) -> Webhook:
        """Returns a webhook that the manager may change. Raises: NotFound."""
        document = await self._webhooks.find_one(manager.query(id_))
        if document is None:
            raise NotFound("webhook", id_)
        return webhook_record(document, await self._clock.now())

    async def list_webhooks(self, manager: WebhookManager) -> list[Webhook]:
        """Returns the webhooks that the manager may change, the newest first."""
        of_key = {} if manager.key_id is None else {"key": manager.key_id}
        query = {"org": manager.actor.organization_id, **of_key}
        rows: list[WebhookDocument] = await self._mongo.find(WEBHOOKS, query, sort=[("_id", -1)], limit=MAX_WEBHOOKS)
        now = await self._clock.now()
        return [webhook_record(row, now) for row in rows]

    async def _change(self, manager: WebhookManager, id_: str, plan: _PlanChange) -> Webhook:
        async def work(session: Session) -> Webhook:
            at = await lock_actor(self._mongo, manager.actor, session, manager.role)
            document = await self._webhooks.find_one(manager.query(id_), session=session)
            if document is None:
                raise NotFound("webhook", id_)
            planned = await plan(document, at, session)
            if planned is None:
                return webhook_record(document, at)
            await self._record(manager, planned.action, id_, at, session, planned.details)
            return webhook_record(
                await self._mongo.find_one_and_update(WEBHOOKS, {"_id": id_}, planned.update, session), at
            )

        return await self._mongo.transact(work)

    async def _record(
        self,
        manager: WebhookManager,
        action: AuditAction,
        id_: str,
        at: datetime,
        session: Session,
        details: dict[str, str],
    ) -> None:
        entry = audit_document(manager.actor, action, TargetKind.WEBHOOK, id_, at, **details)
        await self._audit.insert(entry, session)


def disabling_update(at: datetime, reason: DisabledReason) -> Document:
    """Returns the update that disables a webhook."""
    return {
        "$set": {"disabled_at": at, "disabled_reason": reason.value},
        "$unset": {"due": "", "claim": "", "scan": ""},
    }


def _interrupting(document: WebhookDocument, fields: Document, at: datetime) -> Document:
    """Returns the update that sets fields, and ends the claim of a worker that sends by the earlier ones."""
    due = {} if "disabled_at" in document else {"due": at}
    return {"$set": {**fields, **due}, "$unset": {"claim": ""}, "$inc": {"marks": 1}}


def _require_enabled(document: WebhookDocument) -> None:
    if "disabled_at" in document:
        raise Conflict("The webhook is disabled. Enable it first.")


def _new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def _new_document(id_: str, actor: Actor, new: NewWebhook, secret: WebhookSecret, at: datetime) -> WebhookDocument:
    document: Document = {
        "_id": id_,
        "org": actor.organization_id,
        "name": new.name,
        "url": new.url,
        "key": new.key_id,
        **_filter_fields(new.filter),
        "format": new.format.value,
        "secrets": [secret],
        "created_at": at,
        "created_by": actor.user_id,
        "start": at,
        "marks": 0,
    }
    return cast(WebhookDocument, document)


def _filter_fields(filter_: WebhookFilter) -> Document:
    return {
        "types": sorted(set(filter_.types)),
        "communities": list(filter_.community_ids),
        "topics": list(filter_.topic_ids),
        "jobs": list(filter_.job_ids),
    }
