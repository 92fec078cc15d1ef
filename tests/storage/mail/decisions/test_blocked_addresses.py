"""The list of blocked addresses has exactly those that a lookup says are blocked, whatever the size of the pages."""

import pytest

from storage.mail.addresses import Address
from storage.mail.decisions import blocked_addresses as blocked_addresses_module
from storage.mail.decisions import judged_addresses
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.decisions.blocked_addresses import BlockedAddress, blocked_addresses
from storage.mail.decisions.policies import MailPolicy
from tests.storage.mail.events import event, hard, ok, soft
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

NAMES = ("fine", "gone", "full", "once", "complained", "hand", "unsubscribed", "back")


def address(name: str) -> Address:
    return Address(f"{name}@example.org", "example.org")


async def fill(mail: MailScenario) -> None:
    await mail.add_events(
        ok("fine@example.org"),
        hard("gone@example.org"),
        *(soft("full@example.org", days=day) for day in range(3)),
        soft("once@example.org"),
        event("complained@example.org", complaint=True),
        hard("back@example.org", days=1),
        ok("back@example.org"),
    )
    book = mail.stores.address_book
    await book.decisions.store([address("hand")], AddressDecision(mail.org, True, "op", "asked"))
    await book.set_unsubscribed(mail.org, address("unsubscribed"), True)


async def listed(mail: MailScenario, limit: int = 100) -> dict[str, BlockedAddress]:
    """Returns all blocked addresses by hash."""
    found: dict[str, BlockedAddress] = {}
    after: str | None = ""
    while after is not None:
        page = await blocked_addresses(
            mail.stores.mongo, mail.stores.address_book, mail.org, bytes.fromhex(after), limit
        )
        assert len(page.items) <= limit
        assert not found.keys() & {each.address_hash for each in page.items}
        found |= {each.address_hash: each for each in page.items}
        after = page.next_after
    return found


async def looked_up(mail: MailScenario) -> dict[str, str]:
    """Returns the rules of the addresses that lookups call blocked, by hash."""
    standings = await mail.standings([address(name).text for name in NAMES])
    hashes = [mail.stores.address_book.hashes(mail.org, address(name))[0].hex() for name in NAMES]
    return {hash_: each.verdict.rule.value for hash_, each in zip(hashes, standings, strict=True) if each.blocked}


@pytest.mark.parametrize(("limit", "batch", "checked"), [(100, 1000, 1000), (1, 1000, 1000), (2, 2, 1), (3, 1, 2)])
async def test_list_equals_lookups(
    mail: MailScenario, limit: int, batch: int, checked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_addresses, "BATCH", batch)
    monkeypatch.setattr(blocked_addresses_module, "MAX_CHECKED", checked)
    await fill(mail)
    found = await listed(mail, limit)
    assert {hash_: each.verdict.rule.value for hash_, each in found.items()} == await looked_up(mail)
    assert sorted(each.verdict.rule.value for each in found.values()) == [
        *("BY_HAND", "COMPLAINED", "HARD_BOUNCED", "SOFT_BOUNCED_REPEATEDLY", "UNSUBSCRIBED"),
    ]


async def test_list_follows_the_policy(mail: MailScenario) -> None:
    await fill(mail)
    await mail.stores.address_book.policies.set(mail.org, MailPolicy(soft_bounce_days=1), 0, "op", "", None)
    found = await listed(mail)
    assert {hash_: each.verdict.rule.value for hash_, each in found.items()} == await looked_up(mail)
    assert len(found) == 6
