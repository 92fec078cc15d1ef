"""Pages of search results, by the rule of timelines (docs/semantics.md, section 1)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple

from storage.mongo.text_index import term_index
from storage.mongo.text_index.clauses import SearchClause
from storage.mongo.text_index.term_index import TermIndex, TermQuery, TimestampRange
from storage.timeline import MAX_TIMESTAMP, Item, TimelinePage, TimelineRange, Timestamp, read_page

MAX_WINDOWS = 6
"""How many windows of the index a page reads at most. A query of common words that rarely occur together then ends."""

WINDOW_GROWTH = 8
"""How many times as large as the last window the next one is, up to `MAX_WINDOW`."""

ENTRIES_PER_RESULT = 5
"""How many entries with the rarest of several terms the first window has for each result of a page."""

EntryId = Any
ResolveEntries = Callable[[Sequence[EntryId]], Awaitable[Sequence[Item | None]]]
"""Returns the results of these entries; None for each entry that does not match, or that the viewer may not see."""


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """A parsed query."""

    clauses: Sequence[SearchClause]
    terms: Sequence[str]
    """Terms of the clauses and of the other filters."""

    low: int
    high: int
    """The first and the last timestamp of results."""


@dataclass(frozen=True, slots=True)
class SearchPage(TimelinePage[Item]):
    """A page of results, which may be incomplete."""

    searched_to: Timestamp | None = None
    """Where the search stopped before the page was full; None if the page is complete."""


class _IndexHit(NamedTuple, Generic[Item]):
    timestamp: int
    item: Item | None
    """None if a limit was reached before it was known whether there is a result."""


@dataclass(slots=True)
class _IndexWalk(Generic[Item]):
    """One walk through a range of the index."""

    index: TermIndex
    query: TermQuery
    resolve: ResolveEntries[Item]
    limit: int
    hits: list[_IndexHit[Item]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether there are `limit` results, and all results with the timestamp of the last of these."""
        return len(self.hits) > self.limit and self.hits[-1].timestamp != self.hits[self.limit - 1].timestamp

    async def run(self, range_: TimestampRange) -> int | None:
        """Collects results. Returns where the search must continue if it reached a limit, otherwise None."""
        # Besides the results: the first one of the next page, and one with another timestamp.
        size = self.limit + 2
        if len(self.query.terms) > 1:
            size = min(ENTRIES_PER_RESULT * size, term_index.MAX_WINDOW)
        term = await self.index.rarest_term(self.query, range_, size)
        for _ in range(MAX_WINDOWS):
            if range_.is_empty:
                return None
            window = await self.index.window(self.query, term, range_, size)
            if window is not None:
                await self._resolve(window.ids)
                if self.is_full or window.end is None:
                    return None
                range_ = range_.after(window.end)
            size = min(WINDOW_GROWTH * size, max(term_index.MAX_WINDOW, self.limit + 2))
        return range_.start

    async def _resolve(self, ids: Sequence[EntryId]) -> None:
        """Adds the results of the entries, until the page is full. Reads about as many at once as the page needs."""
        at_once = self.limit + 1
        for start in range(0, len(ids), at_once):
            if self.is_full:
                return
            part = ids[start : start + at_once]
            items = await self.resolve(part)
            self.hits += [_IndexHit(id_["ts"], item) for id_, item in zip(part, items, strict=True) if item is not None]


async def read_matches(
    index: TermIndex, query: TermQuery, range_: TimelineRange, bounds: tuple[int, int], resolve: ResolveEntries[Item]
) -> SearchPage[Item]:
    """Returns a page of the results. `bounds` are the first and the last timestamp that a result may have.

    Results with the timestamp of the page's last one belong to the page, even beyond its limit, so that the next page
    begins after them.
    """

    async def walk(low: int, high: int, ascending: bool, limit: int) -> tuple[list[_IndexHit[Item]], int | None]:
        search = _IndexWalk(index, query, resolve, limit)
        is_empty = not (query.places and query.terms)
        range_ = TimestampRange(max(low, bounds[0]), min(high, bounds[1]), ascending)
        end = None if is_empty else await search.run(range_)
        return search.hits, end

    hits, end = ([], None) if range_.is_empty else await walk(range_.low, range_.high, range_.ascending, range_.limit)
    count = _page_size(hits, range_.limit)

    async def fetch(low: int, high: int, ascending: bool, limit: int) -> Sequence[_IndexHit[Item]]:
        if (low, high, ascending) == (range_.low, range_.high, range_.ascending):
            return hits[:limit]
        others, stopped_at = await walk(low, high, ascending, limit)
        return others or ([] if stopped_at is None else [_IndexHit(stopped_at, None)])

    page = await read_page(replace(range_, limit=count), fetch, lambda hit: hit.timestamp)
    shown = [(hit.item, hit.timestamp) for hit in page.items if hit.item is not None]
    items, timestamps = [item for item, _ in shown], [timestamp for _, timestamp in shown]
    has_older = page.has_older or (end is not None and not range_.ascending)
    has_newer = page.has_newer or (end is not None and range_.ascending)
    searched_to = None if end is None else Timestamp(min(end, MAX_TIMESTAMP))
    return SearchPage(items, timestamps, has_older, has_newer, page.oldest, page.newest, searched_to)


def _page_size(hits: Sequence[_IndexHit[Item]], limit: int) -> int:
    """Returns the number of results of the page: the limit, and those with the timestamp of the last result."""
    size = min(limit, len(hits))
    while 0 < size < len(hits) and hits[size].timestamp == hits[size - 1].timestamp:
        size += 1
    return max(1, size)
