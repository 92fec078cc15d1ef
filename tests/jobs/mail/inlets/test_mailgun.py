"""Webhooks of Mailgun, from its published examples to the outcome, and their signatures."""

import hmac
from typing import Any

import pytest

from jobs.mail.inlets.mailgun import IGNORED_EVENTS, MAX_AGE_S, read_mailgun, verify_mailgun
from jobs.mail.inlets.read_events import ReadEvents
from jobs.providers.signed_webhooks import SignatureRefused
from storage.mail.classifier import DeliveryOutcome
from storage.mail.records import DeliveryEventKind
from tests.jobs.mail.inlets.examples import (
    MAILGUN_COMPLAINED,
    MAILGUN_DELIVERED,
    MAILGUN_OPENED,
    MAILGUN_PERMANENT,
    MAILGUN_TEMPORARY,
)
from tests.storage.mail.model import outcome

KEY, NOW_S = "a signing key", 1_770_918_180


def signed(event: Any, key: str = KEY, timestamp: int = NOW_S) -> dict[str, Any]:
    """Returns a webhook with the signature that Mailgun documents: HMAC-SHA256 of timestamp and token."""
    token = "5a2c1b80d1c3f0b6e7"
    signature = hmac.new(key.encode(), f"{timestamp}{token}".encode(), "sha256").hexdigest()
    return {
        "signature": {"timestamp": str(timestamp), "token": token, "signature": signature},
        "event-data": event,
    }


def read(event: Any) -> ReadEvents:
    return read_mailgun(signed(event))


def failed(**status: Any) -> dict[str, Any]:
    """Returns a permanent failure with this delivery status, and `reason` if it is given."""
    reason = {"reason": status.pop("reason")} if "reason" in status else {}
    return MAILGUN_PERMANENT | reason | {"delivery-status": status}


def test_signature_is_verified_by_any_key() -> None:
    for timestamp in (NOW_S - MAX_AGE_S, NOW_S + 299):
        verify_mailgun(["another key", KEY], signed(MAILGUN_PERMANENT, timestamp=timestamp), NOW_S)


@pytest.mark.parametrize(
    "content",
    [
        signed(MAILGUN_PERMANENT, key="another key"),
        signed(MAILGUN_PERMANENT, timestamp=NOW_S - MAX_AGE_S - 1),
        signed(MAILGUN_PERMANENT, timestamp=NOW_S + 301),
        signed({}) | {"signature": signed({})["signature"] | {"token": "other"}},
        signed({}) | {"signature": signed({})["signature"] | {"signature": "\ud83d"}},
        {"event-data": MAILGUN_PERMANENT},
        {"signature": {"timestamp": "now", "token": "", "signature": ""}},
        [],
    ],
)
def test_other_signature_is_refused(content: Any) -> None:
    with pytest.raises(SignatureRefused):
        verify_mailgun([KEY], content, NOW_S)


def test_published_events_have_outcomes() -> None:
    (bounce,) = read(MAILGUN_PERMANENT).events
    # Outlook's "mailbox unavailable" is the standard text of code 550.
    assert (bounce.smtp_code, bounce.enhanced_status, outcome(bounce)) == (550, "5.5.0", DeliveryOutcome.HARD)
    assert (bounce.event_id, bounce.message_id) == (
        "mailgun:2kFItcrLQuKTdp-Ia2Xr7w:1770918175.592369",
        "20260212174255.58bbb7ce85a423e5@mailgun.com",
    )
    (delivered,) = read(MAILGUN_DELIVERED).events
    assert (delivered.smtp_code, outcome(delivered)) == (250, DeliveryOutcome.DELIVERED)
    assert read(MAILGUN_COMPLAINED).events[0].kind is DeliveryEventKind.COMPLAINT
    assert [read(each).ignored for each in (MAILGUN_TEMPORARY, MAILGUN_OPENED)] == [1, 1]
    assert [read({"event": each}).ignored for each in IGNORED_EVENTS] == [1] * len(IGNORED_EVENTS)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (failed(code=550, message="5.1.1 The account does not exist"), DeliveryOutcome.HARD),
        (failed(code=550, **{"enhanced-code": "5.1.1"}), DeliveryOutcome.HARD),
        (failed(code=552, message="5.2.2 mailbox full"), DeliveryOutcome.SOFT),
        (failed(code=421, message="Too old", reason="old"), DeliveryOutcome.SOFT),
        (failed(code=602, message="Too old", reason="old"), DeliveryOutcome.SOFT),
        (failed(code=498, message="No MX for [example.com]", reason="generic"), DeliveryOutcome.DOMAIN),
        (failed(code=499, reason="generic"), DeliveryOutcome.DOMAIN),
        (failed(code=550, message="Relay Not Permitted"), DeliveryOutcome.NOTHING),
        (failed(reason="bounce"), DeliveryOutcome.NOTHING),
        (failed(reason="espblock"), DeliveryOutcome.NOTHING),
        (failed(code=554, message="5.7.1 blocked", reason="a new reason"), DeliveryOutcome.NOTHING),
    ],
)
def test_permanent_failure_has_outcome(event: dict[str, Any], expected: DeliveryOutcome) -> None:
    assert [outcome(each) for each in read(event).events] == [expected]


@pytest.mark.parametrize(
    "event",
    [
        failed(code=605, message="Not delivering to previously bounced address", reason="suppress-bounce"),
        failed(code=606, reason="suppress-unsubscribe"),
        failed(code=607),
        failed(reason="suppress-complaint"),
        failed(reason="hardfail"),
    ],
)
def test_suppressed_mail_is_ignored(event: dict[str, Any]) -> None:
    assert (read(event).events, read(event).ignored) == ([], 1)


def test_unknown_events_are_rejected() -> None:
    unknown = [
        {"event": "teleport"},
        {"event": {}},
        "failed",
        failed(reason="a new reason"),
        MAILGUN_PERMANENT | {"severity": "odd"},
        MAILGUN_PERMANENT | {"recipient": None},
    ]
    messages = [rejected.message for each in unknown for rejected in read(each).rejected]
    assert [each.partition(":")[0] for each in messages] == [
        "event", "event", "event", "reason", "severity", "recipient",
    ]  # fmt: skip
