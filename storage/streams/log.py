"""The event log: the events of each stream, in order, as references. Owns streams, cursors, replay and pruning.

The sequencer appends events in the transaction of the change. Event numbers have no gaps. Events are kept for 24 hours.
Pruning raises a stream's floor before it deletes events, so readers know what is gone (docs/semantics.md, 3).
"""

import base64
import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NewType
from urllib.parse import quote, unquote

from pymongo import ReturnDocument, UpdateOne

from storage.errors import BadUserInput, NotFound
from storage.mongo import Document, Mongo, Session, older_than
from storage.mongo.batch_loader import BatchLoader
from storage.streams.documents import EventDocument, EventDocumentId, HeadFields

Cursor = NewType("Cursor", str)
"""A position as clients see it: an opaque string, comparable for equality only."""

KEPT_S = 24 * 3600
REPLAY_LIMIT = 500
PRUNE_BATCH = 10_000
EVENTS_BY_TIME = "at_1"
"""Name of the index of the log by time."""

OFFLINE_EVENTS = "offline_notifications"
"""Name of the index by kind and time. It has the kinds `ConversationChanged` and `NotificationArrived` only."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A sequence of events, identified by kind and id. The head of a topic's stream is the topic's own document."""

    kind: str
    id: str

    @property
    def name(self) -> str:
        """The name in the log, the channels and the outbox."""
        return f"{self.kind}:{self.id}"

    @property
    def head_collection(self) -> str:
        """The collection of the stream's head."""
        return "topics" if self.kind == "topic" else "streams"

    @property
    def head_id(self) -> str:
        """The _id of the head in its collection. In `streams` it is the name, since ids are unique per kind only."""
        return self.id if self.kind == "topic" else self.name


@lru_cache(maxsize=1000)
def jobs_stream(organization_id: str) -> Stream:
    """Returns the stream of an organization's jobs: publications, call jobs and fan-outs."""
    return Stream("jobs", quote(organization_id, safe=""))


def jobs_stream_owner(stream: Stream) -> str:
    """Returns the organization's id of a stream of jobs."""
    return unquote(stream.id)


def parse_stream_name(name: str) -> Stream:
    """Returns the stream of a name."""
    kind, _, id_ = name.partition(":")
    return Stream(kind, id_)


@dataclass(frozen=True, slots=True)
class StreamHead:
    """State of a stream: its last event number, the last pruned number (floor), and its incarnation (epoch)."""

    n: int
    floor: int
    epoch: str


