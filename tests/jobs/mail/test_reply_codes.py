"""Codes in the sentences of mail servers, and numbers that are no codes."""

import pytest

from jobs.mail.reply_codes import ReplyCodes, failure_codes, failure_statuses, is_specific


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("550 5.1.1 User unknown", 550, "5.1.1"),
        ("550-5.1.1 The account\n550 5.1.1 does not exist", 550, "5.1.1"),
        ("host mx.example.org[192.0.2.1] said: 452 4.2.2 Mailbox full", 452, "4.2.2"),
        ("The error that the other server returned was: 554 554 5.7.1 blocked", 554, "5.7.1"),
        ("550: 5.2.2 Mailbox full", 550, "5.2.2"),
        ("<<< 550 5.1.1 <ann@example.org>... User unknown", 550, "5.1.1"),
        ("    (reason: 550 User unknown)", 550, None),
        ('smtp;550 "Unknown User"', 550, None),
        ("SMTP error 550, user unknown", 550, None),
        ("Error code: 550.", 550, None),
        ("Remote host said: 550 No such user (#5.1.1)", 550, "5.1.1"),
        ("Sorry, no mailbox here by that name. (#5.1.1)", None, "5.1.1"),
        ("<mx.example.org #5.2.2>", None, "5.2.2"),
        ("Status: 5.1.10", None, "5.1.10"),
        ("5.1.0 - Unknown address error 550-'5.1.1 no such user'", 550, "5.1.0"),
        ("552 message too large", 552, None),
        ("450 mailbox busy", 450, None),
        # Codes of two classes that do not stand together are two answers.
        ("host a said: 550 refused; and later (#4.4.1)", 550, None),
        ("(#4.4.1) and before that, host a said: 550 refused", None, "4.4.1"),
    ],
)
def test_codes_are_read_where_servers_write_them(text: str, code: int | None, status: str | None) -> None:
    assert failure_codes(text) == ReplyCodes(code, status)


@pytest.mark.parametrize(
    "text",
    [
        "250 OK",
        "2.1.5 delivered",
        "a bottle of 450 ml",
        "450 ml of milk",
        "(size: 552 KB)",
        "Size: 552",
        "Message size is 500 MB",
        "Sent to: 450 recipients",
        "500 messages in the last hour",
        "10:20:550 ",
        "Fri, 20 Nov 2026 09:30:00 +0500 ",
        "on 4.1.26 10:30",
        "4.1.26 10:30",
        "Date: 4.1.26",
        "PHPMailer 5.2.1",
        "PHPMailer: 5.2.1",
        "sent by Example (version 5.2.1)",
        "Mailer (5.2.1)",
        "(Exim 4.94.2)",
        "Example/5.2.1",
        "v5.2.1",
        "[5.1.1.7]",
        "host mx[192.0.2.550] refused",
        "4.5.6.7 refused",
        "queue id 450ABC",
        "id: 550-12345",
        "Phone: 450-555-1234",
        "call 450 555 1234",
        "450 555 1234",
        "costs: 500 yen",
        "(500 €)",
        "5.12.2026",
        "555-1234",
    ],
)
def test_other_numbers_are_no_codes(text: str) -> None:
    assert failure_codes(f"It failed.\n{text}\nSorry.") == ReplyCodes()


def test_statuses_are_in_order_of_text() -> None:
    assert failure_statuses("5.1.0 - error 550 5.1.1 (#5.2.2) 5.3.3") == ["5.1.0", "5.1.1", "5.2.2"]


def test_status_of_class_only_is_not_specific() -> None:
    assert [is_specific(each) for each in ("5.0.0", None, "5.1.0", "4.2.2")] == [False, False, True, True]
