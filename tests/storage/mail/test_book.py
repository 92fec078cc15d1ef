"""Lookups need two reads, or three if a domain may be unreachable, and every 5 s the policy.

Changes by operators are recorded with person and reason.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from storage.mail.addresses import Address, normalize
from storage.mail.imports import BookImporter
from storage.mail.ledger import partition
from storage.mail.records import DeliveryEvent, VerdictRule
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import event, failed_connection, hard, ok, soft
from tests.storage.mail.scenario import MailScenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

ANN = Address("ann@example.org", "example.org")


async def profile_lookup(mail: MailScenario, addresses: list[str]) -> list[dict[str, Any]]:
    """Looks up addresses, with the policy in the cache. Returns the profiler's entries for the reads."""
    await mail.stores.address_book.policies.current(mail.org)
    database = mail.stores.mongo.database
    await database.command("profile", 0)
    await database["system.profile"].drop()
    await database.command("profile", 2)
    try:
        await mail.stores.address_book.look_up(mail.org, addresses)
    finally:
        await database.command("profile", 0)
    return await database["system.profile"].find({"op": {"$in": ["query", "getmore"]}}).to_list(None)


async def test_verdict_names_reason_of_text(mail: MailScenario) -> None:
    await mail.add_events(event("ann@example.org", 554, None, "This user doesn't have an account"))
    assert "Bounced with 554 (no such mailbox) at" in (await mail.standing()).verdict.detail


async def test_lookup_reads_two_indexes_or_one_if_domains_are_cached(
    mail: MailScenario,
) -> None:
    addresses = [f"a{number}@d{number % 50}.example" for number in range(1000)]
    await mail.add_events(*(ok(each) for each in addresses[:900]))
    reads = await profile_lookup(mail, addresses)
    assert [each["ns"].partition(".")[2] for each in reads] == ["mail_addresses", "mail_domains"]
    assert {each["planSummary"] for each in reads} == {"IXSCAN { _id: 1, summary: 1 }"}
    # The index alone answers: no document is examined, and no second batch is fetched.
    assert [(each["docsExamined"], each["nreturned"]) for each in reads] == [(0, 900), (0, 50)]
    assert [each["ns"].partition(".")[2] for each in await profile_lookup(mail, addresses)] == ["mail_addresses"]


async def test_lookup_keeps_order_and_duplicates(mail: MailScenario) -> None:
    await mail.add_events(hard("bob@example.org"), ok("Ann@Example.org"))
    addresses = ["bob@example.org", "ANN@example.org", "nonsense", "bob@example.org", "new@example.org"]
    standings = await mail.standings(addresses)
    assert [each.address for each in standings] == addresses
    assert [each.verdict.rule.value for each in standings] == [
        "HARD_BOUNCED", "DELIVERABLE", "INVALID_ADDRESS", "HARD_BOUNCED", "UNKNOWN_ADDRESS",
    ]  # fmt: skip
    assert [each.blocked for each in standings] == [True, False, True, True, False]
    assert [each.normalized for each in standings][1:3] == ["ann@example.org", None]
    assert standings[2].domain is None
    assert standings[1].last_event_at is not None


