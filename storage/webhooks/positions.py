"""How far each webhook has read each stream. A position is created when the first event of a stream is found.

The positions are the queue: finding events sets `last`, delivering them moves `n`, and a position waits while `n` is
smaller. Both only set facts of the log, so that several workers may do so at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pymongo import UpdateOne
from pymongo.asynchronous.collection import AsyncCollection

from storage.mongo import Document, Mongo, Session
from storage.streams.log import EventLog, Stream, StreamHead, StreamPosition, parse_stream_name, stream_digest
from storage.webhooks.documents import WebhookPositionDocument, WebhookPositionId
from storage.webhooks.records import WaitingStream

POSITIONS = "webhook_positions"
WRITTEN_AT_A_TIME = 200
MAX_WAITING = 100
"""Number of waiting streams that are read at once."""


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """Events of a stream that were found for a webhook: the last number, and the instant of the first event."""

    last: int
    first_at: datetime


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a webhook begins in streams without a position: at the first event since an instant."""

    webhook_id: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Move:
    """A move in a stream. `waiting_since` is the instant of the new position: later events have waited since then."""

    stream: Stream
    old: StreamPosition
    new: StreamPosition
    waiting_since: datetime


_Found = Mapping[Stream, FoundEvents]
_Known = Mapping[tuple[str, str], WebhookPositionDocument]
"""Positions by the id of the webhook and the name of the stream."""


class WebhookPositions:
    """Creates, marks and moves positions."""

    def __init__(self, mongo: Mongo, events: EventLog) -> None:
        self._mongo, self._events = mongo, events
        self._positions: AsyncCollection[WebhookPositionDocument] = mongo[POSITIONS]

    async def mark(self, found: Mapping[StreamStart, _Found], rewinds: bool = False) -> list[str]:
        """Records events that were found for webhooks. Returns the ids of the webhooks of which a stream waits.

        Idempotent, unless it rewinds. A stream also waits if an earlier search has recorded its events. That search may
        have ended before it let a worker know. `rewinds` moves the streams back to their first event since the start.
        """
        if not found:
            return []
        heads = await self._events.heads(list({stream for streams in found.values() for stream in streams}))
        known = await self._known(found)
        writes: list[UpdateOne] = []
        waiting = {webhook_id for (webhook_id, _), position in known.items() if "waiting_since" in position}
        for start, streams in found.items():
            marks = await self._marks(start, streams, heads, known, rewinds)
            writes += marks
            waiting |= {start.webhook_id} if marks else set()
        if writes:
            await self._write(writes)
        return sorted(waiting)

    async def _known(self, found: Mapping[StreamStart, _Found]) -> _Known:
        ids: list[WebhookPositionId] = [
            {"w": start.webhook_id, "s": stream.name} for start, streams in found.items() for stream in streams
        ]
        rows: list[WebhookPositionDocument] = await self._mongo.find(POSITIONS, {"_id": {"$in": ids}})
        return {(row["_id"]["w"], row["_id"]["s"]): row for row in rows}

    async def _marks(
        self, start: StreamStart, found: _Found, heads: Mapping[Stream, StreamHead], known: _Known, rewinds: bool
    ) -> list[UpdateOne]:
        """Returns the updates for the streams of a webhook whose positions do not know the events yet."""
        marks = []
        for stream, events in found.items():
            head, position = heads.get(stream), known.get((start.webhook_id, stream.name))
            if head is None:
                continue
            if position is not None and not rewinds and position["epoch"] == head.epoch:
                if position["last"] < events.last:
                    marks.append(_mark(start.webhook_id, stream, events, head))
                continue
            first = position["n"] if position and not rewinds else await self._start_number(start, stream, head)
            marks.append(_mark(start.webhook_id, stream, events, head, first, rewinds))
        return marks

    async def _start_number(self, start: StreamStart, stream: Stream, head: StreamHead) -> int:
        """Returns the number of the last event before the start."""
        before = await self._events.last_before(stream, start.since)
        return head.floor if before is None else max(before, head.floor)

    async def _write(self, writes: Sequence[UpdateOne]) -> None:
        """Writes in transactions: the members of a replica set get one entry of the log for each, not for each write.

        A transaction is repeated if another worker creates a position at the same time.
        """
        for start in range(0, len(writes), WRITTEN_AT_A_TIME):
            chunk = writes[start : start + WRITTEN_AT_A_TIME]
            await self._mongo.transact(partial(self._write_chunk, chunk))

    async def _write_chunk(self, writes: Sequence[UpdateOne], session: Session) -> None:
        await self._positions.bulk_write(writes, ordered=False, session=session)

    async def waiting(self, webhook_id: str) -> list[WaitingStream]:
        """Returns streams with events that wait, at most 100, those that have waited longest first."""
        query = {"_id.w": webhook_id, "waiting_since": {"$exists": True}}
        rows: list[WebhookPositionDocument] = await self._mongo.find(
            POSITIONS, query, None, [("waiting_since", 1)], MAX_WAITING
        )
        return [
            WaitingStream(parse_stream_name(row["_id"]["s"]), StreamPosition(row["epoch"], row["n"])) for row in rows
        ]

    async def advance(self, webhook_id: str, moves: Sequence[Move], session: Session | None = None) -> bool:
        """Moves positions forward. Returns False if another worker or a replay has moved one of them meanwhile."""
        if not moves:
            return True
        updates = [_advance(webhook_id, move) for move in moves]
        return (await self._positions.bulk_write(updates, ordered=False, session=session)).matched_count == len(moves)

    async def forget(self, webhook_id: str, stream: Stream) -> None:
        """Removes the position in a stream that does not exist any more."""
        await self._positions.delete_one({"_id": {"w": webhook_id, "s": stream.name}})

    async def oldest_waiting(self, webhook_ids: Sequence[str]) -> datetime | None:
        """Returns the instant of the oldest event that waits for one of the webhooks; None if none does."""
        query = {"_id.w": {"$in": list(webhook_ids)}, "waiting_since": {"$exists": True}}
        found: list[WebhookPositionDocument] = await self._mongo.find(
            POSITIONS, query, {"waiting_since": 1}, [("waiting_since", 1)], 1
        )
        return found[0]["waiting_since"] if found else None


