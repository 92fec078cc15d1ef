"""Why an address is blocked: by which bounces, and since when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.mail.addresses import Address
from storage.mail.book import AddressBook
from storage.mail.decisions.bounce_classes import BounceClass, hard_bounce_class, soft_bounce_class
from storage.mail.decisions.policies import Fault, MailPolicyVersion, join_faults
from storage.mail.documents import AddressDocument
from storage.mail.epoch_time import DAY_MS, epoch_ms, from_epoch_ms
from storage.mail.records import IMPORTED_HARD_BOUNCE, AddressStanding, VerdictRule
from storage.mongo import Mongo

MAX_BOUNCES = 1000
"""How many of the latest bounces a report takes into account."""


@dataclass(frozen=True, slots=True)
class AddressBounce:
    """Bounces of an address: one, or those of a day that are no longer kept one by one."""

    bounce_class: BounceClass
    code: str
    """The server's answer; empty for an imported soft bounce."""

    source: str
    count: int
    at_ms: int
    """The latest of them."""

    @property
    def at(self) -> datetime:
        """When the latest of them happened."""
        return from_epoch_ms(self.at_ms)

    @property
    def fault(self) -> Fault:
        """The bounces, as policies take them."""
        return [self.bounce_class, self.count, self.at_ms, self.code, [self.at_ms // DAY_MS]]


@dataclass(frozen=True, slots=True)
class AddressReport:
    """An address's standing with its evidence: the bounces since its latest delivery, the newest first."""

    standing: AddressStanding
    address_hash: str
    policy_version: int
    bounces: Sequence[AddressBounce]
    blocked_since: datetime | None
    last_delivery_at: datetime | None
    last_complaint_at: datetime | None


async def address_report(mongo: Mongo, book: AddressBook, organization_id: str, address: Address) -> AddressReport:
    """Returns the report about an address, under the present policy. Raises: Unavailable without address keys."""
    (standing,) = await book.look_up(organization_id, [address.text])
    version = await book.policies.current(organization_id)
    ids = book.hashes(organization_id, address)
    query = {"_id": {"$in": ids}, "moved": {"$exists": False}}
    found: list[AddressDocument] = await mongo.find("mail_addresses", query)
    document = min(found, key=lambda each: ids.index(each["_id"]), default=None)
    by = document["by"] if document else []
    delivery = max((each.get("ok", 0) for each in by), default=0)
    complaint = max((each.get("complaint", 0) for each in by), default=0)
    bounces = sorted(_bounces(document, delivery), key=lambda each: -each.at_ms)[:MAX_BOUNCES] if document else []
    return AddressReport(
        standing,
        ids[0].hex(),
        version.version,
        bounces,
        _blocked_since(standing, document, bounces, complaint, version),
        from_epoch_ms(delivery) if delivery else None,
        from_epoch_ms(complaint) if complaint else None,
    )


def _bounces(document: AddressDocument, delivery: int) -> Iterator[AddressBounce]:
    """Yields the bounces since the latest delivery, at `delivery`, of each source."""
    unblocked = document["unblocked"]["at"] if "unblocked" in document else -1
    for entry in document["by"]:
        source = entry["source"]
        hards: list[Any] = [[1, *each] for each in entry.get("hards", ())]
        hards += [each[1:] for each in entry.get("old_hards", ())]
        softs: list[Any] = [[1, *each[2:]] for each in entry.get("messages", ()) if each[2]]
        softs += [each[1:] for each in entry.get("old_softs", ())]
        row = entry.get("import")
        if row and row["at"] > unblocked:
            hards += [[row["hard"], row["at"], IMPORTED_HARD_BOUNCE]] if row["hard"] else []
            softs += [[row["soft"], row["at"], ""]] if row["soft"] else []
        for bounces, class_of in ((hards, hard_bounce_class), (softs, soft_bounce_class)):
            yield from (
                AddressBounce(class_of(code), code, source, count, at) for count, at, code in bounces if at >= delivery
            )


def _blocked_since(
    standing: AddressStanding,
    document: AddressDocument | None,
    bounces: Sequence[AddressBounce],
    complaint: int,
    version: MailPolicyVersion,
) -> datetime | None:
    """Returns since when an address is blocked by itself; None if it is not, or only its domain is."""
    match standing.verdict.rule:
        case VerdictRule.BY_HAND if document and "decision" in document:
            return document["decision"]["at"]
        case VerdictRule.UNSUBSCRIBED if document and "unsubscribed" in document:
            return from_epoch_ms(document["unsubscribed"])
        case VerdictRule.COMPLAINED:
            return _later(complaint, version)
        case VerdictRule.HARD_BOUNCED | VerdictRule.SOFT_BOUNCED_REPEATEDLY:
            return _later(_first_blocking(bounces, version), version)
    return None


def _first_blocking(bounces: Sequence[AddressBounce], version: MailPolicyVersion) -> int:
    """Returns the instant of the bounce with which the present block by bounces began."""
    began, faults = 0, list[Fault]()
    for bounce in reversed(bounces):
        faults = join_faults([*faults, bounce.fault])
        if version.policy.blocking_reason(faults, bounce.at_ms) is None:
            began = 0
        elif not began:
            began = bounce.at_ms
    return began


def _later(at_ms: int, version: MailPolicyVersion) -> datetime | None:
    """Returns an instant, or that of the policy if it was set later; None for 0."""
    set_at = 0 if version.set_at is None else epoch_ms(version.set_at)
    return from_epoch_ms(max(at_ms, set_at)) if at_ms else None
