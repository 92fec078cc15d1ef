"""A report names the bounces that block an address, and since when it is blocked."""

from datetime import datetime, timedelta

import pytest

from storage.mail.addresses import Address
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.decisions.address_reports import AddressReport, address_report
from storage.mail.decisions.policies import MailPolicy
from storage.mail.imports import BookImporter, LegacyBookRow
from tests.keys import ADDRESS_KEYS
from tests.storage.mail.events import event, hard, ok, soft, yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

ANN = Address("ann@example.org", "example.org")


async def report(mail: MailScenario) -> AddressReport:
    return await address_report(mail.stores.mongo, mail.stores.address_book, mail.org, ANN)


def days_ago(days: float) -> datetime:
    return yesterday_noon() - timedelta(days=days)


async def test_unknown_address_has_an_empty_report(mail: MailScenario) -> None:
    found = await report(mail)
    assert (found.standing.blocked, found.blocked_since, found.bounces) == (False, None, [])
    assert (found.last_delivery_at, found.last_complaint_at, found.policy_version) == (None, None, 0)


async def test_report_has_the_bounces_since_the_latest_delivery(mail: MailScenario) -> None:
    await mail.add_events(hard(days=6), ok(days=5), soft(days=4, message="m"), soft(days=4, message="m"))
    await mail.add_events(hard(days=2), event("ann@example.org", 550, "5.1.6", days=1), source="other")
    found = await report(mail)
    assert [(each.bounce_class.value, each.code, each.source, each.count) for each in found.bounces] == [
        ("MOVED", "550 5.1.6", "other", 1),
        ("NO_MAILBOX", "550 5.1.1", "other", 1),
        ("FULL", "452 4.2.2", "mta", 1),
    ]
    assert [each.at for each in found.bounces] == [days_ago(1), days_ago(2), days_ago(4)]
    assert (found.blocked_since, found.last_delivery_at) == (days_ago(2), days_ago(5))


async def test_soft_bounces_block_since_the_third_day(mail: MailScenario) -> None:
    await mail.add_events(*(soft(days=day) for day in (9, 7, 5, 3)))
    assert (await report(mail)).blocked_since == days_ago(5)


async def test_block_by_a_policy_began_with_the_policy(mail: MailScenario) -> None:
    await mail.add_events(soft(days=5))
    assert (await report(mail)).blocked_since is None
    version = await mail.stores.address_book.policies.set(mail.org, MailPolicy(soft_bounce_days=1), 0, "op", "", None)
    found = await report(mail)
    assert (found.standing.blocked, found.policy_version, found.blocked_since) == (True, 1, version.set_at)


async def test_complaint_and_decision_by_hand_say_since_when(mail: MailScenario) -> None:
    await mail.add_events(event(complaint=True, days=3))
    found = await report(mail)
    assert found.blocked_since == found.last_complaint_at == days_ago(3)
    await mail.stores.address_book.decisions.store([ANN], AddressDecision(mail.org, True, "op", "asked"))
    blocked_since = (await report(mail)).blocked_since
    assert blocked_since is not None
    assert blocked_since > days_ago(0)
    await mail.stores.address_book.unblock(mail.org, ANN, "op", "sorry")
    found = await report(mail)
    assert (found.blocked_since, found.last_complaint_at, found.bounces) == (None, None, [])


async def test_imported_bounces_are_named(mail: MailScenario) -> None:
    imports = BookImporter(mail.stores.mongo, ADDRESS_KEYS)
    await imports.add(mail.org, "old", [LegacyBookRow(ANN.text, 0, 2, 3)])
    found = await report(mail)
    assert {(each.bounce_class.value, each.source, each.count) for each in found.bounces} == {
        ("IMPORTED_HARD", "old", 3),
        ("IMPORTED_SOFT", "old", 2),
    }
    assert found.blocked_since == found.bounces[0].at


async def test_block_of_the_domain_alone_has_no_beginning(mail: MailScenario) -> None:
    await mail.add_events(event("bob@example.org", 550, "5.1.2"))
    found = await report(mail)
    assert (found.standing.blocked, found.blocked_since) == (True, None)
