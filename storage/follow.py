"""One subscription's way through a stream: ready, replay, live, without gaps (semantics.md, 3).

Everything is bounded: a reader that can't keep up is fed from the log at its own pace, and loses nothing.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.events import Position, Stream
from storage.hub import Behind, Hub, HubEvent, Subscriber, resumable

IDLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Ready:
    """Where a subscription starts. `resumed`: everything after the asked position follows."""

    position: Position
    resumed: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing happened for two seconds: time to look whether the reader may still listen."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """One event and its position."""

    position: Position
    event: HubEvent


Step = Ready | Idle | Arrived


async def follow(hub: Hub, stream: Stream, since: Position | None) -> AsyncGenerator[Step, None]:
    """Ready first, and again after a break that can't be healed; then each event once, in order.

    Close the generator when done (contextlib.aclosing), or the stream stays subscribed.
    """
    async with hub.subscribe(stream) as subscriber:
        while True:
            head = await hub.head(stream)
            resumed = since is not None and resumable(since, head)
            start = since if since is not None and resumed else Position(head.epoch, head.n)
            yield Ready(start, resumed, datetime.now(UTC))
            since = None
            try:
                async with aclosing(_run(hub, stream, subscriber, start)) as steps:
                    async for step in steps:
                        yield step
            except Behind:
                continue


async def _run(
    hub: Hub, stream: Stream, subscriber: Subscriber, position: Position
) -> AsyncGenerator[Arrived | Idle, None]:
    """Alternates between the log and the queue. Raises: Behind."""
    while True:
        # From here on the queue collects again what comes while the log is read.
        subscriber.overflowed = False
        while events := await hub.replay(stream, position):
            for event in events:
                position = Position(position.epoch, event.event.n)
                if event.subject is not None:
                    yield Arrived(position, event)
        async with aclosing(_live(subscriber, position)) as steps:
            async for step in steps:
                if isinstance(step, Arrived):
                    position = step.position
                    if step.event.subject is None:
                        continue
                yield step


async def _live(subscriber: Subscriber, position: Position) -> AsyncGenerator[Arrived | Idle, None]:
    """What the hub hands on, until there is a hole."""
    while not subscriber.overflowed:
        while subscriber.queue:
            event = subscriber.queue.popleft()
            n = event.event.n
            if n <= position.n:
                continue
            if n > position.n + 1:
                return
            position = Position(position.epoch, n)
            yield Arrived(position, event)
        subscriber.ready.clear()
        try:
            async with asyncio.timeout(IDLE_S):
                await subscriber.ready.wait()
        except TimeoutError:
            yield Idle()
