"""A dry run names exactly the addresses whose standing the policy then changes."""

import pytest

from storage.mail.decisions import dry_runs, judged_addresses
from storage.mail.decisions.dry_runs import PolicyDryRun, dry_run
from storage.mail.decisions.policies import MailPolicy
from tests.storage.mail.events import event, hard, ok, soft
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

TRIED = MailPolicy(hard_bounces=2, soft_bounce_days=2, complaints_block=False)
ADDRESSES = [f"{name}@example.org" for name in ("fine", "gone", "twice", "full", "complained")] + ["a@gone.example"]


async def fill(mail: MailScenario) -> None:
    """Records a delivery, hard and soft bounces, a complaint, and bounces of a dead domain."""
    await mail.add_events(
        ok("fine@example.org"),
        hard("gone@example.org"),
        *(hard("twice@example.org", days=day) for day in range(2)),
        *(soft("full@example.org", days=day) for day in range(2)),
        event("complained@example.org", complaint=True),
        event("a@gone.example", 550, "5.1.2"),
    )


async def try_policy(mail: MailScenario, after: str | None = None) -> PolicyDryRun:
    book = mail.stores.address_book
    return await dry_run(mail.stores.mongo, book, mail.org, TRIED, None if after is None else bytes.fromhex(after))


async def test_dry_run_equals_the_change(mail: MailScenario) -> None:
    await fill(mail)
    before = [each.blocked for each in await mail.standings(ADDRESSES)]
    tried = await try_policy(mail)
    assert (tried.version, tried.checked, tried.blocked, tried.freed) == (0, 5, 1, 2)
    assert [each.blocked for each in await mail.standings(ADDRESSES)] == before, "A dry run changes nothing."
    await mail.stores.address_book.policies.set(mail.org, TRIED, 0, "op", "", None)
    after = [each.blocked for each in await mail.standings(ADDRESSES)]
    hashes = [mail.stores.address_book._keys.id(mail.org, each).hex() for each in ADDRESSES]
    changed = {hash_: now for hash_, was, now in zip(hashes, before, after, strict=True) if was != now}
    assert {each.address_hash: each.blocked for each in tried.changes} == changed
    assert {each.before.rule.value for each in tried.changes if not each.blocked} == {"HARD_BOUNCED", "COMPLAINED"}


async def test_addresses_of_a_dead_domain_stay_blocked(mail: MailScenario) -> None:
    await fill(mail)
    tried = await try_policy(mail)
    assert "gone.example" not in {each.domain for each in tried.changes}


async def test_dry_run_has_an_end_and_can_be_continued(mail: MailScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(mail)
    whole = await try_policy(mail)
    monkeypatch.setattr(judged_addresses, "BATCH", 2)
    monkeypatch.setattr(dry_runs, "MAX_CHECKED", 2)
    parts = [await try_policy(mail)]
    while after := parts[-1].next_after:
        parts.append(await try_policy(mail, after))
    assert [each.checked for each in parts] == [2, 2, 1]
    assert [change for each in parts for change in each.changes] == whole.changes


async def test_dry_run_names_at_most_a_thousand_addresses(mail: MailScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_runs, "MAX_CHANGES", 1)
    await fill(mail)
    tried = await try_policy(mail)
    assert (len(tried.changes), tried.blocked + tried.freed) == (1, 3)