def filter_of_webhook(webhook_id: str) -> Document:
    """Returns the filter for all positions of a webhook."""
    return {"_id.w": webhook_id}


def _advance(webhook_id: str, move: Move) -> UpdateOne:
    """Returns the update that moves a position, unless it is not at the old place any more."""
    new = move.new
    values: Document = {
        "n": new.n,
        "epoch": new.epoch,
        "at": "$$NOW",
        "waiting_since": {"$cond": [{"$gt": ["$last", new.n]}, move.waiting_since, "$$REMOVE"]},
    }
    id_: WebhookPositionId = {"w": webhook_id, "s": move.stream.name}
    return UpdateOne({"_id": id_, "n": move.old.n, "epoch": move.old.epoch}, [{"$set": values}])


def _mark(
    webhook_id: str,
    stream: Stream,
    events: FoundEvents,
    head: StreamHead,
    first: int | None = None,
    rewinds: bool = False,
) -> UpdateOne:
    """Returns the update that records found events. `first` is the start of a new or rewound position."""
    is_same_stream = {"$eq": ["$epoch", head.epoch]}
    found: Document = {
        "n": first if rewinds else {"$ifNull": ["$n", first]},
        "epoch": head.epoch if rewinds else {"$ifNull": ["$epoch", head.epoch]},
        "digest": stream_digest(stream),
        "last": {"$cond": [is_same_stream, {"$max": ["$last", events.last]}, events.last]},
        "at": "$$NOW",
    }
    # A stream that was created again waits too, so that its receiver learns of the gap.
    is_waiting = {"$or": [{"$gt": ["$last", "$n"]}, {"$ne": ["$epoch", head.epoch]}]}
    waiting: Document = {
        "waiting_since": {"$cond": [is_waiting, {"$ifNull": ["$waiting_since", events.first_at]}, "$$REMOVE"]}
    }
    id_: WebhookPositionId = {"w": webhook_id, "s": stream.name}
    return UpdateOne({"_id": id_}, [{"$set": found}, {"$set": waiting}], upsert=True)
