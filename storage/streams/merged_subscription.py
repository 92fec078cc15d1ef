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
"""How often the set of streams is read again."""

RECENT = 20
"""How many events of a new stream are replayed if its starting position has expired."""

MAX_WAITING = 64
"""Maximum number of items that wait for the reader. Beyond it, the streams pause."""

Positions = dict[str, Position]
"""Positions by the digest of the stream; the main stream's digest is empty."""

Others = Callable[[], Awaitable[Mapping[Stream, Position]]]
"""Returns the streams to follow besides the main one, and the position where each starts if it is new."""


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
    """Returns the opaque string of all positions."""
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
    """The streams that a subscription follows. Each has a task, which waits while the reader is slow."""

    hub: Hub
    main: Stream
    positions: Positions = field(default_factory=dict)
    tasks: dict[Stream, asyncio.Task[None]] = field(default_factory=dict)
    items: asyncio.Queue[tuple[Stream, SubscriptionStart | StreamEvent | Exception]] = field(
        default_factory=lambda: asyncio.Queue(MAX_WAITING)
    )

    def name(self, stream: Stream) -> str:
        """The stream's key in positions."""
        return "" if stream == self.main else _digest(stream)

    @property
    def cursor(self) -> Cursor:
        """The cursor of all positions."""
        return format_positions(self.main, self.positions)

    def add(self, stream: Stream, start: Position) -> None:
        """Starts following the stream from the position."""
        self.positions[self.name(stream)] = start
        self.tasks[stream] = asyncio.create_task(self._pump(stream, start), name=f"follow {stream.name}")

    async def drop(self, stream: Stream) -> None:
        """Stops following the stream."""
        task = self.tasks.pop(stream)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.positions.pop(self.name(stream), None)

    async def _pump(self, stream: Stream, start: Position) -> None:
        try:
            async with aclosing(follow_events(self.hub, stream, start)) as items:
                async for item in items:
                    if not isinstance(item, IdleTimeout):
                        await self.items.put((stream, item))
        except Exception as error:
            await self.items.put((stream, error))

    async def next(self) -> tuple[Stream, SubscriptionStart | StreamEvent] | None:
        """Returns the next item of any stream, or None after ten seconds without one. Raises: a stream's error."""
        try:
            async with asyncio.timeout(REFRESH_EVERY_S):
                stream, item = await self.items.get()
        except TimeoutError:
            return None
        if isinstance(item, Exception):
            raise item
        return stream, item


async def follow_merged(
    hub: Hub, main: Stream, others: Others, since: Positions | None
) -> AsyncGenerator[MergedStart | MergedEvent, None]:
    """Yields a MergedStart, then each event once, in the order of its stream; another MergedStart after a gap.

    Changes of the streams that `others` returns take effect within ten seconds.
    """
    following = _FollowedStreams(hub, main)
    try:
        yield await _start_all(following, others, since)
        refreshed_at = asyncio.get_running_loop().time()
        while True:
            found = await following.next()
            if found is not None and found[0] in following.tasks:
                item = _advance(following, *found)
                if item is not None:
                    yield item
            if asyncio.get_running_loop().time() - refreshed_at >= REFRESH_EVERY_S:
                await _refresh(following, await others())
                refreshed_at = asyncio.get_running_loop().time()
    finally:
        for stream in list(following.tasks):
            await following.drop(stream)


async def _start_all(following: _FollowedStreams, others: Others, since: Positions | None) -> MergedStart:
    """Resumes all streams of the cursor if each can be; otherwise all start at their heads."""
    hub, streams = following.hub, {following.main: Position("", 0), **await others()}
    heads = {stream: await hub.head(stream) for stream in streams}
    requested = since or {}
    starts = {stream: requested.get(following.name(stream), start) for stream, start in streams.items()}
    # A stream that is not in the cursor may start late without a gap, so it does not prevent resuming.
    in_cursor = [stream for stream in streams if following.name(stream) in requested]
    resumed = since is not None and all(is_resumable(starts[stream], heads[stream]) for stream in in_cursor)
    for stream, head in heads.items():
        following.add(stream, _start(starts[stream], head) if resumed else Position(head.epoch, head.n))
    return MergedStart(following.cursor, resumed, datetime.now(UTC))


def _advance(
    following: _FollowedStreams, stream: Stream, item: SubscriptionStart | StreamEvent
) -> MergedStart | MergedEvent | None:
    name, at = following.name(stream), item.position
    if (
        isinstance(item, StreamEvent)
        and at.epoch == following.positions[name].epoch
        and at.n <= following.positions[name].n
    ):
        return None  # delivered before the stream was dropped and added again
    following.positions[name] = at
    if isinstance(item, StreamEvent):
        return MergedEvent(following.cursor, stream, item.event)
    return None if item.resumed else MergedStart(following.cursor, False, item.at)


def _start(start: Position, head: Head) -> Position:
    """Returns where a new stream starts: at the given position, or a few events back if that has expired."""
    return start if is_resumable(start, head) else Position(head.epoch, max(head.floor, head.n - RECENT))


async def _refresh(following: _FollowedStreams, wanted: Mapping[Stream, Position]) -> None:
    for stream, start in wanted.items():
        if stream not in following.tasks:
            following.add(stream, _start(start, await following.hub.head(stream)))
    for stream in following.tasks.keys() - wanted.keys() - {following.main}:
        await following.drop(stream)
