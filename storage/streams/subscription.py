"""A subscription to one stream: its start, replayed events, then live events, without gaps (docs/semantics.md, 3).

Queues are bounded. A slow reader receives events from the log at its own pace and loses none.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.streams.hub import EventHub, HydratedEvent, PositionExpired, Subscriber, is_resumable
from storage.streams.log import Stream, StreamPosition

IDLE_S = 2.0
"""Seconds without an event after which IdleTimeout is yielded."""


@dataclass(frozen=True, slots=True)
class SubscriptionStart:
    """The start of a subscription. `resumed` means that it starts at the requested position, without missed events.

    A subscription delivers no event up to its start. `EventLog.head` reads at majority, as all reads do. So everything
    that is read after the start contains the changes of these events.
    """

    position: StreamPosition
    resumed: bool
    at: datetime
    """When the subscription started, by the clock of the host."""


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """An item that follows a time without events. Callers then check again whether the viewer may still subscribe."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event and its position."""

    position: StreamPosition
    event: HydratedEvent


@dataclass(frozen=True, slots=True)
class EventBatch:
    """One or more events that arrived together, in order, and the position of the last one."""

    position: StreamPosition
    events: Sequence[HydratedEvent]


SubscriptionItem = SubscriptionStart | IdleTimeout | StreamEvent


async def follow_events(
    hub: EventHub, stream: Stream, since: StreamPosition | None
) -> AsyncGenerator[SubscriptionItem, None]:
    """Yields a SubscriptionStart, then each event once, in order; another SubscriptionStart if events were pruned.

    Events whose subject was deleted are left out. The stream stays subscribed until the generator is closed, so use
    contextlib.aclosing.
    """
    async with aclosing(follow_batches(hub, stream, since)) as items:
        async for item in items:
            if not isinstance(item, EventBatch):
                yield item
                continue
            for event in item.events:
                if event.subject is not None:
                    yield StreamEvent(StreamPosition(item.position.epoch, event.event.n), event)


async def follow_batches(
    hub: EventHub, stream: Stream, since: StreamPosition | None
) -> AsyncGenerator[SubscriptionStart | IdleTimeout | EventBatch, None]:
    """Yields like follow_events, but events in batches as they arrived, including events whose subject was deleted."""
    async with hub.subscribe(stream) as subscriber:
        while True:
            head = await hub.head(stream)
            resumed = since is not None and is_resumable(since, head)
            start = since if since is not None and resumed else StreamPosition(head.epoch, head.n)
            yield SubscriptionStart(start, resumed, datetime.now(UTC))
            since = None
            try:
                async with aclosing(_follow_from(hub, stream, subscriber, start)) as items:
                    async for item in items:
                        yield item
            except PositionExpired:
                continue


async def _follow_from(
    hub: EventHub, stream: Stream, subscriber: Subscriber, position: StreamPosition
) -> AsyncGenerator[EventBatch | IdleTimeout, None]:
    """Yields events from the log, then from the queue. Returns to the log after each gap in the queue.

    Raises: PositionExpired if events were pruned.
    """
    while True:
        # The queue accepts events again, so that it holds those that arrive while the log is read.
        subscriber.has_overflowed = False
        while events := await hub.replay(stream, position):
            position = StreamPosition(position.epoch, events[-1].event.n)
            yield EventBatch(position, events)
        async with aclosing(_read_queue(subscriber, position)) as items:
            async for item in items:
                if isinstance(item, EventBatch):
                    position = item.position
                yield item


async def _read_queue(
    subscriber: Subscriber, position: StreamPosition
) -> AsyncGenerator[EventBatch | IdleTimeout, None]:
    """Yields events from the queue until there is a gap."""
    while not subscriber.has_overflowed:
        events, has_gap = _take_contiguous(subscriber, position.n)
        if events:
            position = StreamPosition(position.epoch, events[-1].event.n)
            yield EventBatch(position, events)
        if has_gap:
            return
        if subscriber.queue or subscriber.has_overflowed:
            continue
        subscriber.ready.clear()
        try:
            async with asyncio.timeout(IDLE_S):
                await subscriber.ready.wait()
        except TimeoutError:
            yield IdleTimeout()


def _take_contiguous(subscriber: Subscriber, last: int) -> tuple[list[HydratedEvent], bool]:
    """Removes and returns the queued events that follow number `last` directly, and whether a gap follows them."""
    events: list[HydratedEvent] = []
    while subscriber.queue:
        n = subscriber.queue[0].event.n
        if n > last + 1:
            return events, True
        event = subscriber.queue.popleft()
        if n == last + 1:
            events.append(event)
            last = n
    return events, False
