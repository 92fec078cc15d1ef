"""Reads the events of a stream after a position, and writes them as messages, as far as an account may read them.

Webhooks of one service key often need the same page at the same time. They share it, so that a second webhook costs
hardly more than its requests.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from storage.identity.records import User
from storage.stores import Stores
from storage.streams.hub import HydratedEvent
from storage.streams.log import Event, Stream, StreamPosition, format_cursor
from storage.webhooks.deliveries import SentMessage
from storage.webhooks.event_types import types_of_stream
from storage.webhooks.records import WebhookFilter

PAGE_SIZE = 20
"""Number of events of a page. A message shows its object as it was when the page was read."""


class EventPayloads(Protocol):
    """Writes events as the account of a webhook sees them, implemented by `server.webhook_payloads.WebhookPayloads`.

    A protocol, because the server executes the GraphQL schema, and jobs import neither.
    """

    async def render(
        self, account: User, stream: Stream, epoch: str, events: Sequence[HydratedEvent], job_ids: Sequence[str]
    ) -> list[bytes | None]:
        """Returns the body of each event's message. None: the account may not see the event, or it is of another job.

        `job_ids` are the jobs whose events are written; empty means all jobs.
        """
        ...


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page: the events after a position, for an account, of those types and jobs that a webhook sends."""

    account_id: str
    stream: Stream
    position: StreamPosition
    types: frozenset[str]
    job_ids: frozenset[str]
    size: int


@dataclass(frozen=True, slots=True)
class Page:
    """Events in their order, and the messages of those that are sent, by the event's number."""

    events: Sequence[Event]
    messages: Mapping[int, SentMessage]


class EventPages:
    """Reads pages. Requests for a page that is being read get this page."""

    def __init__(self, stores: Stores, payloads: EventPayloads) -> None:
        self._stores, self._payloads = stores, payloads
        self._reading: dict[PageRequest, asyncio.Task[Page]] = {}

    async def read(
        self, account: User, stream: Stream, position: StreamPosition, filter_: WebhookFilter, size: int = PAGE_SIZE
    ) -> Page:
        """Returns the next events after a position. Raises: PositionExpired; NotFound for a topic that is missing."""
        types = types_of_stream(stream.kind, filter_.types)
        request = PageRequest(account.id, stream, position, types, frozenset(filter_.job_ids), size)
        task = self._reading.get(request)
        if task is None:
            task = asyncio.create_task(self._read(account, request), name=f"page of {stream.name}")
            self._reading[request] = task
            task.add_done_callback(lambda _: self._reading.pop(request))
        # The end of one webhook's pass does not end what another one waits for.
        return await asyncio.shield(task)

    async def _read(self, account: User, request: PageRequest) -> Page:
        stream, position = request.stream, request.position
        events = await self._stores.hub.replay(stream, position, request.types, request.size)
        chosen = [each for each in events if each.subject is not None and each.event.kind in request.types]
        messages = await self._messages(account, request, chosen) if chosen else {}
        return Page([each.event for each in events], messages)

    async def _messages(
        self, account: User, request: PageRequest, events: Sequence[HydratedEvent]
    ) -> Mapping[int, SentMessage]:
        stream, epoch = request.stream, request.position.epoch
        if not await self._may_read(account, stream):
            return {}
        bodies = await self._payloads.render(account, stream, epoch, events, sorted(request.job_ids))
        return {
            each.event.n: SentMessage(_id(stream, epoch, each), each.event.kind, body, stream, each.event.n)
            for each, body in zip(events, bodies, strict=True)
            if body is not None
        }

    async def _may_read(self, account: User, stream: Stream) -> bool:
        """Returns whether the account may read the messages of the stream's community: it is PUBLIC, or joined."""
        if stream.kind not in ("topic", "community"):
            return True
        community_id = stream.id
        if stream.kind == "topic":
            topic = await self._stores.topics.find(account.organization_id, stream.id)
            if topic is None:
                return False
            community_id = topic.community_id
        return community_id in await self._stores.communities.readable_by([community_id], account.id)


def _id(stream: Stream, epoch: str, event: HydratedEvent) -> str:
    return format_cursor(stream, StreamPosition(epoch, event.event.n))
