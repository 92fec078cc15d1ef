"""Broadcasts: subscriptions with the same operation share one execution and one payload for each event.

There is one broadcast for each distinct combination of operation, variables and rights. It follows the stream and
executes the operation for each event. Events that arrive together are written to each socket at once. See
docs/semantics.md, 3.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import structlog
from graphql.execution import Executor
from prometheus_client import Counter

from resolvers.events import HiddenEvents, SharedEventSource
from server.graphql.departures import Departures
from server.graphql.event_execution import EventExecution
from server.graphql.fair_shares import MeasuredAwaitable, attribute_time_to, wait_for_turn
from server.graphql.frames import EventFrames, Listener
from storage.errors import DomainError, Unavailable
from storage.streams.hub import MAX_QUEUE, HydratedEvent, PositionExpired, is_resumable
from storage.streams.log import StreamPosition
from storage.streams.subscription import EventBatch, SubscriptionStart, follow_batches

RECHECK_EVERY_S = 2.0
RETRY_PAUSE_S = 0.5
SHARE_READY_S = 0.05
"""How long listeners that start share one StreamReady, whose time is that of the first of them."""
MAX_EVENTS_AT_ONCE = 64
"""Number of events that are written at once to a listener that catches up. A socket's buffer has room for few more."""

EXECUTIONS = Counter("noroshi_broadcast_executions", "Events executed, each once for all its listeners.")

Key = TypeVar("Key")
Value = TypeVar("Value")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExecutedEvents:
    """Executed events and their frames. Before they are written, each viewer is checked for hidden events."""

    events: Sequence[HydratedEvent]
    frames: EventFrames


