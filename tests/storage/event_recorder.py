"""Subscribes to a stream and records its events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from storage.streams.hub import Hub
from storage.streams.log import Position, Stream
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events
from tests.storage.topic_scenario import poll_until_true


class EventRecorder:
    """The events that one subscription has returned so far."""

    def __init__(self) -> None:
        self.ready: list[SubscriptionStart] = []
        self.received: list[StreamEvent] = []
        self.idle = 0

    @property
    def numbers(self) -> list[int]:
        return [step.position.n for step in self.received]

    @property
    def subjects(self) -> list[Any]:
        return [step.event.subject for step in self.received]

    async def has_received(self, n: int, deadline_s: float = 30.0) -> bool:
        """Returns whether event n arrives before the deadline."""

        async def look() -> bool:
            return bool(self.received) and self.received[-1].position.n >= n

        return await poll_until_true(look, deadline_s)

    async def is_ready(self, times: int = 1, deadline_s: float = 30.0) -> bool:
        """Returns whether the subscription has started `times` times before the deadline."""

        async def look() -> bool:
            return len(self.ready) >= times

        return await poll_until_true(look, deadline_s)

    async def record(self, hub: Hub, stream: Stream, since: Position | None) -> None:
        async with aclosing(follow_events(hub, stream, since)) as steps:
            async for step in steps:
                if isinstance(step, SubscriptionStart):
                    self.ready.append(step)
                elif isinstance(step, IdleTimeout):
                    self.idle += 1
                else:
                    self.received.append(step)


@asynccontextmanager
async def recorded_events(hub: Hub, stream: Stream, since: Position | None = None) -> AsyncIterator[EventRecorder]:
    """Records a stream from the moment the subscription has started until the block ends."""
    recorder = EventRecorder()
    task = asyncio.create_task(recorder.record(hub, stream, since))
    try:
        await recorder.is_ready()
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
