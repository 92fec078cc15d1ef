"""Dry runs of policies: which addresses a policy would block or free."""

from dataclasses import dataclass, field

from storage.mail.book import AddressBook
from storage.mail.decisions.policies import MailPolicy
from storage.mail.documents import AddressDocument
from storage.mail.epoch_time import epoch_ms
from storage.mail.records import AddressStanding, DomainStanding, Verdict
from storage.mail.standings import address_standing
from storage.mongo import Document, Mongo

MAX_CHECKED = 100_000
"""Maximum number of addresses that a dry run checks."""

MAX_CHANGES = 1000
"""Maximum number of addresses that a dry run names."""

BATCH = 1000


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """An address that a policy would block or free, by its keyed hash."""

    address_hash: str
    domain: str
    blocked: bool
    before: Verdict
    after: Verdict


@dataclass(slots=True)
class PolicyDryRun:
    """Result of a dry run. `version` is that of the present policy."""

    version: int
    checked: int = 0
    blocked: int = 0
    freed: int = 0
    changes: list[PolicyChange] = field(default_factory=list)
    next_after: str | None = None

    def add(self, address_hash: str, domain: str, before: AddressStanding, after: AddressStanding) -> None:
        """Counts an address."""
        self.checked += 1
        if before.blocked == after.blocked:
            return
        self.blocked += after.blocked
        self.freed += before.blocked
        if len(self.changes) < MAX_CHANGES:
            self.changes.append(PolicyChange(address_hash, domain, after.blocked, before.verdict, after.verdict))


async def dry_run(
    mongo: Mongo, book: AddressBook, organization_id: str, policy: MailPolicy, after: bytes | None = None
) -> PolicyDryRun:
    """Compares a policy with the present one, for at most 100,000 addresses with hashes after `after`."""
    present = await book.policies.current(organization_id)
    result, now = PolicyDryRun(present.version), epoch_ms(await mongo.now())
    while result.checked < MAX_CHECKED:
        batch = await _batch(mongo, organization_id, after)
        domains = await _domains(book, organization_id, batch)
        for document in batch:
            domain, summary = domains[document["domain"]], document.get("summary")
            before, tried = (address_standing("", "", summary, domain, each, now) for each in (present.policy, policy))
            result.add(document["_id"].hex(), document["domain"], before, tried)
        if len(batch) < BATCH:
            return result
        after = batch[-1]["_id"]
    result.next_after = None if after is None else after.hex()
    return result


async def _batch(mongo: Mongo, organization_id: str, after: bytes | None) -> list[AddressDocument]:
    """Returns the next addresses with bounces or complaints, in order of their hashes."""
    query: Document = {"org": organization_id, "summary.faults": {"$exists": True}}
    if after is not None:
        query["_id"] = {"$gt": after}
    return await mongo.find("mail_addresses", query, {"domain": 1, "summary": 1}, [("_id", 1)], BATCH)


async def _domains(book: AddressBook, organization_id: str, batch: list[AddressDocument]) -> dict[str, DomainStanding]:
    names = list({document["domain"] for document in batch})
    return dict(zip(names, await book.domain_standings(organization_id, names), strict=True))
