"""Notifications of Amazon SES, from its published examples to the outcome in the address book."""

import copy
from typing import Any

import orjson
import pytest

from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.inlets.ses import BOUNCES, TOPIC_VALIDATED, read_ses
from storage.mail.classifier import DeliveryOutcome
from storage.mail.records import DeliveryEventKind
from tests.jobs.mail.inlets.examples import (
    SES_BOUNCE_EVENT,
    SES_BOUNCE_WITH_DSN,
    SES_BOUNCE_WITHOUT_DSN,
    SES_COMPLAINT,
    SES_DELIVERY,
    SES_RECIPIENTS,
    SES_REJECT_EVENT,
)
from tests.storage.mail.model import outcome


def read(notification: dict[str, Any]) -> ReadEvents:
    return read_ses(orjson.dumps(notification).decode())


def changed(notification: dict[str, Any], part: str, **more: object) -> dict[str, Any]:
    """Returns the notification with other values in one of its parts."""
    other = copy.deepcopy(notification)
    other[part] |= more
    return other


@pytest.mark.parametrize(
    ("notification", "addresses", "smtp_code", "status", "expected_outcome"),
    [
        (SES_BOUNCE_WITH_DSN, ["jane@example.com"], 550, "5.1.1", DeliveryOutcome.HARD),
        (SES_BOUNCE_EVENT, ["recipient@example.com"], 550, "5.1.1", DeliveryOutcome.HARD),
        (SES_BOUNCE_WITHOUT_DSN, ["jane@example.com", "richard@example.com"], None, "5.0.0", DeliveryOutcome.NOTHING),
        (SES_DELIVERY, ["jane@example.com"], 250, "2.0.0", DeliveryOutcome.DELIVERED),
        (SES_COMPLAINT, ["richard@example.com"], None, None, DeliveryOutcome.COMPLAINT),
    ],
    ids=["bounce with DSN", "bounce event", "bounce without DSN", "delivery", "complaint"],
)
def test_published_example_has_outcome(
    notification: dict[str, Any],
    addresses: list[str],
    smtp_code: int | None,
    status: str | None,
    expected_outcome: DeliveryOutcome,
) -> None:
    result = read(notification)
    assert [each.address for each in result.events] == addresses
    assert {(each.smtp_code, each.enhanced_status) for each in result.events} == {(smtp_code, status)}
    is_complaint = result.events[0].kind is DeliveryEventKind.COMPLAINT
    assert is_complaint == (expected_outcome is DeliveryOutcome.COMPLAINT)
    assert is_complaint or {outcome(each) for each in result.events} == {expected_outcome}
    assert len({each.event_id for each in (*result.events, *read(notification).events)}) == len(addresses)


def test_delayed_recipient_of_bounce_is_ignored() -> None:
    result = read(changed(SES_BOUNCE_WITH_DSN, "bounce", bouncedRecipients=SES_RECIPIENTS))
    assert [each.address for each in result.events] == ["recipient1@example.com"]
    assert outcome(result.events[0]) is DeliveryOutcome.HARD
    assert result.ignored == 1


@pytest.mark.parametrize(
    ("class_", "expected"),
    [
        (("Undetermined", "Undetermined"), DeliveryOutcome.NOTHING),
        (("Permanent", "General"), DeliveryOutcome.NOTHING),
        (("Permanent", "NoEmail"), DeliveryOutcome.HARD),
        (("Permanent", "Suppressed"), None),
        (("Permanent", "OnAccountSuppressionList"), None),
        (("Transient", "General"), None),
        (("Transient", "MailboxFull"), DeliveryOutcome.SOFT),
        (("Transient", "MessageTooLarge"), DeliveryOutcome.NOTHING),
        (("Transient", "ContentRejected"), DeliveryOutcome.NOTHING),
        (("Transient", "AttachmentRejected"), DeliveryOutcome.NOTHING),
    ],
)
def test_class_without_codes_has_outcome(class_: tuple[str, str], expected: DeliveryOutcome | None) -> None:
    assert class_ in BOUNCES
    result = read(changed(SES_BOUNCE_WITHOUT_DSN, "bounce", bounceType=class_[0], bounceSubType=class_[1]))
    assert [outcome(each) for each in result.events] == ([] if expected is None else [expected] * 2)
    assert result.ignored == (2 if expected is None else 0)


def test_suppressed_mail_is_ignored_despite_its_codes() -> None:
    result = read(changed(SES_BOUNCE_WITH_DSN, "bounce", bounceSubType="OnAccountSuppressionList"))
    assert (result.events, result.ignored) == ([], 1)
    suppressed = read(changed(SES_COMPLAINT, "complaint", complaintSubType="OnAccountSuppressionList"))
    assert (suppressed.events, suppressed.ignored) == ([], 1)


def test_answer_of_server_decides_before_class() -> None:
    recipient = {"emailAddress": "a@example.org", "diagnosticCode": "smtp; 554 5.7.1 blocked using Spamhaus"}
    bounce = changed(SES_BOUNCE_WITH_DSN, "bounce", bounceSubType="NoEmail", bouncedRecipients=[recipient])
    assert outcome(read(bounce).events[0]) is DeliveryOutcome.NOTHING
    recipient["diagnosticCode"] = "smtp; 452 4.2.2 mailbox full"
    transient = changed(bounce, "bounce", bounceType="Transient", bounceSubType="General")
    assert outcome(read(transient).events[0]) is DeliveryOutcome.SOFT


@pytest.mark.parametrize("type_", ["not-spam", "virus", "auth-failure"])
def test_feedback_that_is_no_complaint_is_ignored(type_: str) -> None:
    result = read(changed(SES_COMPLAINT, "complaint", complaintFeedbackType=type_))
    assert (result.events, result.ignored) == ([], 1)


def test_other_types_are_ignored_and_unknown_rejected() -> None:
    setup = {"notificationType": "AmazonSnsSubscriptionSucceeded", "message": "You have successfully subscribed"}
    assert [read(each).ignored for each in (SES_REJECT_EVENT, setup, {"eventType": "Open"})] == [1, 1, 1]
    assert read_ses(TOPIC_VALIDATED).ignored == 1
    unknown = [
        {"eventType": "Teleport"},
        {"eventType": 5},
        changed(SES_BOUNCE_WITH_DSN, "bounce", bounceSubType="Odd"),
        changed(SES_COMPLAINT, "complaint", complaintFeedbackType="odd"),
        changed(SES_DELIVERY, "delivery", timestamp="soon"),
    ]
    messages = [rejected.message for each in unknown for rejected in read(each).rejected]
    assert messages[:3] == [
        "eventType: unknown type 'Teleport'.",
        "eventType: unknown type '5'.",
        "bounceSubType: unknown class 'Permanent Odd'.",
    ]
    assert [message.partition(":")[0] for message in messages[3:]] == ["complaintFeedbackType", "delivery.timestamp"]
    assert [len(read_ses(text).rejected) for text in ("hello", "[]", "7")] == [1, 1, 1]
