"""Lookups in two reads, and changes by operators with person and reason."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from storage.mail.addresses import Address, normalize
from storage.mail.records import VerdictRule
from tests.storage.mail.events import event, hard, ok, refused, soft
from tests.storage.mail.organization_mail import OrganizationMail
from tests.storage.topic_scenario import poll_until_true

pytestmark = pytest.mark.anyio

ANN = Address("ann@example.org", "example.org")


async def reads(mail: OrganizationMail, asked: list[str]) -> list[dict[str, Any]]:
    """Returns the reads of a lookup from MongoDB's profiler."""
    database = mail.stores.mongo.database
    await database.command("profile", 0)
    await database["system.profile"].drop()
    await database.command("profile", 2)
    try:
        await mail.stores.address_book.look_up(mail.org, asked)
    finally:
        await database.command("profile", 0)
    return await database["system.profile"].find({"op": {"$in": ["query", "getmore"]}}).to_list(None)


async def test_lookup_reads_two_indexes_and_one_with_cached_domains(
    mail: OrganizationMail,
) -> None:
    addresses = [f"a{number}@d{number % 50}.example" for number in range(1000)]
    await mail.take(*(ok(each) for each in addresses[:900]))
    found = await reads(mail, addresses)
    assert [each["ns"].partition(".")[2] for each in found] == ["mail_addresses", "mail_domains"]
    assert {each["planSummary"] for each in found} == {"IXSCAN { _id: 1, told: 1 }"}
    # The index alone answers: no document is examined, and no second batch is fetched.
    assert [(each["docsExamined"], each["nreturned"]) for each in found] == [(0, 900), (0, 50)]
    assert [each["ns"].partition(".")[2] for each in await reads(mail, addresses)] == ["mail_addresses"]


async def test_lookup_keeps_order_and_duplicates(mail: OrganizationMail) -> None:
    await mail.take(hard("bob@example.org"), ok("Ann@Example.org"))
    asked = ["bob@example.org", "ANN@example.org", "nonsense", "bob@example.org", "new@example.org"]
    found = await mail.standings(asked)
    assert [each.address for each in found] == asked
    assert [each.verdict.rule.value for each in found] == [
        "HARD_BOUNCED", "DELIVERABLE", "INVALID_ADDRESS", "HARD_BOUNCED", "UNKNOWN_ADDRESS",
    ]  # fmt: skip
    assert [each.blocked for each in found] == [True, False, True, True, False]
    assert [each.normalized for each in found][1:3] == ["ann@example.org", None]
    assert found[2].domain is None
    assert found[1].last_event_at is not None


