"""Bounces without a delivery-status part: only their own text counts, and each address has its own reason."""

from base64 import encodebytes
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from jobs.mail.reports import NotADeliveryReport, delivery_events
from storage.mail.records import DeliveryEvent

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

QMAIL = """\
Hi. This is the qmail-send program at example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<gone@example.net>:
192.0.2.250 does not like recipient.
Remote host said: {reason}
Giving up on 192.0.2.250.
"""

EXIM = """\
This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  gone@example.net
    host mx.example.net [192.0.2.1]: {reason}
"""

ORIGINAL = """\
Return-Path: <news@example.com>
Received: from news.example.com by mx (Exim 4.94.2) with ESMTP id 5.2.2; 550 5.7.1
X-Mailer: PHPMailer 5.2.1
From: news@example.com
To: gone@example.net
Subject: 250 ml

450 4.2.2 for 250 ml, or:
550 5.1.1 User unknown
"""

SEPARATORS = [
    "--- Below this line is a copy of the message.",
    "--- Below the next line is a copy of the message.",
    "------ This is a copy of the message, including all the headers. ------",
    "------ This is a copy of the message's headers. ------",
    "----- Original message -----",
    "-----Original Message-----",
    "   ----- Original message follows -----",
    "   ----- Unsent message follows -----",
    "   ----- Message header follows -----",
    "--- Original message follows.",
    "-------- Returned Mail --------",
    "---- START OF RETURNED MESSAGE ----",
    "--- The header of the original message is following. ---",
    "Message header follows",
    "Original message headers:",
    "Unsent message below",
    "Message text follows:",
    "Original message follows.",
    "A copy of the original message is below.",
    "Included is a copy of the message header:",
    "Your message reads (in part):",
    "-----Ursprüngliche Nachricht-----",
    "----- 元のメッセージ -----",
]


def bounce(text: str, header: str = "", subject: str = "failure notice") -> str:
    return f"From: MAILER-DAEMON@example.net\nSubject: {subject}\nMessage-ID: <b@example.net>\n{header}\n{text}"


def events_of(report: str) -> list[DeliveryEvent]:
    return delivery_events(report.encode(), NOW)


def codes_of(report: str) -> list[tuple[str, int | None, str | None]]:
    return [(each.address, each.smtp_code, each.enhanced_status) for each in events_of(report)]


@pytest.mark.parametrize("form", [QMAIL, EXIM])
@pytest.mark.parametrize("separator", [*SEPARATORS, "", "\n\n"])
def test_quoted_original_gives_no_code(form: str, separator: str) -> None:
    quoted = f"\n{separator}\n\n{ORIGINAL}"
    blocked = codes_of(bounce(form.format(reason="blocked using zen.spamhaus.org") + quoted))
    assert blocked == [("gone@example.net", 550, None)]
    unknown = codes_of(bounce(form.format(reason="550 5.1.1 User unknown") + quoted))
    assert unknown == [("gone@example.net", 550, "5.1.1")]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_quoted_text_without_header_gives_no_code(separator: str) -> None:
    (event,) = events_of(bounce(QMAIL.format(reason="refused") + f"\n{separator}\n\n550 5.1.1 User unknown\n"))
    assert event.enhanced_status is None
    assert event.diagnostic is not None
    assert "User unknown" not in event.diagnostic


@pytest.mark.parametrize(
    "quoted",
    [
        "From: news@example.com\nTo: gone@example.net\n\n550 5.1.1 User unknown",
        "To: gone@example.net\nSubject: News\nDate: Fri, 20 Nov 2026 09:30:00 +0500\n\n550 5.1.1 User unknown",
        "> Received: from news.example.com (Exim 4.94.2)\n> 550 5.1.1 User unknown",
        "  DKIM-Signature: v=1;\n  550 5.1.1 User unknown",
        "MIME-Version: 1.0\n550 5.1.1 User unknown",
    ],
)
def test_quoted_header_without_separator_gives_no_code(quoted: str) -> None:
    assert codes_of(bounce(QMAIL.format(reason="refused") + f"\n{quoted}\n")) == [("gone@example.net", 550, None)]


@pytest.mark.parametrize("kind", ["message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers"])
def test_attached_original_gives_no_code(kind: str) -> None:
    parts = f"--B\n\n{QMAIL.format(reason='refused')}\n--B\nContent-Type: {kind}\n\n{ORIGINAL}\n--B--\n"
    report = bounce(parts, 'Content-Type: multipart/mixed; boundary="B"\nX-Failed-Recipients: gone@example.net\n')
    assert codes_of(report) == [("gone@example.net", 550, None)]


