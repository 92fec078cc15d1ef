"""Sends what was requested for a webhook: tests, and events that are sent once more."""

from jobs.context import JobContext, WebhookTools
from jobs.webhooks.messages import MessageWriter
from storage.errors import NotFound
from storage.streams.hub import PositionExpired
from storage.streams.log import StreamPosition
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.event_types import TEST_TYPE
from storage.webhooks.records import ClaimedWebhook, DeliveryOutcome, WebhookDelivery


class RequestedDeliveries:
    """Sends requested deliveries, each once. A failure is only recorded."""

    def __init__(self, jobs: JobContext, tools: WebhookTools, webhook: ClaimedWebhook) -> None:
        self._stores, self._tools, self._webhook = jobs.stores, tools, webhook

    async def send(self, writer: MessageWriter) -> None:
        """Sends what was requested, the earliest first."""
        for delivery in await self._stores.webhook_deliveries.requested(self._webhook.id):
            message = await self._message(writer, delivery)
            if message is None:
                await self._refuse(delivery, "The log no longer has the event.")
            else:
                result = await self._tools.sender.send(self._webhook.webhook.url, self._webhook.secrets, message)
                await self._stores.webhook_deliveries.finish(delivery, message, result)

    async def refuse(self, error: str) -> None:
        """Records that nothing can be sent."""
        for delivery in await self._stores.webhook_deliveries.requested(self._webhook.id):
            await self._refuse(delivery, error)

    async def _refuse(self, delivery: WebhookDelivery, error: str) -> None:
        message = SentMessage(delivery.message_id, delivery.event_type, b"", delivery.stream, delivery.event_number)
        result = DeliveryResult(DeliveryOutcome.FAILED, None, error, 0)
        await self._stores.webhook_deliveries.finish(delivery, message, result)

    async def _message(self, writer: MessageWriter, delivery: WebhookDelivery) -> SentMessage | None:
        """Returns the message of a requested delivery; None if its event is gone, or may not be read any more."""
        if delivery.event_type == TEST_TYPE:
            return await writer.test(delivery.message_id)
        stream, number = delivery.stream, delivery.event_number
        if stream is None or number is None:
            return None
        try:
            head = await self._stores.events.head(stream)
            events = await self._stores.hub.replay(stream, StreamPosition(head.epoch, number - 1), limit=1)
        except (PositionExpired, NotFound):
            return None
        messages = await writer.events(stream, head.epoch, events)
        return messages[0] if messages else None
