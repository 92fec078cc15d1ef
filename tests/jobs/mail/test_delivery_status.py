"""Delivery-status parts in the notations that RFC 3464 and RFC 6533 allow, and those that servers write."""

from base64 import encodebytes
from datetime import UTC, datetime

import pytest

from jobs.mail.delivery_status import parsed_delivery_status
from jobs.mail.reports import delivery_events
from storage.mail.records import DeliveryEvent

GONE = ("gone@example.org", 550, "5.1.1")
FULL = ("full@example.org", 552, "5.2.2")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

GROUP = """\
Final-Recipient: rfc822; gone@example.org
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 User unknown
"""

SECOND_GROUP = """\
Final-Recipient: rfc822; full@example.org
Action: failed
Status: 5.2.2
Diagnostic-Code: smtp; 552 5.2.2 Mailbox full
"""


def dsn(status: str, header: str = "Content-Type: message/delivery-status", after: str = "") -> str:
    return (
        'Message-ID: <d@mx.example.org>\nContent-Type: multipart/report; report-type=delivery-status; boundary="B"\n\n'
        f"--B\nContent-Type: text/plain\n\nSorry.\n\n--B\n{header}\n\n{status}\n{after}--B--\n"
    )


def group(**fields: str) -> str:
    """Returns the fields of a recipient, some of them replaced. A field without a value is left out."""
    values = {"Final-Recipient": "rfc822; gone@example.org", "Action": "failed", "Status": "5.1.1"}
    values |= {name.replace("_", "-"): value for name, value in fields.items()}
    return "Reporting-MTA: dns; mx\n\n" + "".join(f"{name}: {value}\n" for name, value in values.items() if value)


def events_of(report: str) -> list[DeliveryEvent]:
    return delivery_events(report.encode(), NOW)


def codes_of(report: str) -> list[tuple[str, int | None, str | None]]:
    return [(each.address, each.smtp_code, each.enhanced_status) for each in events_of(report)]


@pytest.mark.parametrize(
    "status",
    [
        f"Reporting-MTA: dns; mx\n\n{GROUP}",
        f"Reporting-MTA: dns; mx\n\n{GROUP}".replace("\n", "\r\n"),
        f"Reporting-MTA: dns; mx\n{GROUP}",
        f"\n\nReporting-MTA: dns; mx\n\n\n \n{GROUP}\n\n",
        GROUP,
        GROUP.replace("Action", "\nAction"),
        GROUP.replace("Status", "\nStatus").replace("Diagnostic", "\n\nDiagnostic"),
        GROUP.replace(": ", " : "),
        GROUP.replace(": ", ":"),
        GROUP.replace("Final-Recipient", "FINAL-recipient").replace("Action: failed", "action: FAILED"),
        GROUP.replace("failed", "failed (user unknown)"),
        GROUP.replace("failed", "(final) failed"),
        GROUP.replace("Status: 5.1.1", "Status: 5.1.1 (bad destination mailbox address)"),
        GROUP.replace("Status: 5.1.1", "Status: (was 4.2.2) 5.1.1"),
        GROUP.replace("rfc822; gone@example.org", "rfc822;\n gone@example.org\n (Ann)"),
        GROUP.replace("gone@example.org", '"Ann" <gone@example.org>'),
        GROUP.replace("smtp; 550 5.1.1 User", "smtp;\n\t550 5.1.1\n User"),
        GROUP.replace("smtp; 550 5.1.1 User", "smtp; 550-5.1.1 No\n 550 5.1.1 User"),
        GROUP.replace("smtp; 550 5.1.1 User", "smtp; 550-5.1.1 No\n550 5.1.1 User"),
        GROUP.replace("smtp; ", ""),
        GROUP.replace("smtp; ", "SMTP;"),
        GROUP.replace("smtp; ", "X-Postfix; host mx[192.0.2.1] said: "),
        GROUP.replace("smtp; ", "x-unix; "),
        f"Original-Recipient: rfc822; gone@example.org\n{GROUP.replace('gone@', 'alias@')}",
        GROUP.replace("Action", "Original-Recipient: rfc822;gone@example.org\nAction").replace("gone@", "alias@", 1),
        f"{GROUP.replace('gone@', 'alias@')}Original-Recipient: rfc822;gone@example.org\n",
        f"Original-Recipient: rfc822;\n{GROUP}",
        f"Original-Recipient: x400; /C=JP/\n{GROUP}",
        # The diagnostic is longer than a line, and mentions numbers that are no codes.
        GROUP.replace("unknown", "unknown; 450 ml; PHPMailer 5.2.1"),
    ],
)
def test_notation_of_fields_makes_no_difference(status: str) -> None:
    assert codes_of(dsn(status)) == [GONE]


