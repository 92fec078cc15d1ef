"""One subscription's way through a stream: ready, replay, live, without gaps (docs/semantics.md, 3).

Everything is bounded: a reader that can't keep up is fed from the log at its own pace, and loses nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.streams.hub import Hub, HydratedEvent, PositionExpired, Subscriber, is_resumable
from storage.streams.log import Position, Stream

IDLE_S = 2.0


@dataclass(frozen=True, slots=True)
class SubscriptionStart:
    """Where a subscription starts. `resumed`: everything after the asked position follows."""

    position: Position
    resumed: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """Nothing happened for two seconds: time to look whether the reader may still listen."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event and its position."""

    position: Position
    event: HydratedEvent


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events that arrived together, at least one, in order. `position` is the last one's."""

    position: Position
    events: Sequence[HydratedEvent]


Step = SubscriptionStart | IdleTimeout | StreamEvent


async def follow_events(hub: Hub, stream: Stream, since: Position | None) -> AsyncGenerator[Step, None]:
    """Ready first, and again after a break that can't be healed; then each event once, in order.

    Events whose object is gone are left out. Close the generator when done (contextlib.aclosing), or the stream stays
    subscribed.
    """
    async with aclosing(follow_batches(hub, stream, since)) as steps:
        async for step in steps:
            if not isinstance(step, EventBatch):
                yield step
                continue
            for event in step.events:
                if event.subject is not None:
                    yield StreamEvent(Position(step.position.epoch, event.event.n), event)


async def follow_batches(
    hub: Hub, stream: Stream, since: Position | None
) -> AsyncGenerator[SubscriptionStart | IdleTimeout | EventBatch, None]:
    """The same, with the events that arrived together in one step, those without an object too."""
    async with hub.subscribe(stream) as subscriber:
        while True:
            head = await hub.head(stream)
            resumed = since is not None and is_resumable(since, head)
            start = since if since is not None and resumed else Position(head.epoch, head.n)
            yield SubscriptionStart(start, resumed, datetime.now(UTC))
            since = None
            try:
                async with aclosing(_run(hub, stream, subscriber, start)) as steps:
                    async for step in steps:
                        yield step
            except PositionExpired:
                continue


async def _run(
    hub: Hub, stream: Stream, subscriber: Subscriber, position: Position
) -> AsyncGenerator[EventBatch | IdleTimeout, None]:
    """Alternates between the log and the queue. Raises: PositionExpired."""
    while True:
        # From here on the queue collects again what comes while the log is read.
        subscriber.overflowed = False
        while events := await hub.replay(stream, position):
            position = Position(position.epoch, events[-1].event.n)
            yield EventBatch(position, events)
        async with aclosing(_live(subscriber, position)) as steps:
            async for step in steps:
                if isinstance(step, EventBatch):
                    position = step.position
                yield step


async def _live(subscriber: Subscriber, position: Position) -> AsyncGenerator[EventBatch | IdleTimeout, None]:
    """What the hub hands on, until there is a hole."""
    while not subscriber.overflowed:
        events, hole = _drain(subscriber, position.n)
        if events:
            position = Position(position.epoch, events[-1].event.n)
            yield EventBatch(position, events)
        if hole:
            return
        if subscriber.queue or subscriber.overflowed:
            continue
        subscriber.ready.clear()
        try:
            async with asyncio.timeout(IDLE_S):
                await subscriber.ready.wait()
        except TimeoutError:
            yield IdleTimeout()


def _drain(subscriber: Subscriber, last: int) -> tuple[list[HydratedEvent], bool]:
    """What waits in the queue after `last`, without gap, and whether a gap follows."""
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
