"""The ledger of delivery events. Each event id is recorded once, and its event waits in the ledger for aggregation.

Events are kept for 14 days. Events older than 13 days are rejected, so no id is recorded again after its deletion.
Only domains are stored in the clear: addresses are keyed hashes, ids of events and messages are digests. Addresses that
the organization keeps readable are encrypted too, until their events are aggregated.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from zlib import crc32

from pymongo.errors import BulkWriteError

from storage.errors import DomainError
from storage.mail.addresses import AddressKeys, normalize
from storage.mail.classifier import COMPLAINED, NO_CONNECTION, ClassifierRule, DeliveryOutcome, classify
from storage.mail.counters import LedgerEvent
from storage.mail.decisions.policy_versions import MailPolicies
from storage.mail.documents import LedgerDocument, SourceDocument
from storage.mail.epoch_time import epoch_ms
from storage.mail.records import DeliveryEvent, DeliveryEventKind, RecordDeliveriesResult, RejectedDelivery
from storage.metrics import MAIL_EVENTS
from storage.mongo import DUPLICATE_KEY, Document, Mongo

PARTITIONS = 16
MAX_AGE = timedelta(days=13)
MAX_AHEAD = timedelta(hours=1)
"""How far the clock of a mail server may be ahead of the database's clock."""

MAX_ID_CHARS = 1000
_STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}", re.ASCII)


class _InvalidEvent(DomainError):
    """An event is invalid. The message names the field and the expected values."""


async def backlog(mongo: Mongo) -> dict[int, tuple[int, float]]:
    """Returns, by partition, the number of waiting events and the age of the oldest in seconds."""
    oldest_s = {"$divide": [{"$subtract": ["$$NOW", "$oldest"]}, 1000]}
    pipeline: list[Document] = [
        {"$match": {"waiting": {"$exists": True}}},
        {"$group": {"_id": "$waiting", "count": {"$sum": 1}, "oldest": {"$min": "$recorded_at"}}},
        {"$set": {"oldest_s": oldest_s}},
    ]
    partitions = await mongo.aggregate("mail_ledger", pipeline)
    return {each["_id"]: (each["count"], each["oldest_s"]) for each in partitions}


class Ledger:
    """Records delivery events."""

    def __init__(self, mongo: Mongo, keys: AddressKeys) -> None:
        self._mongo = mongo
        self._keys = keys
        self._policies = MailPolicies(mongo)

    async def record(
        self, organization_id: str, source: str, events: Sequence[DeliveryEvent]
    ) -> RecordDeliveriesResult:
        """Records the events whose ids are new. They are durable on return.

        `source` names the sender, whose events can later be removed from the book. Raises: Unavailable without address
        keys.
        """
        now = await self._mongo.now()
        keep_addresses = (await self._policies.current(organization_id)).keep_addresses
        documents: list[LedgerDocument] = []
        rejected: list[RejectedDelivery] = []
        for index, event in enumerate(events):
            try:
                documents.append(self._ledger_document(organization_id, source, event, now, keep_addresses))
            except _InvalidEvent as error:
                rejected.append(RejectedDelivery(index, event.event_id, error.message))
        duplicates = await self._insert(documents) if documents else 0
        if len(documents) > duplicates:
            await self._record_source(organization_id, source)
        return RecordDeliveriesResult(len(documents) - duplicates, duplicates, rejected)

    async def _insert(self, documents: list[LedgerDocument]) -> int:
        """Inserts the new events. Returns the number of duplicates."""
        try:
            await self._mongo["mail_ledger"].insert_many(documents, ordered=False)
        except BulkWriteError as error:
            failed = error.details["writeErrors"]
            if error.details.get("writeConcernErrors") or any(each["code"] != DUPLICATE_KEY for each in failed):
                raise
            return len(failed)
        return 0

    async def _record_source(self, organization_id: str, source: str) -> None:
        source_document: SourceDocument = {"_id": {"org": organization_id, "source": source}}
        await self._mongo["mail_sources"].update_one(source_document, {"$setOnInsert": source_document}, upsert=True)

    def _ledger_document(
        self, organization_id: str, source: str, event: DeliveryEvent, now: datetime, keep_addresses: bool = False
    ) -> LedgerDocument:
        address = normalize(event.address)
        if address is None:
            raise _InvalidEvent("address: expected a mail address such as ann@example.org")
        _check(event, now)
        rule = _rule(event, address.domain)
        MAIL_EVENTS.labels(rule.outcome).inc()
        newest, *older = self._keys.ids(organization_id, address.text)
        document: LedgerDocument = {
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
        if event.smtp_code:
            document["smtp"] = event.smtp_code
        if event.enhanced_status:
            document["status"] = event.enhanced_status
        if older:
            document["older"] = older
        # A reply code shows that the server could be reached.
        if event.smtp_code is None and rule.reason in _UNREACHED_REASONS:
            document["connection_failed"] = True
        if rule.blocks_domain:
            document["blocks_domain"] = True
        if rule.decides_by_text and rule.outcome in _BOUNCES:
            document["reason"] = rule.reason
        if keep_addresses and rule.outcome is not DeliveryOutcome.DELIVERED:
            document["readable"] = self._keys.seal(organization_id, address.text)
        return document


_BOUNCES = {DeliveryOutcome.HARD, DeliveryOutcome.SOFT}
_UNREACHED_REASONS = {NO_CONNECTION.reason, *(classify(None, f"4.4.{n}", None).reason for n in (1, 2, 3, 4))}


def _rule(event: DeliveryEvent, domain: str) -> ClassifierRule:
    if event.kind is DeliveryEventKind.COMPLAINT:
        return COMPLAINED
    return classify(event.smtp_code, event.enhanced_status, event.diagnostic, domain)


def _check(event: DeliveryEvent, now: datetime) -> None:
    if not 1 <= len(event.event_id) <= MAX_ID_CHARS or len(event.message_id or "") > MAX_ID_CHARS:
        raise _InvalidEvent(
            f"eventId, messageId: expected at most {MAX_ID_CHARS} characters, and at least 1 in eventId"
        )
    if event.at < now - MAX_AGE:
        raise _InvalidEvent("at: expected at most 13 days ago")
    if event.at > now + MAX_AHEAD:
        raise _InvalidEvent("at: expected at most 1 hour ahead of the server's clock")
    if event.smtp_code is not None and not 200 <= event.smtp_code <= 599:
        raise _InvalidEvent("smtpCode: expected a reply code from 200 to 599")
    if event.enhanced_status is not None and not _STATUS.fullmatch(event.enhanced_status):
        raise _InvalidEvent('enhancedStatus: expected a status such as "5.1.1"')


def digest(*parts: str, size: int) -> bytes:
    """Returns a digest of ids of events or messages, which may contain addresses."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=size).digest()


def partition(domain: str) -> int:
    """Returns the partition of a domain and its addresses."""
    return crc32(domain.encode()) % PARTITIONS


def ledger_event(document: LedgerDocument) -> LedgerEvent:
    """Returns a stored event as a record."""
    return LedgerEvent(
        id=document["_id"],
        source=document["source"],
        address=document["address"],
        domain=document["domain"],
        at=epoch_ms(document["at"]),
        outcome=DeliveryOutcome(document["outcome"]),
        message=document["message"],
        smtp_code=document.get("smtp"),
        status=document.get("status"),
        connection_failed=document.get("connection_failed", False),
        blocks_domain=document.get("blocks_domain", False),
        reason=document.get("reason", ""),
    )
