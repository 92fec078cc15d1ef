"""Instants as the address book stores them: milliseconds and UTC days since the Unix epoch."""

from datetime import UTC, datetime, timedelta

DAY_MS = 86_400_000

_EPOCH = datetime.fromtimestamp(0, UTC)


def epoch_ms(at: datetime) -> int:
    """Returns an instant in milliseconds since the Unix epoch, rounded down."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def from_epoch_ms(at_ms: int) -> datetime:
    """Returns an instant in milliseconds as an aware UTC datetime."""
    # A double is exact to the millisecond until the year 2242.
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def midnight(day: int) -> datetime:
    """Returns the start of a UTC day, which is counted since the Unix epoch."""
    return from_epoch_ms(day * DAY_MS)
