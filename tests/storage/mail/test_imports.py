"""Imported rows of the legacy book, and removed sources: the book then equals one without them."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.errors import BadUserInput
from storage.ids import new_id
from storage.mail.imports import BookImporter, LegacyBookRow
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import any_events, hard, ok, soft
from tests.storage.mail.model import Model
from tests.storage.mail.organization_mail import OrganizationMail

pytestmark = pytest.mark.anyio


@pytest.fixture
def importer(mail_stores: Stores) -> BookImporter:
    return BookImporter(mail_stores.mongo, ADDRESS_KEYS)


async def everything(mail: OrganizationMail) -> dict[str, list[str]]:
    """Returns all documents of an organization's book, comparable with another organization's."""
    shown = {}
    for name in ("mail_addresses", "mail_domains", "mail_days", "mail_sources"):
        key = "org" if name in ("mail_addresses", "mail_domains") else "_id.org"
        rows = await mail.stores.mongo[name].find({key: mail.org}).to_list(None)
        shown[name] = sorted(repr(_plain(row, mail.org)) for row in rows)
    return shown


def _plain(value: Any, org: str) -> Any:
    """Removes the organization and its hashes, and sorts lists and fields."""
    if isinstance(value, dict):
        return sorted((k, _plain(v, org)) for k, v in value.items() if not (k == "_id" and isinstance(v, bytes)))
    if isinstance(value, list):
        return sorted(repr(_plain(each, org)) for each in value)
    return "" if value == org else str(value).replace(org, "")


async def test_imported_bounces_count_until_later_delivery(mail: OrganizationMail, importer: BookImporter) -> None:
    await importer.add(mail.org, "mysql", [LegacyBookRow("Ann@example.org", 5, 2, 1)])
    found = await mail.standing()
    assert (found.success, found.soft_bounce, found.hard_bounce, found.blocked) == (5, 2, 1, True)
    assert "an imported hard bounce" in found.verdict.detail
    domain = await mail.domain()
    assert (domain.success, domain.soft_bounce, domain.hard_bounce) == (5, 2, 1)
    await mail.take(ok(days=1))
    assert (await mail.standing()).hard_bounce == 1
    await mail.take(ok(at=await mail.stores.mongo.now()))
    found = await mail.standing()
    assert (found.success, found.soft_bounce, found.hard_bounce, found.blocked) == (7, 0, 0, False)


async def test_later_import_replaces_earlier_rows(mail: OrganizationMail, importer: BookImporter) -> None:
    await importer.add(mail.org, "one", [LegacyBookRow("ann@example.org", 5, 2, 1)])
    for source in ("one", "other"):
        await importer.add(mail.org, source, [LegacyBookRow("ann@example.org", 1, 0, 0)])
        found, domain = await mail.standing(), await mail.domain()
        assert (found.success, found.soft_bounce, found.hard_bounce, found.blocked) == (1, 0, 0, False)
        assert (domain.success, domain.soft_bounce, domain.hard_bounce) == (1, 0, 0)


async def test_rebuild_without_later_import_restores_earlier_rows(
    mail: OrganizationMail, importer: BookImporter
) -> None:
    await importer.add(mail.org, "one", [LegacyBookRow("ann@example.org", 5, 2, 1)])
    before = await everything(mail)
    later = [LegacyBookRow("ann@example.org", 1, 0, 0), LegacyBookRow("b@c.example", 1, 1, 1)]
    await importer.add(mail.org, "other", later)
    await importer.rebuild(mail.org, "other", lambda done: None)
    assert await everything(mail) == before
    await importer.rebuild(mail.org, "one", lambda done: None)
    assert await everything(mail) == {name: [] for name in before}


async def test_import_invalid_address_is_rejected(mail: OrganizationMail, importer: BookImporter) -> None:
    with pytest.raises(BadUserInput):
        await importer.add(mail.org, "one", [LegacyBookRow("a@b.example", 1, 0, 0), LegacyBookRow("nobody", 1, 0, 0)])
    assert (await mail.standing("a@b.example")).success == 0


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6))
async def test_rebuild_without_source_equals_book_without_it(mail_stores: Stores, seed: int) -> None:
    with_it, never = OrganizationMail(mail_stores, new_id()), OrganizationMail(mail_stores, new_id())
    importer, dice = BookImporter(mail_stores.mongo, ADDRESS_KEYS), random.Random(seed)
    events = list(any_events(dice, 120, addresses=8))
    bad = [each for each in events if dice.random() < 0.4]
    good = [each for each in events if each not in bad]
    rows = [LegacyBookRow(f"a{n}@hot.example", n, n % 2, n % 3) for n in range(5)]
    await importer.add(with_it.org, "broken rows", rows)
    await with_it.record(*bad[::2], source="broken")
    await with_it.aggregate()
    await with_it.take(*good)
    await with_it.record(*bad[1::2], source="broken")  # not aggregated when the source is removed
    for source in ("broken", "broken rows"):
        await importer.rebuild(with_it.org, source, lambda done: None)
    await never.take(*good)
    assert await with_it.aggregate() == 0
    assert await everything(with_it) == await everything(never)
    model = Model()
    model.take(good)
    await with_it.assert_equals(model)


async def test_event_ids_of_removed_source_are_accepted_again(mail: OrganizationMail, importer: BookImporter) -> None:
    event = hard()
    await mail.take(event, source="broken")
    await importer.rebuild(mail.org, "broken", lambda done: None)
    assert (await mail.record(event, source="mended")).accepted == 1


async def test_rebuild_during_aggregation_removes_source(mail: OrganizationMail, importer: BookImporter) -> None:
    for part in range(5):
        await mail.record(*(soft(f"a{n}@example.org", days=part) for n in range(40)), source="broken")
        await mail.record(*(ok(f"a{n}@example.org", days=part) for n in range(40)))
    await asyncio.gather(mail.aggregate(limit=20), importer.rebuild(mail.org, "broken", lambda done: None))
    await mail.aggregate()
    await importer.rebuild(mail.org, "broken", lambda done: None)
    found = await mail.standings([f"a{n}@example.org" for n in range(40)])
    assert [(each.success, each.soft_bounce) for each in found] == [(5, 0)] * 40
    assert (await mail.domain()).soft_bounce == 0


async def test_rebuild_keeps_operator_decisions(mail: OrganizationMail, importer: BookImporter) -> None:
    await mail.take(hard(), source="broken")
    await mail.stores.address_book.set_domain_blocked(mail.org, "example.org", True, "op", "why")
    await importer.rebuild(mail.org, "broken", lambda done: None)
    assert (await mail.domain()).blocked
    assert await importer.sources(mail.org) == []


async def test_rebuild_changes_no_other_organization(mail: OrganizationMail, importer: BookImporter) -> None:
    other = OrganizationMail(mail.stores, new_id())
    rows = [LegacyBookRow("old@example.org", 5, 2, 1)]
    for each in (mail, other):
        await each.take(hard(), ok("bob@other.example"), source="broken")
        await importer.add(each.org, "broken", rows)
    for each in (mail, other):
        await each.record(soft("carol@example.org"), source="broken")  # not aggregated yet
    before, events = await everything(other), await ledger_events(other)
    assert await importer.rebuild(mail.org, "broken", lambda done: None) == 3
    assert (await everything(other), await ledger_events(other)) == (before, events)
    assert (await everything(mail), await ledger_events(mail)) == ({name: [] for name in before}, 0)


async def ledger_events(mail: OrganizationMail) -> int:
    return await mail.stores.mongo["mail_ledger"].count_documents({"org": mail.org})
