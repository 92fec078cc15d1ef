"""Addresses are readable only where a policy keeps them, are stored encrypted, and are removed once it ends."""

from dataclasses import replace

import pytest

from storage.mail.addresses import Address, AddressKeys
from storage.mail.book import AddressBook
from storage.mail.decisions import readable_addresses
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.decisions.blocked_addresses import blocked_addresses
from storage.mail.decisions.dry_runs import dry_run
from storage.mail.decisions.policies import DEFAULT_POLICY, MailPolicy
from tests.storage.mail.events import hard, ok
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

HAND = Address("hand@example.org", "example.org")


async def set_policy(mail: MailScenario, after: int, keep_addresses: bool) -> None:
    policies = mail.stores.address_book.policies
    await policies.set(mail.org, DEFAULT_POLICY, after, "op", "why", None, keep_addresses=keep_addresses)


async def listed(mail: MailScenario) -> set[str | None]:
    page = await blocked_addresses(mail.stores.mongo, mail.stores.address_book, mail.org, None, 100)
    return {each.address for each in page.items}


async def stored_texts(mail: MailScenario) -> int:
    """Returns how many encrypted addresses are stored, in the book and in the ledger."""
    query = {"org": mail.org, "readable": {"$exists": True}}
    return sum([await mail.stores.mongo[name].count_documents(query) for name in ("mail_addresses", "mail_ledger")])


async def test_addresses_are_not_readable_by_default(mail: MailScenario) -> None:
    await mail.add_events(hard())
    await mail.stores.address_book.decisions.store([HAND], AddressDecision(mail.org, True, "op", "asked"))
    assert await listed(mail) == {None}
    assert await stored_texts(mail) == 0


async def test_policy_keeps_what_bounces_or_is_blocked_from_now_on(mail: MailScenario) -> None:
    await mail.add_events(hard("before@example.org"))
    await set_policy(mail, 0, True)
    mail.stores.ledger._policies._cache.clear()
    await mail.record(hard("Gone@Example.org"), ok("fine@example.org"))
    assert await stored_texts(mail) == 1
    await mail.aggregate()
    await mail.stores.address_book.decisions.store([HAND], AddressDecision(mail.org, True, "op", "asked"))
    assert await listed(mail) == {None, "gone@example.org", "hand@example.org"}
    assert await stored_texts(mail) == 2
    documents = await mail.stores.mongo.find("mail_addresses", {"org": mail.org})
    assert not any(b"gone@" in each.get("readable", b"") for each in documents)
    tried = await dry_run(mail.stores.mongo, mail.stores.address_book, mail.org, MailPolicy(hard_bounces=2))
    assert {each.address for each in tried.changes} == {None, "gone@example.org"}


async def test_ended_policy_hides_addresses_and_removes_them(
    mail: MailScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable_addresses, "BATCH", 2)
    await set_policy(mail, 0, True)
    await mail.add_events(*(hard(f"a{number}@example.org") for number in range(5)))
    other = replace(mail, org=f"{mail.org}-2")
    await set_policy(other, 0, True)
    await other.add_events(hard())
    await mail.record(hard("late@example.org"))
    await set_policy(mail, 1, False)
    assert await listed(mail) == {None}
    readable = mail.stores.address_book.readable
    assert await readable.forget() == 5
    # The event waited in the ledger when the policy ended.
    await mail.aggregate()
    assert await readable.forget() == 1
    assert await readable.forget() == 0
    assert await stored_texts(mail) == 0
    assert await listed(other) == {"ann@example.org"}


async def test_policy_that_keeps_again_ends_the_removal(mail: MailScenario) -> None:
    for version, keep_addresses in enumerate((True, False, True)):
        await set_policy(mail, version, keep_addresses)
    await mail.add_events(hard())
    assert await mail.stores.address_book.readable.forget() == 0
    assert await listed(mail) == {"ann@example.org"}


async def test_address_under_a_key_that_is_gone_is_unreadable(mail: MailScenario) -> None:
    await set_policy(mail, 0, True)
    await mail.add_events(hard())
    book = AddressBook(mail.stores.mongo, AddressKeys([(9, b"another key of 32 bytes, as usual")]))
    page = await blocked_addresses(mail.stores.mongo, book, mail.org, None, 100)
    assert [each.address for each in page.items] == [None]