async def test_domain_cache_expires(mail: MailScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.mail.book.DOMAIN_TTL_S", 3)
    await mail.standing()
    await mail.add_events(event("ann@example.org", 550, "5.1.2"))
    assert not (await mail.stores.address_book.domain_standings(mail.org, ["example.org"]))[0].blocked

    async def is_blocked() -> bool:
        return (await mail.stores.address_book.domain_standings(mail.org, ["example.org"]))[0].blocked

    assert await poll_until_true(is_blocked)


async def test_unblock_resets_counters_and_records_person_and_reason(mail: MailScenario) -> None:
    await mail.add_events(hard(), soft(days=3), ok(days=2))
    standing = await mail.stores.address_book.unblock(mail.org, ANN, "op-1", "they called us")
    assert (standing.blocked, standing.success, standing.soft_bounce, standing.hard_bounce) == (False, 0, 0, 0)
    assert standing.verdict.rule is VerdictRule.UNBLOCKED
    assert "op-1" in standing.verdict.detail
    assert "they called us" in standing.verdict.detail
    (row,) = await mail.stores.mongo["mail_audit"].find({"org": mail.org}).to_list(None)
    assert (row["action"], row["by"], row["reason"]) == ("unblock", "op-1", "they called us")
    assert row["subject"] == (await mail.stores.mongo["mail_addresses"].find_one({"org": mail.org}))["_id"]


async def test_unblock_ignores_earlier_events(mail: MailScenario) -> None:
    await mail.add_events(hard())
    await mail.stores.address_book.unblock(mail.org, ANN, "op", "requested")
    await mail.add_events(hard(days=1), event(complaint=True))
    assert not (await mail.standing()).blocked
    later = await mail.stores.mongo.now() + timedelta(seconds=1)
    await mail.add_events(hard(at=later))
    assert (await mail.standing()).verdict.rule is VerdictRule.HARD_BOUNCED


async def test_unblock_unknown_address_succeeds(mail: MailScenario) -> None:
    standing = await mail.stores.address_book.unblock(mail.org, ANN, "op", "to be sure")
    assert standing.verdict.rule is VerdictRule.UNBLOCKED


async def test_concurrent_aggregation_and_changes_lose_nothing(mail: MailScenario) -> None:
    others = [Address(f"a{number}@example.org", "example.org") for number in range(20)]
    book = mail.stores.address_book
    await mail.record(*(ok(each.text) for each in others))
    await asyncio.gather(
        mail.aggregate(),
        *(book.unblock(mail.org, each, "op", "why") for each in others),
        *(book.set_domain_blocked(mail.org, "example.org", True, "op", f"why {number}") for number in range(5)),
    )
    assert (await mail.domain_standing()).success == 20
    assert (await mail.domain_standing()).verdict.rule is VerdictRule.BY_HAND
    for each in others:
        assert (await mail.standing(each.text)).success in (0, 1)
    assert await mail.stores.mongo["mail_audit"].count_documents({"org": mail.org}) == 25


async def test_domain_decision_overrides_rule_until_removed(mail: MailScenario) -> None:
    book = mail.stores.address_book
    await mail.add_events(event("ann@example.org", 550, "5.1.2"), ok("bob@example.org"))
    assert (await mail.domain_standing()).verdict.rule is VerdictRule.DOMAIN_DEAD
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


async def test_domain_standings_keep_order(mail: MailScenario) -> None:
    failures = [failed_connection(f"a{n}@dead.example", days=n % 3) for n in range(21)]
    await mail.add_events(*failures, *(ok("ann@fine.example", days=n) for n in range(3)))
    domains = ["FINE.example", "dead.example", "not a domain", "new.example"]
    standings = await mail.stores.address_book.domain_standings(mail.org, domains)
    assert [each.domain for each in standings] == ["fine.example", "dead.example", "not a domain", "new.example"]
    assert [each.blocked for each in standings] == [False, True, True, False]
    assert (standings[1].id, standings[1].soft_bounce) == ("dead.example", 21)


OUTAGE_DOMAINS = [f"d{number}.example" for number in range(30)]


def outage() -> list[DeliveryEvent]:
    """Returns failed connections of 24 messages to each domain on three days."""
    return [
        failed_connection(f"a{n}@{each}", days=day) for each in OUTAGE_DOMAINS for day in range(3) for n in range(24)
    ]


async def blocked_domains(mail: MailScenario) -> list[str]:
    """Returns the blocked ones of the domains, without the cache."""
    mail.stores.address_book._domains.clear()
    standings = await mail.stores.address_book.domain_standings(mail.org, OUTAGE_DOMAINS)
    return [each.domain for each in standings if each.blocked]


async def test_outage_of_sender_blocks_no_domain_until_it_delivers(mail: MailScenario) -> None:
    for start in range(0, len(failures := outage()), 1000):
        await mail.record(*failures[start : start + 1000])
    await mail.aggregate()
    assert await blocked_domains(mail) == []
    assert not (await mail.standing("a1@d1.example")).blocked
    # Deliveries of another source, of two of the days, to this host, and in another organization show nothing.
    await mail.add_events(*(ok("x@fine.example", days=day) for day in range(3)), source="other")
    await mail.add_events(*(ok("x@fine.example", days=day) for day in (0, 2, 3)))
    await mail.add_events(event("x@fine.example", None, "2.0.0", days=1))
    await MailScenario(mail.stores, f"{mail.org}-other").add_events(ok("x@fine.example", days=1))
    assert await blocked_domains(mail) == []
    await mail.add_events(ok("x@fine.example", days=1))
    assert partition("fine.example") != partition("d1.example")
    assert await blocked_domains(mail) == OUTAGE_DOMAINS
    standing = await mail.standing("a1@d1.example")
    assert (standing.blocked, standing.verdict.rule) == (True, VerdictRule.DOMAIN_DEAD)
    await mail.add_events(event("a1@d1.example", 451, "4.3.0"))
    assert await blocked_domains(mail) == [each for each in OUTAGE_DOMAINS if each != "d1.example"]


async def test_failures_after_deliveries_elsewhere_block_domains(mail: MailScenario) -> None:
    await mail.add_events(*(ok("x@fine.example", days=day) for day in range(3)))
    for start in range(0, len(failures := outage()), 1000):
        await mail.record(*failures[start : start + 1000])
    await mail.aggregate(limit=300)
    assert await blocked_domains(mail) == OUTAGE_DOMAINS
    await mail.stores.address_book.set_domain_blocked(mail.org, "d2.example", False, "op", "they said so")
    assert await blocked_domains(mail) == [each for each in OUTAGE_DOMAINS if each != "d2.example"]
    await BookImporter(mail.stores.mongo, ADDRESS_KEYS).rebuild(mail.org, None, lambda _: None)
    assert len(await blocked_domains(mail)) == 29


async def test_lookup_reads_days_only_for_domains_with_failed_days(mail: MailScenario) -> None:
    failures = [failed_connection(f"a{n}@dead.example", days=n % 3) for n in range(21)]
    await mail.add_events(*failures, *(ok("ann@fine.example", days=n) for n in range(3)))
    reads = await profile_lookup(mail, ["ann@fine.example", "bob@dead.example"])
    assert [each["ns"].partition(".")[2] for each in reads] == ["mail_addresses", "mail_domains", "mail_days"]
    assert "IXSCAN { _id: 1 }" in reads[2]["planSummary"]
    assert reads[2]["docsExamined"] <= 6
    assert [each["ns"].partition(".")[2] for each in await profile_lookup(mail, ["c@dead.example"])] == [
        "mail_addresses"
    ]


async def test_book_is_separate_per_organization(mail: MailScenario) -> None:
    other = MailScenario(mail.stores, f"{mail.org}-other")
    await mail.add_events(hard())
    assert (await other.standing()).verdict.rule is VerdictRule.UNKNOWN_ADDRESS
    assert (await other.domain_standing()).hard_bounce == 0
    assert normalize("ann@example.org") == ANN
