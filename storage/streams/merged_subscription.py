"""One subscription's way through several streams at once: their events as they come, under one cursor with a position
for each. Without gaps, as each stream by itself (storage/streams/subscription.py)."""

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

LOOK_EVERY_S = 10.0
RECENT = 20
MAX_WAITING = 64

Positions = dict[str, Position]
"""Where each stream is, by the stream's digest; of the main one under ""."""

Others = Callable[[], Awaitable[Mapping[Stream, Position]]]
"""The streams to follow beside the main one, as of now, and where to begin with each that is new."""


@dataclass(frozen=True, slots=True)
class MergedStart:
    """Where the subscription starts. `resumed`: everything after the asked cursor follows, in every stream."""

    cursor: Cursor
    resumed: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class MergedEvent:
    """One event of one of the streams; `cursor` has what was handed on of all of them."""

    cursor: Cursor
    stream: Stream
    event: HydratedEvent


def format_positions(main: Stream, positions: Positions) -> Cursor:
    """The opaque string of all positions."""
    parts = [f"{name}.{each.epoch}.{each.n}" for name, each in sorted(positions.items())]
    text = ";".join([_digest(main), *parts])
    return Cursor(base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


def parse_positions(main: Stream, cursor: str) -> Positions:
    """Raises: BadUserInput for what is no cursor of this subscription."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        digest, *parts = base64.b64decode(padded, b"-_", validate=True).decode().split(";")
        split = [part.split(".") for part in parts]
        positions = {name: Position(epoch, int(n)) for name, epoch, n in split}
    except ValueError:
        raise BadUserInput("since", "a cursor that this subscription gave") from None
    if digest != _digest(main) or "" not in positions:
        raise BadUserInput("since", "a cursor of this subscription, not of another one")
    return positions


def _digest(stream: Stream) -> str:
    return hashlib.sha256(stream.name.encode()).hexdigest()[:10]


@dataclass(slots=True)
class _Following:
    """The streams that are followed, each by a task of its own, which wait when nobody takes what they found."""

    hub: Hub
    main: Stream
    positions: Positions = field(default_factory=dict)
    tasks: dict[Stream, asyncio.Task[None]] = field(default_factory=dict)
    found: asyncio.Queue[tuple[Stream, SubscriptionStart | StreamEvent | Exception]] = field(
        default_factory=lambda: asyncio.Queue(MAX_WAITING)
    )

    def name(self, stream: Stream) -> str:
        """How positions call it."""
        return "" if stream == self.main else _digest(stream)

    @property
    def cursor(self) -> Cursor:
        """Where all of them are."""
        return format_positions(self.main, self.positions)

    def add(self, stream: Stream, begin: Position) -> None:
        """Follows the stream from there."""
        self.positions[self.name(stream)] = begin
        self.tasks[stream] = asyncio.create_task(self._pump(stream, begin), name=f"follow {stream.name}")

    async def drop(self, stream: Stream) -> None:
        """Follows it no more."""
        task = self.tasks.pop(stream)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.positions.pop(self.name(stream), None)

    async def _pump(self, stream: Stream, begin: Position) -> None:
        try:
            async with aclosing(follow_events(self.hub, stream, begin)) as steps:
                async for step in steps:
                    if not isinstance(step, IdleTimeout):
                        await self.found.put((stream, step))
        except Exception as error:
            await self.found.put((stream, error))

    async def next(self) -> tuple[Stream, SubscriptionStart | StreamEvent] | None:
        """What one of them found; None when nothing came for a while. Raises: what following raised."""
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                stream, step = await self.found.get()
        except TimeoutError:
            return None
        if isinstance(step, Exception):
            raise step
        return stream, step


async def follow_merged(
    hub: Hub, main: Stream, others: Others, since: Positions | None
) -> AsyncGenerator[MergedStart | MergedEvent, None]:
    """Ready first, and again after a break that can't be healed; then each event once, in the order of its stream.

    A stream that is new among `others` is followed from where they say, one that is gone no more, within ten seconds.
    """
    following = _Following(hub, main)
    try:
        yield await _begin(following, others, since)
        looked_at = asyncio.get_running_loop().time()
        while True:
            found = await following.next()
            if found is not None and found[0] in following.tasks:
                step = _moved(following, *found)
                if step is not None:
                    yield step
            if asyncio.get_running_loop().time() - looked_at >= LOOK_EVERY_S:
                await _look(following, await others())
                looked_at = asyncio.get_running_loop().time()
    finally:
        for stream in list(following.tasks):
            await following.drop(stream)


async def _begin(following: _Following, others: Others, since: Positions | None) -> MergedStart:
    """Resumed only when every stream can be; else all begin where they are now."""
    hub, asked = following.hub, {following.main: Position("", 0), **await others()}
    heads = {stream: await hub.head(stream) for stream in asked}
    known = since or {}
    starts = {stream: known.get(following.name(stream), begin) for stream, begin in asked.items()}
    # One that was not followed at the cursor may have nothing old to give; that is no reason to begin anew.
    given = [stream for stream in asked if following.name(stream) in known]
    resumed = since is not None and all(is_resumable(starts[stream], heads[stream]) for stream in given)
    for stream, head in heads.items():
        following.add(stream, _start(starts[stream], head) if resumed else Position(head.epoch, head.n))
    return MergedStart(following.cursor, resumed, datetime.now(UTC))


def _moved(
    following: _Following, stream: Stream, step: SubscriptionStart | StreamEvent
) -> MergedStart | MergedEvent | None:
    name, at = following.name(stream), step.position
    if (
        isinstance(step, StreamEvent)
        and at.epoch == following.positions[name].epoch
        and at.n <= following.positions[name].n
    ):
        return None  # found before the stream was left, and followed again since
    following.positions[name] = at
    if isinstance(step, StreamEvent):
        return MergedEvent(following.cursor, stream, step.event)
    return None if step.resumed else MergedStart(following.cursor, False, step.at)


def _start(begin: Position, head: Head) -> Position:
    """Where to begin with a stream that is new: what happened since it became one must not be missed."""
    return begin if is_resumable(begin, head) else Position(head.epoch, max(head.floor, head.n - RECENT))


async def _look(following: _Following, wanted: Mapping[Stream, Position]) -> None:
    for stream, begin in wanted.items():
        if stream not in following.tasks:
            following.add(stream, _start(begin, await following.hub.head(stream)))
    for stream in following.tasks.keys() - wanted.keys() - {following.main}:
        await following.drop(stream)
