"""Imports from the legacy book, and removal of a source: the book then equals a book without the source."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.errors import BadUserInput
from storage.identity.audit import AuditFilter
from storage.ids import new_id
from storage.mail.imports import BookImporter, LegacyBookRow
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import any_events, event, hard, ok, soft
from tests.storage.mail.model import AddressBookModel
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


@pytest.fixture
def importer(mail_stores: Stores) -> BookImporter:
    return BookImporter(mail_stores.mongo, ADDRESS_KEYS)


async def book_documents(mail: MailScenario) -> dict[str, list[str]]:
    """Returns all documents of an organization's book, comparable with another organization's."""
    documents = {}
    for name in ("mail_addresses", "mail_domains", "mail_days", "mail_sources"):
        key = "org" if name in ("mail_addresses", "mail_domains") else "_id.org"
        rows = await mail.stores.mongo[name].find({key: mail.org}).to_list(None)
        documents[name] = sorted(repr(_plain(row, mail.org)) for row in rows)
    return documents


def _plain(value: Any, org: str) -> Any:
    """Returns the value without the organization and its hashes, with sorted lists and fields."""
    if isinstance(value, dict):
        return sorted((k, _plain(v, org)) for k, v in value.items() if not (k == "_id" and isinstance(v, bytes)))
    if isinstance(value, list):
        return sorted(repr(_plain(each, org)) for each in value)
    return "" if value == org else str(value).replace(org, "")


async def test_imported_bounces_count_until_later_delivery(mail: MailScenario, importer: BookImporter) -> None:
    await importer.add(mail.org, "mysql", [LegacyBookRow("Ann@example.org", 5, 2, 1)])
    assert await importer.sources(mail.org) == ["mysql"]
    standing = await mail.standing()
    assert (standing.success, standing.soft_bounce, standing.hard_bounce, standing.blocked) == (5, 2, 1, True)
    assert "The imported book has a hard bounce at" in standing.verdict.detail
    domain = await mail.domain_standing()
    assert (domain.success, domain.soft_bounce, domain.hard_bounce) == (5, 2, 1)
    await mail.add_events(ok(days=1))
    assert (await mail.standing()).hard_bounce == 1
    await mail.add_events(ok(at=await mail.stores.mongo.now()))
    standing = await mail.standing()
    assert (standing.success, standing.soft_bounce, standing.hard_bounce, standing.blocked) == (7, 0, 0, False)


async def test_rebuild_reads_bounces_of_earlier_versions_again(mail: MailScenario, importer: BookImporter) -> None:
    """The sender's fault counts for nobody. 5.1.10 without a reason ends no domain, and the hard bounce is listed."""
    await mail.add_events(*(soft(days=days) for days in (1, 2, 3)), hard("bob@example.org"))
    await mail.stores.mongo["mail_addresses"].update_many(
        {"org": mail.org, "by.messages": {"$ne": []}, "by.hards": {"$exists": False}},
        {"$set": {"by.$[].messages.$[].3": "450 4.1.8"}},
    )
    refusal = [1, "550 5.1.10"]
    await mail.stores.mongo["mail_domains"].update_one({"org": mail.org}, {"$set": {"by.0.refusal": refusal}})
    rebuilt = await importer.rebuild(mail.org, None, lambda _: None)
    assert (rebuilt.addresses, rebuilt.bounces.dropped_softs, rebuilt.bounces.dropped_domain_blocks) == (2, 3, 1)
    assert list(rebuilt.bounces.unread.values()) == [1]
    assert not (await mail.standing()).blocked
    assert not (await mail.domain_standing()).blocked
    assert (await mail.standing("bob@example.org")).blocked
    assert (await importer.rebuild(mail.org, None, lambda _: None)).bounces.dropped_softs == 0


async def test_rebuild_keeps_block_by_null_mx(mail: MailScenario, importer: BookImporter) -> None:
    await mail.add_events(event("ann@example.org", 550, "5.1.10", "Domain example.org does not accept mail (nullMX)"))
    await importer.rebuild(mail.org, None, lambda _: None)
    standing = await mail.domain_standing()
    assert standing.blocked
    assert "the domain accepts no mail" in standing.verdict.detail


async def test_later_import_replaces_earlier_rows(mail: MailScenario, importer: BookImporter) -> None:
    await importer.add(mail.org, "one", [LegacyBookRow("ann@example.org", 5, 2, 1)])
    for source in ("one", "other"):
        await importer.add(mail.org, source, [LegacyBookRow("ann@example.org", 1, 0, 0)])
        standing, domain = await mail.standing(), await mail.domain_standing()
        assert (standing.success, standing.soft_bounce, standing.hard_bounce, standing.blocked) == (1, 0, 0, False)
        assert (domain.success, domain.soft_bounce, domain.hard_bounce) == (1, 0, 0)


async def test_rebuild_without_later_import_restores_earlier_rows(mail: MailScenario, importer: BookImporter) -> None:
    await importer.add(mail.org, "one", [LegacyBookRow("ann@example.org", 5, 2, 1)])
    documents_before = await book_documents(mail)
    later = [LegacyBookRow("ann@example.org", 1, 0, 0), LegacyBookRow("b@c.example", 1, 1, 1)]
    await importer.add(mail.org, "other", later)
    await importer.rebuild(mail.org, "other", lambda _: None)
    assert await book_documents(mail) == documents_before
    await importer.rebuild(mail.org, "one", lambda _: None)
    assert await book_documents(mail) == {name: [] for name in documents_before}


