"""Events of SendGrid, from its published examples to the outcome, and its published signature."""

from typing import Any

import orjson
import pytest

from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.inlets.sendgrid import (
    CLASSIFICATIONS,
    IGNORED_EVENTS,
    SIGNATURE,
    TIMESTAMP,
    read_sendgrid,
    sendgrid_key,
    verify_sendgrid,
)
from jobs.providers.signed_webhooks import SignatureRefused
from storage.mail.classifier import DeliveryOutcome
from storage.mail.records import DeliveryEventKind
from tests.jobs.mail.inlets.examples import (
    SENDGRID_BODY,
    SENDGRID_BOUNCE,
    SENDGRID_DEFERRED,
    SENDGRID_DELIVERED,
    SENDGRID_KEY,
    SENDGRID_OTHER_KEY,
    SENDGRID_SIGNATURE,
    SENDGRID_SPAM_REPORT,
    SENDGRID_TIMESTAMP,
)
from tests.storage.mail.model import outcome

HEADERS = {SIGNATURE: SENDGRID_SIGNATURE, TIMESTAMP: SENDGRID_TIMESTAMP}


def read(*events: Any) -> ReadEvents:
    return read_sendgrid(enumerate(events))


@pytest.mark.parametrize("keys", [[SENDGRID_KEY], [SENDGRID_OTHER_KEY, SENDGRID_KEY]])
def test_published_signature_is_verified(keys: list[str]) -> None:
    verify_sendgrid(keys, HEADERS, SENDGRID_BODY)


@pytest.mark.parametrize(
    ("keys", "headers", "body"),
    [
        ([SENDGRID_OTHER_KEY], HEADERS, SENDGRID_BODY),
        ([SENDGRID_KEY], HEADERS, SENDGRID_BODY.strip()),
        ([SENDGRID_KEY], HEADERS | {TIMESTAMP: "1600112503"}, SENDGRID_BODY),
        ([SENDGRID_KEY], HEADERS | {SIGNATURE: SENDGRID_SIGNATURE[:-8]}, SENDGRID_BODY),
        ([SENDGRID_KEY], HEADERS | {SIGNATURE: "é"}, SENDGRID_BODY),
        ([SENDGRID_KEY], {}, SENDGRID_BODY),
    ],
    ids=["other key", "other body", "other time", "cut signature", "no base64", "no headers"],
)
def test_other_signature_is_refused(keys: list[str], headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(SignatureRefused):
        verify_sendgrid(keys, headers, body)


@pytest.mark.parametrize("key", ["", "%", "AAAA", SENDGRID_KEY[:-8]])
def test_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError):
        sendgrid_key(key)


def test_published_events_have_outcomes() -> None:
    result = read(SENDGRID_BOUNCE, SENDGRID_DELIVERED, SENDGRID_DEFERRED, SENDGRID_SPAM_REPORT)
    bounce, delivered, complaint = result.events
    assert (bounce.smtp_code, bounce.enhanced_status, outcome(bounce)) == (500, "5.1.1", DeliveryOutcome.HARD)
    assert (delivered.smtp_code, outcome(delivered)) == (250, DeliveryOutcome.DELIVERED)
    assert complaint.kind is DeliveryEventKind.COMPLAINT
    assert (result.indexes, result.ignored, result.rejected) == ([0, 1, 3], 1, [])
    assert [each.event_id for each in result.events] == [
        "sendgrid:6g4ZI7SA-xmRDv57GoPIPw==",
        "sendgrid:JldC9f3XVTlK_oXSX9Iuyw==",
        "sendgrid:37nvH5QBz858KGVYCM4uOA==",
    ]


@pytest.mark.parametrize(
    ("classification", "expected"),
    [
        ("Invalid Address", DeliveryOutcome.HARD),
        ("Mailbox Unavailable", DeliveryOutcome.SOFT),
        ("Content", DeliveryOutcome.NOTHING),
        ("Reputation", DeliveryOutcome.NOTHING),
        ("Frequency or Volume Too High", DeliveryOutcome.NOTHING),
        ("Technical Failure", DeliveryOutcome.NOTHING),
        ("Unclassified", DeliveryOutcome.NOTHING),
    ],
)
def test_class_without_codes_has_outcome(classification: str, expected: DeliveryOutcome) -> None:
    bounce = SENDGRID_BOUNCE | {"bounce_classification": classification, "reason": "refused", "status": ""}
    assert classification in CLASSIFICATIONS
    assert [outcome(each) for each in read(bounce).events] == [expected]


def test_answer_of_server_decides_before_class() -> None:
    reason = "554 5.7.1 Service unavailable; client host blocked using Spamhaus"
    blocked = SENDGRID_BOUNCE | {"type": "blocked", "reason": reason, "status": "5.7.1"}
    assert outcome(read(blocked).events[0]) is DeliveryOutcome.NOTHING
    full = SENDGRID_BOUNCE | {"bounce_classification": "New", "reason": "552 5.2.2 over quota", "status": "5.2.2"}
    assert outcome(read(full).events[0]) is DeliveryOutcome.SOFT


def test_other_events_are_ignored_and_unknown_rejected() -> None:
    dropped = orjson.loads(SENDGRID_BODY)
    assert read(*dropped, *({"event": each} for each in IGNORED_EVENTS)).ignored == 1 + len(IGNORED_EVENTS)
    unknown = [
        {"event": "teleport"},
        {"event": []},
        7,
        SENDGRID_BOUNCE | {"sg_event_id": None},
        SENDGRID_BOUNCE | {"timestamp": "soon"},
        SENDGRID_BOUNCE | {"bounce_classification": "New", "reason": "no", "status": None},
    ]
    result = read(*unknown)
    assert (result.events, [each.index for each in result.rejected]) == ([], [0, 1, 2, 3, 4, 5])
    assert [each.message.partition(":")[0] for each in result.rejected] == [
        "event", "event", "event", "sg_event_id", "timestamp", "bounce_classification",
    ]  # fmt: skip
    assert result.rejected[0].message == "event: unknown type 'teleport'."
