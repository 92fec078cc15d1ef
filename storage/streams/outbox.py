"""Outbox: rows for other streams, written with a change and relayed in later commits of the other streams.

A transaction locks the head of one stream only (docs/semantics.md, 3). The process that wrote the rows relays them at
once. If it dies, the sweep of another process relays them within 10 s.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from bson import ObjectId
from pymongo import UpdateOne

from storage.mongo import Document, Mongo, Session, literals, older_than
from storage.streams.changes import Batch, DocumentKey, SystemChange, document_key, require_outbox_target
from storage.streams.documents import OutboxDocument
from storage.streams.log import Stream, parse_stream_name
from storage.streams.sequencer import Sequencer

RELAY_LIMIT = 200
"""Maximum number of rows that one commit relays."""

MAX_CONCURRENT_RELAYS = 16
"""Maximum number of streams that a process relays to at once. A popular post has rows for thousands of streams."""

MAX_WAIT = timedelta(seconds=10)
"""A row whose due time is further ahead is relayed at once. No relay requests so long a wait, so the database's clock
must have been set back since."""

STALE_S = 3.0
"""Age from which a sweep relays rows: their writer has probably died."""

log = structlog.get_logger(__name__)


class OutboxRelay(ABC):
    """Applies rows of one kind to the stream that they are for. Each batch creates new instances."""

    @abstractmethod
    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the documents that the rows need, in the transaction."""

    @abstractmethod
    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Plans one row. Returns the seconds until the next attempt, or 0 if the row is done and can be deleted."""


OutboxRelays = Mapping[str, type[OutboxRelay]]
"""Relays, by the kind of the row."""


class EventRelay(OutboxRelay):
    """Emits an event with each row's ref. Equal rows of one batch become one event."""

    event_kind: str | None = None
    """Kind of the events. None: the kind of the row."""

    def __init__(self) -> None:
        self._emitted: set[Any] = set()

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads nothing."""

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits the event."""
        if row["ref"] not in self._emitted:
            self._emitted.add(row["ref"])
            batch.emit(self.event_kind or row["kind"], row["ref"])
        return 0.0


async def add_rows(
    mongo: Mongo, stream: Stream, kind: str, refs: Iterable[Any], session: Session | None = None
) -> None:
    """Adds a row for each ref, within the caller's transaction if there is one.

    Call `Outbox.nudge` after the commit; otherwise a sweep relays the rows some seconds later. Raises: ValueError for
    a topic that does not take the kind.
    """
    await add_rows_to_streams(mongo, [(stream, kind, ref) for ref in refs], session)


async def add_rows_to_streams(
    mongo: Mongo, rows: Iterable[tuple[Stream, str, Any]], session: Session | None = None
) -> None:
    """Adds rows for many streams, each given by stream, kind and ref. Raises: ValueError for topics."""
    writes = [_insertion(stream, kind, ref) for stream, kind, ref in rows]
    if writes:
        await mongo["outbox"].bulk_write(writes, ordered=session is not None, session=session)


def _insertion(stream: Stream, kind: str, ref: Any) -> UpdateOne:
    require_outbox_target(stream, kind)
    fields = {"stream": stream.name, "kind": kind, "ref": ref}
    # Only an update pipeline can write the database's clock.
    return UpdateOne({"_id": ObjectId()}, [{"$set": {"at": "$$NOW", **literals(fields)}}], upsert=True)


