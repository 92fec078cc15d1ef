"""Ranges, pages and timestamps of all timelines. Pure; no I/O.

Specified in docs/semantics.md, section 1. The arguments are named as in Slack's API: oldest, latest, inclusive, limit.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, NewType, TypeVar

from storage.errors import BadUserInput

Timestamp = NewType("Timestamp", int)
"""Microseconds since the Unix epoch. Clients see the string "seconds.micros". Never a float."""

NOW = Timestamp(-1)
"""The argument "now". As `latest` it means no upper bound."""

MAX_TIMESTAMP = Timestamp(10**16 - 1)
"""The greatest timestamp with ten digits of seconds and six of microseconds."""

MAX_LIMIT = 999

MAX_MARK_LEAD_US = 3600 * 1_000_000
"""A stored read mark that is more than this ahead of the newest item is ignored. Older versions let clients store such
marks."""

_PATTERN = re.compile(r"([0-9]{1,10})\.([0-9]{6})", re.ASCII)

Item = TypeVar("Item")
Mapped = TypeVar("Mapped")


def parse_timestamp(text: str) -> Timestamp:
    """Returns the microseconds of a string such as "1639720395.000002". Raises: ValueError."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f'Expected a timestamp such as "1639720395.000002", got {text[:40]!r}.')
    return Timestamp(int(match[1]) * 1_000_000 + int(match[2]))


def format_timestamp(timestamp: int) -> str:
    """Returns "seconds.micros" with exactly six decimals, by integer arithmetic."""
    seconds, micros = divmod(timestamp, 1_000_000)
    return f"{seconds}.{micros:06d}"


