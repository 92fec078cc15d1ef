"""Delivery events of the demo: 13 days of mail, of which most is delivered and some bounces."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from server.demo.cast import DemoUser, user

SENT_A_DAY = 400
_BOUNCES_BY_DAY = (3, 5, 4, 6, 2, 9, 14, 7, 4, 3, 5, 2, 4)
"""Numbers of bounces: today, yesterday, and so on. Events may be 13 days old at most."""

_DELIVERED = ("ann@harbour.example", 250, "2.0.0")
_GONE = ("gone@harbour.example", 550, "5.1.1")
_FULL = ("full@valley.example", 452, "4.2.2")
_CLOSED = ("who@closed.example", 550, "5.1.2")


def senders() -> list[DemoUser]:
    """Returns the users in whose names mail is recorded: one of each organization."""
    return [user("ken"), user("liam")]


def days_of_mail(now: datetime) -> Iterator[list[dict[str, object]]]:
    """Yields the events of each day, today first, in the form of DeliveryEventInput."""
    for days_ago, bounce_count in enumerate(_BOUNCES_BY_DAY):
        bounces = [_GONE, _FULL, *([_CLOSED] if days_ago == 1 else [])]
        bounces += [(f"former{days_ago}-{n}@valley.example", 550, "5.1.1") for n in range(bounce_count - len(bounces))]
        answers = [_DELIVERED] * (SENT_A_DAY - len(bounces)) + bounces
        yield [_event(now - timedelta(days=days_ago), n, *answer) for n, answer in enumerate(answers)]


def _event(at: datetime, number: int, address: str, code: int, status: str) -> dict[str, object]:
    name = f"demo-{at:%Y-%m-%d}-{number}"
    fields = {"eventId": name, "messageId": name, "at": at.isoformat(), "address": address}
    return {**fields, "smtpCode": code, "enhancedStatus": status}
