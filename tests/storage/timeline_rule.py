"""The timeline rule word for word (docs/semantics.md, 1), over a list of timestamps. What pages are compared with."""

from dataclasses import dataclass
from typing import TypeVar

from storage.timeline import NOW, Page, Range, timeline_range

Item = TypeVar("Item")


@dataclass(frozen=True)
class Asked:
    """The arguments of a page."""

    oldest: int | None = None
    latest: int | None = None
    limit: int = 50
    inclusive: bool = True

    @property
    def range(self) -> Range:
        return timeline_range(self.oldest, self.latest, self.limit, self.inclusive)

    def holds(self, timestamp: int) -> bool:
        """Whether an item there lies within the bounds."""
        above = self.oldest is None or timestamp > self.oldest or (self.inclusive and timestamp == self.oldest)
        upper = None if self.latest == NOW else self.latest
        below = upper is None or timestamp < upper or (self.inclusive and timestamp == upper)
        return above and below


@dataclass(frozen=True)
class Expected:
    """A page: its timestamps in order, and what lies beyond."""

    timestamps: list[int]
    has_older: bool
    has_newer: bool


def expected_page(timeline: list[int], asked: Asked) -> Expected:
    """The result of the rule for an ascending timeline of visible items."""
    inside = [timestamp for timestamp in timeline if asked.holds(timestamp)]
    page = inside[: asked.limit] if asked.oldest is not None else inside[::-1][: asked.limit]
    if not page:
        return Expected([], *_beyond_nothing(timeline, asked))
    return Expected(page, any(t < min(page) for t in timeline), any(t > max(page) for t in timeline))


def _beyond_nothing(timeline: list[int], asked: Asked) -> tuple[bool, bool]:
    """hasOlder and hasNewer of an empty page, which has only its bounds to compare with."""
    oldest, latest = asked.oldest, None if asked.latest == NOW else asked.latest
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


def expected_around(timeline: list[int], timestamp: int, limit: int) -> Expected:
    """The result of messagesAround: at most floor(limit/2) older items, the rest at or after; never refilled."""
    older = [t for t in timeline if t < timestamp]
    newer = [t for t in timeline if t >= timestamp]
    half = limit // 2
    before = older[len(older) - min(half, len(older)) :]
    after = newer[: limit - len(before)]
    return Expected(before + after, len(older) > len(before), len(newer) > len(after))


def as_expected(page: Page[Item], timestamps: list[int]) -> Expected:
    """A real page in the same form, once its ends were compared with its items."""
    ends = (min(timestamps), max(timestamps)) if timestamps else (None, None)
    assert (page.oldest, page.newest) == ends
    return Expected(timestamps, page.has_older, page.has_newer)
