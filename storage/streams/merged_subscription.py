"""A subscription to several streams at once, under one cursor that holds a position in each.

Events of different streams are interleaved as they arrive. Each stream has no gaps, as in
storage/streams/subscription.py.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from storage.errors import BadUserInput
from storage.streams.hub import Hub, HydratedEvent, is_resumable
from storage.streams.log import Cursor, Stream, StreamPosition, decode_cursor, encode_cursor, stream_digest
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events

IDLE_S = 10.0
"""Seconds without an item after which IdleTimeout is yielded."""

MAX_WAITING = 64
"""Maximum number of items that wait for the reader. Beyond it, the streams pause."""

StreamPositions = dict[str, StreamPosition]
"""Positions by the digest of the stream. The key of the main stream is empty."""


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


def format_positions(main: Stream, positions: StreamPositions) -> Cursor:
    """Returns the cursor that holds all positions."""
    parts = [f"{name}.{each.epoch}.{each.n}" for name, each in sorted(positions.items())]
    return encode_cursor(";".join([stream_digest(main), *parts]))


def parse_positions(main: Stream, cursor: str) -> StreamPositions:
    """Returns the positions of a cursor. Raises: BadUserInput if it is not a cursor of this subscription."""
    try:
        digest, *parts = decode_cursor(cursor).split(";")
        split = [part.split(".") for part in parts]
        positions = {name: StreamPosition(epoch, int(n)) for name, epoch, n in split}
    except ValueError:
        raise BadUserInput("since", "a cursor from this subscription") from None
    if digest != stream_digest(main) or "" not in positions:
        raise BadUserInput("since", "a cursor of this subscription, not of another subscription")
    return positions


@dataclass(slots=True)
class _FollowedStreams:
    """The streams that a subscription follows. Each has a task that queues its events and waits for a slow reader."""

    hub: Hub
    main: Stream
    positions: StreamPositions = field(default_factory=dict)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    items: asyncio.Queue[tuple[Stream, SubscriptionStart | StreamEvent | Exception]] = field(
        default_factory=lambda: asyncio.Queue(MAX_WAITING)
    )

    def position_key(self, stream: Stream) -> str:
        """Returns the stream's key in `positions`."""
        return "" if stream == self.main else stream_digest(stream)

    @property
    def cursor(self) -> Cursor:
        """The cursor of all positions."""
        return format_positions(self.main, self.positions)

    def add(self, stream: Stream, start: StreamPosition) -> None:
        """Starts following the stream from the position."""
        self.positions[self.position_key(stream)] = start
        self.tasks.append(asyncio.create_task(self._queue_items(stream, start), name=f"follow {stream.name}"))

    async def close(self) -> None:
        """Stops following the streams."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _queue_items(self, stream: Stream, start: StreamPosition) -> None:
        try:
            async with aclosing(follow_events(self.hub, stream, start)) as items:
                async for item in items:
                    if not isinstance(item, IdleTimeout):
                        await self.items.put((stream, item))
        except Exception as error:
            await self.items.put((stream, error))

    async def next(self) -> MergedStart | MergedEvent | IdleTimeout:
        """Returns what the subscriber receives next. Raises: a stream's error."""
        while True:
            try:
                async with asyncio.timeout(IDLE_S):
                    stream, item = await self.items.get()
            except TimeoutError:
                return IdleTimeout()
            if isinstance(item, Exception):
                raise item
            self.positions[self.position_key(stream)] = item.position
            if isinstance(item, StreamEvent):
                return MergedEvent(self.cursor, stream, item.event)
            if not item.resumed:
                return MergedStart(self.cursor, False, item.at)


async def follow_merged(
    hub: Hub, main: Stream, others: Sequence[Stream], since: StreamPositions | None
) -> AsyncGenerator[MergedStart | MergedEvent | IdleTimeout, None]:
    """Yields a MergedStart, then each event once, in the order of its stream; another MergedStart after a gap."""
    followed = _FollowedStreams(hub, main)
    try:
        yield await _start_all(followed, [main, *others], since or {})
        while True:
            yield await followed.next()
    finally:
        await followed.close()


async def _start_all(followed: _FollowedStreams, streams: Sequence[Stream], since: StreamPositions) -> MergedStart:
    """Resumes all streams if the cursor has a resumable position in each. Otherwise starts them at their heads."""
    heads = dict(zip(streams, await asyncio.gather(*map(followed.hub.head, streams)), strict=True))
    starts = {stream: since.get(followed.position_key(stream)) for stream in streams}
    resumed = all(start is not None and is_resumable(start, heads[stream]) for stream, start in starts.items())
    for stream, head in heads.items():
        start = starts[stream] if resumed else None
        followed.add(stream, start or StreamPosition(head.epoch, head.n))
    return MergedStart(followed.cursor, resumed, datetime.now(UTC))
