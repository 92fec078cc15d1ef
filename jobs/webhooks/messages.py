"""Writes the messages that are no events, and puts messages into the format of a webhook."""

from datetime import UTC

import orjson

from jobs.context import JobContext
from jobs.webhooks.formats import formatted
from storage.streams.log import Stream, StreamPosition, format_cursor
from storage.webhooks.deliveries import SentMessage
from storage.webhooks.event_types import GAP_TYPE, TEST_TYPE
from storage.webhooks.records import Webhook


class MessageWriter:
    """Writes the messages of one webhook."""

    def __init__(self, jobs: JobContext, webhook: Webhook) -> None:
        self._jobs, self._webhook = jobs, webhook

    async def gap(self, stream: Stream, position: StreamPosition) -> SentMessage:
        """Returns the message that events before a position are lost."""
        cursor, at = format_cursor(stream, position), await self._now()
        body = {
            "type": GAP_TYPE,
            "timestamp": at,
            "organizationId": self._webhook.organization_id,
            "stream": stream.name,
            "data": {"cursor": cursor, "at": at, "resumed": False},
        }
        return self.formatted(SentMessage(f"{cursor}.gap", GAP_TYPE, orjson.dumps(body)))

    async def test(self, message_id: str) -> SentMessage:
        """Returns the message of a test."""
        body = {"type": TEST_TYPE, "timestamp": await self._now(), "organizationId": self._webhook.organization_id}
        return self.formatted(SentMessage(message_id, TEST_TYPE, orjson.dumps(body)))

    def formatted(self, message: SentMessage) -> SentMessage:
        """Returns a message in the format of the webhook."""
        return formatted(message, self._webhook.format, self._jobs.base_url)

    async def _now(self) -> str:
        """Returns the time as the API writes it."""
        now = await self._jobs.stores.clock.now()
        return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
