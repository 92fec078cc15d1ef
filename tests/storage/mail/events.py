"""Delivery events of every kind."""

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from storage.mail.records import DeliveryEvent, DeliveryEventKind

ANSWERS: list[tuple[int | None, str | None, str | None]] = [
    (250, "2.0.0", "queued"),
    (250, None, None),
    (550, "5.1.1", "User unknown"),
    (550, None, "No such user here"),
    (450, "4.2.1", "try later"),
    (452, "4.2.2", "mailbox full"),
    (552, "5.2.2", "over quota"),
    (421, None, "too busy"),
    (None, "4.4.1", "connection timed out"),
    (None, None, "connection refused"),
    (450, "4.7.1", "greylisted"),
    (550, "5.7.1", "spam"),
    (554, None, "no"),
    (451, "4.3.0", "internal error"),
    (None, "4.4.7", "expired"),
    (451, "4.4.7", "too late"),
]
_IDS = itertools.count()


def today() -> datetime:
    """Returns noon of yesterday. Noon of the current day may still lie ahead."""
    return datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)


def event(
    address: str = "ann@example.org",
    smtp: int | None = None,
    status: str | None = None,
    text: str | None = None,
    *,
    at: datetime | None = None,
    days: float = 0,
    message: str | None = None,
    id_: str | None = None,
    complaint: bool = False,
) -> DeliveryEvent:
    """Returns an event `days` days before noon of yesterday."""
    kind = DeliveryEventKind.COMPLAINT if complaint else DeliveryEventKind.DELIVERY
    when = at or today() - timedelta(days=days)
    return DeliveryEvent(id_ or f"e{next(_IDS)}", address, when, kind, smtp, status, text, message)


def ok(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    return event(address, 250, "2.0.0", **more)  # type: ignore[arg-type]


def hard(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    return event(address, 550, "5.1.1", **more)  # type: ignore[arg-type]


def soft(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    return event(address, 452, "4.2.2", **more)  # type: ignore[arg-type]


def refused(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    """Returns a failed connection."""
    return event(address, **more)  # type: ignore[arg-type]


def any_events(dice: random.Random, number: int, addresses: int, hot: float = 0.9) -> Iterator[DeliveryEvent]:
    """Yields random events of eleven days, with a share of `hot` on one domain."""
    for place in range(number):
        domain = "hot.example" if dice.random() < hot else f"d{dice.randrange(20)}.example"
        yield event(
            f"a{dice.randrange(addresses)}@{domain}",
            *dice.choice(ANSWERS[:2] if dice.random() < 0.5 else ANSWERS),
            days=dice.randrange(11 * 24 * 60) / 24 / 60,
            message=f"m{dice.randrange(number // 2 + 1)}" if dice.random() < 0.8 else None,
            id_=f"n{place}",
            complaint=dice.random() < 0.01,
        )