@pytest.mark.parametrize(
    "status",
    [
        f"Reporting-MTA: dns; mx\n\n{GROUP}\n{SECOND_GROUP}",
        f"Reporting-MTA: dns; mx\n{GROUP}{SECOND_GROUP}",
        f"Original-Recipient: {GONE[0]}\n{GROUP}Original-Recipient: {FULL[0]}\n{SECOND_GROUP}",
        f"{GROUP}Original-Recipient: rfc822; full@example.org\n{SECOND_GROUP.replace('full@', 'alias@')}",
        f"{GROUP}\n\n\nOriginal-Recipient: rfc822; full@example.org\n\n{SECOND_GROUP.replace('full@', 'alias@')}",
    ],
)
def test_groups_without_blank_lines_are_separated(status: str) -> None:
    events = events_of(dsn(status))
    assert [(each.address, each.smtp_code, each.enhanced_status) for each in events] == [GONE, FULL]
    assert [each.event_id.rpartition(":")[2] for each in events] == ["0", "1"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (
            "Content-Type: message/delivery-status\nContent-Transfer-Encoding: base64",
            encodebytes(GROUP.encode()).decode(),
        ),
        (
            "Content-Type: message/delivery-status\nContent-Transfer-Encoding: quoted-printable",
            GROUP.replace("User", "Us=\ner").replace("@", "=40"),
        ),
        ("content-type: MESSAGE/Delivery-Status; charset=utf-8", GROUP),
        ("Content-Type: message/delivery-status (RFC 3464)", GROUP),
        ("Content-Type: message/global-delivery-status", GROUP.replace("rfc822", "utf-8")),
        ("Content-Type: message/global-delivery-status", GROUP.replace("rfc822; g", r"utf-8; \x{67}")),
        (
            "Content-Type: message/global-delivery-status\nContent-Transfer-Encoding: base64",
            encodebytes(GROUP.encode()).decode(),
        ),
        ("Content-Type: text/plain", GROUP),
    ],
)
def test_encoding_and_type_of_part_make_no_difference(header: str, status: str) -> None:
    assert codes_of(dsn(status, header)) == [GONE]


def test_address_in_utf_8_is_kept() -> None:
    report = dsn(group(Final_Recipient="utf-8; あん@例え.jp"), "Content-Type: message/global-delivery-status")
    assert [each.address for each in events_of(report)] == ["あん@例え.jp"]


@pytest.mark.parametrize(
    ("status", "diagnostic", "expected"),
    [
        ("5.0.0", "smtp; 450 4.2.2 mailbox full", (450, "4.2.2")),
        ("5.0.0", "smtp; 550 5.1.1 User unknown", (550, "5.1.1")),
        ("5.0.0", "smtp; 550 refused (#5.1.1)", (550, "5.1.1")),
        ("5.0.0", "smtp; 550 refused", (550, "5.0.0")),
        ("4.0.0", "smtp; 450 busy", (450, "4.0.0")),
        ("", "smtp; 550 5.1.1 User unknown", (550, "5.1.1")),
        ("", "smtp; 550 refused", (550, "5.0.0")),
        ("5.1.0", "smtp; 5.1.0 - Unknown address error 550-'5.1.1 no such user'", (550, "5.1.1")),
        ("5.1.0", "smtp; 550 5.7.1 refused", (550, "5.1.0")),
        ("5.1.1", "smtp; 550 5.7.1 refused", (550, "5.1.1")),
        # A failure is never a delivery, and a program's exit code is no reply code.
        ("2.0.0", "smtp; 250 OK", (None, "5.0.0")),
        ("5.0.0", "smtp; 250 2.0.0 OK", (None, "5.0.0")),
        ("5.0.0", "x-unix; 67", (None, "5.0.0")),
        ("5.1.1", "smtp; message of 450 KB refused: 552 too large", (552, "5.1.1")),
    ],
)
def test_status_and_diagnostic_give_the_more_specific_code(
    status: str, diagnostic: str, expected: tuple[int | None, str]
) -> None:
    (event,) = events_of(dsn(group(Status=status, Diagnostic_Code=diagnostic)))
    assert (event.smtp_code, event.enhanced_status) == expected


