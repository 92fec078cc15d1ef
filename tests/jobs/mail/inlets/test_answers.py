"""Codes of answers in the texts and classes of providers."""

import pytest

from jobs.mail.inlets.answers import failure, success
from jobs.mail.reply_codes import ReplyCodes


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("smtp; 550 5.1.1 user unknown", "5.1.1", ReplyCodes(550, "5.1.1")),
        ("smtp; 550 5.1.1 user unknown", "5.0.0", ReplyCodes(550, "5.1.1")),
        ("smtp; 550 user unknown", "5.0.0", ReplyCodes(550, "5.9.9")),
        ("smtp;552 over quota", "5.2.2", ReplyCodes(552, "5.2.2")),
        ("500 unknown recipient", None, ReplyCodes(500, "5.9.9")),
        ("no answer", "odd", ReplyCodes(None, "5.9.9")),
        ("", None, ReplyCodes(None, "5.9.9")),
    ],
)
def test_most_specific_status_of_failure_is_chosen(text: str, status: str | None, expected: ReplyCodes) -> None:
    assert failure(text, status, "5.9.9") == expected


def test_success_has_status_without_code() -> None:
    assert success("250 2.6.0 Message received") == ReplyCodes(250, "2.0.0")
    assert success("Test delivery") == ReplyCodes(None, "2.0.0")
