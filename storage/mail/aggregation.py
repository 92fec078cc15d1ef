"""Folding the ledger into the book: one transaction a batch, one write an address and a domain in it.

Each partition has one folder at a time, by a fenced lock. A transaction takes rows that wait and marks them in the
same commit, so a folder that dies or sleeps folds each of them once or not at all, and nothing is counted twice.
"""

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from storage.locks import Lock, LockLost, Locks
from storage.mail.counters import (
    Facts,
    LedgerEvent,
    OutcomeCounts,
    add_event,
    add_event_to_domain,
    merge,
    new_address,
    new_domain,
    prune,
    summarize,
    summarize_domain,
)
from storage.mail.epoch_time import epoch_ms
from storage.mail.ledger import ledger_event
from storage.metrics import MAIL_AGGREGATION_SECONDS, MAIL_EVENTS_AGGREGATED
from storage.mongo import Document, Mongo, Session

BATCH = 1000
REACHED_S = 10.0
Write = InsertOne[Document] | ReplaceOne[Document] | DeleteOne


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """Where the batch after a full one begins, until then (monotonic): what slow writers bring in behind waits for it.

    From the index's beginning each batch would have to pass all that left it lately; MongoDB keeps that for minutes.
    """

    recorded_at: datetime
    until: float


class Aggregator:
    """Folds the partitions of the ledger."""

    def __init__(self, mongo: Mongo, locks: Locks) -> None:
        self._mongo = mongo
        self._locks = locks
        self._checkpoints: dict[int, _Checkpoint] = {}

    async def pending_partitions(self) -> list[int]:
        """The partitions in which rows wait."""
        # The range says that the field is there: else the whole ledger would be read for it.
        found: list[int] = await self._mongo["mail_ledger"].distinct("waiting", {"waiting": {"$gte": 0}})
        return found

    async def aggregate(self, lock: Lock, partition: int, limit: int = BATCH) -> int:
        """Folds at most `limit` rows of a partition in one transaction. Returns how many; 0 means that none wait.

        Raises: LockLost when the lock belongs to a later holder.
        """

        started = time.monotonic()
        reached = self._checkpoints.pop(partition, None)
        if reached is not None and reached.until < started:
            reached = None
        since = {} if reached is None else {"recorded_at": {"$gte": reached.recorded_at}}
        rows = await self._mongo.transact(partial(self._aggregate, lock, {"waiting": partition, **since}, limit))
        if not rows:
            return await self.aggregate(lock, partition, limit) if reached else 0
        if len(rows) == limit:
            until = reached.until if reached else started + REACHED_S
            self._checkpoints[partition] = _Checkpoint(rows[-1]["recorded_at"], until)
        MAIL_AGGREGATION_SECONDS.observe(time.monotonic() - started)
        MAIL_EVENTS_AGGREGATED.inc(len(rows))
        return len(rows)

    async def _aggregate(self, lock: Lock, wanted: Document, limit: int, session: Session) -> list[Document]:
        await self._locks.guard(lock, session)
        found = self._mongo["mail_ledger"].find(wanted, session=session, batch_size=limit + 1)
        rows = await found.sort("recorded_at", 1).limit(limit).to_list(None)
        if rows:
            await _Batch(self._mongo, session, rows).run(lock)
        return rows


