"""Writes events as messages for a webhook, as far as its service account may read them."""

from collections.abc import Sequence
from datetime import UTC

import orjson

from jobs.context import JobContext, WebhookTools
from jobs.webhooks.formats import formatted
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Stream, StreamPosition, format_cursor
from storage.webhooks.deliveries import SentMessage
from storage.webhooks.event_types import GAP_TYPE, TEST_TYPE, types_of_stream
from storage.webhooks.records import Webhook


class MessageWriter:
    """Writes the messages of one webhook."""

    def __init__(self, jobs: JobContext, tools: WebhookTools, webhook: Webhook, account: User) -> None:
        self._jobs, self._tools, self._webhook, self._account = jobs, tools, webhook, account

    async def events(self, stream: Stream, epoch: str, events: Sequence[HydratedEvent]) -> list[SentMessage]:
        """Returns the messages of those events that the webhook sends."""
        filter_ = self._webhook.filter
        wanted = types_of_stream(stream.kind, filter_.types)
        chosen = [each for each in events if each.subject is not None and each.event.kind in wanted]
        if not chosen or not await self._may_read(stream):
            return []
        bodies = await self._tools.payloads.render(self._account, stream, epoch, chosen, filter_.job_ids)
        return [
            self._formatted(SentMessage(_id(stream, epoch, each), each.event.kind, body, stream, each.event.n))
            for each, body in zip(chosen, bodies, strict=True)
            if body is not None
        ]

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
        return self._formatted(SentMessage(f"{cursor}.gap", GAP_TYPE, orjson.dumps(body)))

    async def test(self, message_id: str) -> SentMessage:
        """Returns the message of a test."""
        body = {"type": TEST_TYPE, "timestamp": await self._now(), "organizationId": self._webhook.organization_id}
        return self._formatted(SentMessage(message_id, TEST_TYPE, orjson.dumps(body)))

    def _formatted(self, message: SentMessage) -> SentMessage:
        return formatted(message, self._webhook.format, self._jobs.base_url)

    async def _now(self) -> str:
        """Returns the time as the API writes it."""
        now = await self._jobs.stores.clock.now()
        return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def _may_read(self, stream: Stream) -> bool:
        """Returns whether the account may read the messages of the stream's community: it is PUBLIC, or joined."""
        if stream.kind not in ("topic", "community"):
            return True
        stores, community_id = self._jobs.stores, stream.id
        if stream.kind == "topic":
            topic = await stores.topics.find(self._account.organization_id, stream.id)
            if topic is None:
                return False
            community_id = topic.community_id
        return community_id in await stores.communities.readable_by([community_id], self._account.id)


def _id(stream: Stream, epoch: str, event: HydratedEvent) -> str:
    return format_cursor(stream, StreamPosition(epoch, event.event.n))
