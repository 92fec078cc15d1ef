"""Delivers events to the subscribers of one process, over one pub/sub connection (docs/semantics.md, 3).

For each stream the hub subscribes, awaits the confirmation, reads the head, and then delivers events as they arrive.
It drops duplicates and reads gaps from the log. After a reconnect it does all of this again. Every 10 s it compares
the heads of all streams that have subscribers, so lost messages only delay events. No guarantee depends on Redis.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from storage.metrics import EVENTS_RECEIVED, REDIS_DISCONNECTS, SUBSCRIBER_OVERFLOWS, SUBSCRIBERS
from storage.redis.connections import MAX_RECONNECT_S, MIN_RECONNECT_S, messages
from storage.redis.keys import RedisKeys
from storage.streams.event_sender import decode
from storage.streams.log import REPLAY_LIMIT, Event, EventLog, Stream, StreamHead, StreamPosition

COMPARE_EVERY_S = 10.0
CONFIRM_TIMEOUT_S = 2.0
ATTACH_TIMEOUT_S = 5.0
MAX_QUEUE = 256
MAX_RECEIVED = 2000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HydratedEvent:
    """An event with its subject, the object that it refers to. The subject is None if the object was deleted."""

    event: Event
    subject: Any


HydrateEvents = Callable[[Stream, Sequence[Event]], Awaitable[Mapping[int, Any]]]
"""Reads the current subjects of events, by event number. Deleted subjects are left out."""


class PositionExpired(Exception):
    """The log no longer has all events after the position."""


def is_resumable(position: StreamPosition, head: StreamHead) -> bool:
    """Returns whether the log still has all events after the position."""
    return position.epoch == head.epoch and head.floor <= position.n <= head.n


@dataclass(slots=True, eq=False)
class Subscriber:
    """A bounded queue of events. An overflow empties the queue, and its reader continues from the log."""

    queue: deque[HydratedEvent] = field(default_factory=deque)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    has_overflowed: bool = False

    def push(self, event: HydratedEvent) -> None:
        """Appends the next event."""
        if len(self.queue) >= MAX_QUEUE:
            self.overflow()
        elif not self.has_overflowed:
            self.queue.append(event)
            self.ready.set()

    def overflow(self) -> None:
        """Empties the queue, and marks that the reader must continue from the log."""
        self.queue.clear()
        self.has_overflowed = True
        self.ready.set()
        SUBSCRIBER_OVERFLOWS.inc()


class EventHub(Protocol):
    """Delivers the events of streams to subscribers of this process."""

    def subscribe(self, stream: Stream) -> AbstractAsyncContextManager[Subscriber]:
        """Returns a context manager with a new subscriber, which gets every later event."""

    async def head(self, stream: Stream) -> StreamHead:
        """Returns the stream's head."""

    async def replay(self, stream: Stream, position: StreamPosition) -> list[HydratedEvent]:
        """Returns the next events after the position. Raises: PositionExpired."""


