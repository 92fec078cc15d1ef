"""Delivery events from Postfix log lines, in the format of Debian's package."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from jobs.mail.postfix import PostfixLogParser
from storage.mail.classifier import DeliveryOutcome
from storage.mail.records import DeliveryEvent
from tests.storage.mail.model import outcome

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HEAD = "2026-11-21T11:00:00.123456+00:00 mx postfix/smtp[2219]: 4Q1ABC2XYZ: "
SENT = (
    HEAD + "to=<ann@example.org>, relay=mail.example.org[192.0.2.1]:25, delay=0.21, delays=0.05/0.01/0.1/0.05, "
    "dsn=2.0.0, status=sent (250 2.0.0 Ok: queued as 4Q1)"
)
DEFERRED = (
    HEAD + "to=<ann@example.org>, relay=mail.example.org[192.0.2.1]:25, delay=0.2, delays=0.1/0/0.1/0, dsn=4.2.2, "
    "status=deferred (host mail.example.org[192.0.2.1] said: 452 4.2.2 Mailbox full (in reply to RCPT TO command))"
)
BOUNCED = (
    HEAD + "to=<ann@example.org>, orig_to=<a@b>, relay=mail.example.org[192.0.2.1]:25, delay=0.2, delays=0/0/0/0, "
    "dsn=5.1.1, status=bounced (host mail.example.org[192.0.2.1] said: 550 5.1.1 <ann@example.org>: Recipient "
    "address rejected: User unknown in virtual mailbox table (in reply to RCPT TO command))"
)
CONNECTION_REFUSED = (
    HEAD + "to=<ann@example.org>, relay=none, delay=0.1, delays=0.1/0/0/0, dsn=4.4.1, status=deferred "
    "(connect to mail.example.org[192.0.2.1]:25: Connection refused)"
)
QUEUE = "2026-11-21T11:30:00+00:00 mx postfix/qmgr[99]: 4Q1ABC2XYZ: "
EXPIRED = QUEUE + "from=<n@example.com>, status=expired, returned to sender"
REMOVED = QUEUE + "removed"


def events_of(*lines: str, parser: PostfixLogParser | None = None) -> list[DeliveryEvent]:
    parser = parser or PostfixLogParser(UTC)
    return [event for line in lines for event in parser.parse_line(line.encode() + b"\n", NOW)]


@pytest.mark.parametrize(
    ("line", "smtp_code", "status", "expected_outcome"),
    [
        (SENT, 250, "2.0.0", DeliveryOutcome.DELIVERED),
        (DEFERRED, 452, "4.2.2", DeliveryOutcome.SOFT),
        (BOUNCED, 550, "5.1.1", DeliveryOutcome.HARD),
        (CONNECTION_REFUSED, None, "4.4.1", DeliveryOutcome.DOMAIN),
    ],
)
def test_delivery_line_gives_one_event(
    line: str, smtp_code: int, status: str, expected_outcome: DeliveryOutcome
) -> None:
    (event,) = events_of(line)
    assert (event.address, event.smtp_code, event.enhanced_status) == ("ann@example.org", smtp_code, status)
    assert event.message_id == "4Q1ABC2XYZ"
    assert event.at == datetime(2026, 11, 21, 11, 0, 0, 123456, tzinfo=UTC)
    assert outcome(event) is expected_outcome


def test_event_id_is_unique_per_line() -> None:
    assert events_of(SENT)[0].event_id == events_of(SENT)[0].event_id
    assert len({events_of(line)[0].event_id for line in (SENT, DEFERRED, SENT.replace("2219", "2220"))}) == 3


def test_expired_message_gives_event_per_deferred_recipient() -> None:
    other = DEFERRED.replace("to=<ann@", "to=<bob@")
    sent = SENT.replace("to=<ann@", "to=<bob@")
    events = events_of(DEFERRED, DEFERRED, other, sent, EXPIRED)
    assert [(each.address, each.enhanced_status) for each in events[4:]] == [("ann@example.org", "4.4.7")]
    assert outcome(events[4]) is DeliveryOutcome.SOFT
    assert events_of(EXPIRED) == []


def test_removed_message_drops_deferred_recipients() -> None:
    parser = PostfixLogParser(UTC)
    events_of(DEFERRED, REMOVED, EXPIRED, parser=parser)
    assert parser.deferred == {}
    events_of(DEFERRED, parser=parser)
    assert parser.deferred == {"4Q1ABC2XYZ": ["ann@example.org"]}


FILTERED = SENT.replace("mail.example.org[192.0.2.1]:25", "127.0.0.1[127.0.0.1]:10024, conn_use=2").replace(
    "postfix/smtp[", "postfix/amavis/smtp["
)
FILTER_DOWN = CONNECTION_REFUSED.replace("mail.example.org[192.0.2.1]:25", "127.0.0.1[127.0.0.1]:10024")
DISCARDED = FILTERED.replace("amavis/smtp[", "discard[").replace("127.0.0.1[127.0.0.1]:10024, conn_use=2", "none")


@pytest.mark.parametrize(
    "line",
    [
        FILTERED,
        FILTERED.replace(" relay=", " orig_to=<x@example.org>, relay="),
        FILTERED.replace(" relay=", ' orig_to=<"a>b"@example.org>, relay='),
        FILTERED.replace("status=sent", "status=bounced").replace("dsn=2.0.0", "dsn=5.1.1"),
        FILTER_DOWN,
        DISCARDED,
        SENT.replace("mail.example.org[192.0.2.1]:25", "none"),
        SENT.replace("postfix/smtp[", "postfix/pipe[").replace("mail.example.org[192.0.2.1]:25", "dfilt"),
    ],
)
def test_line_about_own_system_gives_no_event(line: str) -> None:
    assert events_of(line) == []


@pytest.mark.parametrize(
    ("agent", "relay", "text"),
    [
        ("lmtp", "mx.example.org[private/dovecot-lmtp]", "250 2.0.0 <ann@example.org> JjRzHamrBWrQXAYA0J78UA Saved"),
        ("lmtp", "127.0.0.1[127.0.0.1]:24", "250 2.1.5 Ok"),
        ("local", "local", "delivered to maildir"),
    ],
)
def test_delivery_on_this_host_has_no_reply_code(agent: str, relay: str, text: str) -> None:
    line = SENT.replace("mail.example.org[192.0.2.1]:25", relay).replace("250 2.0.0 Ok: queued as 4Q1", text)
    (event,) = events_of(line.replace("postfix/smtp[", f"postfix/{agent}["))
    assert (event.smtp_code, outcome(event)) == (None, DeliveryOutcome.DELIVERED)


def test_message_filtered_each_day_keeps_its_soft_bounces() -> None:
    """The filter gets the message under one queue id. The filtered message has another."""
    bounce = DEFERRED.replace("4Q1ABC2XYZ", "4Q2FILTERED")
    lines = [line.replace("-21T", f"-{day}T") for day in (19, 20, 21) for line in (FILTERED, bounce)]
    events = events_of(*lines)
    assert [(outcome(each), each.message_id) for each in events] == [(DeliveryOutcome.SOFT, "4Q2FILTERED")] * 3


def test_recipient_deferred_by_filter_does_not_expire() -> None:
    parser = PostfixLogParser(UTC)
    assert events_of(FILTER_DOWN, EXPIRED, parser=parser) == []
    assert parser.deferred == {}


@pytest.mark.parametrize("line", [FILTERED, DISCARDED, FILTERED.replace("status=sent", "status=bounced")])
def test_deferred_recipient_that_leaves_queue_never_expires(line: str) -> None:
    parser = PostfixLogParser(UTC)
    assert len(events_of(DEFERRED, parser=parser)) == 1
    assert events_of(line, EXPIRED, parser=parser) == []


def test_deferred_recipient_expires_after_failure_of_filter() -> None:
    assert [each.enhanced_status for each in events_of(DEFERRED, FILTER_DOWN, EXPIRED)] == ["4.2.2", "4.4.7"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "2026-11-21T11:00:00+00:00 mx sshd[1]: Accepted publickey for root",
        "2026-11-21T11:00:00+00:00 mx postfix/smtpd[1]: connect from unknown[192.0.2.1]",
        "2026-11-21T11:00:00+00:00 mx postfix/smtp[1]: 4Q1ABC2XYZ: to=<ann@example.org>, status=weird",
        "2026-11-21T11:00:00+00:00 mx postfix/cleanup[1]: 4Q1ABC2XYZ: message-id=<1@example.org>",
        HEAD + "host mail.example.org[192.0.2.1] said: 450 4.7.1 Greylisted (in reply to RCPT TO command)",
        "\x00\x01\x02",
    ],
)
def test_other_lines_give_no_event(line: str) -> None:
    assert events_of(line) == []


def test_line_without_year_is_dated_in_the_year_before_now() -> None:
    tokyo = PostfixLogParser(ZoneInfo("Asia/Tokyo"))
    line_without_year = "Nov 21 20:00:00" + SENT[len("2026-11-21T11:00:00.123456+00:00") :]
    assert events_of(line_without_year, parser=tokyo)[0].at == datetime(2026, 11, 21, 11, 0, tzinfo=UTC)
    assert events_of(line_without_year.replace("Nov 21", "Dec  3"), parser=tokyo)[0].at == datetime(
        2025, 12, 3, 11, 0, tzinfo=UTC
    )
    assert events_of(line_without_year.replace("Nov 21", "Feb 29"), parser=tokyo)[0].at == NOW


def test_line_read_after_new_year_keeps_its_year() -> None:
    line = "Dec 31 23:59:59" + SENT[len("2026-11-21T11:00:00.123456+00:00") :]
    (event,) = PostfixLogParser(UTC).parse_line(line.encode(), datetime(2027, 1, 1, 0, 0, 5, tzinfo=UTC))
    assert event.at == datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
