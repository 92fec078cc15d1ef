"""The ledger of delivery events: each is taken in once, by its id, and waits there until it is folded into the book.

Kept for 14 days; what is older than 13 days is not taken in, so that an id can't come back after it was forgotten.
Nothing in it is in the clear but domains: addresses are keyed hashes, ids of events and messages are digests.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from zlib import crc32

from pymongo.errors import BulkWriteError

from storage.errors import DomainError
from storage.mail.addresses import AddressKeys, normalize
from storage.mail.classifier import COMPLAINED, NO_CONNECTION, Outcome, Rule, classify
from storage.mail.counters import LedgerEvent
from storage.mail.epoch_time import epoch_ms
from storage.mail.records import DeliveryEvent, DeliveryEventKind, RecordDeliveriesResult, RejectedDelivery
from storage.metrics import MAIL_EVENTS
from storage.mongo import DUPLICATE_KEY, Document, Mongo

PARTITIONS = 16
ACCEPTED_AGE = timedelta(days=13)
ACCEPTED_AHEAD = timedelta(hours=1)
"""Clocks of mail servers may be ahead of the database's by so much."""

MAX_ID = 1000
_STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}", re.ASCII)


class _InvalidEvent(DomainError):
    """An event can't be taken in."""


async def backlog(mongo: Mongo) -> dict[int, tuple[int, float]]:
    """By partition: how many rows wait to be folded, and for how many seconds the oldest has waited."""
    oldest_s = {"$divide": [{"$subtract": ["$$NOW", "$oldest"]}, 1000]}
    steps: list[Document] = [
        {"$match": {"waiting": {"$exists": True}}},
        {"$group": {"_id": "$waiting", "rows": {"$sum": 1}, "oldest": {"$min": "$recorded_at"}}},
        {"$set": {"oldest_s": oldest_s}},
    ]
    rows = await mongo.aggregate("mail_ledger", steps)
    return {row["_id"]: (row["rows"], row["oldest_s"]) for row in rows}


class Ledger:
    """Takes events in."""

    def __init__(self, mongo: Mongo, keys: AddressKeys) -> None:
        self._mongo = mongo
        self._keys = keys

    async def record(
        self, organization_id: str, source: str, events: Sequence[DeliveryEvent]
    ) -> RecordDeliveriesResult:
        """Takes in what is new; everything that is accepted is durable. `source` can later be taken out of the book.

        Raises: Unavailable without address keys.
        """
        now = await self._mongo.now()
        rows: list[Document] = []
        rejected: list[RejectedDelivery] = []
        for index, event in enumerate(events):
            try:
                rows.append(self._row(organization_id, source, event, now))
            except _InvalidEvent as error:
                rejected.append(RejectedDelivery(index, event.event_id, error.message))
        duplicates = await self._insert(rows) if rows else 0
        if len(rows) > duplicates:
            await self._note_source(organization_id, source)
        return RecordDeliveriesResult(len(rows) - duplicates, duplicates, rejected)

    async def _insert(self, rows: list[Document]) -> int:
        """Inserts what is not there; how many were."""
        try:
            await self._mongo["mail_ledger"].insert_many(rows, ordered=False)
        except BulkWriteError as error:
            failed = error.details["writeErrors"]
            if error.details.get("writeConcernErrors") or any(each["code"] != DUPLICATE_KEY for each in failed):
                raise
            return len(failed)
        return 0

    async def _note_source(self, organization_id: str, source: str) -> None:
        row = {"_id": {"org": organization_id, "source": source}}
        await self._mongo["mail_sources"].update_one(row, {"$setOnInsert": row}, upsert=True)

    def _row(self, organization_id: str, source: str, event: DeliveryEvent, now: datetime) -> Document:
        address = normalize(event.address)
        if address is None:
            raise _InvalidEvent("address: this is no mail address")
        _check(event, now)
        rule = _outcome(event)
        MAIL_EVENTS.labels(rule.outcome).inc()
        newest, *older = self._keys.ids(organization_id, address.text)
        row = {
            "_id": digest(organization_id, event.event_id, size=16),
            "org": organization_id,
            "source": source,
            "address": newest,
            "domain": address.domain,
            "at": event.at,
            "recorded_at": now,
            "outcome": rule.outcome,
            "message": digest(event.message_id or event.event_id, size=8),
            "waiting": partition(address.domain),
        }
        more = {"smtp": event.smtp_code, "status": event.enhanced_status, "older": older}
        row |= {name: value for name, value in more.items() if value}
        # Whoever answered can be reached.
        is_reset = event.smtp_code is None and rule.reason in _UNREACHED
        return row | {"failed": True} if is_reset else row


_UNREACHED = {NO_CONNECTION.reason, *(classify(None, f"4.4.{n}", None).reason for n in (1, 2, 3, 4))}


def _outcome(event: DeliveryEvent) -> Rule:
    if event.kind is DeliveryEventKind.COMPLAINT:
        return COMPLAINED
    return classify(event.smtp_code, event.enhanced_status, event.diagnostic)


def _check(event: DeliveryEvent, now: datetime) -> None:
    if not 1 <= len(event.event_id) <= MAX_ID or len(event.message_id or "") > MAX_ID:
        raise _InvalidEvent(f"eventId, messageId: at most {MAX_ID} characters, eventId at least one")
    if event.at < now - ACCEPTED_AGE:
        raise _InvalidEvent("at: older than 13 days")
    if event.at > now + ACCEPTED_AHEAD:
        raise _InvalidEvent("at: more than an hour ahead of the server's clock")
    if event.smtp_code is not None and not 200 <= event.smtp_code <= 599:
        raise _InvalidEvent("smtpCode: expected a reply code from 200 to 599")
    if event.enhanced_status is not None and not _STATUS.fullmatch(event.enhanced_status):
        raise _InvalidEvent('enhancedStatus: expected a status such as "5.1.1"')


def digest(*parts: str, size: int) -> bytes:
    """Stands for texts that may hold an address: ids of events and messages."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=size).digest()


def partition(domain: str) -> int:
    """Which folder takes care of a domain and its addresses."""
    return crc32(domain.encode()) % PARTITIONS


def ledger_event(document: Document) -> LedgerEvent:
    """A ledger row as folds want it."""
    return LedgerEvent(
        id=document["_id"],
        source=document["source"],
        address=document["address"],
        domain=document["domain"],
        at=epoch_ms(document["at"]),
        outcome=Outcome(document["outcome"]),
        message=document["message"],
        smtp_code=document.get("smtp"),
        status=document.get("status"),
        failed=document.get("failed", False),
    )