@dataclass(slots=True, eq=False)
class _StreamState:
    """State of a stream that has subscribers in this process."""

    stream: Stream
    last_n: int = 0
    """Number of the last event that was delivered to subscribers."""

    epoch: str = ""
    target_n: int = 0
    """Number up to which events are to be delivered."""

    pull_calls: int = 0
    """How many times `Hub._pull` was called for the stream."""

    received: dict[int, Event] = field(default_factory=dict)
    """Published events that were not yet delivered to subscribers."""

    subscribers: set[Subscriber] = field(default_factory=set)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while Redis has confirmed the subscription of the channel."""

    pull_task: asyncio.Task[None] | None = None
    """Delivers events up to `target_n`; None if there is nothing to deliver."""

    is_primed: bool = False
    """Whether `last_n` and `epoch` are set."""


class Hub:
    """Delivers committed events to the subscribers of this process, in order, each once."""

    def __init__(
        self,
        redis: Redis,
        keys: RedisKeys,
        event_log: EventLog,
        hydrate: HydrateEvents,
        compare_every_s: float | None = None,
    ) -> None:
        self._compare_every_s = COMPARE_EVERY_S if compare_every_s is None else compare_every_s
        self._redis = redis
        self._keys = keys
        self._log = event_log
        self._hydrate = hydrate
        self._states: dict[str, _StreamState] = {}
        self._pubsub: PubSub | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts receiving events from Redis and comparing heads."""
        self._tasks = [
            asyncio.create_task(self._listen(), name="hub listen"),
            asyncio.create_task(self._compare_repeatedly(), name="hub compare"),
        ]

    async def close(self) -> None:
        """Stops. Subscribers receive no further events."""
        pulls = [state.pull_task for state in self._states.values() if state.pull_task is not None]
        for task in [*self._tasks, *pulls]:
            task.cancel()
        await asyncio.gather(*self._tasks, *pulls, return_exceptions=True)
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.aclose()  # type: ignore[no-untyped-call]

    @asynccontextmanager
    async def subscribe(self, stream: Stream) -> AsyncIterator[Subscriber]:
        """Yields a new subscriber. Every later event is in its queue or, after an overflow, in the log."""
        subscriber = Subscriber()
        is_new = stream.name not in self._states
        state = self._states.setdefault(stream.name, _StreamState(stream))
        state.subscribers.add(subscriber)
        SUBSCRIBERS.inc()
        try:
            if is_new:
                await self._send_subscribe(state)
            await self._prime(state)
            yield subscriber
        finally:
            state.subscribers.discard(subscriber)
            SUBSCRIBERS.dec()
            if not state.subscribers and self._states.get(stream.name) is state:
                del self._states[stream.name]
                await self._send_unsubscribe(state)

    async def head(self, stream: Stream) -> StreamHead:
        """Returns the stream's head in the log."""
        return await self._log.head(stream)

    async def replay(
        self,
        stream: Stream,
        position: StreamPosition,
        kinds: Collection[str] | None = None,
        limit: int = REPLAY_LIMIT,
    ) -> list[HydratedEvent]:
        """Returns the next events after the position, at most `limit`.

        With `kinds`, the subjects of other events are not read, and are None.

        Raises: PositionExpired if the log no longer has all events after the position.
        """
        events = await self._log.read(stream, position.n, limit)
        numbers = [event.n for event in events]
        # The floor is read after the events. If the floor is now past the position, some events may be missing.
        head = await self._log.head(stream)
        if not is_resumable(position, head) or numbers != list(range(position.n + 1, position.n + 1 + len(events))):
            raise PositionExpired
        return await self._hydrated(stream, events, kinds)

    async def _hydrated(
        self, stream: Stream, events: Sequence[Event], kinds: Collection[str] | None = None
    ) -> list[HydratedEvent]:
        wanted = [event for event in events if kinds is None or event.kind in kinds]
        subjects = await self._hydrate(stream, wanted) if wanted else {}
        return [HydratedEvent(event, subjects.get(event.n)) for event in events]

    async def _prime(self, state: _StreamState) -> None:
        """Reads the head after Redis has confirmed the channel, so that all later events are received."""
        with suppress(TimeoutError):
            # Without Redis, the comparison of heads delivers the events, more slowly.
            async with asyncio.timeout(CONFIRM_TIMEOUT_S):
                await state.confirmed.wait()
        if not state.is_primed:
            head = await self._log.head(state.stream)
            if not state.is_primed:
                state.last_n, state.epoch, state.is_primed = head.n, head.epoch, True

    async def _send_subscribe(self, state: _StreamState) -> None:
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.subscribe(self._keys.channel(state.stream.name))

    async def _send_unsubscribe(self, state: _StreamState) -> None:
        if self._pubsub is not None:
            with suppress(RedisError, OSError):
                await self._pubsub.unsubscribe(self._keys.channel(state.stream.name))

    async def _listen(self) -> None:
        delay_s = MIN_RECONNECT_S
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    async with asyncio.timeout(ATTACH_TIMEOUT_S):
                        await self._attach(pubsub)
                    delay_s = MIN_RECONNECT_S
                    async for message in messages(pubsub):
                        self._receive(message)
            except Exception as error:
                # Also catches malformed messages. Without this task, the process would receive no more events.
                REDIS_DISCONNECTS.inc()
                log.warning("hub_disconnected", error=repr(error))
            finally:
                self._detach()
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, MAX_RECONNECT_S)

    async def _attach(self, pubsub: PubSub) -> None:
        """Subscribes to all streams on a new connection. When Redis confirms a stream, the stream catches up."""
        # The hub's own channel keeps the connection subscribed while no stream has subscribers.
        await pubsub.subscribe(self._keys.channel("hub"))
        self._pubsub = pubsub
        for state in list(self._states.values()):
            await pubsub.subscribe(self._keys.channel(state.stream.name))

    def _detach(self) -> None:
        self._pubsub = None
        for state in self._states.values():
            state.confirmed.clear()

    def _receive(self, message: dict[str, Any]) -> None:
        name = message["channel"].decode().removeprefix(self._keys.channel(""))
        state = self._states.get(name)
        if state is None:
            return
        if message["type"] == "subscribe":
            state.confirmed.set()
            if state.is_primed:
                self._pull(state, state.last_n + 1)
        elif message["type"] == "message" and state.is_primed:
            epoch, events = decode(message["data"])
            if epoch == state.epoch and len(state.received) < MAX_RECEIVED:
                state.received.update((event.n, event) for event in events if event.n > state.last_n)
            self._pull(state, events[-1].n)

    def _pull(self, state: _StreamState, target_n: int) -> None:
        """Delivers events up to number `target_n`, or up to the end of the log if that comes first."""
        state.target_n = max(state.target_n, target_n)
        state.pull_calls += 1
        if state.pull_task is None:
            state.pull_task = asyncio.create_task(self._run_pull(state), name=f"pull {state.stream.name}")

    async def _run_pull(self, state: _StreamState) -> None:
        try:
            while state.subscribers and state.target_n > state.last_n:
                calls = state.pull_calls
                events = await self._next_events(state)
                for event in events:
                    state.last_n = event.event.n
                    state.received.pop(state.last_n, None)
                    for subscriber in state.subscribers:
                        subscriber.push(event)
                if not events and state.pull_calls == calls:
                    # The log ends before the target. If `_pull` was called during the read, an event may be new, so the
                    # log is read again.
                    state.target_n = state.last_n
        except Exception as error:
            # Nothing awaits this task. The next message or comparison starts another task.
            state.target_n = state.last_n
            log.warning("pull_failed", stream=state.stream.name, error=repr(error))
        finally:
            state.pull_task = None

    async def _next_events(self, state: _StreamState) -> list[HydratedEvent]:
        """Returns the events after `last_n`: from Redis if it published the next event, otherwise from the log."""
        published: list[Event] = []
        while (event := state.received.get(state.last_n + 1 + len(published))) is not None:
            published.append(event)
        if published:
            EVENTS_RECEIVED.labels("redis").inc(len(published))
            return await self._hydrated(state.stream, published)
        state.received.clear()
        try:
            events = await self.replay(state.stream, StreamPosition(state.epoch, state.last_n))
            EVENTS_RECEIVED.labels("log").inc(len(events))
            return events
        except PositionExpired:
            await self._reset(state)
            return []

    async def _reset(self, state: _StreamState) -> None:
        """Adopts the head of a stream that was pruned past `last_n` or created again. Subscribers read from the log."""
        head = await self._log.head(state.stream)
        state.last_n, state.epoch = head.n, head.epoch
        for subscriber in state.subscribers:
            subscriber.overflow()

    async def _compare_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(self._compare_every_s)
            try:
                await self.compare()
            except Exception as error:
                log.warning("compare_failed", error=repr(error))

    async def compare(self) -> None:
        """Compares all streams with their heads, and pulls events whose messages were lost."""
        primed = [state for state in self._states.values() if state.is_primed]
        heads = await self._log.heads([state.stream for state in primed])
        for state in primed:
            head = heads.get(state.stream)
            if head is not None and (head.n > state.last_n or head.epoch != state.epoch):
                self._pull(state, max(head.n, state.last_n + 1))