async def test_import_invalid_address_is_rejected(mail: MailScenario, importer: BookImporter) -> None:
    with pytest.raises(BadUserInput):
        await importer.add(mail.org, "one", [LegacyBookRow("a@b.example", 1, 0, 0), LegacyBookRow("nobody", 1, 0, 0)])
    assert (await mail.standing("a@b.example")).success == 0


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6))
async def test_rebuild_without_source_equals_book_without_it(mail_stores: Stores, seed: int) -> None:
    with_source, without_source = MailScenario(mail_stores, new_id()), MailScenario(mail_stores, new_id())
    importer, rng = BookImporter(mail_stores.mongo, ADDRESS_KEYS), random.Random(seed)
    events = list(any_events(rng, 120, addresses=8))
    removed_events = [each for each in events if rng.random() < 0.4]
    kept_events = [each for each in events if each not in removed_events]
    rows = [LegacyBookRow(f"a{n}@hot.example", n, n % 2, n % 3) for n in range(5)]
    await importer.add(with_source.org, "broken rows", rows)
    await with_source.record(*removed_events[::2], source="broken")
    await with_source.aggregate()
    await with_source.add_events(*kept_events)
    # These events are not aggregated yet when the source is removed.
    await with_source.record(*removed_events[1::2], source="broken")
    for source in ("broken", "broken rows"):
        await importer.rebuild(with_source.org, source, lambda _: None)
    await without_source.add_events(*kept_events)
    assert await with_source.aggregate() == 0
    assert await book_documents(with_source) == await book_documents(without_source)
    model = AddressBookModel()
    model.add_events(kept_events)
    await with_source.assert_equals(model)


async def test_event_ids_of_removed_source_are_accepted_again(mail: MailScenario, importer: BookImporter) -> None:
    event = hard()
    await mail.add_events(event, source="broken")
    await importer.rebuild(mail.org, "broken", lambda _: None)
    assert (await mail.record(event, source="mended")).accepted == 1


async def test_rebuild_during_aggregation_removes_source(mail: MailScenario, importer: BookImporter) -> None:
    for day in range(5):
        await mail.record(*(soft(f"a{n}@example.org", days=day) for n in range(40)), source="broken")
        await mail.record(*(ok(f"a{n}@example.org", days=day) for n in range(40)))
    await asyncio.gather(mail.aggregate(limit=20), importer.rebuild(mail.org, "broken", lambda _: None))
    await mail.aggregate()
    await importer.rebuild(mail.org, "broken", lambda _: None)
    standings = await mail.standings([f"a{n}@example.org" for n in range(40)])
    assert [(each.success, each.soft_bounce) for each in standings] == [(5, 0)] * 40
    assert (await mail.domain_standing()).soft_bounce == 0


async def test_rebuild_keeps_operator_decisions(mail: MailScenario, importer: BookImporter) -> None:
    await mail.add_events(hard(), source="broken")
    await mail.stores.address_book.set_domain_blocked(mail.org, "example.org", True, "op", "why")
    await importer.rebuild(mail.org, "broken", lambda _: None)
    assert (await mail.domain_standing()).blocked
    assert await importer.sources(mail.org) == []


async def test_rebuild_changes_no_other_organization(mail: MailScenario, importer: BookImporter) -> None:
    other = MailScenario(mail.stores, new_id())
    rows = [LegacyBookRow("old@example.org", 5, 2, 1)]
    for each in (mail, other):
        await each.add_events(hard(), ok("bob@other.example"), source="broken")
        await importer.add(each.org, "broken", rows)
    for each in (mail, other):
        # This event is not aggregated yet when the source is removed.
        await each.record(soft("carol@example.org"), source="broken")
    documents_before, events = await book_documents(other), await ledger_event_count(other)
    assert (await importer.rebuild(mail.org, None, lambda _: None)).addresses == 3
    assert (await importer.rebuild(mail.org, "broken", lambda _: None)).addresses == 3
    assert (await book_documents(other), await ledger_event_count(other)) == (documents_before, events)
    assert (await book_documents(mail), await ledger_event_count(mail)) == ({name: [] for name in documents_before}, 0)


async def test_removal_of_source_leaves_one_audit_entry(mail: MailScenario, importer: BookImporter) -> None:
    await mail.add_events(hard(), source="broken")
    await importer.rebuild(mail.org, None, lambda _: None)

    def interrupt(_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await importer.rebuild(mail.org, "broken", interrupt)
    for _ in range(2):
        await importer.rebuild(mail.org, "broken", lambda _: None)
    entries = await mail.stores.audit.list_entries(mail.org, AuditFilter(), None, 50)
    assert [(each.action.name, each.target_id, each.actor_id) for each in entries] == [
        ("MAIL_SOURCE_REMOVED", "broken", "command-line")
    ]
    assert await importer.sources(mail.org) == []


async def ledger_event_count(mail: MailScenario) -> int:
    return await mail.stores.mongo["mail_ledger"].count_documents({"org": mail.org})
