"""Changes by operators are listed once each, the newest first, whatever the size of the pages."""

import pytest

from storage.errors import NotFound
from storage.mail.addresses import Address
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.decisions.changes import MailChange
from storage.mail.decisions.policies import MailPolicy
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

ADDRESSES = [Address(f"a{number}@example.org", "example.org") for number in range(4)]


async def change_everything(mail: MailScenario) -> None:
    """Makes nine changes, four of which have the same instant."""
    book = mail.stores.address_book
    for blocked in (True, False, None):
        await book.set_domain_blocked(mail.org, "example.org", blocked, "op", f"domain {blocked}")
    await book.decisions.store(ADDRESSES, AddressDecision(mail.org, True, "op", "together"))
    await book.unblock(mail.org, ADDRESSES[0], "other", "sorry")
    await book.policies.set(mail.org, MailPolicy(hard_bounces=2), 0, "op", "gentler", None)


async def all_changes(mail: MailScenario, limit: int, *subjects: bytes | str) -> list[MailChange]:
    found: list[MailChange] = []
    while page := await mail.stores.address_book.changes.page(
        mail.org, subjects, found[-1].id if found else None, limit
    ):
        assert len(page) <= limit
        found += page
    return found


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_pages_hold_each_change_once(mail: MailScenario, limit: int) -> None:
    await change_everything(mail)
    changes = await all_changes(mail, limit)
    assert [each.kind.value for each in changes] == [
        "POLICY_SET",
        "ADDRESS_UNBLOCKED",
        *["ADDRESS_BLOCKED"] * 4,
        "DOMAIN_LEFT_TO_RULE",
        "DOMAIN_ALLOWED",
        "DOMAIN_BLOCKED",
    ]
    assert len({each.id for each in changes}) == 9
    assert [each.at for each in changes] == sorted((each.at for each in changes), reverse=True)
    assert (changes[0].policy_version, changes[0].domain, changes[0].address_hash) == (1, None, None)
    assert (changes[1].by_id, changes[1].reason, changes[-1].domain) == ("other", "sorry", "example.org")


async def test_changes_of_one_subject(mail: MailScenario) -> None:
    await change_everything(mail)
    hashes = mail.stores.address_book.hashes(mail.org, ADDRESSES[0])
    of_address = await all_changes(mail, 10, *hashes)
    assert [each.reason for each in of_address] == ["sorry", "together"]
    assert {each.address_hash for each in of_address} == {hashes[0].hex()}
    assert [each.reason for each in await all_changes(mail, 10, "example.org")] == [
        *("domain None", "domain False", "domain True"),
    ]


async def test_changes_of_other_organizations_are_not_found(mail: MailScenario) -> None:
    await change_everything(mail)
    (newest,) = await mail.stores.address_book.changes.page(mail.org, [], None, 1)
    assert await mail.stores.address_book.changes.page("another", [], None, 10) == []
    for org, id_ in (("another", newest.id), (mail.org, "f" * 24), (mail.org, "no id")):
        with pytest.raises(NotFound):
            await mail.stores.address_book.changes.page(org, [], id_, 10)