class RelayRows(SystemChange[float]):
    """Relays the rows of a stream. The result is the seconds until the next attempt, or -1 if none is needed."""

    # Unused timestamps leave a gap. In topics, where they would count as messages, the sequencer returns them.
    max_timestamps = RELAY_LIMIT

    def __init__(self, stream: Stream, relays: OutboxRelays) -> None:
        self._stream = stream
        self._relays = relays
        self._rows: list[OutboxDocument] = []
        self._waiting: dict[DocumentKey, datetime] = {}
        """When the waiting rows are due, by kind and ref."""

        self._relays_by_kind: dict[str, OutboxRelay] = {}

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the rows that are due, oldest first, and the documents that their relays need.

        Rows of an unknown kind are not read. They stay until a process of a newer version relays them.
        """
        self._rows, self._waiting = [], {}
        for row in await self._read_rows(mongo, session, batch.at):
            due = row.get("due", batch.at)
            if batch.at < due < batch.at + MAX_WAIT:
                self._waiting[document_key(row["kind"], row["ref"])] = due
            else:
                self._rows.append(row)
        rows_by_kind: defaultdict[str, list[OutboxDocument]] = defaultdict(list)
        for row in self._rows:
            batch.add_loaded("outbox", row)
            rows_by_kind[row["kind"]].append(row)
        self._relays_by_kind = {kind: self._relays[kind]() for kind in rows_by_kind}
        for kind, relay in self._relays_by_kind.items():
            await relay.load(mongo, session, rows_by_kind[kind], batch)

    async def _read_rows(self, mongo: Mongo, session: Session, now: datetime) -> list[OutboxDocument]:
        """Returns the rows that wait, and the first rows that are due; usually all rows, with one read."""
        known = {"stream": self._stream.name, "kind": {"$in": [*self._relays]}}
        read_first = partial(mongo.find, "outbox", sort=[("_id", 1)], limit=RELAY_LIMIT, session=session)
        rows: list[OutboxDocument] = await read_first(known)
        if len(rows) < RELAY_LIMIT:
            return rows
        # Rows that wait, and rows that were deferred before, must not take the places of rows that were never tried.
        later = {"$gt": now, "$lt": now + MAX_WAIT}
        waiting: list[OutboxDocument] = await mongo.find("outbox", {**known, "due": later}, session=session)
        untried: list[OutboxDocument] = await read_first({**known, "due": {"$exists": False}})
        if len(untried) == RELAY_LIMIT:
            return waiting + untried
        due, room = {**known, "due": {"$exists": True, "$not": later}}, RELAY_LIMIT - len(untried)
        deferred: list[OutboxDocument] = await mongo.find("outbox", due, None, [("due", 1)], room, session=session)
        return waiting + untried + deferred

    def plan(self, batch: Batch) -> float:
        """Relays the rows, and removes those that are done.

        Of equal rows that have to wait, one stays and the others are removed. Rows behind a waiting row do not wait.
        """
        for row in self._rows:
            key = document_key(row["kind"], row["ref"])
            wait_s = 0.0 if key in self._waiting else self._relays_by_kind[row["kind"]].relay(row, batch)
            if wait_s:
                self._waiting[key] = batch.at + timedelta(seconds=wait_s)
                batch.put("outbox", {**row, "due": self._waiting[key]})
            else:
                batch.remove("outbox", row["_id"])
        if len(self._rows) == RELAY_LIMIT:
            return 0.0  # more rows may exist
        return min(((due - batch.at).total_seconds() for due in self._waiting.values()), default=-1.0)


class Outbox:
    """Relays rows in the background. One for each process."""

    def __init__(self, mongo: Mongo, relays: OutboxRelays) -> None:
        self._mongo = mongo
        self._relays = relays
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._nudged_while_relaying: set[str] = set()
        self._sequencer: Sequencer | None = None
        self._is_closed = False
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_RELAYS)

    def start(self, sequencer: Sequencer) -> None:
        """Sets the sequencer that commits relayed rows. Must be called before `nudge` and `sweep`."""
        self._sequencer = sequencer

    def nudge(self, name: str) -> None:
        """Starts to relay the rows for the stream of this name."""
        if name in self._tasks:
            self._nudged_while_relaying.add(name)
            return
        if self._is_closed:
            return
        self._tasks[name] = asyncio.create_task(self._drain(name), name=f"outbox {name}")

    async def sweep(self) -> int:
        """Starts to relay rows that are older than `STALE_S`. Returns the number of their streams."""
        stale: Document = {**older_than("at", STALE_S), "kind": {"$in": [*self._relays]}}
        # `distinct` has no $$NOW.
        rows = await self._mongo.aggregate("outbox", [{"$match": stale}, {"$group": {"_id": "$stream"}}])
        names = [row["_id"] for row in rows]
        for name in names:
            self.nudge(name)
        return len(names)

    async def close(self) -> None:
        """Stops. A sweep of another process relays the rows that are left."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self, name: str) -> None:
        try:
            while True:
                self._nudged_while_relaying.discard(name)
                wait_s = await self._relay(name)
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                if wait_s < 0 and name not in self._nudged_while_relaying:
                    return
        except Exception as error:
            # Nothing awaits this task. The rows stay, and the next nudge or sweep tries again.
            log.warning("relay_failed", stream=name, error=repr(error))
        finally:
            del self._tasks[name]

    async def _relay(self, name: str) -> float:
        assert self._sequencer is not None
        stream = parse_stream_name(name)
        async with self._slots:
            return await self._sequencer.commit(stream, RelayRows(stream, self._relays))
