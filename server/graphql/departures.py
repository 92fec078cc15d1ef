"""Informs broadcasts at once when a person loses the permission to subscribe, with one subscription for each stream.

The periodic rechecks of broadcasts find departures that are missed here, also without Redis.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from resolvers.events import SharedEventSource
from storage.streams.hub import EventHub
from storage.streams.log import Stream
from storage.streams.subscription import EventBatch, follow_batches

RETRY_PAUSE_S = 0.5

RecheckViewers = Callable[[], Awaitable[None]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _WatchedStream:
    """The rechecks of one stream, and the task that calls them after each departure."""

    task: asyncio.Task[None]
    rechecks: set[RecheckViewers] = field(default_factory=set)


class Departures:
    """The streams of departures that broadcasts of this process follow."""

    def __init__(self) -> None:
        self._watches: dict[Stream, _WatchedStream] = {}

    def watch(self, source: SharedEventSource, recheck: RecheckViewers) -> None:
        """Calls `recheck` after each departure of the source, until `unwatch`."""
        stream = source.departures_stream
        if stream is None:
            return
        if stream not in self._watches:
            task = asyncio.create_task(self._follow(source.hub, stream), name=f"departures {stream.name}")
            self._watches[stream] = _WatchedStream(task)
        self._watches[stream].rechecks.add(recheck)

    def unwatch(self, source: SharedEventSource, recheck: RecheckViewers) -> None:
        """Ends the calls of `recheck`. Without rechecks, ends the subscription to the stream."""
        stream = source.departures_stream
        watch = None if stream is None else self._watches.get(stream)
        if stream is None or watch is None:
            return
        watch.rechecks.discard(recheck)
        if not watch.rechecks:
            watch.task.cancel()
            del self._watches[stream]

    async def _follow(self, hub: EventHub, stream: Stream) -> None:
        while True:
            try:
                async with aclosing(follow_batches(hub, stream, None)) as steps:
                    async for step in steps:
                        if isinstance(step, EventBatch):
                            await asyncio.gather(*(recheck() for recheck in self._watches[stream].rechecks))
            except Exception as error:
                log.warning("departures_restarted", stream=stream.name, error=repr(error))
            await asyncio.sleep(RETRY_PAUSE_S)
