"""Rows for other streams: written with a change, moved by those streams' own commits.

A transaction locks the head of one stream only (docs/semantics.md, 3). Rows are moved at once by the process that wrote
them, and by `sweep` within 10 s when that process died.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import structlog
from bson import ObjectId
from pymongo import UpdateOne

from storage.mongo import Document, Mongo, Session, older_than
from storage.streams.changes import Batch, Change
from storage.streams.log import Stream, parse_stream_name
from storage.streams.sequencer import Sequencer

RELAY_LIMIT = 200
AT_ONCE = 16
"""How many streams are moved at the same time: a popular post reaches thousands at once."""
STALE_S = 3.0

log = structlog.get_logger(__name__)


class OutboxRelay(ABC):
    """How rows of one kind are moved. One instance lives for one batch."""

    @abstractmethod
    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """Reads in the transaction what moving the rows needs."""

    @abstractmethod
    def relay(self, row: Document, batch: Batch) -> float:
        """Plans one row. Returns 0 when it is done, else the seconds until it may be tried again; then it stays."""


OutboxRelays = Mapping[str, type[OutboxRelay]]


class EventRelay(OutboxRelay):
    """Moves a row as it is: its kind and ref become an event, once for equal rows that are moved together."""

    def __init__(self) -> None:
        """Has told nothing yet."""
        self._told: set[Any] = set()

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """Nothing."""

    def relay(self, row: Document, batch: Batch) -> float:
        """Emits the event."""
        if row["ref"] not in self._told:
            self._told.add(row["ref"])
            batch.emit(row["kind"], row["ref"])
        return 0.0


async def add_rows(
    mongo: Mongo, stream: Stream, kind: str, refs: Iterable[Any], session: Session | None = None
) -> None:
    """Leaves a row for each ref, in the caller's transaction where there is one; the clock is the database's.

    Nudge the outbox afterwards, or a sweep moves them some seconds later.
    """
    await add_rows_to_streams(mongo, [(stream, kind, ref) for ref in refs], session)


async def add_rows_to_streams(
    mongo: Mongo, rows: Iterable[tuple[Stream, str, Any]], session: Session | None = None
) -> None:
    """The same for rows of many streams: each a stream, a kind and a ref."""
    writes = [
        # A pipeline, since only there the database's own clock can be written; what users chose is no expression.
        UpdateOne({"_id": ObjectId()}, [{"$set": {"at": "$$NOW", **_literally(row)}}], upsert=True)
        for row in ({"stream": stream.name, "kind": kind, "ref": ref} for stream, kind, ref in rows)
    ]
    if writes:
        await mongo["outbox"].bulk_write(writes, ordered=session is not None, session=session)


def _literally(row: Document) -> Document:
    return {name: {"$literal": value} for name, value in row.items()}


class RelayRows(Change[float]):
    """Moves what waits for a stream. The result is in how many seconds to come again, -1 for not at all."""

    # More than is needed leaves a gap in the timestamps, which is harmless.
    timestamps = RELAY_LIMIT

    def __init__(self, stream: Stream, relays: OutboxRelays) -> None:
        """`relays` by row kind."""
        self._stream = stream
        self._relays = relays
        self._rows: list[Document] = []
        self._by_kind: dict[str, OutboxRelay] = {}

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the rows, oldest first, and what their relays need.

        Rows of a kind that this version does not know stay for one that does.
        """
        wanted = {"stream": self._stream.name, "kind": {"$in": [*self._relays]}}
        cursor = mongo["outbox"].find(wanted, session=session).sort("_id", 1)
        self._rows = await cursor.limit(RELAY_LIMIT).to_list(None)
        kinds: defaultdict[str, list[Document]] = defaultdict(list)
        for row in self._rows:
            batch.add("outbox", row)
            kinds[row["kind"]].append(row)
        self._by_kind = {kind: self._relays[kind]() for kind in kinds}
        for kind, mover in self._by_kind.items():
            await mover.load(mongo, session, kinds[kind], batch)

    def plan(self, batch: Batch) -> float:
        """Moves each row, or finds out how long it has to wait."""
        waits: list[float] = []
        for row in self._rows:
            wait_s = self._by_kind[row["kind"]].relay(row, batch)
            if wait_s:
                waits.append(wait_s)
            else:
                batch.remove("outbox", row["_id"])
        # More may lie behind a full load; behind one that has to wait as a whole, they wait as well.
        if len(waits) < len(self._rows) == RELAY_LIMIT:
            return 0.0
        return min(waits, default=-1.0)


class Outbox:
    """Keeps rows moving. One for each process."""

    def __init__(self, mongo: Mongo, relays: OutboxRelays) -> None:
        self._mongo = mongo
        self._relays = relays
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._sequencer: Sequencer | None = None
        self._closed = False
        self._slots = asyncio.Semaphore(AT_ONCE)

    def start(self, sequencer: Sequencer) -> None:
        """Begins to move through this sequencer."""
        self._sequencer = sequencer

    def nudge(self, name: str) -> None:
        """There are rows for the stream of this name: move them soon."""
        if name in self._tasks:
            self._again.add(name)
            return
        if self._closed:
            return
        self._tasks[name] = asyncio.create_task(self._drain(name), name=f"outbox {name}")

    async def sweep(self) -> int:
        """Moves what was left behind, and returns for how many streams."""
        stale = {**older_than("at", STALE_S), "kind": {"$in": [*self._relays]}}
        # `distinct` knows no $$NOW.
        rows = await self._mongo.aggregate("outbox", [{"$match": stale}, {"$group": {"_id": "$stream"}}])
        names = [row["_id"] for row in rows]
        for name in names:
            self.nudge(name)
        return len(names)

    async def close(self) -> None:
        """Stops; what was not moved is moved by somebody's sweep."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self, name: str) -> None:
        try:
            while True:
                self._again.discard(name)
                wait_s = await self._move(name)
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                if wait_s < 0 and name not in self._again:
                    return
        except Exception as error:
            # Nobody waits for this task; the rows stay, and the next nudge or sweep tries again.
            log.warning("outbox_delayed", stream=name, error=repr(error))
        finally:
            del self._tasks[name]

    async def _move(self, name: str) -> float:
        assert self._sequencer is not None
        stream = parse_stream_name(name)
        async with self._slots:
            return await self._sequencer.commit(stream, RelayRows(stream, self._relays))
