"""The log of deliveries: one document for each try. It is also the queue of tests and of events to send again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, NotFound
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.streams.log import Stream, parse_stream_name
from storage.webhooks.documents import WebhookDeliveryDocument
from storage.webhooks.event_types import TEST_TYPE
from storage.webhooks.records import DeliveryOutcome, Webhook, WebhookDelivery, delivery_record

DELIVERIES = "webhook_deliveries"
MAX_BODY_BYTES = 16 * 1024
MAX_ANSWER_CHARS = 1000
MAX_REQUESTED = 100
"""Number of tests and repetitions that may wait for a worker."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message and the event that it has; None for a test."""

    message_id: str
    event_type: str
    body: bytes
    stream: Stream | None = None
    event_number: int | None = None


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """How a request ended. `answer` is the beginning of the answer, or what went wrong without one."""

    outcome: DeliveryOutcome
    status: int | None
    answer: str
    duration_ms: int
    retry_after_s: float | None = None
    """How long the receiver asked to wait; None if it did not ask."""

    id: str = field(default_factory=new_id)
    """Id of the entry in the log."""


class WebhookDeliveries:
    """Records, lists and requests deliveries."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._deliveries: AsyncCollection[WebhookDeliveryDocument] = mongo[DELIVERIES]

    async def record(
        self, webhook: Webhook, sent: Sequence[tuple[SentMessage, DeliveryResult]], session: Session | None = None
    ) -> None:
        """Stores tries, in the order in which they ended."""
        if sent:
            now = await self._mongo.now()
            documents = [
                _document(webhook, message, {"_id": result.id, "at": now, **_result_fields(message, result)})
                for message, result in sent
            ]
            await self._deliveries.insert_many(documents, session=session)

    async def finish(self, delivery: WebhookDelivery, message: SentMessage, result: DeliveryResult) -> None:
        """Stores how a requested delivery ended."""
        fields = {"at": await self._mongo.now(), **_result_fields(message, result)}
        await self._deliveries.update_one({"_id": delivery.id}, {"$set": fields})

    async def request_test(self, webhook: Webhook) -> WebhookDelivery:
        """Requests a test. Raises: Conflict while too many deliveries wait."""
        return await self._request(webhook, SentMessage(f"test_{new_id()}", TEST_TYPE, b""))

    async def request_again(self, webhook: Webhook, delivery: WebhookDelivery) -> WebhookDelivery:
        """Requests that an event is sent again, with the same `webhook-id`. Raises: Conflict."""
        message = SentMessage(delivery.message_id, delivery.event_type, b"", delivery.stream, delivery.event_number)
        return await self._request(webhook, message)

    async def _request(self, webhook: Webhook, message: SentMessage) -> WebhookDelivery:
        if len(await self.requested(webhook.id)) >= MAX_REQUESTED:
            raise Conflict(f"{MAX_REQUESTED} deliveries wait already. Try again later.")
        fields = {"_id": new_id(), "at": await self._mongo.now(), "outcome": DeliveryOutcome.WAITING.value}
        document = _document(webhook, message, fields)
        await self._deliveries.insert_one(document)
        return _record(document)

    async def requested(self, webhook_id: str) -> list[WebhookDelivery]:
        """Returns the requested deliveries that wait, the earliest first."""
        query = {"webhook": webhook_id, "outcome": DeliveryOutcome.WAITING.value}
        rows: list[WebhookDeliveryDocument] = await self._mongo.find(
            DELIVERIES, query, None, [("_id", 1)], MAX_REQUESTED
        )
        return [_record(row) for row in rows]

    async def get(self, organization_id: str, id_: str) -> WebhookDelivery:
        """Returns a delivery of the organization. Raises: NotFound."""
        found: list[WebhookDeliveryDocument] = await self._mongo.find(
            DELIVERIES, {"_id": id_, "org": organization_id}, limit=1
        )
        if not found:
            raise NotFound("webhook delivery", id_)
        return _record(found[0])

    async def list_deliveries(
        self, webhook: Webhook, outcome: DeliveryOutcome | None, after: str | None, limit: int
    ) -> list[WebhookDelivery]:
        """Returns deliveries of a webhook, the newest first: those after `after`, or from the newest if it is None.

        Raises: NotFound for an unknown `after`.
        """
        query: Document = {"webhook": webhook.id}
        if outcome is not None:
            query["outcome"] = outcome.value
        if after is not None:
            query["_id"] = {"$lt": (await self.get(webhook.organization_id, after)).id}
        rows: list[WebhookDeliveryDocument] = await self._mongo.find(DELIVERIES, query, None, [("_id", -1)], limit)
        return [_record(row) for row in rows]


def _document(webhook: Webhook, message: SentMessage, fields: Document) -> WebhookDeliveryDocument:
    """Returns the document of a delivery. `fields` has its id, instant and outcome."""
    document: Document = {
        "org": webhook.organization_id,
        "webhook": webhook.id,
        "message": message.message_id,
        "type": message.event_type,
        **fields,
    }
    if message.stream is not None and message.event_number is not None:
        document |= {"stream": message.stream.name, "n": message.event_number}
    return cast(WebhookDeliveryDocument, document)


def _result_fields(message: SentMessage, result: DeliveryResult) -> Document:
    status = {} if result.status is None else {"status": result.status}
    return {
        "outcome": result.outcome.value,
        "body": message.body[:MAX_BODY_BYTES],
        "answer": result.answer[:MAX_ANSWER_CHARS],
        "ms": result.duration_ms,
        **status,
    }


def _record(document: WebhookDeliveryDocument) -> WebhookDelivery:
    stream = document.get("stream")
    return delivery_record(document, None if stream is None else parse_stream_name(stream))