def instant(timestamp: int) -> datetime:
    """Returns a timestamp as an aware UTC datetime, exact to the microsecond."""
    seconds, micros = divmod(timestamp, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


@dataclass(frozen=True, slots=True)
class TimelineRange:
    """A validated range of a timeline. Bounds are closed: an exclusive bound is moved by one microsecond."""

    low: int
    high: int
    ascending: bool
    limit: int
    requested_oldest: int | None
    """The client's `oldest`, before `inclusive` was applied."""

    requested_latest: int | None
    """The client's `latest`, before `inclusive` was applied; None also for "now"."""

    @property
    def is_empty(self) -> bool:
        """Whether no item can lie in the range (oldest > latest)."""
        return self.low > self.high

    @property
    def reaches_now(self) -> bool:
        """Whether the range has no upper bound."""
        return self.requested_latest is None


def timeline_range(
    oldest: int | None = None, latest: int | None = None, limit: int = 50, inclusive: bool = True
) -> TimelineRange:
    """Returns the range that a client's arguments describe.

    Raises: BadUserInput without any bound, for `oldest: "now"`, and for a limit outside 1 to 999.
    """
    if oldest is None and latest is None:
        raise BadUserInput("oldest", "oldest, latest or both", "A timeline needs a bound: pass oldest, latest or both.")
    if oldest == NOW:
        raise BadUserInput("oldest", 'a timestamp; "now" is for latest only')
    _check_limit(limit)
    high = None if latest == NOW else latest
    step = 0 if inclusive else 1
    return TimelineRange(
        low=0 if oldest is None else oldest + step,
        high=MAX_TIMESTAMP if high is None else high - step,
        ascending=oldest is not None,
        limit=limit,
        requested_oldest=oldest,
        requested_latest=high,
    )


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise BadUserInput("limit", f"a number from 1 to {MAX_LIMIT}, not {limit}")


@dataclass(frozen=True, slots=True)
class Edge(Generic[Item]):
    """An item of a page with its position."""

    node: Item
    cursor: Timestamp
    """The item's timestamp."""


@dataclass(frozen=True, slots=True)
class PageInfo:
    """The ends of a page whose items are listed from the newest to the oldest."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: Timestamp | None
    end_cursor: Timestamp | None


@dataclass(frozen=True, slots=True)
class TimelinePage(Generic[Item]):
    """Items of a timeline in the order of their range, and whether older and newer items exist.

    `oldest` and `newest` are the timestamps of the items at the ends; None without items.
    """

    items: Sequence[Item]
    timestamps: Sequence[int]
    """The timestamp of each item."""

    has_older: bool
    has_newer: bool
    oldest: Timestamp | None
    newest: Timestamp | None

    def map(self, convert: Callable[[Item], Mapped]) -> "TimelinePage[Mapped]":
        """Returns the page with `convert` applied to each item."""
        items = [convert(item) for item in self.items]
        return TimelinePage(items, self.timestamps, self.has_older, self.has_newer, self.oldest, self.newest)

    @property
    def edges(self) -> list[Edge[Item]]:
        """The items from the newest to the oldest, in whichever order the page was read."""
        edges = [Edge(item, Timestamp(at)) for item, at in zip(self.items, self.timestamps, strict=True)]
        return edges[::-1] if edges and edges[0].cursor == self.oldest else edges

    @property
    def page_info(self) -> PageInfo:
        """The ends of `edges`."""
        return PageInfo(self.has_older, self.has_newer, self.newest, self.oldest)


FetchItems = Callable[[int, int, bool, int], Awaitable[Sequence[Item]]]
"""Called with low, high, ascending and limit. Returns at most `limit` visible items with low <= timestamp <= high."""


async def read_page(
    range_: TimelineRange, fetch: FetchItems[Item], timestamp: Callable[[Item], int], last: int | None = None
) -> TimelinePage[Item]:
    """Reads the page of a range through `fetch`.

    `has_older` and `has_newer` are exact. One item beyond the limit tells whether the range continues. Items outside of
    the range are looked for at the same time. `last`, the timestamp of the newest visible item, read immediately
    before, saves the fetch of newer items.
    """
    if range_.is_empty:
        return await _empty_page(range_, fetch)
    older, newer = _ranges_beyond(range_, last)
    fetches = [fetch(range_.low, range_.high, range_.ascending, range_.limit + 1)]
    fetches += [fetch(*each, 1) for each in (older, newer) if each is not None]
    # `gather` takes a task for each, so that a single fetch takes none.
    fetched, *beyond = await asyncio.gather(*fetches) if len(fetches) > 1 else [await fetches[0]]
    items = list(fetched)
    if not items:
        return await _empty_page(range_, fetch)
    has_more = len(items) > range_.limit
    del items[range_.limit :]
    timestamps = [timestamp(item) for item in items]
    lowest, highest = sorted((timestamps[0], timestamps[-1]))
    has_older = bool(older and beyond.pop(0)) or (has_more and not range_.ascending)
    has_newer = bool(newer and beyond.pop(0)) or (has_more and range_.ascending)
    if last is not None and not range_.reaches_now:
        has_newer = has_newer or last > highest
    return TimelinePage(items, timestamps, has_older, has_newer, Timestamp(lowest), Timestamp(highest))


def _ranges_beyond(
    range_: TimelineRange, last: int | None
) -> tuple[tuple[int, int, bool] | None, tuple[int, int, bool] | None]:
    """Returns the ranges to look into for an older and a newer item; None where the page itself tells, or `last`.

    Without an upper bound, nothing was newer when the page was read. Later items arrive as events.
    """
    has_own_end = range_.reaches_now or last is not None or range_.high >= MAX_TIMESTAMP
    older = (0, range_.low - 1, False) if range_.ascending and range_.low > 0 else None
    return older, None if has_own_end else (range_.high + 1, int(MAX_TIMESTAMP), True)


async def _has_item(fetch: FetchItems[Item], low: int, high: int) -> bool:
    return low <= high and bool(await fetch(low, high, True, 1))


async def _empty_page(range_: TimelineRange, fetch: FetchItems[Item]) -> TimelinePage[Item]:
    """Returns a page without items.

    `has_older` and `has_newer` compare with the bounds of the range, or both with `oldest` if `oldest` > `latest`.
    """
    low, high = range_.requested_oldest, range_.requested_latest
    has_older = low is not None and await _has_item(fetch, 0, low)
    has_newer = high is not None and await _has_item(fetch, max(low or 0, high), MAX_TIMESTAMP)
    return TimelinePage([], [], has_older, has_newer, None, None)


def move_mark(timestamp: int, head: int) -> list[dict[str, Any]]:
    """Returns the update that moves a document's read mark `ts` forward, at most to `head`.

    `head` is the timestamp of the newest item. It may be outdated, so the update keeps a mark that is slightly newer.
    """
    valid_mark = {"$cond": [{"$gt": ["$ts", head + MAX_MARK_LEAD_US]}, 0, "$ts"]}
    return [{"$set": {"ts": {"$max": [valid_mark, min(timestamp, head)]}}}]
