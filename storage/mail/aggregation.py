"""Aggregates the ledger into the address book: one transaction per batch, one write per address and domain.

A fenced lock gives each partition one aggregator at a time. A transaction counts waiting events and marks them as
aggregated. Each event is therefore counted exactly once, even if an aggregator dies or is suspended.
"""

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from storage.locks import Lock, LockLost, Locks
from storage.mail.classifier import DeliveryOutcome
from storage.mail.counters import (
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
from storage.mail.documents import AddressDocument, DayId, DomainDocument, LedgerDocument
from storage.mail.epoch_time import epoch_ms
from storage.mail.ledger import ledger_event
from storage.mail.rate_events import add_rate_rows, bounce_rates_stream
from storage.metrics import MAIL_AGGREGATION_SECONDS, MAIL_EVENTS_AGGREGATED
from storage.mongo import Document, Mongo, Session
from storage.streams.outbox import Outbox

BATCH = 1000
CHECKPOINT_S = 10.0
"""How many seconds a checkpoint is used."""
Write = InsertOne[Document] | ReplaceOne[Document] | DeleteOne


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """The position in the ledger at which the next batch begins after a full batch.

    A read from the start of the index would scan all recently removed entries, which MongoDB keeps for minutes. Events
    from before the checkpoint wait until it expires.
    """

    recorded_at: datetime
    """The next batch has events that were recorded at this time or later."""

    until: float
    """When the checkpoint expires, in monotonic seconds."""


class Aggregator:
    """Aggregates partitions of the ledger."""

    def __init__(self, mongo: Mongo, locks: Locks, outbox: Outbox) -> None:
        self._mongo = mongo
        self._locks = locks
        self._outbox = outbox
        self._checkpoints: dict[int, _Checkpoint] = {}

    async def pending_partitions(self) -> list[int]:
        """Returns the partitions with waiting events."""
        # The range lets MongoDB use the partial index. Without the range, it would read the whole ledger.
        partitions: list[int] = await self._mongo["mail_ledger"].distinct("waiting", {"waiting": {"$gte": 0}})
        return partitions

    async def aggregate_batch(self, lock: Lock, partition: int, limit: int = BATCH) -> int:
        """Aggregates at most `limit` events of a partition in one transaction. Returns their number; 0 if none wait.

        Raises: LockLost if the lock has a later holder.
        """

        started_at = time.monotonic()
        checkpoint = self._checkpoints.pop(partition, None)
        if checkpoint is not None and checkpoint.until < started_at:
            checkpoint = None
        since = {} if checkpoint is None else {"recorded_at": {"$gte": checkpoint.recorded_at}}
        documents = await self._mongo.transact(
            partial(self._aggregate_in_transaction, lock, {"waiting": partition, **since}, limit)
        )
        if not documents:
            return await self.aggregate_batch(lock, partition, limit) if checkpoint else 0
        if len(documents) == limit:
            until = checkpoint.until if checkpoint else started_at + CHECKPOINT_S
            self._checkpoints[partition] = _Checkpoint(documents[-1]["recorded_at"], until)
        for org in {document["org"] for document in documents}:
            self._outbox.nudge(bounce_rates_stream(org).name)
        MAIL_AGGREGATION_SECONDS.observe(time.monotonic() - started_at)
        MAIL_EVENTS_AGGREGATED.inc(len(documents))
        return len(documents)

    async def _aggregate_in_transaction(
        self, lock: Lock, query: Document, limit: int, session: Session
    ) -> list[LedgerDocument]:
        await self._locks.guard(lock, session)
        cursor = self._mongo["mail_ledger"].find(query, session=session, batch_size=limit + 1)
        documents: list[LedgerDocument] = await cursor.sort("recorded_at", 1).limit(limit).to_list(None)
        if documents:
            await _LedgerBatch(self._mongo, session, documents).run(lock)
        return documents


@dataclass(slots=True)
class _CountsOfDay(OutcomeCounts):
    """Counts of a batch for a source's day, with the field names of `DayDocument`."""

    replied: int = 0
    complaints: int = 0


class _LedgerBatch:
    """One batch of ledger events within its transaction."""

    def __init__(self, mongo: Mongo, session: Session, documents: list[LedgerDocument]) -> None:
        self._mongo = mongo
        self._session = session
        self._documents = documents
        self._days: dict[tuple[str, str, int], _CountsOfDay] = defaultdict(_CountsOfDay)

    async def run(self, lock: Lock) -> None:
        addresses = AddressDocuments(self._mongo, self._session)
        await addresses.load({document["address"]: document.get("older", ()) for document in self._documents})
        domains = await self._load_domains()
        for document in self._documents:
            event = ledger_event(document)
            org = document["org"]
            address = addresses.get(event.address, org, event.domain)
            counts = add_event(address, event)
            if "readable" in document:
                address["readable"] = document["readable"]
            add_event_to_domain(domains[org, event.domain], event, counts)
            self._add_to_day(org, event, counts)
        now = epoch_ms(max(document["recorded_at"] for document in self._documents))
        await addresses.save(now)
        await self._save_domains(domains.values())
        await self._save_days(lock)
        await self._mark_aggregated(lock)

    async def _load_domains(self) -> dict[tuple[str, str], DomainDocument]:
        """Returns the documents of the batch's domains, by organization and domain. Creates missing documents."""
        domains = {(document["org"], document["domain"]) for document in self._documents}
        ids = [domain_id(*each) for each in domains]
        cursor = self._mongo["mail_domains"].find({"_id": {"$in": ids}}, session=self._session)
        documents: list[DomainDocument] = await cursor.to_list(None)
        existing = {(document["org"], document["domain"]): document for document in documents}
        return {each: existing.get(each) or new_domain(*each) for each in domains}

    async def _save_domains(self, domains: Iterable[DomainDocument]) -> None:
        writes: list[Write] = []
        for document in domains:
            summarize_domain(document)
            writes.append(save_write(document, domain_id(document["org"], document["domain"])))
        await self._mongo["mail_domains"].bulk_write(writes, ordered=False, session=self._session)

    def _add_to_day(self, org: str, event: LedgerEvent, counts: OutcomeCounts) -> None:
        day = self._days[org, event.source, event.day]
        day.success += counts.success
        day.soft += counts.soft
        day.hard += counts.hard
        day.complaints += event.outcome is DeliveryOutcome.COMPLAINT
        # A delivery on the sender's own host has no reply code, and does not show that the network works.
        day.replied += counts.success if event.smtp_code is not None else 0

    async def _save_days(self, lock: Lock) -> None:
        """Adds the batch to the daily sums of its organizations, and announces the changed days.

        Each partition has documents of its own, so that aggregators never conflict.
        """
        writes = [
            UpdateOne(
                {"_id": day_id(org, day, source, lock.name)},
                {"$inc": asdict(counts)},
                upsert=True,
            )
            for (org, source, day), counts in self._days.items()
        ]
        await self._mongo["mail_days"].bulk_write(writes, ordered=False, session=self._session)
        await add_rate_rows(self._mongo, {(org, day) for org, _, day in self._days}, self._session)

    async def _mark_aggregated(self, lock: Lock) -> None:
        ids = [document["_id"] for document in self._documents]
        marked = await self._mongo["mail_ledger"].update_many(
            {"_id": {"$in": ids}, "waiting": {"$exists": True}},
            [{"$set": {"aggregated_at": "$$NOW"}}, {"$unset": ["waiting", "readable"]}],
            session=self._session,
            hint="_id_",
        )
        if marked.modified_count != len(ids):
            # Another aggregator marked some of the events. Fenced locks should prevent that.
            raise LockLost(lock.name)


class AddressDocuments:
    """Documents of addresses within a transaction: read together, changed in memory, written together.

    A document under an older key's hash is moved to the newest key's hash, and replaced by a forwarding document.
    """

    def __init__(self, mongo: Mongo, session: Session) -> None:
        self._collection = mongo["mail_addresses"]
        self._session = session
        self._documents: dict[bytes, AddressDocument] = {}
        self._forwarded: dict[bytes, bytes] = {}
        self._moved: list[tuple[bytes, bytes]] = []

    async def load(self, older_by_newest: dict[bytes, Iterable[bytes]]) -> None:
        """Reads the documents of addresses. The argument has each address's ids under older keys, by its newest id."""
        ids = {id_ for newest, older in older_by_newest.items() for id_ in (newest, *older)}
        documents = await self._read(ids)
        self._forwarded = {each["_id"]: each["moved"] for each in documents if "moved" in each}
        self._documents = {each["_id"]: each for each in documents if "moved" not in each}
        if self._forwarded:
            targets = await self._read(set(self._forwarded.values()) - ids)
            self._documents |= {each["_id"]: each for each in targets}
        for newest, older in older_by_newest.items():
            for id_ in older:
                self._move(id_, newest)

    def _move(self, id_: bytes, newest: bytes) -> None:
        self._forwarded[id_] = newest
        document = self._documents.pop(id_, None)
        if document is None:
            return
        self._moved.append((id_, newest))
        del document["_id"]
        if newest in self._documents:
            merge(self._documents[newest], document)
        else:
            self._documents[newest] = document

    def get(self, id_: bytes, organization_id: str, domain: str) -> AddressDocument:
        """Returns the document of an id, or a new document. `save` writes the changes that callers make to it."""
        id_ = self._forwarded.get(id_, id_)
        document = self._documents.get(id_)
        if document is None:
            document = self._documents[id_] = new_address(organization_id, domain)
        return document

    async def save(self, now_ms: int) -> None:
        """Writes all documents that were read or created."""
        writes: list[Write | UpdateOne] = []
        for id_, document in self._documents.items():
            prune(document, now_ms)
            summarize(document)
            writes.append(save_write(document, id_))
        for old, new in self._moved:
            forwarding = {"_id": "$_id", "moved": new, "moved_at": "$$NOW"}
            writes.append(UpdateOne({"_id": old}, [{"$replaceWith": forwarding}]))
        if writes:
            await self._collection.bulk_write(writes, ordered=False, session=self._session)

    async def _read(self, ids: Iterable[bytes]) -> list[Any]:
        """Returns the `AddressDocument` or forwarding document of each id that has one."""
        id_list = list(ids)
        # Without `batch_size`, the first batch would hold 101 documents only.
        cursor = self._collection.find(
            {"_id": {"$in": id_list}}, session=self._session, hint="_id_", batch_size=len(id_list) + 1
        )
        documents: list[Any] = await cursor.to_list(None)
        return documents


def domain_id(organization_id: str, domain: str) -> str:
    """Returns the `_id` of a domain's document. It is unique, because a domain contains no space."""
    return f"{domain} {organization_id}"


def day_id(organization_id: str, day: int, source: str, lock_name: str) -> DayId:
    """Returns the `_id` of the document that a partition has for a source's day."""
    return {"org": organization_id, "day": day, "source": source, "lock": lock_name}


def save_write(document: AddressDocument | DomainDocument, id_: object) -> InsertOne[Document] | ReplaceOne[Document]:
    """Returns the write that saves a document. The document is new, or was read in the same transaction."""
    if document.get("_id") is None:
        return InsertOne({**document, "_id": id_})
    return ReplaceOne({"_id": id_}, {**document})
