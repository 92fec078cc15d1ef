"""The timeline rule of docs/semantics.md, 1, over a list of timestamps. Tests compare real pages with its results."""

from dataclasses import dataclass
from typing import TypeVar

from storage.timeline import NOW, Page, Range, timeline_range

Item = TypeVar("Item")


@dataclass(frozen=True)
class PageArguments:
    """The arguments of a request for a page."""

    oldest: int | None = None
    latest: int | None = None
    limit: int = 50
    inclusive: bool = True

    @property
    def range(self) -> Range:
        return timeline_range(self.oldest, self.latest, self.limit, self.inclusive)

    def include(self, timestamp: int) -> bool:
        """Returns whether an item with this timestamp lies within the bounds."""
        above = self.oldest is None or timestamp > self.oldest or (self.inclusive and timestamp == self.oldest)
        upper = None if self.latest == NOW else self.latest
        below = upper is None or timestamp < upper or (self.inclusive and timestamp == upper)
        return above and below


@dataclass(frozen=True)
class ExpectedPage:
    """A page: its timestamps in order, and whether older and newer items exist."""

    timestamps: list[int]
    has_older: bool
    has_newer: bool


def expected_page(timeline: list[int], arguments: PageArguments) -> ExpectedPage:
    """Returns the page of an ascending timeline of visible items."""
    inside = [timestamp for timestamp in timeline if arguments.include(timestamp)]
    page = inside[: arguments.limit] if arguments.oldest is not None else inside[::-1][: arguments.limit]
    if not page:
        return ExpectedPage([], *_neighbours_of_empty_page(timeline, arguments))
    return ExpectedPage(page, any(t < min(page) for t in timeline), any(t > max(page) for t in timeline))


def _neighbours_of_empty_page(timeline: list[int], arguments: PageArguments) -> tuple[bool, bool]:
    """Returns hasOlder and hasNewer of an empty page. They depend only on the bounds."""
    oldest, latest = arguments.oldest, None if arguments.latest == NOW else arguments.latest
    if oldest is not None and latest is not None and oldest > latest:
        latest = oldest
    if oldest is not None:
        older = any(timestamp <= oldest for timestamp in timeline)
    else:
        older = any(latest is None or timestamp < latest for timestamp in timeline)
    if latest is not None:
        newer = any(timestamp >= latest for timestamp in timeline)
    else:
        newer = any(oldest is None or timestamp > oldest for timestamp in timeline)
    return older, newer


def expected_around(timeline: list[int], timestamp: int, limit: int) -> ExpectedPage:
    """Returns the page of messagesAround: at most floor(limit/2) older items, then items at or after the timestamp.

    Missing newer items are not replaced by older ones.
    """
    older = [t for t in timeline if t < timestamp]
    newer = [t for t in timeline if t >= timestamp]
    half = limit // 2
    before = older[len(older) - min(half, len(older)) :]
    after = newer[: limit - len(before)]
    return ExpectedPage(before + after, len(older) > len(before), len(newer) > len(after))


def actual_page(page: Page[Item], timestamps: list[int]) -> ExpectedPage:
    """Returns a real page in the same form. Asserts that its ends are the ends of its items."""
    ends = (min(timestamps), max(timestamps)) if timestamps else (None, None)
    assert (page.oldest, page.newest) == ends
    return ExpectedPage(timestamps, page.has_older, page.has_newer)