async def test_domain_cache_expires(mail: OrganizationMail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.mail.book.DOMAIN_TTL_S", 3)
    await mail.standing()
    await mail.take(event("ann@example.org", 550, "5.1.2"))
    assert not (await mail.stores.address_book.domain_standings(mail.org, ["example.org"]))[0].blocked

    async def is_blocked() -> bool:
        return (await mail.stores.address_book.domain_standings(mail.org, ["example.org"]))[0].blocked

    assert await poll_until_true(is_blocked)


async def test_unblock_resets_counters_and_records_person_and_reason(mail: OrganizationMail) -> None:
    await mail.take(hard(), soft(days=3), ok(days=2))
    found = await mail.stores.address_book.unblock(mail.org, ANN, "op-1", "they called us")
    assert (found.blocked, found.success, found.soft_bounce, found.hard_bounce) == (False, 0, 0, 0)
    assert found.verdict.rule is VerdictRule.UNBLOCKED
    assert "op-1" in found.verdict.detail
    assert "they called us" in found.verdict.detail
    (row,) = await mail.stores.mongo["mail_audit"].find({"org": mail.org}).to_list(None)
    assert (row["does"], row["by"], row["reason"]) == ("unblock", "op-1", "they called us")
    assert row["subject"] == (await mail.stores.mongo["mail_addresses"].find_one({"org": mail.org}))["_id"]


async def test_unblock_ignores_earlier_events(mail: OrganizationMail) -> None:
    await mail.take(hard())
    await mail.stores.address_book.unblock(mail.org, ANN, "op", "asked")
    await mail.take(hard(days=1), event(complaint=True))
    assert not (await mail.standing()).blocked
    later = await mail.stores.mongo.now() + timedelta(seconds=1)
    await mail.take(hard(at=later))
    assert (await mail.standing()).verdict.rule is VerdictRule.HARD_BOUNCED


async def test_unblock_unknown_address_succeeds(mail: OrganizationMail) -> None:
    found = await mail.stores.address_book.unblock(mail.org, ANN, "op", "to be sure")
    assert found.verdict.rule is VerdictRule.UNBLOCKED


async def test_concurrent_aggregation_and_changes_lose_nothing(mail: OrganizationMail) -> None:
    others = [Address(f"a{number}@example.org", "example.org") for number in range(20)]
    book = mail.stores.address_book
    await mail.record(*(ok(each.text) for each in others))
    await asyncio.gather(
        mail.aggregate(),
        *(book.unblock(mail.org, each, "op", "why") for each in others),
        *(book.set_domain_blocked(mail.org, "example.org", True, "op", "why") for _ in range(5)),
    )
    assert (await mail.domain()).success == 20
    assert (await mail.domain()).verdict.rule is VerdictRule.BY_HAND
    for each in others:
        assert (await mail.standing(each.text)).success in (0, 1)
    assert await mail.stores.mongo["mail_audit"].count_documents({"org": mail.org}) == 25


async def test_domain_decision_overrides_rule_until_removed(mail: OrganizationMail) -> None:
    book = mail.stores.address_book
    await mail.take(event("ann@example.org", 550, "5.1.2"), ok("bob@example.org"))
    assert (await mail.domain()).verdict.rule is VerdictRule.DOMAIN_DEAD
    assert (await mail.standing("bob@example.org")).verdict.rule is VerdictRule.DOMAIN_DEAD
    allowed = await book.set_domain_blocked(mail.org, "example.org", False, "op-2", "moved house")
    assert (allowed.blocked, allowed.verdict.rule) == (False, VerdictRule.BY_HAND)
    assert "op-2" in allowed.verdict.detail
    assert not (await mail.standing("bob@example.org")).blocked
    # The address's own bounce still counts.
    assert (await mail.standing("ann@example.org")).verdict.rule is VerdictRule.HARD_BOUNCED
    assert (await book.set_domain_blocked(mail.org, "example.org", None, "op", "done")).blocked
    blocked = await book.set_domain_blocked(mail.org, "new.example", True, "op", "a competitor's")
    assert (blocked.blocked, blocked.verdict.rule) == (True, VerdictRule.BY_HAND)
    assert (await mail.standing("x@new.example")).verdict.rule is VerdictRule.BY_HAND
    assert (
        await book.set_domain_blocked(mail.org, "new.example", None, "op", "")
    ).verdict.rule is not VerdictRule.BY_HAND


async def test_domain_standings_keep_order(mail: OrganizationMail) -> None:
    failures = [refused(f"a{n}@dead.example", days=n % 3) for n in range(21)]
    await mail.take(*failures, ok("ann@fine.example"))
    asked = ["FINE.example", "dead.example", "not a domain", "new.example"]
    found = await mail.stores.address_book.domain_standings(mail.org, asked)
    assert [each.domain for each in found] == ["fine.example", "dead.example", "not a domain", "new.example"]
    assert [each.blocked for each in found] == [False, True, True, False]
    assert (found[1].id, found[1].soft_bounce) == ("dead.example", 21)


async def test_book_is_separate_per_organization(mail: OrganizationMail) -> None:
    other = OrganizationMail(mail.stores, f"{mail.org}-other")
    await mail.take(hard())
    assert (await other.standing()).verdict.rule is VerdictRule.UNKNOWN_ADDRESS
    assert (await other.domain()).hard_bounce == 0
    assert normalize("ann@example.org") == ANN
