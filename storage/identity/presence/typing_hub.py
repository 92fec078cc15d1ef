"""People who are typing in topics and conversations. Redis holds it for some seconds, and each process polls Redis.

The hub delivers changes as events of a stream that no log holds. They are lost with the process. A subscriber that
missed events starts again, and reads who is typing now.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from cachetools import LRUCache
from redis.asyncio import Redis

from storage.ids import new_id
from storage.redis.circuit_breaker import FAILURES
from storage.redis.expiring_members import ExpiringMembers
from storage.redis.keys import RedisKeys
from storage.streams.hub import HydratedEvent, PositionExpired, Subscriber, is_resumable
from storage.streams.log import Event, Stream, StreamHead, StreamPosition

TYPING = "typing"
STARTED, ENDED = "TypingStarted", "TypingEnded"
TYPING_KINDS = {STARTED, ENDED}

TYPING_S = 6.0
"""How long a person counts as typing after the last signal, in seconds."""

SIGNAL_EVERY_S = 1.0
"""Signals of a person in a topic that follow an earlier one within this time change nothing."""

POLL_EVERY_S = 0.5
MAX_SHOWN = 3
"""Maximum number of people of a topic who are shown as typing at a time."""

MAX_STORED = 20
"""Maximum number of people of a topic whose signals are stored at a time."""

MAX_RECENT = 64
"""Number of events of a topic that a subscriber who is behind still gets."""

MAX_SIGNALS = 100_000
"""Number of people and topics whose last signal is remembered."""

log = structlog.get_logger(__name__)


def typing_stream(topic_id: str) -> Stream:
    """Returns the stream of the people who are typing in a topic. No log holds it."""
    return Stream(TYPING, topic_id)


@dataclass(slots=True, eq=False)
class _TopicState:
    """State of a topic that has subscribers in this process. `shown` has who is typing, as subscribers know it."""

    epoch: str = field(default_factory=new_id)
    n: int = 0
    shown: list[str] = field(default_factory=list)
    recent: deque[HydratedEvent] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))
    subscribers: set[Subscriber] = field(default_factory=set)

    def show(self, typing: Sequence[str]) -> None:
        """Emits who has started and who has stopped. People who are shown stay shown while they type."""
        shown = [user_id for user_id in self.shown if user_id in typing]
        shown += [user_id for user_id in typing if user_id not in shown][: MAX_SHOWN - len(shown)]
        self._emit(ENDED, (user_id for user_id in self.shown if user_id not in shown))
        self._emit(STARTED, (user_id for user_id in shown if user_id not in self.shown))
        self.shown = shown

    def _emit(self, kind: str, user_ids: Iterable[str]) -> None:
        for user_id in user_ids:
            self.n += 1
            event = HydratedEvent(Event(self.n, kind, user_id, datetime.now(UTC)), user_id)
            self.recent.append(event)
            for subscriber in self.subscribers:
                subscriber.push(event)


class TypingHub:
    """Stores signals of people who type, and delivers changes to the subscribers of this process."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._members = ExpiringMembers(redis)
        self._keys = keys
        self._topics: dict[str, _TopicState] = {}
        self._has_topics = asyncio.Event()
        self._signalled_at: LRUCache[tuple[str, str], float] = LRUCache(MAX_SIGNALS)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts polling."""
        self._task = asyncio.create_task(self._run(), name="typing hub")

    async def close(self) -> None:
        """Stops polling. Subscribers receive no further events."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def begin(self, topic_id: str, user_id: str) -> None:
        """Stores that the person is typing, for some seconds. Does nothing if Redis does not answer."""
        now, signal = time.monotonic(), (topic_id, user_id)
        if now - self._signalled_at.get(signal, -SIGNAL_EVERY_S) < SIGNAL_EVERY_S:
            return
        self._signalled_at[signal] = now
        try:
            await self._members.add(self._keys.typing(topic_id), [user_id], TYPING_S, MAX_STORED)
        except FAILURES as error:
            log.warning("typing_lost", topic=topic_id, error=repr(error))

    async def end(self, topic_id: str, user_id: str) -> None:
        """Stores that the person has stopped typing. Does nothing if Redis does not answer."""
        self._signalled_at.pop((topic_id, user_id), None)
        try:
            await self._members.remove(self._keys.typing(topic_id), user_id)
        except FAILURES as error:
            log.warning("typing_lost", topic=topic_id, error=repr(error))

    async def people(self, topic_id: str) -> list[str]:
        """Returns at most MAX_SHOWN people who are typing in the topic; nobody if Redis does not answer."""
        state = self._topics.get(topic_id)
        if state is not None and state.shown:
            return state.shown
        try:
            return (await self._members.members([self._keys.typing(topic_id)]))[0][:MAX_SHOWN]
        except FAILURES:
            return []

    @asynccontextmanager
    async def subscribe(self, stream: Stream) -> AsyncIterator[Subscriber]:
        """Yields a new subscriber to a topic's typing people. Later events are put into its queue."""
        subscriber = Subscriber()
        state = self._topics.setdefault(stream.id, _TopicState())
        state.subscribers.add(subscriber)
        self._has_topics.set()
        try:
            yield subscriber
        finally:
            state.subscribers.discard(subscriber)
            if not state.subscribers and self._topics.get(stream.id) is state:
                del self._topics[stream.id]

    async def head(self, stream: Stream) -> StreamHead:
        """Returns the last event, and the last one that is forgotten. Without subscribers nothing is remembered."""
        state = self._topics.get(stream.id) or _TopicState()
        return StreamHead(state.n, state.n - len(state.recent), state.epoch)

    async def replay(self, stream: Stream, position: StreamPosition) -> list[HydratedEvent]:
        """Returns the events after the position. Raises: PositionExpired if some are forgotten."""
        if not is_resumable(position, await self.head(stream)):
            raise PositionExpired
        return [event for event in self._topics[stream.id].recent if event.event.n > position.n]

    async def _run(self) -> None:
        while True:
            if not self._topics:
                self._has_topics.clear()
                await self._has_topics.wait()
            try:
                await self._poll()
            except Exception as error:
                # Any error, since without this task no later event would be delivered.
                log.warning("typing_poll_failed", error=repr(error))
            await asyncio.sleep(POLL_EVERY_S)

    async def _poll(self) -> None:
        states = dict(self._topics)
        try:
            found = await self._members.members([self._keys.typing(topic_id) for topic_id in states])
        except FAILURES:
            found = [[] for _ in states]
        for state, typing in zip(states.values(), found, strict=True):
            state.show(typing)
