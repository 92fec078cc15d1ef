"""Claims of workers on webhooks. One worker at a time sends the events of a webhook, so that they keep their order."""

from collections.abc import Sequence

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.mongo import Document, Mongo, Session, due_filter, seconds_from_now
from storage.mongo.leases import claim_token, lease_filter
from storage.secrets.credentials import CredentialCipher, CredentialsLost, SealedSecret
from storage.webhooks.documents import WebhookDocument
from storage.webhooks.records import ClaimedWebhook, DisabledReason, Webhook, webhook_record
from storage.webhooks.store import WEBHOOKS, disabling_update

CLAIM_S = 60
"""How long a claim lasts unless it is renewed. It is longer than a request."""

NOTICE_CLAIM_S = 120
MAX_ERROR_CHARS = 300
_DUE: Document = due_filter("due")
_NOTICE_DUE: Document = due_filter("notice_due")


_FAILURES = ("failing_since", "failing_message", "error")
"""Fields of a webhook whose last request failed."""


class WebhookClaims:
    """Claims, renews and ends. A claim that has ended changes nothing."""

    def __init__(self, mongo: Mongo, cipher: CredentialCipher, worker: str = "") -> None:
        """`worker` is the name by which the claims of this process are released when it has died."""
        self._mongo, self._cipher, self._worker = mongo, cipher, worker
        self._webhooks: AsyncCollection[WebhookDocument] = mongo[WEBHOOKS]

    async def make_due(self, webhook_ids: Sequence[str]) -> None:
        """Lets workers look for waiting events: now, or after the pause that follows a failure."""
        if webhook_ids:
            values = {"marks": {"$add": ["$marks", 1]}, "due": {"$ifNull": ["$due", "$$NOW"]}}
            query = {"_id": {"$in": list(webhook_ids)}, "disabled_at": None}
            await self._webhooks.update_many(query, [{"$set": values}])

    async def wake(self, webhook_id: str) -> None:
        """Lets a worker carry out requested deliveries now, also those of a disabled webhook."""
        is_claimed = {"$ne": [{"$type": "$claim"}, "missing"]}
        values = {"marks": {"$add": ["$marks", 1]}, "due": {"$cond": [is_claimed, "$due", "$$NOW"]}}
        await self._webhooks.update_one({"_id": webhook_id}, [{"$set": values}])

    async def claim(self, limit: int) -> list[ClaimedWebhook]:
        """Claims due webhooks, the earliest first."""
        rows = await self._mongo.find(WEBHOOKS, _DUE, {"_id": 1}, sort=[("due", 1)], limit=limit)
        claimed = [await self._claim(row["_id"]) for row in rows]
        return [each for each in claimed if each is not None]

    async def release_of(self, worker: str) -> int:
        """Ends the claims of a dead worker, so that the webhooks are due now. Returns how many."""
        query = lease_filter(worker, "due", CLAIM_S)
        return (await self._webhooks.update_many(query, [{"$set": {"due": "$$NOW"}}])).modified_count

    async def _claim(self, id_: str) -> ClaimedWebhook | None:
        values = {"due": seconds_from_now(CLAIM_S), "claim": claim_token(self._worker)}
        document = await self._webhooks.find_one_and_update(
            {"_id": id_, **_DUE}, [{"$set": values}], return_document=ReturnDocument.AFTER
        )
        return None if document is None else await self._claimed(document)

    async def _claimed(self, document: WebhookDocument) -> ClaimedWebhook:
        now = await self._mongo.now()
        valid = [each["secret"] for each in document["secrets"] if "until" not in each or each["until"] > now]
        return ClaimedWebhook(
            webhook=webhook_record(document, now),
            secrets=self._decrypted(document["_id"], valid),
            claim=document["claim"],
            marks=document["marks"],
            start=document["start"],
            scan=document.get("scan"),
            failing_message=document.get("failing_message", ""),
        )

    def _decrypted(self, id_: str, sealed: Sequence[SealedSecret]) -> list[str]:
        """Returns the secrets; none if one of them cannot be decrypted with the keys of this server."""
        try:
            return [self._cipher.open(each, id_) for each in sealed]
        except CredentialsLost:
            return []

    async def renew(
        self, webhook: ClaimedWebhook, session: Session | None = None, *, has_delivered: bool = False
    ) -> bool:
        """Extends the claim. Returns False if it has ended, or if the webhook was changed, disabled or deleted.

        `has_delivered` is whether a request has succeeded since the last time.
        """
        delivered: Document = {"delivered_at": "$$NOW"} if has_delivered else {}
        updated = await self._webhooks.update_one(
            {"_id": webhook.id, "claim": webhook.claim},
            [{"$set": {"due": seconds_from_now(CLAIM_S), **delivered}}],
            session=session,
        )
        return updated.matched_count == 1

    async def end_scan(self, webhook: ClaimedWebhook) -> None:
        """Records that the requested search was carried out, unless another one was requested meanwhile."""
        await self._webhooks.update_one({"_id": webhook.id, "scan": webhook.scan}, {"$unset": {"scan": ""}})

    async def finish(self, webhook: ClaimedWebhook, *, is_drained: bool, pause_s: float = 0.0) -> None:
        """Ends the claim without a failed request. If nothing waits, the webhook is due with the next event.

        Otherwise it is due after a pause.
        """
        is_idle = {"$and": [is_drained, {"$eq": ["$marks", webhook.marks]}]}
        due = {"$cond": [is_idle, "$$REMOVE", seconds_from_now(pause_s)]}
        has_recovered = is_drained and webhook.webhook.disabled_at is None
        recovered = dict.fromkeys(_FAILURES, "$$REMOVE") if has_recovered else {}
        await self._end(webhook, {"due": due, **recovered})

    async def recover(self, webhook: ClaimedWebhook) -> None:
        """Records that the message was delivered that had failed before. The claim goes on."""
        update = {"$unset": dict.fromkeys(_FAILURES, "")}
        await self._webhooks.update_one({"_id": webhook.id, "claim": webhook.claim}, update)

    async def fail(self, webhook: ClaimedWebhook, message_id: str, error: str, retry_s: float) -> None:
        """Ends the claim after a failed request. The next try follows after a pause."""
        values = {
            "due": seconds_from_now(retry_s),
            "error": {"$literal": error[:MAX_ERROR_CHARS]},
            "failing_since": {"$ifNull": ["$failing_since", "$$NOW"]},
            "failing_message": {"$ifNull": ["$failing_message", {"$literal": message_id}]},
        }
        await self._end(webhook, values)

    async def _end(self, webhook: ClaimedWebhook, values: Document) -> None:
        update = [{"$set": {**values, "claim": "$$REMOVE"}}]
        await self._webhooks.update_one({"_id": webhook.id, "claim": webhook.claim}, update)

    async def disable(self, webhook: ClaimedWebhook, reason: DisabledReason, error: str) -> bool:
        """Disables a webhook for good, until somebody enables it. A mail to the administrators becomes due."""
        now = await self._mongo.now()
        update = disabling_update(now, reason)
        update["$set"] |= {"error": error[:MAX_ERROR_CHARS], "notice_due": now}
        updated = await self._webhooks.update_one({"_id": webhook.id, "claim": webhook.claim}, update)
        return updated.matched_count == 1

    async def failing_s(self, webhook: Webhook) -> float:
        """Returns for how many seconds requests have failed."""
        if webhook.failing_since is None:
            return 0.0
        return (await self._mongo.now() - webhook.failing_since).total_seconds()

    async def claim_notices(self, limit: int) -> list[Webhook]:
        """Claims notices of disabled webhooks. They are due again after two minutes unless `end_notice` follows."""
        rows = await self._mongo.find(WEBHOOKS, _NOTICE_DUE, {"_id": 1}, limit=limit)
        claimed: list[Webhook] = []
        for row in rows:
            document = await self._webhooks.find_one_and_update(
                {"_id": row["_id"], **_NOTICE_DUE},
                [{"$set": {"notice_due": seconds_from_now(NOTICE_CLAIM_S)}}],
                return_document=ReturnDocument.AFTER,
            )
            if document is not None:
                claimed.append(webhook_record(document, await self._mongo.now()))
        return claimed

    async def end_notice(self, webhook: Webhook) -> None:
        """Records that the notice was mailed."""
        await self._webhooks.update_one(
            {"_id": webhook.id, "disabled_at": webhook.disabled_at}, {"$unset": {"notice_due": ""}}
        )

    async def organizations_with_posts(self) -> Sequence[str]:
        """Returns the organizations with an enabled webhook that sends posts of the local feed."""
        query = {"disabled_at": None, "types": {"$in": ["PostArrived", "PostRemoved"]}}
        return sorted({row["org"] for row in await self._mongo.find(WEBHOOKS, query, {"org": 1})})
