"""One pub/sub connection a process, and what local subscribers of each stream hear from it (docs/semantics.md, 3).

Per stream: subscribe and await the confirmation, read the head, then go live; drop what was handed on, fill any hole
from the log; the same again after every reconnect. Every 10 s the heads of all local streams are compared, which heals
a lost PUBLISH, a flushed Redis and a dead one. Nothing is promised by Redis; everything is read from the log.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from storage.keys import Keys
from storage.metrics import EVENTS_RECEIVED, OVERFLOWS, RECONNECTS, SUBSCRIBERS
from storage.streams.log import Event, EventLog, Head, Position, Stream
from storage.streams.publisher import decode

COMPARE_EVERY_S = 10.0
CONFIRM_TIMEOUT_S = 2.0
MAX_QUEUE = 256
MAX_HEARD = 2000
RECONNECT_S = (0.05, 2.0)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HydratedEvent:
    """An event with what it speaks of, read once for all subscribers; None where that is gone for good."""

    event: Event
    subject: Any


Hydrate = Callable[[Stream, Sequence[Event]], Awaitable[Mapping[int, Any]]]
"""Reads what events speak of, as it is now, by their numbers."""


class PositionExpired(Exception):
    """The log no longer has what would come next."""


def is_resumable(position: Position, head: Head) -> bool:
    """Whether everything after the position can still be had."""
    return position.epoch == head.epoch and head.floor <= position.n <= head.n


@dataclass(slots=True, eq=False)
class Subscriber:
    """A bounded queue. One that overflows is emptied, and its reader goes on from the log."""

    queue: deque[HydratedEvent] = field(default_factory=deque)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    overflowed: bool = False

    def push(self, event: HydratedEvent) -> None:
        """Hands on the next event."""
        if len(self.queue) >= MAX_QUEUE:
            self.overflow()
        elif not self.overflowed:
            self.queue.append(event)
            self.ready.set()

    def overflow(self) -> None:
        """Empties the queue; the reader goes on from the log."""
        self.queue.clear()
        self.overflowed = True
        self.ready.set()
        OVERFLOWS.inc()


@dataclass(slots=True, eq=False)
class _Local:
    """What this process knows of a stream that somebody here listens to."""

    stream: Stream
    last: int = 0
    epoch: str = ""
    wanted: int = 0
    asked: int = 0
    heard: dict[int, Event] = field(default_factory=dict)
    subscribers: set[Subscriber] = field(default_factory=set)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    pulling: asyncio.Task[None] | None = None
    primed: bool = False


class Hub:
    """Hands committed events to local subscribers, in order, each once."""

    def __init__(
        self,
        redis: Redis,
        keys: Keys,
        event_log: EventLog,
        hydrate: Hydrate,
        compare_every_s: float | None = None,
    ) -> None:
        self._compare_every_s = COMPARE_EVERY_S if compare_every_s is None else compare_every_s
        self._redis = redis
        self._keys = keys
        self._log = event_log
        self._hydrate = hydrate
        self._locals: dict[str, _Local] = {}
        self._pubsub: PubSub | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to listen."""
        self._tasks = [
            asyncio.create_task(self._listen(), name="hub listen"),
            asyncio.create_task(self._compare(), name="hub compare"),
        ]

    async def close(self) -> None:
        """Stops; subscribers hear nothing more."""
        pulls = [local.pulling for local in self._locals.values() if local.pulling is not None]
        for task in [*self._tasks, *pulls]:
            task.cancel()
        await asyncio.gather(*self._tasks, *pulls, return_exceptions=True)
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.aclose()  # type: ignore[no-untyped-call]

    @asynccontextmanager
    async def subscribe(self, stream: Stream) -> AsyncIterator[Subscriber]:
        """A subscriber of the stream, from now on. What happens after this returns is in its queue or in the log."""
        subscriber = Subscriber()
        is_new = stream.name not in self._locals
        local = self._locals.setdefault(stream.name, _Local(stream))
        local.subscribers.add(subscriber)
        SUBSCRIBERS.inc()
        try:
            if is_new:
                await self._send_subscribe(local)
            await self._prime(local)
            yield subscriber
        finally:
            local.subscribers.discard(subscriber)
            SUBSCRIBERS.dec()
            if not local.subscribers and self._locals.get(stream.name) is local:
                del self._locals[stream.name]
                await self._send_unsubscribe(local)

    async def head(self, stream: Stream) -> Head:
        """Where the stream stands in the log."""
        return await self._log.head(stream)

    async def replay(self, stream: Stream, position: Position) -> list[HydratedEvent]:
        """What the log has after the position, a part at a time.

        Raises: PositionExpired when something after the position is no longer there.
        """
        events = await self._log.read(stream, position.n)
        numbers = [event.n for event in events]
        # The floor is read after the events: had it passed the position meanwhile, some could be missing before them.
        head = await self._log.head(stream)
        if not is_resumable(position, head) or numbers != list(range(position.n + 1, position.n + 1 + len(events))):
            raise PositionExpired
        return await self._hydrated(stream, events)

    async def _hydrated(self, stream: Stream, events: Sequence[Event]) -> list[HydratedEvent]:
        subjects = await self._hydrate(stream, events) if events else {}
        return [HydratedEvent(event, subjects.get(event.n)) for event in events]

    async def _prime(self, local: _Local) -> None:
        """Waits for Redis's word that the channel is subscribed, then reads the head: what comes later is heard."""
        with suppress(TimeoutError):
            # Without Redis the comparison of heads carries the events, more slowly.
            async with asyncio.timeout(CONFIRM_TIMEOUT_S):
                await local.confirmed.wait()
        if not local.primed:
            head = await self._log.head(local.stream)
            if not local.primed:
                local.last, local.epoch, local.primed = head.n, head.epoch, True

    async def _send_subscribe(self, local: _Local) -> None:
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.subscribe(self._keys.channel(local.stream.name))

    async def _send_unsubscribe(self, local: _Local) -> None:
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.unsubscribe(self._keys.channel(local.stream.name))

    async def _listen(self) -> None:
        delay_s = RECONNECT_S[0]
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    await self._attach(pubsub)
                    delay_s = RECONNECT_S[0]
                    while True:
                        message = await pubsub.get_message(timeout=COMPARE_EVERY_S)
                        if message is not None:
                            self._hear(message)
            except Exception as error:
                # Whatever it was, somebody's broken message too: without this task the process would be deaf.
                RECONNECTS.inc()
                log.warning("hub_disconnected", error=repr(error))
            finally:
                self._detach()
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, RECONNECT_S[1])

    async def _attach(self, pubsub: PubSub) -> None:
        """Subscribes all local streams on a new connection; the confirmations make them catch up."""
        # One channel of the hub's own keeps the connection subscribed when nobody listens to anything.
        await pubsub.subscribe(self._keys.channel("hub"))
        self._pubsub = pubsub
        for local in list(self._locals.values()):
            await pubsub.subscribe(self._keys.channel(local.stream.name))

    def _detach(self) -> None:
        self._pubsub = None
        for local in self._locals.values():
            local.confirmed.clear()

    def _hear(self, message: dict[str, Any]) -> None:
        name = message["channel"].decode().removeprefix(self._keys.channel(""))
        local = self._locals.get(name)
        if local is None:
            return
        if message["type"] == "subscribe":
            local.confirmed.set()
            if local.primed:
                self._pull(local, local.last + 1)
        elif message["type"] == "message" and local.primed:
            epoch, events = decode(message["data"])
            if epoch == local.epoch and len(local.heard) < MAX_HEARD:
                local.heard.update((event.n, event) for event in events if event.n > local.last)
            self._pull(local, events[-1].n)

    def _pull(self, local: _Local, wanted: int) -> None:
        """Brings the stream's subscribers up to number `wanted`, or what the log has by now."""
        local.wanted = max(local.wanted, wanted)
        local.asked += 1
        if local.pulling is None:
            local.pulling = asyncio.create_task(self._run_pull(local), name=f"pull {local.stream.name}")

    async def _run_pull(self, local: _Local) -> None:
        try:
            while local.subscribers and local.wanted > local.last:
                asked = local.asked
                events = await self._next(local)
                for event in events:
                    local.last = event.event.n
                    local.heard.pop(local.last, None)
                    for subscriber in local.subscribers:
                        subscriber.push(event)
                if not events and local.asked == asked:
                    # The log ends here: the number that was asked for was a guess, and nobody knew better meanwhile.
                    local.wanted = local.last
        except Exception as error:
            # Nobody waits for this task. The next message or comparison starts another.
            local.wanted = local.last
            log.warning("pull_failed", stream=local.stream.name, error=repr(error))
        finally:
            local.pulling = None

    async def _next(self, local: _Local) -> list[HydratedEvent]:
        """What follows `last`: as it was heard where that has no hole, from the log otherwise."""
        heard: list[Event] = []
        while (event := local.heard.get(local.last + 1 + len(heard))) is not None:
            heard.append(event)
        if heard:
            EVENTS_RECEIVED.labels("redis").inc(len(heard))
            return await self._hydrated(local.stream, heard)
        local.heard.clear()
        try:
            events = await self.replay(local.stream, Position(local.epoch, local.last))
            EVENTS_RECEIVED.labels("log").inc(len(events))
            return events
        except PositionExpired:
            await self._reset(local)
            return []

    async def _reset(self, local: _Local) -> None:
        """The stream was pruned past us, or is another one now: woken subscribers find that out from the log."""
        head = await self._log.head(local.stream)
        local.last, local.epoch = head.n, head.epoch
        for subscriber in local.subscribers:
            subscriber.overflow()

    async def _compare(self) -> None:
        while True:
            await asyncio.sleep(self._compare_every_s)
            try:
                await self.compare()
            except Exception as error:
                log.warning("compare_failed", error=repr(error))

    async def compare(self) -> None:
        """Compares all local streams with their heads, and pulls what no message told of."""
        primed = [local for local in self._locals.values() if local.primed]
        heads = await self._log.heads([local.stream for local in primed])
        for local in primed:
            head = heads.get(local.stream)
            if head is not None and (head.n > local.last or head.epoch != local.epoch):
                self._pull(local, max(head.n, local.last + 1))
