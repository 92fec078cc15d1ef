"""Dry runs of policies: which addresses a policy would block or free."""

from contextlib import aclosing
from dataclasses import dataclass, field

from storage.mail.book import AddressBook
from storage.mail.decisions.judged_addresses import JudgedAddress, judged_addresses
from storage.mail.decisions.policies import MailPolicy
from storage.mail.epoch_time import epoch_ms
from storage.mail.records import AddressStanding, Verdict
from storage.mongo import Mongo

MAX_CHECKED = 100_000
"""Maximum number of addresses that a dry run checks."""

MAX_CHANGES = 1000
"""Maximum number of addresses that a dry run names."""


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """An address that a policy would block or free, by its keyed hash. `address` is None if it is not kept readable."""

    address_hash: str
    domain: str
    blocked: bool
    before: Verdict
    after: Verdict
    address: str | None


@dataclass(slots=True)
class PolicyDryRun:
    """Result of a dry run. `version` is that of the present policy."""

    version: int
    checked: int = 0
    blocked: int = 0
    freed: int = 0
    changes: list[PolicyChange] = field(default_factory=list)
    next_after: str | None = None

    def add(self, address: JudgedAddress, before: AddressStanding, after: AddressStanding, text: str | None) -> None:
        """Counts an address. `text` is its readable form."""
        self.checked += 1
        self.next_after = address.address_hash
        if before.blocked == after.blocked:
            return
        self.blocked += after.blocked
        self.freed += before.blocked
        if len(self.changes) < MAX_CHANGES:
            self.changes.append(
                PolicyChange(
                    address.address_hash, address.domain.domain, after.blocked, before.verdict, after.verdict, text
                )
            )


async def dry_run(
    mongo: Mongo, book: AddressBook, organization_id: str, policy: MailPolicy, after: bytes | None = None
) -> PolicyDryRun:
    """Compares a policy with the present one, for at most 100,000 addresses with hashes after `after`."""
    present = await book.policies.present(organization_id)
    result, now = PolicyDryRun(present.version), epoch_ms(await mongo.now())
    async with aclosing(judged_addresses(mongo, book, organization_id, after)) as addresses:
        async for each in addresses:
            if result.checked == MAX_CHECKED:
                return result
            text = book.readable.text(each.document, present)
            result.add(each, each.standing(present.policy, now), each.standing(policy, now), text)
    result.next_after = None
    return result
