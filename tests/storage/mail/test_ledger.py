"""Events are recorded once and without plain addresses; invalid and old events are rejected."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.indexes.lifetimes import LEDGER_KEPT_S
from storage.mail.addresses import normalize
from storage.mail.ledger import MAX_AGE, PARTITIONS, partition
from storage.mail.records import DeliveryEvent, RecordDeliveriesResult
from tests.storage.mail.events import event, hard, ok, soft
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def record(mail: MailScenario, *events: DeliveryEvent) -> RecordDeliveriesResult:
    return await mail.stores.ledger.record(mail.org, "mta", events)


async def test_repeated_event_is_duplicate(mail: MailScenario) -> None:
    one, other = hard(), ok()
    result = await record(mail, one, one, other)
    assert (result.accepted, result.duplicates) == (2, 1)
    result = await record(mail, other, one, hard("bob@example.org", id_=one.event_id))
    assert (result.accepted, result.duplicates) == (0, 3)
    await mail.aggregate()
    assert (await mail.standing()).hard_bounce == 1


async def test_concurrent_records_of_same_events_count_once(mail: MailScenario) -> None:
    events = [ok() for _ in range(50)]
    results = await asyncio.gather(*(record(mail, *events) for _ in range(10)))
    assert sum(each.accepted for each in results) == 50
    assert sum(each.duplicates for each in results) == 450


async def test_event_id_is_unique_per_organization(mail: MailScenario) -> None:
    other = MailScenario(mail.stores, f"{mail.org}-other")
    assert (await record(mail, hard(id_="same"))).accepted == 1
    assert (await record(other, hard(id_="same"))).accepted == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": "nobody"}, "address"),
        ({"event_id": ""}, "eventId"),
        ({"event_id": "x" * 1001}, "eventId"),
        ({"message_id": "x" * 1001}, "messageId"),
        ({"smtp_code": 199}, "smtpCode"),
        ({"smtp_code": 600}, "smtpCode"),
        ({"enhanced_status": "5.1"}, "enhancedStatus"),
        ({"enhanced_status": "3.1.1"}, "enhancedStatus"),
        ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, "13 days"),
        ({"at": datetime(9999, 1, 1, tzinfo=UTC)}, "ahead"),
    ],
)
async def test_invalid_event_is_rejected_and_others_accepted(
    mail: MailScenario, change: dict[str, Any], message: str
) -> None:
    invalid_event = replace(hard(id_="bad"), **change)
    result = await record(mail, ok(), invalid_event, ok())
    assert (result.accepted, result.duplicates) == (2, 0)
    (rejected,) = result.rejected
    assert (rejected.index, rejected.event_id) == (1, invalid_event.event_id)
    assert message in rejected.message


async def test_events_are_kept_longer_than_they_are_accepted(mail: MailScenario) -> None:
    now = await mail.stores.mongo.now()
    result = await record(
        mail, ok(at=now - MAX_AGE + timedelta(minutes=1)), ok(at=now - MAX_AGE - timedelta(minutes=1))
    )
    assert (result.accepted, len(result.rejected)) == (1, 1)
    indexes = await mail.stores.mongo["mail_ledger"].index_information()
    expiry_s = {name: each["expireAfterSeconds"] for name, each in indexes.items() if "expireAfterSeconds" in each}
    assert expiry_s == {"aggregated_at_1": LEDGER_KEPT_S}
    assert timedelta(seconds=LEDGER_KEPT_S) > MAX_AGE


async def test_event_expires_only_after_aggregation(mail: MailScenario) -> None:
    await record(mail, ok())
    rows = mail.stores.mongo["mail_ledger"]
    row = await rows.find_one({"org": mail.org})
    assert row is not None
    assert "aggregated_at" not in row
    await mail.aggregate()
    row = await rows.find_one({"org": mail.org})
    assert row is not None
    assert "waiting" not in row
    assert abs(row["aggregated_at"] - await mail.stores.mongo.now()) < timedelta(minutes=1)


async def test_no_collection_stores_plain_address(mail: MailScenario) -> None:
    secret = "canary.person@example.org"
    bounce = event(secret, 550, "5.1.1", f"<{secret}> unknown", id_=f"id-{secret}", message=f"message-{secret}")
    await mail.add_events(bounce, soft(secret, message=secret))
    address = normalize(secret)
    assert address is not None
    await mail.stores.address_book.unblock(mail.org, address, "op", "asked")
    names = await mail.stores.mongo.database.list_collection_names()
    for name in names:
        async for document in mail.stores.mongo[name].find():
            assert "canary" not in repr(document), name


def test_partitions_cover_all_domains() -> None:
    assert {partition(f"d{number}.example") for number in range(1000)} == set(range(PARTITIONS))
