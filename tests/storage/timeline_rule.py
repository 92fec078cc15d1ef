"""The timeline rule of docs/semantics.md, section 1, applied to a list of timestamps.

Tests compare the product's pages with the results of this module.
"""

from dataclasses import dataclass
from typing import TypeVar

from storage.timeline import NOW, TimelinePage, TimelineRange, timeline_range

Item = TypeVar("Item")


@dataclass(frozen=True)
class PageArguments:
    """The arguments of a request for a page."""

    oldest: int | None = None
    latest: int | None = None
    limit: int = 50
    inclusive: bool = True

    @property
    def range(self) -> TimelineRange:
        return timeline_range(self.oldest, self.latest, self.limit, self.inclusive)

    def include(self, timestamp: int) -> bool:
        """Returns whether an item with this timestamp lies within the bounds."""
        is_above = self.oldest is None or timestamp > self.oldest or (self.inclusive and timestamp == self.oldest)
        latest = None if self.latest == NOW else self.latest
        is_below = latest is None or timestamp < latest or (self.inclusive and timestamp == latest)
        return is_above and is_below


@dataclass(frozen=True)
class PageSummary:
    """The comparable content of a page: its timestamps in order, and whether older and newer items exist."""

    timestamps: list[int]
    has_older: bool
    has_newer: bool


def expected_page(timeline: list[int], arguments: PageArguments) -> PageSummary:
    """Returns the page of an ascending timeline of visible items."""
    in_bounds = [timestamp for timestamp in timeline if arguments.include(timestamp)]
    page = in_bounds[: arguments.limit] if arguments.oldest is not None else in_bounds[::-1][: arguments.limit]
    if not page:
        return PageSummary([], *_neighbours_of_empty_page(timeline, arguments))
    return PageSummary(page, any(t < min(page) for t in timeline), any(t > max(page) for t in timeline))


def _neighbours_of_empty_page(timeline: list[int], arguments: PageArguments) -> tuple[bool, bool]:
    """Returns hasOlder and hasNewer of an empty page. They depend on the bounds, not on the limit."""
    oldest, latest = arguments.oldest, None if arguments.latest == NOW else arguments.latest
    if oldest is not None and latest is not None and oldest > latest:
        latest = oldest
    if oldest is not None:
        has_older = any(timestamp <= oldest for timestamp in timeline)
    else:
        has_older = any(latest is None or timestamp < latest for timestamp in timeline)
    if latest is not None:
        has_newer = any(timestamp >= latest for timestamp in timeline)
    else:
        has_newer = any(oldest is None or timestamp > oldest for timestamp in timeline)
    return has_older, has_newer


def expected_around(timeline: list[int], timestamp: int, limit: int) -> PageSummary:
    """Returns the page of messagesAround: at most floor(limit/2) older items, then items at or after the timestamp.

    Missing newer items are not replaced by older ones.
    """
    older = [t for t in timeline if t < timestamp]
    newer = [t for t in timeline if t >= timestamp]
    half = limit // 2
    older_items = older[len(older) - min(half, len(older)) :]
    newer_items = newer[: limit - len(older_items)]
    return PageSummary(older_items + newer_items, len(older) > len(older_items), len(newer) > len(newer_items))


def actual_page(page: TimelinePage[Item], timestamps: list[int]) -> PageSummary:
    """Returns the summary of one of the product's pages, whose items have the given timestamps.

    Asserts that `oldest` and `newest` of the page are the lowest and the highest of the timestamps.
    """
    lowest_and_highest = (min(timestamps), max(timestamps)) if timestamps else (None, None)
    assert (page.oldest, page.newest) == lowest_and_highest
    return PageSummary(timestamps, page.has_older, page.has_newer)
