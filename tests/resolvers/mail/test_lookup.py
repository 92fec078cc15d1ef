"""Leaving an older book: who answers for which address, who steps in for whom, and what is said of differences."""

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
from tests.storage.mail.organization_mail import OrganizationMail

pytestmark = pytest.mark.anyio

ADDRESSES = [f"a{number}@example.org" for number in range(200)]


@dataclass
class Other:
    """An older book that blocks these, remembers what it was asked, and may be down."""

    blocked: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    is_down: bool = False

    async def ask(self, addresses: Sequence[str]) -> Mapping[str, bool]:
        if self.is_down:
            raise LegacyBookError("down")
        self.asked += addresses
        return {each: each in self.blocked for each in addresses}


@pytest.fixture
def mail(stores: Stores) -> OrganizationMail:
    return OrganizationMail(stores, "acme")


def context(mail: OrganizationMail, other: Other, share: int) -> Context:
    return Context(mail.stores, str, legacy_book=LegacyBook(share, other.ask))


async def blocked(mail: OrganizationMail, other: Other, share: int) -> set[str]:
    found = await look_up(context(mail, other, share), "acme", ADDRESSES)
    assert [each.address for each in found] == ADDRESSES
    return {each.address for each in found if each.blocked}


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value("noroshi_mail_shadow_total", {"outcome": outcome}) or 0.0


def test_a_greater_share_has_all_addresses_of_a_smaller_one() -> None:
    shares = [{each for each in ADDRESSES if is_answered_by_legacy(each, share)} for share in range(101)]
    assert shares[0] == set()
    assert shares[100] == set(ADDRESSES)
    assert all(small <= great for small, great in itertools.pairwise(shares))
    assert 30 < len(shares[25]) < 75
    assert is_answered_by_legacy("A1@Example.org", 50) == is_answered_by_legacy("a1@example.org", 50)


async def test_each_address_is_answered_by_the_side_it_belongs_to(mail: OrganizationMail) -> None:
    await mail.take(*map(hard, ADDRESSES))
    nobody = Other()
    answered = await blocked(mail, nobody, 30)
    assert answered == {each for each in ADDRESSES if not is_answered_by_legacy(each, 30)}
    assert set(nobody.asked) == set(ADDRESSES) - answered
    assert await blocked(mail, nobody, 0) == set(ADDRESSES)
    assert await blocked(mail, nobody, 100) == set()


async def test_differences_are_counted_and_kept_by_hash(mail: OrganizationMail) -> None:
    await mail.take(*map(hard, ADDRESSES[:3]))
    before = count("same"), count("different")
    await blocked(mail, Other(set(ADDRESSES[1:5])), 100)
    assert (count("same") - before[0], count("different") - before[1]) == (197, 3)
    kept = await mail.stores.mongo["mail_differences"].find().to_list(None)
    assert sorted((each["ours"], each["theirs"]) for each in kept) == [(False, True), (False, True), (True, False)]
    assert "example.org" not in repr(kept)


async def test_the_book_steps_in_for_the_older_one(mail: OrganizationMail) -> None:
    await mail.take(hard(ADDRESSES[0]), ok(ADDRESSES[1]))
    assert await blocked(mail, Other({ADDRESSES[5]}, is_down=True), 100) == {ADDRESSES[0]}


async def test_the_older_book_steps_in_for_the_book(mail: OrganizationMail) -> None:
    broken = replace(mail.stores, address_book=AddressBook(mail.stores.mongo, AddressKeys()))
    other = Other({ADDRESSES[5]})
    assert await blocked(OrganizationMail(broken, "acme"), other, 0) == {ADDRESSES[5]}
    assert await blocked(OrganizationMail(broken, "acme"), other, 50) == {ADDRESSES[5]}
    with pytest.raises(Unavailable):
        await blocked(OrganizationMail(broken, "acme"), Other(is_down=True), 50)
    with pytest.raises(Unavailable):
        await look_up(Context(broken, str), "acme", ADDRESSES)


async def test_what_is_no_address_is_nobodys(mail: OrganizationMail) -> None:
    other = Other()
    (found,) = await look_up(context(mail, other, 100), "acme", ["odd"])
    assert (found.blocked, found.normalized, other.asked) == (True, None, [])
