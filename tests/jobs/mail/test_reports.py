"""Delivery events from DSNs and complaints of real mail servers, and input that raises NotADeliveryReport."""

from base64 import encodebytes
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.mail.reports import NotADeliveryReport, delivery_events
from storage.mail.classifier import DeliveryOutcome
from storage.mail.records import DeliveryEvent, DeliveryEventKind
from tests.storage.mail.model import outcome

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

DSN = """\
From: MAILER-DAEMON@mx.example.org (Mail Delivery System)
To: news@example.com
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
Date: Fri, 20 Nov 2026 09:30:00 +0900
Message-ID: <20261120003000.4Q1ABC@mx.example.org>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

I'm sorry to have to inform you that your message could not be delivered.

--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org
X-Postfix-Queue-ID: 4Q1ABC
Arrival-Date: Fri, 20 Nov 2026 09:29:58 +0900

Final-Recipient: rfc822; gone@example.org
Original-Recipient: rfc822;Gone@Example.org
Action: failed
Status: 5.1.1
Remote-MTA: dns; mail.example.org
Diagnostic-Code: smtp; 550 5.1.1 <gone@example.org>: Recipient address
    rejected: User unknown

Final-Recipient: rfc822; full@example.org
Action: failed
Status: 5.2.2
Diagnostic-Code: smtp; 552 5.2.2 mailbox full

Final-Recipient: rfc822; late@example.org
Action: delayed
Status: 4.4.1

Final-Recipient: rfc822; fine@example.org
Action: delivered
Status: 2.1.5

--B
Content-Type: message/rfc822

From: news@example.com
To: gone@example.org
Message-ID: <news-1@example.com>
Subject: News

Hello
--B--
"""

ARF = """\
From: <abusedesk@example.net>
Date: Fri, 20 Nov 2026 17:40:36 +0000
Subject: FW: Earn money
To: <abuse@example.com>
Message-ID: <arf-1@example.net>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="part1_13d.2e68ed54_boundary"

--part1_13d.2e68ed54_boundary
Content-Type: text/plain; charset="US-ASCII"

This is an email abuse report for an email message.

--part1_13d.2e68ed54_boundary
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: SomeGenerator/1.0
Version: 1
Original-Mail-From: <somespammer@example.com>
Original-Rcpt-To: <user@example.net>
Received-Date: Thu, 19 Nov 2026 14:00:00 EDT

--part1_13d.2e68ed54_boundary
Content-Type: message/rfc822
Content-Disposition: inline

From: <somespammer@example.com>
To: <Undisclosed Recipients> other@example.net
Subject: Earn money
Message-ID: 8787KJKJ3K4J3K4J3K4J3.mail@example.net

Spam Spam Spam
--part1_13d.2e68ed54_boundary--
"""


def events_of(text: str) -> list[DeliveryEvent]:
    return delivery_events(text.encode(), NOW)


def test_dsn_gives_event_per_final_recipient() -> None:
    gone, full, fine = events_of(DSN)
    assert (gone.address, gone.smtp_code, gone.enhanced_status) == ("Gone@Example.org", 550, "5.1.1")
    assert gone.diagnostic is not None
    assert "Recipient address rejected: User unknown" in gone.diagnostic
    assert gone.at == datetime(2026, 11, 20, 0, 30, tzinfo=UTC)
    # With a queue id of Postfix, the DSN's message id is the queue id, not the Message-ID header.
    assert gone.message_id == "4Q1ABC"
    assert [outcome(each) for each in (gone, full, fine)] == [
        DeliveryOutcome.HARD,
        DeliveryOutcome.SOFT,
        DeliveryOutcome.DELIVERED,
    ]
    assert (full.address, fine.address) == ("full@example.org", "fine@example.org")


def test_report_by_another_route_has_same_event_ids() -> None:
    forwarded = f"Received: from somewhere\n{DSN}"
    assert [each.event_id for each in events_of(forwarded)] == [each.event_id for each in events_of(DSN)]
    assert len({each.event_id for each in events_of(DSN)}) == 3


def test_dsn_without_queue_id_uses_original_message_id() -> None:
    assert events_of(DSN.replace("X-Postfix-Queue-ID: 4Q1ABC\n", ""))[0].message_id == "<news-1@example.com>"


def test_report_without_date_has_current_time() -> None:
    assert events_of(DSN.replace("Date: Fri, 20 Nov 2026 09:30:00 +0900\n", "", 1))[0].at == NOW


def test_failed_recipient_without_status_counts_nothing() -> None:
    event = events_of(
        DSN.replace("Status: 5.1.1\n", "").replace("550 5.1.1 <gone", "<gone").replace("User unknown", "no")
    )[0]
    assert outcome(event) is DeliveryOutcome.NOTHING


def test_complaint_gives_event_of_recipient() -> None:
    (event,) = events_of(ARF)
    assert (event.kind, event.address) == (DeliveryEventKind.COMPLAINT, "user@example.net")


@pytest.mark.parametrize("name", ["Received-Date", "Arrival-Date"])
def test_complaint_of_old_message_has_date_of_report(name: str) -> None:
    old_complaint = ARF.replace("Received-Date: Thu, 19 Nov", f"{name}: Mon, 02 Nov")
    assert events_of(old_complaint)[0].at == datetime(2026, 11, 20, 17, 40, 36, tzinfo=UTC)


