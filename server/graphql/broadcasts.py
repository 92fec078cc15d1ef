"""Broadcasts: subscriptions with the same operation share one execution and one payload for each event.

Each distinct operation, with its variables and rights, has one broadcast that follows the stream. Events that arrive
together are executed, framed once, and written to each socket in one piece with the operation's id inserted
(docs/semantics.md, 3).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog
from graphql.execution import Executor
from prometheus_client import Counter

from resolvers.events import SharedEventSource
from server.graphql.event_execution import EventExecution
from server.graphql.frames import Frames, Listener, Payload
from storage.errors import DomainError
from storage.streams.hub import MAX_QUEUE, HydratedEvent, PositionExpired, is_resumable
from storage.streams.log import Position
from storage.streams.subscription import EventBatch, SubscriptionStart, follow_batches

RECHECK_S = 2.0
RESTART_S = 0.5
MAX_TOGETHER = 64
"""Events written at once to a listener that catches up; a socket's buffer has room for few more."""

EXECUTIONS = Counter("noroshi_broadcast_executions", "Events executed, each once for all its listeners.")

Key = TypeVar("Key")
Found = TypeVar("Found")

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Broadcast:
    """Follows one stream for one operation. `position` is the last event that was delivered."""

    execution: EventExecution
    source: SharedEventSource
    closed: Callable[["Broadcast"], None]
    position: Position | None = None
    listeners: set[Listener] = field(default_factory=set)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    checking: asyncio.Task[None] | None = None
    checked_at: float = 0.0
    departures: int | None = None
    replays: dict[Position, asyncio.Task[tuple[Position, list[Frames]]]] = field(default_factory=dict)

    async def serve(self, listener: Listener, since: Position | None) -> DomainError | None:
        """Serves the listener until it is cancelled or ended. Returns the error that ended it. Raises: DomainError."""
        self.listeners.add(listener)
        try:
            if self.task is None:
                self.checked_at = time.monotonic()
                self.task = asyncio.create_task(self._run(), name=f"broadcast {self.source.stream.name}")
            await self.started.wait()
            await self._start(listener, since)
            return await listener.ended
        finally:
            self._leave(listener)

    def _leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        if listener.catching_up is not None:
            listener.catching_up.cancel()
        if not self.listeners and self.task is not None:
            self.task.cancel()
            if self.checking is not None:
                self.checking.cancel()
            self.closed(self)

    async def _start(self, listener: Listener, since: Position | None) -> None:
        """Sends StreamReady, then missed events; restarts from the current position when they have expired."""
        at = None
        if since is not None and is_resumable(since, await self._retry(self.source.hub.head, self.source.stream)):
            at = since
        while not (listener.live or listener.ended.done()):
            assert self.position is not None
            resumed, at = at is not None, at or self.position
            await self._send_ready([listener], at, resumed)
            try:
                await self._catch_up(listener, at)
            except PositionExpired:
                at = None

    async def _catch_up(self, listener: Listener, at: Position) -> None:
        """Sends the listener the events between its position and the broadcast's position. Raises: PositionExpired."""
        while at != self.position:
            moved, before = self.moved, at
            at, parts = await self._retry(self._replay, at)
            for frames in parts:
                # Other subscriptions of this socket may be catching up as well.
                await listener.wire.has_room()
                frames.write(listener)
            await listener.wire.has_room()
            if listener.ended.done():
                return
            if not parts and at == before:
                # The client was served by a process that was ahead. Events that it has seen must not be repeated.
                await moved.wait()
        # No await between the last comparison and this line: no event may arrive in between.
        listener.live = True

    async def _retry(self, read: Callable[[Key], Awaitable[Found]], key: Key) -> Found:
        """Repeats a read until the event log can be reached again. An error would end the subscription for good."""
        while True:
            try:
                return await read(key)
            except (PositionExpired, DomainError):
                raise
            except Exception as error:
                log.warning("listener_read_failed", stream=self.source.stream.name, error=repr(error))
            await asyncio.sleep(RESTART_S)

    async def _replay(self, after: Position) -> tuple[Position, list[Frames]]:
        """Returns the events after a position, executed once for all listeners that resume from it together."""
        task = self.replays.get(after)
        if task is None:
            task = self.replays[after] = asyncio.create_task(self._read(after))
            task.add_done_callback(lambda _: self.replays.pop(after, None))
        return await asyncio.shield(task)

    async def _read(self, after: Position) -> tuple[Position, list[Frames]]:
        events = await self.source.hub.replay(self.source.stream, after)
        # Events that the broadcast has not delivered yet arrive live.
        assert self.position is not None
        missed = [event for event in events if event.event.n <= self.position.n]
        if not missed:
            return after, []
        together = [missed[start : start + MAX_TOGETHER] for start in range(0, len(missed), MAX_TOGETHER)]
        parts = [await self._frames(after.epoch, each) for each in together]
        return Position(after.epoch, missed[-1].event.n), [frames for frames in parts if frames is not None]

    async def _run(self) -> None:
        """Follows the stream; after a failure it continues from its position."""
        while True:
            try:
                await self._follow()
            except Exception as error:
                log.warning("broadcast_restarted", stream=self.source.stream.name, error=repr(error))
            await asyncio.sleep(RESTART_S)

    async def _follow(self) -> None:
        async with aclosing(follow_batches(self.source.hub, self.source.stream, self.position)) as steps:
            async for step in steps:
                if isinstance(step, SubscriptionStart):
                    await self._ready(step)
                elif isinstance(step, EventBatch):
                    await self._deliver(step)
                if time.monotonic() - self.checked_at >= RECHECK_S:
                    self._start_recheck()

    async def _ready(self, step: SubscriptionStart) -> None:
        first = self.position is None
        self._move_to(step.position)
        self.started.set()
        if not first and not step.resumed:
            await self._send_ready([each for each in self.listeners if each.live], step.position, resumed=False)

    def _move_to(self, position: Position) -> None:
        self.position = position
        self.moved.set()
        self.moved = asyncio.Event()

    async def _deliver(self, step: EventBatch) -> None:
        if len(step.events) > MAX_QUEUE:
            self._let_catch_up(step)
            return
        frames = await self._frames(step.position.epoch, step.events)
        self._move_to(step.position)
        for listener in self.listeners:
            if listener.live and frames is not None:
                frames.write(listener)

    def _let_catch_up(self, step: EventBatch) -> None:
        """Lets listeners catch up by themselves when more events arrive than a socket may hold, as after an outage."""
        before = self.position
        assert before is not None
        self._move_to(step.position)
        for listener in self.listeners:
            if listener.live:
                listener.live = False
                listener.catching_up = asyncio.create_task(self._catch_up_again(listener, before), name="catch up")

    async def _catch_up_again(self, listener: Listener, at: Position) -> None:
        """Passes a final failure to the future on which the listener waits for its end."""
        try:
            try:
                await self._catch_up(listener, at)
            except PositionExpired:
                await self._start(listener, None)
        except Exception as error:
            if not listener.ended.done():
                listener.ended.set_exception(error)

    async def _frames(self, epoch: str, events: Sequence[HydratedEvent]) -> Frames | None:
        shown = [event for event in events if event.subject is not None]
        if not shown:
            return None
        EXECUTIONS.inc(len(shown))
        executions = [self.execution.run(self.source.record(epoch, event)) for event in shown]
        jsons, hidden = await asyncio.gather(asyncio.gather(*executions), self.source.hidden_from(shown))
        return Frames([Payload(*each) for each in zip(jsons, hidden, strict=True)])

    async def _send_ready(self, listeners: Sequence[Listener], position: Position, resumed: bool) -> None:
        if not resumed:
            await self.source.wait_until_readable(position)
        record = self.source.ready(SubscriptionStart(position, resumed, datetime.now(UTC)))
        frames = Frames([Payload(await self.execution.run(record), frozenset())])
        for listener in listeners:
            frames.write(listener)

    def _start_recheck(self) -> None:
        """Rechecks permissions in the background: with thousands of listeners it takes longer than an event may."""
        if self.checking is None or self.checking.done():
            self.checked_at = time.monotonic()
            self.checking = asyncio.create_task(self._recheck(), name=f"recheck {self.source.stream.name}")

    async def _recheck(self) -> None:
        """Ends listeners without permission. Only new listeners can lack it when no member has left."""
        try:
            departures = await self.source.departures()
            listeners = [each for each in self.listeners if departures != self.departures or not each.checked]
            viewers = {each.viewer_id for each in listeners}
            allowed = await self.source.may_listen(viewers) if viewers else viewers
        except Exception as error:
            log.warning("recheck_failed", stream=self.source.stream.name, error=repr(error))
            return
        self.departures = departures
        for listener in listeners:
            listener.checked = True
            if listener.viewer_id not in allowed:
                listener.end(self.source.forbidden())


class Broadcasts:
    """The broadcasts of this process, by the key that makes subscriptions identical."""

    def __init__(self) -> None:
        self._broadcasts: dict[Hashable, Broadcast] = {}

    def get(self, key: Hashable, executor: Executor[Any], source: SharedEventSource) -> Broadcast:
        """Returns the broadcast of the key; a new one uses this executor and source."""
        broadcast = self._broadcasts.get(key)
        if broadcast is None:

            def closed(ended: Broadcast) -> None:
                if self._broadcasts.get(key) is ended:
                    del self._broadcasts[key]

            broadcast = self._broadcasts[key] = Broadcast(EventExecution(executor), source, closed)
        return broadcast

    def __len__(self) -> int:
        return len(self._broadcasts)