class _Batch:
    """One batch inside its transaction."""

    def __init__(self, mongo: Mongo, session: Session, documents: list[Document]) -> None:
        self._mongo = mongo
        self._session = session
        self._documents = documents
        self._days: dict[tuple[str, str, int], OutcomeCounts] = defaultdict(OutcomeCounts)

    async def run(self, lock: Lock) -> None:
        addresses = AddressDocuments(self._mongo, self._session)
        await addresses.load({document["address"]: document.get("older", ()) for document in self._documents})
        domains = await self._domains()
        for document in self._documents:
            row = ledger_event(document)
            org = document["org"]
            counts = add_event(addresses.get(row.address, org, row.domain), row)
            add_event_to_domain(domains[org, row.domain], row, counts)
            self._count(org, row, counts)
        now = epoch_ms(max(document["recorded_at"] for document in self._documents))
        await addresses.save(now)
        await self._save_domains(domains.values())
        await self._save_days(lock)
        await self._mark(lock)

    async def _domains(self) -> dict[tuple[str, str], Facts]:
        wanted = {(document["org"], document["domain"]) for document in self._documents}
        ids = [domain_id(*each) for each in wanted]
        found = await self._mongo["mail_domains"].find({"_id": {"$in": ids}}, session=self._session).to_list(None)
        known = {(document["org"], document["domain"]): document for document in found}
        return {each: known.get(each) or new_domain(*each) for each in wanted}

    async def _save_domains(self, domains: Iterable[Facts]) -> None:
        writes: list[Write] = []
        for document in domains:
            summarize_domain(document)
            writes.append(save_write(document, domain_id(document["org"], document["domain"])))
        await self._mongo["mail_domains"].bulk_write(writes, ordered=False, session=self._session)

    def _count(self, org: str, row: LedgerEvent, counts: OutcomeCounts) -> None:
        day = self._days[org, row.source, row.day]
        day.success += counts.success
        day.soft += counts.soft
        day.hard += counts.hard

    async def _save_days(self, lock: Lock) -> None:
        """The sums of all domains, apart for each folder, so that no two folders write to one document."""
        writes = [
            UpdateOne(
                {"_id": {"org": org, "day": day, "source": source, "lock": lock.name}},
                {"$inc": {"success": counts.success, "soft": counts.soft, "hard": counts.hard}},
                upsert=True,
            )
            for (org, source, day), counts in self._days.items()
        ]
        await self._mongo["mail_days"].bulk_write(writes, ordered=False, session=self._session)

    async def _mark(self, lock: Lock) -> None:
        ids = [document["_id"] for document in self._documents]
        marked = await self._mongo["mail_ledger"].update_many(
            {"_id": {"$in": ids}, "waiting": {"$exists": True}},
            [{"$set": {"folded_at": "$$NOW"}}, {"$unset": "waiting"}],
            session=self._session,
            hint="_id_",
        )
        if marked.modified_count != len(ids):
            raise LockLost(lock.name)  # somebody else folded some of them: never seen while locks are fenced


class AddressDocuments:
    """Documents of addresses in a transaction: read together, changed in memory, written together.

    A document that lies under an older key's hash moves to the newest's, and leaves word of where it went.
    """

    def __init__(self, mongo: Mongo, session: Session) -> None:
        self._collection = mongo["mail_addresses"]
        self._session = session
        self._found: dict[bytes, Facts] = {}
        self._gone: dict[bytes, bytes] = {}
        self._moved: list[tuple[bytes, bytes]] = []

    async def load(self, wanted: dict[bytes, Iterable[bytes]]) -> None:
        """Reads the documents of these ids, each with the ids that older keys gave the same address."""
        ids = {id_ for newest, older in wanted.items() for id_ in (newest, *older)}
        await self._read(ids)
        moved = {id_: document["moved"] for id_, document in self._found.items() if "moved" in document}
        if moved:
            await self._read(set(moved.values()) - ids)
        for id_, target in moved.items():
            self._gone[id_] = target
            del self._found[id_]
        for newest, older in wanted.items():
            for id_ in older:
                self._move(id_, newest)

    def _move(self, id_: bytes, newest: bytes) -> None:
        self._gone[id_] = newest
        document = self._found.pop(id_, None)
        if document is None:
            return
        self._moved.append((id_, newest))
        del document["_id"]
        if newest in self._found:
            merge(self._found[newest], document)
        else:
            self._found[newest] = document

    def get(self, id_: bytes, organization_id: str, domain: str) -> Facts:
        """The document of an id, a new one where there is none. What was changed in it is saved."""
        id_ = self._gone.get(id_, id_)
        document = self._found.get(id_)
        if document is None:
            document = self._found[id_] = new_address(organization_id, domain)
        return document

    def find(self, id_: bytes) -> Facts | None:
        """The document of an id, if there is one."""
        return self._found.get(self._gone.get(id_, id_))

    async def save(self, now_ms: int) -> None:
        """Writes all that were read or made."""
        writes: list[Write | UpdateOne] = []
        for id_, document in self._found.items():
            prune(document, now_ms)
            summarize(document)
            writes.append(save_write(document, id_))
        for old, new in self._moved:
            word = {"_id": "$_id", "moved": new, "moved_at": "$$NOW"}
            writes.append(UpdateOne({"_id": old}, [{"$replaceWith": word}]))
        if writes:
            await self._collection.bulk_write(writes, ordered=False, session=self._session)

    async def _read(self, ids: Iterable[bytes]) -> None:
        wanted = list(ids)
        # In one answer: the first has 101 documents otherwise.
        cursor = self._collection.find(
            {"_id": {"$in": wanted}}, session=self._session, hint="_id_", batch_size=len(wanted) + 1
        )
        self._found |= {document["_id"]: document for document in await cursor.to_list(None)}


def domain_id(organization_id: str, domain: str) -> str:
    """The _id of a domain's document. A domain has no space."""
    return f"{domain} {organization_id}"


def save_write(document: Facts, id_: object) -> InsertOne[Document] | ReplaceOne[Document]:
    """The write that saves a document which was read in the same transaction, or made."""
    if document.get("_id") is None:
        return InsertOne({**document, "_id": id_})
    return ReplaceOne({"_id": id_}, document)
