"""A subscription to several streams at once, under one cursor that holds a position in each.

Events of different streams are interleaved as they arrive. Each stream has no gaps, as in
storage/streams/subscription.py.
"""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from storage.errors import BadUserInput
from storage.streams.hub import Hub, HydratedEvent, is_resumable
from storage.streams.log import Cursor, Head, Position, Stream
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events

REFRESH_EVERY_S = 10.0
"""How often the set of followed streams is read again."""

MAX_RECENT_EVENTS = 20
"""How many events of an added stream are replayed if its starting position has expired."""

MAX_WAITING = 64
"""Maximum number of items that wait for the reader. Beyond it, the streams pause."""

Positions = dict[str, Position]
"""Positions by the digest of the stream; the main stream's digest is empty."""

OtherStreams = Callable[[], Awaitable[Mapping[Stream, Position]]]
"""Returns the streams to follow besides the main stream, each with the position from which it is followed."""


@dataclass(frozen=True, slots=True)
class MergedStart:
    """The start of a subscription. `resumed` means that it starts at the requested cursor, without missed events."""

    cursor: Cursor
    resumed: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class MergedEvent:
    """An event of one of the streams, and the cursor after it."""

    cursor: Cursor
    stream: Stream
    event: HydratedEvent


def format_positions(main: Stream, positions: Positions) -> Cursor:
    """Returns the cursor that holds all positions."""
    parts = [f"{name}.{each.epoch}.{each.n}" for name, each in sorted(positions.items())]
    text = ";".join([_digest(main), *parts])
    return Cursor(base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


def parse_positions(main: Stream, cursor: str) -> Positions:
    """Returns the positions of a cursor. Raises: BadUserInput if it is not a cursor of this subscription."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        digest, *parts = base64.b64decode(padded, b"-_", validate=True).decode().split(";")
        split = [part.split(".") for part in parts]
        positions = {name: Position(epoch, int(n)) for name, epoch, n in split}
    except ValueError:
        raise BadUserInput("since", "a cursor from this subscription") from None
    if digest != _digest(main) or "" not in positions:
        raise BadUserInput("since", "a cursor of this subscription, not of another one")
    return positions


def _digest(stream: Stream) -> str:
    return hashlib.sha256(stream.name.encode()).hexdigest()[:10]


@dataclass(slots=True)
class _FollowedStreams:
    """The streams that a subscription follows. Each has a task that queues its events and waits for a slow reader."""

    hub: Hub
    main: Stream
    positions: Positions = field(default_factory=dict)
    tasks: dict[Stream, asyncio.Task[None]] = field(default_factory=dict)
    items: asyncio.Queue[tuple[Stream, SubscriptionStart | StreamEvent | Exception]] = field(
        default_factory=lambda: asyncio.Queue(MAX_WAITING)
    )

    def position_key(self, stream: Stream) -> str:
        """Returns the stream's key in `positions`."""
        return "" if stream == self.main else _digest(stream)

    @property
    def cursor(self) -> Cursor:
        """The cursor of all positions."""
        return format_positions(self.main, self.positions)

    def add(self, stream: Stream, start: Position) -> None:
        """Starts following the stream from the position."""
        self.positions[self.position_key(stream)] = start
        self.tasks[stream] = asyncio.create_task(self._queue_items(stream, start), name=f"follow {stream.name}")

    async def drop(self, stream: Stream) -> None:
        """Stops following the stream."""
        task = self.tasks.pop(stream)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.positions.pop(self.position_key(stream), None)

    async def _queue_items(self, stream: Stream, start: Position) -> None:
        try:
            async with aclosing(follow_events(self.hub, stream, start)) as items:
                async for item in items:
                    if not isinstance(item, IdleTimeout):
                        await self.items.put((stream, item))
        except Exception as error:
            await self.items.put((stream, error))

    async def next(self) -> tuple[Stream, SubscriptionStart | StreamEvent] | None:
        """Returns the next item of any stream, or None after ten seconds without an item. Raises: a stream's error."""
        try:
            async with asyncio.timeout(REFRESH_EVERY_S):
                stream, item = await self.items.get()
        except TimeoutError:
            return None
        if isinstance(item, Exception):
            raise item
        return stream, item


async def follow_merged(
    hub: Hub, main: Stream, others: OtherStreams, since: Positions | None
) -> AsyncGenerator[MergedStart | MergedEvent, None]:
    """Yields a MergedStart, then each event once, in the order of its stream; another MergedStart after a gap.

    `others` is called every ten seconds. Streams that it adds or omits are then followed or dropped.
    """
    following = _FollowedStreams(hub, main)
    try:
        yield await _start_all(following, others, since)
        refreshed_at = asyncio.get_running_loop().time()
        while True:
            received = await following.next()
            if received is not None and received[0] in following.tasks:
                item = _advance(following, *received)
                if item is not None:
                    yield item
            if asyncio.get_running_loop().time() - refreshed_at >= REFRESH_EVERY_S:
                await _refresh(following, await others())
                refreshed_at = asyncio.get_running_loop().time()
    finally:
        for stream in list(following.tasks):
            await following.drop(stream)


async def _start_all(following: _FollowedStreams, others: OtherStreams, since: Positions | None) -> MergedStart:
    """Resumes all streams of the cursor if each of them is resumable. Otherwise starts all streams at their heads."""
    hub, streams = following.hub, {following.main: Position("", 0), **await others()}
    heads = {stream: await hub.head(stream) for stream in streams}
    requested = since or {}
    starts = {stream: requested.get(following.position_key(stream), start) for stream, start in streams.items()}
    # The client has received no events of a stream that is not in the cursor, so its start cannot cause a gap.
    in_cursor = [stream for stream in streams if following.position_key(stream) in requested]
    resumed = since is not None and all(is_resumable(starts[stream], heads[stream]) for stream in in_cursor)
    for stream, head in heads.items():
        following.add(stream, _valid_start(starts[stream], head) if resumed else Position(head.epoch, head.n))
    return MergedStart(following.cursor, resumed, datetime.now(UTC))


def _advance(
    following: _FollowedStreams, stream: Stream, item: SubscriptionStart | StreamEvent
) -> MergedStart | MergedEvent | None:
    """Moves the stream's position to the item. Returns what the subscriber receives, or None for nothing."""
    key, position = following.position_key(stream), item.position
    before = following.positions[key]
    if isinstance(item, StreamEvent) and position.epoch == before.epoch and position.n <= before.n:
        return None  # delivered before the stream was dropped and added again
    following.positions[key] = position
    if isinstance(item, StreamEvent):
        return MergedEvent(following.cursor, stream, item.event)
    return None if item.resumed else MergedStart(following.cursor, False, item.at)


def _valid_start(start: Position, head: Head) -> Position:
    """Returns the position `start`, or a position a few events before the head if `start` has expired."""
    return start if is_resumable(start, head) else Position(head.epoch, max(head.floor, head.n - MAX_RECENT_EVENTS))


async def _refresh(following: _FollowedStreams, others: Mapping[Stream, Position]) -> None:
    """Follows exactly the main stream and `others`."""
    for stream, start in others.items():
        if stream not in following.tasks:
            following.add(stream, _valid_start(start, await following.hub.head(stream)))
    for stream in following.tasks.keys() - others.keys() - {following.main}:
        await following.drop(stream)
