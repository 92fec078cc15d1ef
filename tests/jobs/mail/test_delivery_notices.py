"""Notices of delay and final bounces, as different mail servers write them."""

import pytest

from jobs.mail.delivery_notices import is_delay_notice, is_from_mail_server
from jobs.mail.report_parts import parsed_report


def is_delay(subject: str, text: str) -> bool:
    return is_delay_notice(parsed_report(f"Subject: {subject}\n\n".encode()), text)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Delayed Mail (still being retried)", ""),
        ("=?utf-8?Q?Delivery_Status_Notification_(Delay)?=", ""),
        ("=?utf-8?B?6YWN5L+h6YGF5bu2?=", ""),
        ("Warning: could not send message for past 4 hours", ""),
        ("Message could not be delivered yet", ""),
        ("Notice", "Attempts to deliver the message will continue to be made for 3 days."),
        ("Notice", "We will keep\ntrying."),
        ("Notice", "The message has been delayed."),
        ("Notice", "This is just a warning, you do not need to take any action."),
        ("Notice", "The server will retry for 2 days, and has not yet given up."),
    ],
)
def test_delay_is_recognized(subject: str, text: str) -> None:
    assert is_delay(subject, text)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("failure notice", "I've given up."),
        ("Mail delivery failed", "The message has been delayed. It has been returned."),
        ("Undeliverable: News", "The message was deferred."),
        ("Notice", "I will keep trying no more: this is a permanent error."),
        ("Notice", "550 5.1.1 User unknown"),
        ("", ""),
    ],
)
def test_final_bounce_is_no_delay(subject: str, text: str) -> None:
    assert not is_delay(subject, text)


def test_mail_server_is_recognized_by_sender() -> None:
    senders = ["From: MAILER-DAEMON@a", "From: Mail Delivery Subsystem <x@a>", "Return-Path: <>", "From: Ann <ann@a>"]
    found = [is_from_mail_server(parsed_report(f"{each}\n\n".encode())) for each in senders]
    assert found == [True, True, True, False]


def test_malformed_subject_is_read() -> None:
    assert not is_delay("=?utf-8?B?a?=", "")
    assert not is_delay("=?no-such-charset?Q?a?=", "")