def test_header_of_bounce_gives_no_code() -> None:
    header = "Received: from a (Exim 4.94.2) id 550 5.1.1; 450 4.2.2\nX-Mailer: PHPMailer 5.2.1\n"
    assert codes_of(bounce(QMAIL.format(reason="refused"), header)) == [("gone@example.net", 550, None)]


@pytest.mark.parametrize("reason", ["250 OK", "250 2.1.5 delivered", "200 ml", "2.0.0"])
def test_bounce_is_never_a_delivery(reason: str) -> None:
    assert codes_of(bounce(QMAIL.format(reason=reason))) == [("gone@example.net", 550, None)]


TEXT = QMAIL.format(reason="552 5.2.2 Mailbox full – 一杯")
HTML = TEXT.replace("<", "&lt;").replace(">", "&gt;").replace("\n", "<br>\r\n")


def encoded(text: str, kind: str, encoding: str, charset: str) -> str:
    message = EmailMessage()
    message.set_content(text, subtype=kind, cte=encoding, charset=charset)
    return bounce(str(message.get_payload()), "".join(f"{name}: {value}\n" for name, value in message.items()))


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
@pytest.mark.parametrize("charset", ["utf-8", "gb18030"])
@pytest.mark.parametrize(("text", "kind"), [(TEXT, "plain"), (HTML, "html")])
def test_encoded_text_is_read(text: str, kind: str, encoding: str, charset: str) -> None:
    (event,) = events_of(encoded(text, kind, encoding, charset))
    assert (event.address, event.smtp_code, event.enhanced_status) == ("gone@example.net", 552, "5.2.2")
    assert event.diagnostic is not None
    assert "Mailbox full – 一杯" in event.diagnostic


def test_parts_of_multipart_are_decoded() -> None:
    html = encodebytes(f"<html><head><style>p {{ width: 550 }}</style></head><body>{HTML}".encode()).decode()
    parts = f"--B\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n{html}\n--B--\n"
    for kind in ("alternative", "mixed"):
        report = bounce(parts, f"Content-Type: multipart/{kind}; boundary=B\n")
        assert codes_of(report) == [("gone@example.net", 552, "5.2.2")]


TWO_REASONS = """\
<a@example.net>:
Remote host said: 550 5.1.1 User unknown

<b@example.net>:
Remote host said: 452 4.2.2 Mailbox full

<c@example.net>:
We do not like you.
"""

TRANSCRIPT = """\
   ----- The following addresses had permanent fatal errors -----
<a@example.net>
<b@example.net>

   ----- Transcript of session follows -----
... while talking to mx.example.net.:
>>> RCPT To:<a@example.net>
<<< 550 5.1.1 <a@example.net>... User unknown
>>> RCPT To:<b@example.net>
<<< 452 4.2.2 <b@example.net>... Mailbox full
"""


def test_each_address_has_the_reason_after_it() -> None:
    qmail = QMAIL[: QMAIL.index("<gone")] + TWO_REASONS
    assert codes_of(bounce(qmail)) == [
        ("a@example.net", 550, "5.1.1"),
        ("b@example.net", 452, "4.2.2"),
        ("c@example.net", 550, None),
    ]
    diagnostics = [each.diagnostic or "" for each in events_of(bounce(qmail))]
    assert ["User unknown" in each for each in diagnostics] == [True, False, False]


def test_each_address_has_its_lines_of_the_transcript() -> None:
    assert codes_of(bounce(TRANSCRIPT)) == [("a@example.net", 550, "5.1.1"), ("b@example.net", 452, "4.2.2")]


def test_addresses_in_a_list_share_the_reason() -> None:
    header = "X-Failed-Recipients: a@example.net, b@example.net\n"
    for text in (
        "550 5.1.1 User unknown:\n  a@example.net\n  b@example.net\n",
        "  a@example.net\n  b@example.net\n\nReason: 550 5.1.1 User unknown\n",
        "The reason: 550 5.1.1 User unknown\n",
    ):
        assert codes_of(bounce(text, header)) == [("a@example.net", 550, "5.1.1"), ("b@example.net", 550, "5.1.1")]


