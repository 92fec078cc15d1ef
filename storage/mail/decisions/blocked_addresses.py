"""Lists the blocked addresses of an organization, by their keyed hashes, and readable where they are kept so."""

from contextlib import aclosing
from dataclasses import dataclass, field

from storage.mail.book import AddressBook
from storage.mail.decisions.judged_addresses import judged_addresses
from storage.mail.epoch_time import epoch_ms
from storage.mail.records import Verdict
from storage.mongo import Mongo

MAX_CHECKED = 10_000
"""Maximum number of addresses that are checked for a page."""


@dataclass(frozen=True, slots=True)
class BlockedAddress:
    """A blocked address, by its keyed hash. `address` is None if it is not kept readable."""

    address_hash: str
    domain: str
    verdict: Verdict
    address: str | None = None


@dataclass(slots=True)
class BlockedAddresses:
    """A page. `next_after` is the hash after which the next page begins; None at the end."""

    items: list[BlockedAddress] = field(default_factory=list)
    next_after: str | None = None


async def blocked_addresses(
    mongo: Mongo, book: AddressBook, organization_id: str, after: bytes | None, limit: int
) -> BlockedAddresses:
    """Returns blocked addresses in order of their hashes, at most `limit`, with hashes after `after`.

    Leaves out addresses without bounces, complaints and decisions of their own, which only their domain blocks.
    """
    present, now = await book.policies.current(organization_id), epoch_ms(await mongo.now())
    page, checked = BlockedAddresses(), 0
    async with aclosing(judged_addresses(mongo, book, organization_id, after)) as addresses:
        async for each in addresses:
            if checked == MAX_CHECKED or len(page.items) == limit:
                return page
            checked, page.next_after = checked + 1, each.address_hash
            standing = each.standing(present.policy, now)
            if standing.blocked:
                address = book.readable.text(each.document, present)
                page.items.append(BlockedAddress(each.address_hash, each.domain.domain, standing.verdict, address))
    page.next_after = None
    return page
