"""Subscribes to a stream and records its events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from storage.streams.hub import Hub
from storage.streams.log import Stream, StreamPosition
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events
from tests.waiting import poll_until_true


class EventRecorder:
    """The events that one subscription has returned so far."""

    def __init__(self) -> None:
        self.starts: list[SubscriptionStart] = []
        self.received: list[StreamEvent] = []
        self.idle_timeouts = 0

    @property
    def numbers(self) -> list[int]:
        return [item.position.n for item in self.received]

    @property
    def subjects(self) -> list[Any]:
        return [item.event.subject for item in self.received]

    async def wait_for_event(self, n: int, timeout_s: float = 30.0) -> bool:
        """Waits for event n. Returns whether it arrived within `timeout_s` seconds."""

        async def is_received() -> bool:
            return bool(self.received) and self.received[-1].position.n >= n

        return await poll_until_true(is_received, timeout_s)

    async def wait_for_start(self, times: int = 1, timeout_s: float = 30.0) -> bool:
        """Waits until the subscription has started `times` times. Returns whether that happened in time.

        A subscription starts again when its position has expired.
        """

        async def is_started() -> bool:
            return len(self.starts) >= times

        return await poll_until_true(is_started, timeout_s)

    async def record(self, hub: Hub, stream: Stream, since: StreamPosition | None) -> None:
        """Records the subscription until the task is cancelled."""
        async with aclosing(follow_events(hub, stream, since)) as items:
            async for item in items:
                if isinstance(item, SubscriptionStart):
                    self.starts.append(item)
                elif isinstance(item, IdleTimeout):
                    self.idle_timeouts += 1
                else:
                    self.received.append(item)


@asynccontextmanager
async def recorded_events(
    hub: Hub, stream: Stream, since: StreamPosition | None = None
) -> AsyncIterator[EventRecorder]:
    """Records a subscription during the block, which begins after the subscription has started."""
    recorder = EventRecorder()
    task = asyncio.create_task(recorder.record(hub, stream, since))
    try:
        assert await recorder.wait_for_start(), "The subscription did not start."
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