def test_address_that_begins_another_is_not_confused() -> None:
    qmail = (
        QMAIL[: QMAIL.index("<gone")] + "<x.a@example.net>:\n452 4.2.2 Full\n\n<a@example.net>:\n550 5.1.1 Unknown\n"
    )
    assert codes_of(bounce(qmail)) == [("a@example.net", 550, "5.1.1"), ("x.a@example.net", 452, "4.2.2")]


@pytest.mark.parametrize(
    ("reason", "code", "status"),
    [("(#4.4.1)", None, "4.4.1"), ("(#4.0.0)", 450, "4.0.0"), ("(#5.0.0)", 550, "5.0.0"), ("refused", 550, None)],
)
def test_missing_code_is_replaced_only_without_specific_status(
    reason: str, code: int | None, status: str | None
) -> None:
    assert codes_of(bounce(QMAIL.format(reason=reason))) == [("gone@example.net", code, status)]


DELAYS = [
    ("Delayed Mail (still being retried)", "Your message could not be delivered for more than 4 hour(s)."),
    (
        "Warning: could not send message for past 4 hours",
        "    ----- The following addresses had delivery problems -----",
    ),
    ("Warning: message 1a-2b-3c delayed 24 hours", "The message has not yet been delivered."),
    ("Delivery Status Notification (Delay)", "There was a temporary problem."),
    ("Mail", "Warning: message still undelivered after 4 hours\nWill keep trying until message is 5 days old"),
    ("Mail", "Delivery temporarily suspended. It will be retried."),
    ("Mail", "# THIS IS A WARNING ONLY. YOU DO NOT NEED TO RESEND YOUR MESSAGE. #"),
    ("Returned mail", "You do not need to resend\nyour message."),
    ("Undelivered Mail Returned to Sender", "It will be retried until it is 5 day(s) old."),
    ("Mail", "No action is required on your part. Delivery attempts will continue for some time."),
    (
        "Delivery incomplete",
        "Gmail will retry for 46 more hours. You'll be notified if the delivery fails permanently.",
    ),
]


@pytest.mark.parametrize(("subject", "text"), DELAYS)
@pytest.mark.parametrize("header", ["", "X-Failed-Recipients: late@example.net\n"])
def test_notice_of_delay_gives_no_event(subject: str, text: str, header: str) -> None:
    assert events_of(bounce(f"<late@example.net>: 450 4.2.2 full\n{text}\n", header, subject)) == []


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("failure notice", "450 4.2.2 full, delivery temporarily suspended"),
        ("Undelivered Mail Returned to Sender", "delivery temporarily suspended: connect to mx: timed out"),
        ("Mail delivery failed: returning message to sender", "retry timeout exceeded. It will not be retried."),
        ("Mail", "This is a permanent error. You do not need to resend."),
        ("Mail", "No further attempts will be made; your message has been delayed for 5 days."),
    ],
)
def test_final_bounce_that_mentions_a_delay_counts(subject: str, reason: str) -> None:
    report = bounce(f"<late@example.net>: {reason}\n", "X-Failed-Recipients: late@example.net\n", subject)
    assert [each.address for each in events_of(report)] == ["late@example.net"]


@pytest.mark.parametrize(
    "text",
    [
        "I am on holiday until Monday. I will try again to read my mail then. 550 5.1.1",
        "Your message will be retried by me on Monday. No action is required.",
        f"Dear support, I got this:\n\n---------- Forwarded message ---------\n{QMAIL}",
        f"Dear support, I got this:\n\n-----Original Message-----\nFrom: MAILER-DAEMON\n\n{EXIM}",
    ],
)
def test_message_of_a_person_is_refused(text: str) -> None:
    with pytest.raises(NotADeliveryReport):
        events_of(f"From: ann@example.org\nSubject: Away\nAuto-Submitted: auto-replied\n\n{text}\n")


def test_address_that_looks_like_a_header_field_is_found() -> None:
    """The lines of the address are taken for a quoted header at first."""
    text = (
        "We wasn't able to deliver the following message\n\nFrom: news@example.com\nTo: gone@example.net\n"
        "Reason: 550 5.1.1 User unknown\n"
    )
    assert codes_of(bounce(text)) == [("gone@example.net", 550, "5.1.1")]


def test_malformed_address_is_skipped() -> None:
    qmail = QMAIL[: QMAIL.index("<gone")] + "<nobody>:\nx\n\n<a@example.net>:\n550 5.1.1 Unknown\n"
    assert codes_of(bounce(qmail)) == [("a@example.net", 550, "5.1.1")]