@dataclass(slots=True, eq=False)
class Broadcast:
    """Follows one stream for one operation and delivers its events to the listeners.

    `position` is the position of the last delivered event; None until the broadcast follows the stream.
    """

    execution: EventExecution
    source: SharedEventSource
    departures: Departures
    on_close: Callable[["Broadcast"], None]
    """Called when the last listener has left."""
    position: StreamPosition | None = None
    listeners: set[Listener] = field(default_factory=set)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when `position` changes, and then replaced by a new event."""
    follow_task: asyncio.Task[None] | None = None
    recheck_task: asyncio.Task[None] | None = None
    rechecked_at_s: float = 0.0
    departures_seen: int | None = None
    """The source's number of departures at the last recheck of permissions."""
    ready: dict[tuple[StreamPosition, bool], EventFrames] = field(default_factory=dict)
    """Frames of StreamReady that were executed since `ready_since_s`, by position and `resumed`."""
    ready_since_s: float = 0.0
    replays: dict[StreamPosition, asyncio.Task[tuple[StreamPosition, list[ExecutedEvents]]]] = field(
        default_factory=dict
    )

    async def serve(self, listener: Listener, since: StreamPosition | None) -> DomainError | None:
        """Serves the listener until the caller is cancelled or the subscription ends.

        Returns the error with which a recheck of permissions ended the subscription. Raises: the errors of reads that
        ended it.
        """
        self.listeners.add(listener)
        try:
            if self.follow_task is None:
                self.rechecked_at_s = time.monotonic()
                self.follow_task = asyncio.create_task(self._run(), name=f"broadcast {self.source.stream.name}")
                self.departures.watch(self.source, self._recheck_now)
            await self.started.wait()
            await self._start_listener(listener, since)
            return await listener.ended
        finally:
            self._leave(listener)

    def _leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        if listener.catch_up_task is not None:
            listener.catch_up_task.cancel()
        if not self.listeners and self.follow_task is not None:
            self.follow_task.cancel()
            self.departures.unwatch(self.source, self._recheck_now)
            if self.recheck_task is not None:
                self.recheck_task.cancel()
            self.on_close(self)

    async def _start_listener(self, listener: Listener, since: StreamPosition | None) -> None:
        """Sends StreamReady, then the missed events. If these have expired, starts again at the current position."""
        start = None
        if since is not None and is_resumable(since, await self._retry(self.source.hub.head, self.source.stream)):
            start = since
        while not (listener.is_live or listener.ended.done()):
            assert self.position is not None
            resumed, start = start is not None, start or self.position
            await self._send_ready([listener], start, resumed)
            try:
                await self._catch_up(listener, start)
            except PositionExpired:
                start = None

    async def _catch_up(self, listener: Listener, position: StreamPosition) -> None:
        """Sends the listener the events after `position`, up to the broadcast's position. Raises: PositionExpired."""
        while position != self.position:
            moved, before = self.moved, position
            position, replayed = await self._retry(self._replay, position)
            for executed in replayed:
                # Other subscriptions of this socket may be catching up as well.
                await listener.connection.wait_for_room()
                hidden = await self._retry(partial(self.source.hidden_from, [listener.viewer_id]), executed.events)
                executed.frames.write(listener, hidden.get(listener.viewer_id, ()))
            await listener.connection.wait_for_room()
            if listener.ended.done():
                return
            if not replayed and position == before:
                # Another process, ahead of this one, served the client up to `position`. The broadcast delivers
                # nothing to the client until it has passed that position, so that no event is sent twice.
                await moved.wait()
        # There is no await between the last comparison and this line, so that no event can arrive in between.
        listener.is_live = True

    async def _retry(self, read: Callable[[Key], Awaitable[Value]], key: Key) -> Value:
        """Repeats a read of the event log until it succeeds, since an error would end the subscription.

        Raises: PositionExpired, DomainError.
        """
        while True:
            try:
                return await read(key)
            except Exception as error:
                if isinstance(error, PositionExpired | DomainError) and not isinstance(error, Unavailable):
                    raise
                log.warning("listener_read_failed", stream=self.source.stream.name, error=repr(error))
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _replay(self, after: StreamPosition) -> tuple[StreamPosition, list[ExecutedEvents]]:
        """Returns the frames of the events after a position, and the position of the last one.

        Listeners that resume from one position at the same time share one execution.
        """
        task = self.replays.get(after)
        if task is None:
            task = self.replays[after] = asyncio.create_task(self._read_missed(after))
            task.add_done_callback(lambda _: self.replays.pop(after, None))
        return await asyncio.shield(task)

    async def _read_missed(self, after: StreamPosition) -> tuple[StreamPosition, list[ExecutedEvents]]:
        events = await self.source.hub.replay(self.source.stream, after)
        # Events that the broadcast has not delivered yet arrive live.
        assert self.position is not None
        missed = [event for event in events if event.event.n <= self.position.n]
        if not missed:
            return after, []
        present = _present(missed)
        starts = range(0, len(present), MAX_EVENTS_AT_ONCE)
        batches = [present[start : start + MAX_EVENTS_AT_ONCE] for start in starts]
        executed = [await self._execute(after.epoch, batch) for batch in batches]
        return StreamPosition(after.epoch, missed[-1].event.n), executed

    async def _run(self) -> None:
        """Follows the stream; after a failure it continues from its position."""
        while True:
            try:
                await self._follow()
            except Exception as error:
                log.warning("broadcast_restarted", stream=self.source.stream.name, error=repr(error))
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _follow(self) -> None:
        await self.source.renew()
        async with aclosing(follow_batches(self.source.hub, self.source.stream, self.position)) as items:
            async for item in items:
                await self.source.renew()
                if isinstance(item, SubscriptionStart):
                    await self._handle_start(item)
                elif isinstance(item, EventBatch):
                    await self._deliver(item)
                if time.monotonic() - self.rechecked_at_s >= RECHECK_EVERY_S:
                    self._start_recheck()

    async def _handle_start(self, start: SubscriptionStart) -> None:
        is_first = self.position is None
        self._move_to(start.position)
        self.started.set()
        if not is_first and not start.resumed:
            await self._send_ready([each for each in self.listeners if each.is_live], start.position, resumed=False)

    def _move_to(self, position: StreamPosition) -> None:
        self.position = position
        self.moved.set()
        self.moved = asyncio.Event()

    async def _deliver(self, batch: EventBatch) -> None:
        """Writes the events to the live listeners.

        If there are more events than may wait for a socket, the listeners catch up at their own pace instead. So does a
        listener that became live during the execution, because its viewer was not checked for hidden events.
        """
        checked: set[str] = set()
        if len(batch.events) <= MAX_QUEUE:
            checked = {listener.viewer_id for listener in self.listeners if listener.is_live}
        frames, hidden = await self._execute_for(checked, batch)
        before = self.position
        assert before is not None
        self._move_to(batch.position)
        for listener in self.listeners:
            if listener.is_live and listener.viewer_id in checked:
                frames.write(listener, hidden.get(listener.viewer_id, ()))
            elif listener.is_live:
                self._start_catching_up(listener, before)

    async def _execute_for(self, viewer_ids: Collection[str], batch: EventBatch) -> tuple[EventFrames, HiddenEvents]:
        """Executes the events if there are viewers. Returns the frames, and the events hidden from each viewer."""
        events = _present(batch.events) if viewer_ids else []
        if not events:
            return EventFrames([], []), {}
        executed, hidden = await asyncio.gather(
            self._execute(batch.position.epoch, events), self.source.hidden_from(viewer_ids, events)
        )
        return executed.frames, hidden

    def _start_catching_up(self, listener: Listener, position: StreamPosition) -> None:
        listener.is_live = False
        listener.catch_up_task = asyncio.create_task(self._catch_up_or_end(listener, position), name="catch up")

    async def _catch_up_or_end(self, listener: Listener, position: StreamPosition) -> None:
        """Sends the listener the events after `position`. An error ends the subscription."""
        try:
            try:
                await self._catch_up(listener, position)
            except PositionExpired:
                await self._start_listener(listener, None)
        except Exception as error:
            if not listener.ended.done():
                listener.ended.set_exception(error)

    async def _execute(self, epoch: str, events: Sequence[HydratedEvent]) -> ExecutedEvents:
        EXECUTIONS.inc(len(events))
        records = [self.source.record(epoch, event) for event in events]
        payloads = await asyncio.gather(*(self._execute_in_turn(record) for record in records))
        return ExecutedEvents(events, EventFrames(payloads, [record.cursor for record in records]))

    async def _execute_in_turn(self, record: object) -> bytes:
        """Executes the operation for an event. The time counts for the viewer if there is only one viewer."""
        shares = (each.share for each in self.listeners)
        first = next(shares, None)
        share = first if all(each is first for each in shares) else None
        attribute_time_to(share)
        async with nullcontext() if share is None else share.events:
            await wait_for_turn()
            return await MeasuredAwaitable(self.execution.run(record))

    async def _send_ready(self, listeners: Sequence[Listener], position: StreamPosition, resumed: bool) -> None:
        frames = await self._ready_frames(position, resumed)
        for listener in listeners:
            frames.write(listener)

    async def _ready_frames(self, position: StreamPosition, resumed: bool) -> EventFrames:
        """Returns the frames of a StreamReady. Listeners that start within a short time share one execution."""
        if time.monotonic() - self.ready_since_s > SHARE_READY_S:
            self.ready.clear()
            self.ready_since_s = time.monotonic()
        frames = self.ready.get((position, resumed))
        if frames is None:
            record = self.source.ready(SubscriptionStart(position, resumed, datetime.now(UTC)))
            frames = EventFrames([await self.execution.run(record)], [record.cursor])
            self.ready[position, resumed] = frames
        return frames

    def _start_recheck(self) -> None:
        """Rechecks permissions in the background, since a check of thousands of listeners would delay events."""
        if self.recheck_task is None or self.recheck_task.done():
            self.rechecked_at_s = time.monotonic()
            self.recheck_task = asyncio.create_task(self._recheck(), name=f"recheck {self.source.stream.name}")

    async def _recheck_now(self) -> None:
        """Rechecks permissions after a departure, which a recheck in progress may not have seen."""
        if self.recheck_task is not None:
            await asyncio.wait([self.recheck_task])
        self._start_recheck()

    async def _recheck(self) -> None:
        """Ends the subscriptions of viewers without permission.

        While the number of departures is unchanged, only new listeners are checked.
        """
        try:
            departures = await self.source.departures()
            listeners = [each for each in self.listeners if departures != self.departures_seen or not each.is_checked]
            viewers = {each.viewer_id for each in listeners}
            allowed = await self.source.authorized_among(viewers) if viewers else viewers
        except Exception as error:
            log.warning("recheck_failed", stream=self.source.stream.name, error=repr(error))
            return
        self.departures_seen = departures
        for listener in listeners:
            listener.is_checked = True
            if listener.viewer_id not in allowed:
                listener.end(self.source.forbidden())


def _present(events: Sequence[HydratedEvent]) -> list[HydratedEvent]:
    """Returns the events whose subject still exists."""
    return [event for event in events if event.subject is not None]


class Broadcasts:
    """The broadcasts of this process, by the key of their subscriptions."""

    def __init__(self, execution_timeout_s: float) -> None:
        self._execution_timeout_s = execution_timeout_s
        self._broadcasts: dict[Hashable, Broadcast] = {}
        self._departures = Departures()

    def get(self, key: Hashable, executor: Executor[Any], source: SharedEventSource) -> Broadcast:
        """Returns the broadcast of the key. If there is none, creates one with this executor and source."""
        broadcast = self._broadcasts.get(key)
        if broadcast is None:

            def remove(closed: Broadcast) -> None:
                if self._broadcasts.get(key) is closed:
                    del self._broadcasts[key]

            execution = EventExecution(executor, self._execution_timeout_s)
            broadcast = self._broadcasts[key] = Broadcast(execution, source, self._departures, remove)
        return broadcast

    def __len__(self) -> int:
        return len(self._broadcasts)
