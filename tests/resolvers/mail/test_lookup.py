"""Lookups during a migration: the share of the legacy book, failover between the books, and differences."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from prometheus_client import REGISTRY

from resolvers.context import Context
from resolvers.mail.lookup import look_up
from storage.errors import Unavailable
from storage.mail.addresses import AddressKeys
from storage.mail.book import AddressBook
from storage.mail.legacy_book import LegacyBook, LegacyBookError, is_answered_by_legacy
from storage.stores import Stores
from tests.storage.mail.events import hard, ok
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

ADDRESSES = [f"a{number}@example.org" for number in range(200)]


@dataclass
class FakeLegacyBook:
    """A legacy book that blocks the addresses in `blocked` and records requests. It fails while `is_down`."""

    blocked: set[str] = field(default_factory=set)
    requested_addresses: list[str] = field(default_factory=list)
    is_down: bool = False

    async def answer_lookup(self, addresses: Sequence[str]) -> Mapping[str, bool]:
        if self.is_down:
            raise LegacyBookError("down")
        self.requested_addresses += addresses
        return {each: each in self.blocked for each in addresses}


@pytest.fixture
def mail(stores: Stores) -> MailScenario:
    return MailScenario(stores, "acme")


def context(mail: MailScenario, legacy: FakeLegacyBook, share: int) -> Context:
    return Context(mail.stores, str, legacy_book=LegacyBook(share, legacy.answer_lookup))


async def look_up_blocked(mail: MailScenario, legacy: FakeLegacyBook, share: int) -> set[str]:
    standings = await look_up(context(mail, legacy, share), "acme", ADDRESSES)
    assert [each.address for each in standings] == ADDRESSES
    return {each.address for each in standings if each.blocked}


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value("noroshi_mail_shadow_total", {"outcome": outcome}) or 0.0


def test_larger_share_contains_smaller_share() -> None:
    shares = [{each for each in ADDRESSES if is_answered_by_legacy(each, share)} for share in range(101)]
    assert shares[0] == set()
    assert shares[100] == set(ADDRESSES)
    assert all(small <= great for small, great in itertools.pairwise(shares))
    assert 30 < len(shares[25]) < 75
    assert is_answered_by_legacy("A1@Example.org", 50) == is_answered_by_legacy("a1@example.org", 50)


async def test_lookup_share_is_answered_by_legacy_book(mail: MailScenario) -> None:
    await mail.add_events(*map(hard, ADDRESSES))
    legacy_without_blocks = FakeLegacyBook()
    blocked_by_own_book = await look_up_blocked(mail, legacy_without_blocks, 30)
    assert blocked_by_own_book == {each for each in ADDRESSES if not is_answered_by_legacy(each, 30)}
    assert set(legacy_without_blocks.requested_addresses) == set(ADDRESSES) - blocked_by_own_book
    assert await look_up_blocked(mail, legacy_without_blocks, 0) == set(ADDRESSES)
    assert await look_up_blocked(mail, legacy_without_blocks, 100) == set()


async def test_lookup_differences_are_counted_and_stored_by_hash(mail: MailScenario) -> None:
    await mail.add_events(*map(hard, ADDRESSES[:3]))
    counts_before = count("same"), count("different")
    await look_up_blocked(mail, FakeLegacyBook(set(ADDRESSES[1:5])), 100)
    assert (count("same") - counts_before[0], count("different") - counts_before[1]) == (197, 3)
    differences = await mail.stores.mongo["mail_differences"].find().to_list(None)
    assert sorted((each["ours"], each["theirs"]) for each in differences) == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert "example.org" not in repr(differences)


async def test_lookup_failed_legacy_book_uses_own_book(mail: MailScenario) -> None:
    await mail.add_events(hard(ADDRESSES[0]), ok(ADDRESSES[1]))
    assert await look_up_blocked(mail, FakeLegacyBook({ADDRESSES[5]}, is_down=True), 100) == {ADDRESSES[0]}


async def test_lookup_failed_own_book_uses_legacy_book(mail: MailScenario) -> None:
    stores_without_keys = replace(mail.stores, address_book=AddressBook(mail.stores.mongo, AddressKeys()))
    legacy = FakeLegacyBook({ADDRESSES[5]})
    assert await look_up_blocked(MailScenario(stores_without_keys, "acme"), legacy, 0) == {ADDRESSES[5]}
    assert await look_up_blocked(MailScenario(stores_without_keys, "acme"), legacy, 50) == {ADDRESSES[5]}
    with pytest.raises(Unavailable):
        await look_up_blocked(MailScenario(stores_without_keys, "acme"), FakeLegacyBook(is_down=True), 50)
    with pytest.raises(Unavailable):
        await look_up(Context(stores_without_keys, str), "acme", ADDRESSES)


async def test_lookup_invalid_address_is_not_sent_to_legacy_book(mail: MailScenario) -> None:
    legacy = FakeLegacyBook()
    (standing,) = await look_up(context(mail, legacy, 100), "acme", ["malformed"])
    assert (standing.blocked, standing.normalized, legacy.requested_addresses) == (True, None, [])
