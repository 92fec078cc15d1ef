"""Webhooks of Postmark, from its published examples to the outcome."""

from datetime import UTC, datetime

import pytest

from jobs.mail.inlets.postmark import BOUNCES, read_postmark
from storage.mail.classifier import DeliveryOutcome
from storage.mail.records import DeliveryEventKind
from tests.jobs.mail.inlets.examples import POSTMARK_BOUNCE, POSTMARK_COMPLAINT, POSTMARK_DELIVERY
from tests.storage.mail.model import outcome


def test_published_bounce_is_hard() -> None:
    (event,) = read_postmark(POSTMARK_BOUNCE).events
    assert (event.address, event.enhanced_status, outcome(event)) == ("john@example.com", "5.1.1", DeliveryOutcome.HARD)
    assert event.at == datetime(2014, 8, 1, 17, 28, 10, 273539, tzinfo=UTC)
    assert event.message_id == "883953f4-6105-42a2-a16a-77a8eac79483"
    assert read_postmark(POSTMARK_BOUNCE).events == [event]


def test_published_delivery_and_complaint_have_outcomes() -> None:
    (delivery,) = read_postmark(POSTMARK_DELIVERY).events
    assert (delivery.address, outcome(delivery)) == ("john@example.com", DeliveryOutcome.DELIVERED)
    (complaint,) = read_postmark(POSTMARK_COMPLAINT).events
    assert complaint.kind is DeliveryEventKind.COMPLAINT
    assert complaint == read_postmark(POSTMARK_COMPLAINT | {"RecordType": "Bounce"}).events[0]
    answered = POSTMARK_DELIVERY | {"Details": "250 2.0.0 OK"}
    assert read_postmark(answered).events[0].smtp_code == 250


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("HardBounce", DeliveryOutcome.HARD),
        ("BadEmailAddress", DeliveryOutcome.HARD),
        ("SoftBounce", DeliveryOutcome.SOFT),
        ("DnsError", DeliveryOutcome.DOMAIN),
        *((each, DeliveryOutcome.NOTHING) for each in ("SpamNotification", "Blocked", "DMARCPolicy")),
        *((each, DeliveryOutcome.NOTHING) for each in ("VirusNotification", "Unknown")),
        *((each, None) for each, status in BOUNCES.items() if status is None),
    ],
)
def test_type_without_codes_has_outcome(type_: str, expected: DeliveryOutcome | None) -> None:
    result = read_postmark(POSTMARK_BOUNCE | {"Type": type_})
    assert [outcome(each) for each in result.events] == ([] if expected is None else [expected])
    assert result.ignored == (expected is None)


def test_answer_of_server_decides_before_type() -> None:
    full = POSTMARK_BOUNCE | {"Details": "smtp;552 5.2.2 The mailbox is over quota"}
    (event,) = read_postmark(full).events
    assert (event.smtp_code, event.enhanced_status, outcome(event)) == (552, "5.2.2", DeliveryOutcome.SOFT)


def test_other_records_are_ignored_and_unknown_rejected() -> None:
    assert [read_postmark({"RecordType": each}).ignored for each in ("Open", "Click", "SubscriptionChange")] == [1] * 3
    unknown = [
        {"RecordType": "Teleport"},
        {"FromFull": {}},
        [],
        POSTMARK_BOUNCE | {"Type": "Odd"},
        POSTMARK_BOUNCE | {"BouncedAt": "soon"},
        POSTMARK_DELIVERY | {"MessageID": ""},
    ]
    messages = [rejected.message for each in unknown for rejected in read_postmark(each).rejected]
    assert [each.partition(":")[0] for each in messages] == [
        "RecordType", "RecordType", "RecordType", "Type", "BouncedAt", "MessageID",
    ]  # fmt: skip
