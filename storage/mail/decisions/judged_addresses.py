"""Addresses about which there is something to decide: with bounces, complaints, unsubscriptions or blocks by hand."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from storage.mail.book import AddressBook
from storage.mail.decisions.policies import MailPolicy
from storage.mail.documents import AddressDocument
from storage.mail.records import AddressStanding, DomainStanding
from storage.mail.standings import address_standing
from storage.mongo import Document, Mongo

BATCH = 1000


@dataclass(frozen=True, slots=True)
class JudgedAddress:
    """A stored address with its domain's standing."""

    document: AddressDocument
    domain: DomainStanding

    @property
    def address_hash(self) -> str:
        """The keyed hash, in hexadecimal digits."""
        return self.document["_id"].hex()

    def standing(self, policy: MailPolicy, now: int) -> AddressStanding:
        """Returns the standing under a policy; `now` is in milliseconds. The text of the address is not known."""
        return address_standing("", "", self.document.get("summary"), self.domain, policy, now)


async def judged_addresses(
    mongo: Mongo, book: AddressBook, organization_id: str, after: bytes | None
) -> AsyncGenerator[JudgedAddress, None]:
    """Yields the addresses with hashes after `after`, in order of their hashes. Reads them in batches."""
    while batch := await _batch(mongo, organization_id, after):
        names = list({document["domain"] for document in batch})
        domains = dict(zip(names, await book.domain_standings(organization_id, names), strict=True))
        for document in batch:
            yield JudgedAddress(document, domains[document["domain"]])
        if len(batch) < BATCH:
            return
        after = batch[-1]["_id"]


async def _batch(mongo: Mongo, organization_id: str, after: bytes | None) -> list[AddressDocument]:
    query: Document = {"org": organization_id, "summary.faults": {"$exists": True}}
    if after is not None:
        query["_id"] = {"$gt": after}
    batch: list[AddressDocument] = await mongo.find(
        "mail_addresses", query, {"domain": 1, "summary": 1, "readable": 1}, [("_id", 1)], BATCH
    )
    return batch