@pytest.mark.parametrize(
    ("fields", "diagnostic"),
    [
        ({"X_Supplementary_Info": '< #5.1.1 smtp;550 "Unknown User">'}, '< #5.1.1 smtp;550 "Unknown User">'),
        (
            {"Diagnostic_Code": "smtp; failed", "X_Supplementary_Info": "<mx #5.1.1 smtp;550-5.1.1 Unknown User>"},
            "smtp; failed <mx #5.1.1 smtp;550-5.1.1 Unknown User>",
        ),
        ({"Status": "5.1.1 (Unknown User)"}, "Unknown User"),
        ({"Action": "failed (Unknown User)"}, "Unknown User"),
        ({"Diagnostic_Code": "smtp; 550 5.1.1 Gone", "X_Supplementary_Info": "x"}, "smtp; 550 5.1.1 Gone"),
    ],
)
def test_vague_diagnostic_is_supplemented(fields: dict[str, str], diagnostic: str) -> None:
    (event,) = events_of(dsn(group(**fields)))
    assert event.diagnostic == diagnostic
    assert event.enhanced_status == "5.1.1"


def test_supplementary_information_gives_codes() -> None:
    report = dsn(group(Status="5.0.0", X_Supplementary_Info='< #5.1.1 smtp;550 "Unknown User">'))
    assert codes_of(report) == [GONE]


@pytest.mark.parametrize("action", ["delayed", "delayed (still trying)", "relayed", "expanded", "unknown"])
def test_action_without_outcome_gives_no_event(action: str) -> None:
    assert events_of(dsn(group(Action=action, Status="4.4.1"))) == []


@pytest.mark.parametrize("action", ["failed", "Failed", "failure", "error", ""])
def test_failure_is_recognized(action: str) -> None:
    """OpenSMTPD writes `error`. Without an action, a status of class 5 is a failure."""
    assert [each.address for each in events_of(dsn(group(Action=action)))] == ["gone@example.org"]


def test_delivery_is_recognized() -> None:
    status = group(Action="delivered (to mailbox)", Status="2.1.5 (ok)", Diagnostic_Code="smtp; 250 2.1.5 OK")
    assert codes_of(dsn(status)) == [("gone@example.org", 250, "2.1.5")]
    assert codes_of(dsn(group(Action="delivered", Status="5.0.0"))) == [("gone@example.org", None, "2.0.0")]


def test_several_parts_count_and_repetitions_do_not() -> None:
    after = f"--B\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx\n\n{GROUP}\n{SECOND_GROUP}\n"
    assert codes_of(dsn(GROUP, after=after)) == [GONE, FULL]


@pytest.mark.parametrize(
    ("fields", "message_id"),
    [
        ("X-Postfix-Queue-ID: 4Q1ABC\nOriginal-Envelope-Id: e1\n", "4Q1ABC"),
        ("Original-Envelope-Id: e1\nOriginal-Message-ID: <m1@example.com>\n", "e1"),
        ("Original-Message-ID: <m1@example.com>\n", "<m1@example.com>"),
        ("X-Original-Message-ID: <m1@example.com>\n", "<m1@example.com>"),
        ("Reporting-MTA: dns; mx\n", "<news-1@example.com>"),
    ],
)
def test_message_id_is_of_the_reported_message(fields: str, message_id: str) -> None:
    original = "--B\nContent-Type: message/rfc822\n\nMessage-ID: <news-1@example.com>\n\nHello\n"
    (event,) = events_of(dsn(f"{fields}\n{GROUP}", after=original))
    assert event.message_id == message_id


def test_fields_of_message_are_no_recipient() -> None:
    status = parsed_delivery_status(f"Reporting-MTA: dns; mx\n\n{GROUP}\nX-Note: late\n")
    assert [[name for name, _ in fields] for fields in status.recipients] == [
        ["final-recipient", "action", "status", "diagnostic-code", "x-note"]
    ]
