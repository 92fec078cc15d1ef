"""Listening to a stream as a subscription does, and remembering all of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from storage.streams.hub import Hub
from storage.streams.log import Position, Stream
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events
from tests.storage.places import soon


class Listener:
    """What one subscription gave so far."""

    def __init__(self) -> None:
        self.ready: list[SubscriptionStart] = []
        self.arrived: list[StreamEvent] = []
        self.idle = 0

    @property
    def numbers(self) -> list[int]:
        return [step.position.n for step in self.arrived]

    @property
    def subjects(self) -> list[Any]:
        return [step.event.subject for step in self.arrived]

    async def has_heard(self, n: int, deadline_s: float = 30.0) -> bool:
        """Whether event n arrives in time."""

        async def look() -> bool:
            return bool(self.arrived) and self.arrived[-1].position.n >= n

        return await soon(look, deadline_s)

    async def is_ready(self, times: int = 1, deadline_s: float = 30.0) -> bool:
        """Whether it says so in time."""

        async def look() -> bool:
            return len(self.ready) >= times

        return await soon(look, deadline_s)

    async def listen(self, hub: Hub, stream: Stream, since: Position | None) -> None:
        async with aclosing(follow_events(hub, stream, since)) as steps:
            async for step in steps:
                if isinstance(step, SubscriptionStart):
                    self.ready.append(step)
                elif isinstance(step, IdleTimeout):
                    self.idle += 1
                else:
                    self.arrived.append(step)


@asynccontextmanager
async def listening(hub: Hub, stream: Stream, since: Position | None = None) -> AsyncIterator[Listener]:
    """A listener that is ready."""
    listener = Listener()
    task = asyncio.create_task(listener.listen(hub, stream, since))
    try:
        await listener.is_ready()
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
