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
HOT_DOMAIN = "hot.example"
_IDS = itertools.count()


def yesterday_noon() -> datetime:
    """Returns noon of yesterday (UTC), which is always in the past. Noon of today may not be."""
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
    """Returns an event at `at`, or without it `days` days before noon of yesterday."""
    kind = DeliveryEventKind.COMPLAINT if complaint else DeliveryEventKind.DELIVERY
    happened_at = at or yesterday_noon() - timedelta(days=days)
    return DeliveryEvent(id_ or f"e{next(_IDS)}", address, happened_at, kind, smtp, status, text, message)


def ok(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    """Returns a delivery."""
    return event(address, 250, "2.0.0", **more)  # type: ignore[arg-type]


def hard(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    """Returns a hard bounce."""
    return event(address, 550, "5.1.1", **more)  # type: ignore[arg-type]


def soft(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    """Returns a soft bounce."""
    return event(address, 452, "4.2.2", **more)  # type: ignore[arg-type]


def failed_connection(address: str = "ann@example.org", **more: object) -> DeliveryEvent:
    """Returns a failed connection."""
    return event(address, **more)  # type: ignore[arg-type]


def any_events(rng: random.Random, number: int, addresses: int, hot_share: float = 0.9) -> Iterator[DeliveryEvent]:
    """Yields random events of eleven days. The share `hot_share` of these events concerns one domain."""
    for index in range(number):
        domain = HOT_DOMAIN if rng.random() < hot_share else f"d{rng.randrange(20)}.example"
        yield event(
            f"a{rng.randrange(addresses)}@{domain}",
            *rng.choice(ANSWERS[:2] if rng.random() < 0.5 else ANSWERS),
            days=rng.randrange(11 * 24 * 60) / 24 / 60,
            message=f"m{rng.randrange(number // 2 + 1)}" if rng.random() < 0.8 else None,
            id_=f"n{index}",
            complaint=rng.random() < 0.01,
        )