@dataclass(frozen=True, slots=True)
class Event:
    """A numbered entry of a stream. `ref` refers to the changed object; `at` is by the database's clock."""

    n: int
    kind: str
    ref: Any
    at: datetime


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A point in one incarnation of a stream. Clients see it as a Cursor."""

    epoch: str
    n: int


def format_cursor(stream: Stream, position: StreamPosition) -> Cursor:
    """Returns the opaque string of a position."""
    return encode_cursor(f"{stream_digest(stream)}.{position.epoch}.{position.n}")


def parse_cursor(stream: Stream, cursor: str) -> StreamPosition:
    """Returns the position of a cursor. Raises: BadUserInput if it is not a cursor of this stream."""
    try:
        digest, epoch, n = decode_cursor(cursor).split(".")
        position = StreamPosition(epoch, int(n))
    except ValueError:
        raise BadUserInput("since", "a cursor from this subscription") from None
    if digest != stream_digest(stream):
        raise BadUserInput("since", "a cursor of this stream, not of another stream")
    return position


def encode_cursor(text: str) -> Cursor:
    """Returns the cursor that `decode_cursor` turns into the text."""
    return Cursor(base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


def decode_cursor(cursor: str) -> str:
    """Returns the text of a cursor. Raises: ValueError."""
    padded = cursor.encode() + b"=" * (-len(cursor) % 4)
    return base64.b64decode(padded, b"-_", validate=True).decode()


def stream_digest(stream: Stream) -> str:
    """Returns a short text that identifies the stream in cursors."""
    return hashlib.sha256(stream.name.encode()).hexdigest()[:10]


class EventLog:
    """Reads and prunes the log. Only the sequencer adds events."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._heads: BatchLoader[Stream, StreamHead] = BatchLoader(self.heads)

    async def head(self, stream: Stream) -> StreamHead:
        """Returns the stream's head, read at majority after this call. Concurrent calls are batched.

        Creates the head of a new stream. Raises: NotFound for a topic that is missing.
        """
        head = await self._heads.get(stream)
        if head is None and stream.head_collection == "topics":
            raise NotFound(stream.kind, stream.id)
        return head or _head(await self._create_head(stream))

    async def _create_head(self, stream: Stream) -> HeadFields:
        """Creates the head and returns it. Returns the existing head if another process has created it."""
        head: HeadFields | None = await self._mongo[stream.head_collection].find_one_and_update(
            {"_id": stream.head_id},
            {"$setOnInsert": {"n": 0, "floor": 0, "epoch": secrets.token_hex(4)}},
            upsert=True,
            projection=_HEAD_FIELDS,
            return_document=ReturnDocument.AFTER,
        )
        assert head is not None  # an upsert returns the document
        return head

    async def heads(self, streams: Sequence[Stream]) -> dict[Stream, StreamHead]:
        """Returns the heads of many streams with one query for each collection. Missing streams are left out."""
        heads: dict[Stream, StreamHead] = {}
        for collection in {stream.head_collection for stream in streams}:
            by_id = {stream.head_id: stream for stream in streams if stream.head_collection == collection}
            for document in await self._mongo.find(collection, {"_id": {"$in": list(by_id)}}, _HEAD_FIELDS):
                heads[by_id[document["_id"]]] = _head(document)
        return heads

    async def read(self, stream: Stream, after: int, limit: int = REPLAY_LIMIT) -> list[Event]:
        """Returns events with numbers above `after`, ascending, at most `limit`."""
        low, high = {"s": stream.name, "n": after}, {"s": stream.name, "n": 2**62}
        documents: list[EventDocument] = await self._mongo.find(
            "events", {"_id": {"$gt": low, "$lt": high}}, None, [("_id", 1)], limit
        )
        return [_event(document) for document in documents]

    async def last_before(self, stream: Stream, at: datetime) -> int | None:
        """Returns the number of the stream's last event before an instant; None if the log has none."""
        bounds = {"$gt": {"s": stream.name, "n": 0}, "$lt": {"s": stream.name, "n": 2**62}}
        found: list[EventDocument] = await self._mongo.find(
            "events", {"_id": bounds, "at": {"$lt": at}}, {"_id": 1}, [("_id", -1)], 1, hint="_id_"
        )
        return found[0]["_id"]["n"] if found else None

    async def page_by_time(
        self, after: datetime, until: datetime, limit: int, kinds: Collection[str] | None = None
    ) -> tuple[Sequence[EventDocument], datetime]:
        """Returns events of all streams after an instant, ordered by time, and the instant up to which it has all.

        `kinds` selects events of these kinds, which the index OFFLINE_EVENTS must have; None selects all. Events
        whose commit takes longer may still be missing: choose `until` early enough, or read again.
        """
        of_kinds: Document = {} if kinds is None else {"kind": {"$in": list(kinds)}}
        index = EVENTS_BY_TIME if kinds is None else OFFLINE_EVENTS
        query = {**of_kinds, "at": {"$gt": after, "$lte": until}}
        found: list[EventDocument] = await self._mongo.find("events", query, sort=[("at", 1)], limit=limit, hint=index)
        if len(found) < limit:
            return found, max(until, after)
        # Further events may have the time of the last one.
        last_at = found[-1]["at"]
        complete = [event for event in found if event["at"] < last_at]
        if complete:
            return complete, complete[-1]["at"]
        return await self._mongo.find("events", {**of_kinds, "at": last_at}, hint=index), last_at

    async def prune(self, kept_s: float = KEPT_S, batch: int = PRUNE_BATCH) -> int:
        """Deletes up to `batch` events older than `kept_s` seconds. Returns the number of deleted events.

        Raises the floors of their streams first.
        """
        expired = self._mongo["events"].find(older_than("at", kept_s), {"_id": 1}).sort("at", 1)
        events: list[EventDocument] = await expired.limit(batch).to_list(None)
        if events:
            await self._raise_floors([event["_id"] for event in events])
            await self._mongo["events"].delete_many({"_id": {"$in": [event["_id"] for event in events]}})
        return len(events)

    async def _raise_floors(self, pruned: Sequence[EventDocumentId]) -> None:
        """Raises the floor of each stream to its last pruned event."""
        floors: dict[str, int] = {}
        for event in pruned:
            floors[event["s"]] = max(floors.get(event["s"], 0), event["n"])
        updates_by_collection: dict[str, list[UpdateOne]] = {}
        for name, floor in floors.items():
            stream = parse_stream_name(name)
            update = UpdateOne({"_id": stream.head_id}, {"$max": {"floor": floor}})
            updates_by_collection.setdefault(stream.head_collection, []).append(update)
        for collection, updates in updates_by_collection.items():
            await self._mongo[collection].bulk_write(updates, ordered=False)

    async def pruning_delay_s(self, kept_s: float = KEPT_S) -> float:
        """Returns for how many seconds the oldest event has been expired, or 0 if none is."""
        oldest = await self._mongo.aggregate(
            "events",
            [
                {"$sort": {"at": 1}},
                {"$limit": 1},
                {"$project": {"age_ms": {"$subtract": ["$$NOW", "$at"]}}},
            ],
        )
        return max(0.0, oldest[0]["age_ms"] / 1000 - kept_s) if oldest else 0.0


async def reset_stream(mongo: Mongo, stream: Stream, session: Session) -> None:
    """Gives the stream a new epoch, so that no earlier cursor is resumed. Creates the head of a new stream."""
    update = {"$set": {"epoch": secrets.token_hex(4)}, "$setOnInsert": {"n": 0, "floor": 0}}
    await mongo[stream.head_collection].update_one({"_id": stream.head_id}, update, upsert=True, session=session)


_HEAD_FIELDS = {"n": 1, "floor": 1, "epoch": 1}


def _head(document: HeadFields) -> StreamHead:
    return StreamHead(document["n"], document.get("floor", 0), document["epoch"])


def _event(document: EventDocument) -> Event:
    return Event(document["_id"]["n"], document["kind"], document["ref"], document["at"])
