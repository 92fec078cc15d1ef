"""Reads entries of a text index, newest or oldest first.

An entry is a document with an array of `terms`, a place that decides who may read it, and a timestamp in its `_id`. The
index of a collection of entries is (place, terms, timestamp). MongoDB can use one term of a query to find entries in
the order of the timeline. The other terms are compared with the entries that it finds.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from storage.mongo import Document, Mongo

TIMESTAMP = "_id.ts"

PLACES_AT_ONCE = 100
"""Maximum number of places per read. MongoDB merges up to 200 ranges of an index in order, and sorts beyond that."""

MAX_WINDOW = 1000
"""Maximum number of entries with one term that a read compares with the query."""

MAX_PROBED_TERMS = 8
"""How many terms of a query are compared by their frequency."""


@dataclass(frozen=True, slots=True)
class TermQuery:
    """Entries in one of the places that have all of the terms."""

    places: Sequence[str]
    terms: Sequence[str]
    """At least one term."""


@dataclass(frozen=True, slots=True)
class TimestampRange:
    """The timestamps from `low` to `high`, both included, and the direction in which they are read."""

    low: int
    high: int
    is_ascending: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is no timestamp in the range."""
        return self.low > self.high

    @property
    def order(self) -> int:
        """The order of a sort: 1 or -1."""
        return 1 if self.is_ascending else -1

    @property
    def start(self) -> int:
        """The timestamp that is read first."""
        return self.low if self.is_ascending else self.high

    def contains(self, timestamp: int) -> bool:
        """Returns whether the timestamp is in the range."""
        return self.low <= timestamp <= self.high

    def first(self, *timestamps: int) -> int:
        """Returns which of these timestamps is read first."""
        return min(timestamps) if self.is_ascending else max(timestamps)

    def before(self, timestamp: int) -> int:
        """Returns the timestamp that is read before this one."""
        return timestamp - self.order

    def until(self, end: int) -> "TimestampRange":
        """Returns the part of the range that is read up to `end`, included."""
        return replace(self, high=end) if self.is_ascending else replace(self, low=end)

    def after(self, end: int) -> "TimestampRange":
        """Returns the part of the range that is read after `end`."""
        return replace(self, low=end + 1) if self.is_ascending else replace(self, high=end - 1)


class EntryWindow(NamedTuple):
    """All matching entries from the start of a range to `end`."""

    ids: Sequence[Any]
    """The `_id` of each entry, in the order of the timeline."""

    end: int | None
    """The last timestamp of the window; None if the window is the whole range."""


@dataclass(frozen=True, slots=True)
class TermIndex:
    """The entries of one collection."""

    mongo: Mongo
    collection: str
    place: str = "place"
    """Path of the field with the place."""

    async def rarest_term(self, query: TermQuery, range_: TimestampRange, size: int) -> str:
        """Returns the term whose first `size` entries reach farthest."""
        terms = query.terms[:MAX_PROBED_TERMS]
        if len(terms) == 1:
            return terms[0]
        found = await asyncio.gather(*(self._ends(part, terms, range_, size) for part in _chunks(query.places)))
        ends: dict[str, int] = {}
        for row in (row for rows in found for row in rows):
            ends[row["term"]] = range_.first(row["end"], ends.setdefault(row["term"], row["end"]))
        # A term without an end has fewer entries.
        return max(terms, key=lambda term: range_.order * ends[term] if term in ends else inf)

    async def window(self, query: TermQuery, term: str, range_: TimestampRange, size: int) -> EntryWindow | None:
        """Returns those of the first `size` entries with the term that have all terms of the query.

        None if all of the first entries have the same timestamp, so that a larger window is necessary.
        """
        parts = await asyncio.gather(
            *(self._part(places, query, term, range_, size) for places in _chunks(query.places))
        )
        ends = [part["end"] for part in parts if part["count"] == size]
        ids = sorted((id_ for part in parts for id_ in part["ids"]), key=lambda id_: range_.order * id_["ts"])
        if not ends:
            return EntryWindow(ids, None)
        # More entries may have the last timestamp, so the window ends before it.
        end = range_.before(range_.first(*ends))
        if range_.until(end).is_empty:
            return EntryWindow(ids, range_.start) if size >= MAX_WINDOW else None
        return EntryWindow([id_ for id_ in ids if range_.until(end).contains(id_["ts"])], end)

    async def _part(
        self, places: Sequence[str], query: TermQuery, term: str, range_: TimestampRange, size: int
    ) -> Document:
        """Returns the `ids` that match, the `count` of entries with the term, and where they `end`."""
        others = [each for each in query.terms if each != term]
        matching = {"$cond": [{"$setIsSubset": [{"$literal": others}, "$terms"]}, "$_id", "$$REMOVE"]}
        group = {"_id": None, "ids": {"$push": matching}, "count": {"$sum": 1}, "end": {"$last": f"${TIMESTAMP}"}}
        filter_ = self._filter(places, term, range_)
        order = {TIMESTAMP: range_.order}
        pipeline: list[Document] = [{"$match": filter_}, {"$sort": order}, {"$limit": size}, {"$group": group}]
        found = await self.mongo.aggregate(self.collection, pipeline)
        return found[0] if found else {"ids": [], "count": 0}

    async def _ends(
        self, places: Sequence[str], terms: Sequence[str], range_: TimestampRange, size: int
    ) -> list[Document]:
        """Returns where the first `size` entries of each term end, by one command. Terms with fewer are left out."""
        pipelines: list[list[Document]] = [
            _end(self._filter(places, each, range_), each, range_, size) for each in terms
        ]
        unions: list[Document] = [{"$unionWith": {"coll": self.collection, "pipeline": each}} for each in pipelines[1:]]
        return await self.mongo.aggregate(self.collection, pipelines[0] + unions)

    def _filter(self, places: Sequence[str], term: str, range_: TimestampRange) -> Document:
        return {self.place: {"$in": list(places)}, "terms": term, TIMESTAMP: {"$gte": range_.low, "$lte": range_.high}}


def _end(filter_: Document, term: str, range_: TimestampRange, size: int) -> list[Document]:
    """Returns the pipeline that finds the last of the first `size` entries of a term.

    The index has all of their fields, so that no entry is read.
    """
    # A term may begin with `$`.
    row = {"_id": 0, "end": f"${TIMESTAMP}", "term": {"$literal": term}}
    order = {"$sort": {TIMESTAMP: range_.order}}
    return [{"$match": filter_}, order, {"$skip": size - 1}, {"$limit": 1}, {"$project": row}]


def _chunks(places: Sequence[str]) -> list[Sequence[str]]:
    return [places[i : i + PLACES_AT_ONCE] for i in range(0, len(places), PLACES_AT_ONCE)]