def test_complaint_without_recipient_uses_original_message() -> None:
    (event,) = events_of(ARF.replace("Original-Rcpt-To: <user@example.net>\n", ""))
    assert event.address == "other@example.net"


@pytest.mark.parametrize("kind", ["not-spam", "auth-failure", "virus", "Virus (Example/1.0)", "unknown", ""])
def test_feedback_without_complaint_gives_no_event(kind: str) -> None:
    assert events_of(ARF.replace("Feedback-Type: abuse", f"Feedback-Type: {kind}")) == []


@pytest.mark.parametrize("kind", ["abuse", "Abuse (spam)", "fraud", "other", "opt-out", "opt-out-list"])
def test_feedback_of_recipient_is_complaint(kind: str) -> None:
    (event,) = events_of(ARF.replace("Feedback-Type: abuse", f"Feedback-Type : {kind}"))
    assert event.kind is DeliveryEventKind.COMPLAINT


def test_encoded_feedback_report_is_read() -> None:
    fields = ARF[ARF.index("Feedback-Type") : ARF.index("Received-Date")]
    encoded = f"Content-Transfer-Encoding: base64\n\n{encodebytes(fields.encode()).decode()}"
    (event,) = events_of(ARF.replace(f"\n{fields}", encoded))
    assert event.address == "user@example.net"


@pytest.mark.parametrize("kind", ["message/rfc822", "message/global", "message/rfc822 (forwarded)"])
@pytest.mark.parametrize("report", [DSN, ARF])
def test_report_in_attached_message_is_refused(report: str, kind: str) -> None:
    """A person forwards a report, which was delivered to its own addressee too."""
    forwarded = f"--F\n\nWhat is this?\n\n--F\nContent-Type: {kind}\n\n{report}\n--F--\n"
    with pytest.raises(NotADeliveryReport):
        events_of(f"From: ann@example.org\nContent-Type: multipart/mixed; boundary=F\n\n{forwarded}")


def test_report_about_a_report_has_only_its_own_events() -> None:
    about_dsn = DSN[: DSN.index("From: news@example.com\nTo: gone")] + DSN.replace(
        "@example.org", "@inner.example"
    ).replace('"B"', "C").replace("--B", "--C")
    assert [each.address for each in events_of(about_dsn)] == [each.address for each in events_of(DSN)]


QMAIL = """\
Return-Path: <>
From: MAILER-DAEMON@example.net
To: news@example.com
Subject: failure notice
Date: Fri, 20 Nov 2026 10:00:00 +0000

Hi. This is the qmail-send program at example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<gone@example.net>:
Sorry, no mailbox here by that name. (#5.1.1)

--- Below this line is a copy of the message.

Return-Path: <news@example.com>
Subject: News
"""


def test_nonstandard_bounce_is_classified_by_text() -> None:
    (event,) = events_of(QMAIL)
    assert event.address == "gone@example.net"
    assert outcome(event) is DeliveryOutcome.HARD


def test_nonstandard_bounce_without_reason_counts_nothing() -> None:
    (event,) = events_of(QMAIL.replace("Sorry, no mailbox here by that name. (#5.1.1)", "We don't like you."))
    assert outcome(event) is DeliveryOutcome.NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "",
        "From: ann@example.org\nSubject: Away\nAuto-Submitted: auto-replied\n\nI am on holiday until Monday.\n",
        "\0\xff" * 50,
        "".join(f"Content-Type: multipart/mixed; boundary=B{n}\n\n--B{n}\n" for n in range(2000)),
        "Content-Type: multipart/report; boundary=B\n\n--B--\n",
    ],
)
def test_other_message_is_refused(text: str) -> None:
    with pytest.raises(NotADeliveryReport):
        events_of(text)


def test_invalid_recipient_in_a_dsn_is_skipped() -> None:
    dsn = DSN.replace("rfc822; gone@example.org", "nobody").replace("rfc822;Gone@Example.org", "x")
    assert [each.address for each in events_of(dsn)] == ["full@example.org", "fine@example.org"]


def test_empty_report_gives_no_event() -> None:
    assert events_of("Content-Type: message/delivery-status\n\n\n") == []
    assert events_of("Content-Type: message/feedback-report\n\n\n") == []


PIECES = [
    *DSN.splitlines(keepends=True),
    *ARF.splitlines(keepends=True),
    *QMAIL.splitlines(keepends=True),
    "Content-Type: text/html; charset=idna\n",
    "Content-Transfer-Encoding: base64\n",
    "X-Failed-Recipients: a@example.org, \xff\n",
    "Subject: \xff =?utf-8?B?a?=\n",
    "Date: \xff\nMessage-ID: \xff\n",
    "<![x[<p>",
    "\n",
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(PIECES).map(lambda piece: piece.encode("latin-1")), st.binary()), max_size=40)
)
def test_any_bytes_give_events_or_are_refused(pieces: list[bytes]) -> None:
    try:
        events = delivery_events(b"".join(pieces), NOW)
    except NotADeliveryReport:
        return
    assert all("@" in each.address for each in events)
