"""Sends committed events to the hubs of all processes by Redis pub/sub. Hubs read lost messages from the log."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import orjson
import structlog
from redis.asyncio import Redis

from storage.redis.keys import RedisKeys
from storage.streams.log import Event, Stream

MAX_QUEUED = 10_000
SEND_TIMEOUT_S = 2.0
MAX_PIPELINE = 100

log = structlog.get_logger(__name__)


class EventSender:
    """Sends events in the order of commits, in the background, so that a slow Redis delays no mutation."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._redis = redis
        self._keys = keys
        self._queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(MAX_QUEUED)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts sending."""
        self._task = asyncio.create_task(self._run(), name="event_sender")

    def send(self, stream: Stream, epoch: str, events: Sequence[Event]) -> None:
        """Queues the events for sending. If the queue is full, drops them; hubs then read them from the log."""
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait((self._keys.channel(stream.name), encode(epoch, events)))

    async def close(self) -> None:
        """Sends queued events for at most one second, then stops."""
        if self._task is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._queue.join()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            batch = [await self._queue.get()]
            while len(batch) < MAX_PIPELINE and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                await self._send(batch)
            except Exception as error:
                # Any error, since without this task no later event would be sent.
                log.warning("events_not_sent", lost=len(batch), error=repr(error))
            finally:
                for _ in batch:
                    self._queue.task_done()

    async def _send(self, batch: list[tuple[str, bytes]]) -> None:
        async with asyncio.timeout(SEND_TIMEOUT_S), self._redis.pipeline(transaction=False) as pipeline:
            for channel, payload in batch:
                pipeline.publish(channel, payload)
            await pipeline.execute()


def encode(epoch: str, events: Sequence[Event]) -> bytes:
    """Returns a pub/sub message with events of one epoch."""
    rows = [(e.n, e.kind, e.ref, e.at) for e in events]
    return orjson.dumps({"epoch": epoch, "events": rows})


def decode(payload: bytes) -> tuple[str, list[Event]]:
    """Returns the epoch and the events of a pub/sub message. A message has at least one event."""
    message = orjson.loads(payload)
    return message["epoch"], [Event(n, kind, ref, datetime.fromisoformat(at)) for n, kind, ref, at in message["events"]]
