"""Instants as the address book keeps them: milliseconds and UTC days, both counted since the Unix epoch."""

from datetime import UTC, datetime, timedelta

DAY_MS = 86_400_000

_EPOCH = datetime.fromtimestamp(0, UTC)


def epoch_ms(at: datetime) -> int:
    """Since the Unix epoch."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def from_epoch_ms(at_ms: int) -> datetime:
    """The same moment as an aware UTC datetime."""
    # A double tells microseconds apart until the year 2242, and the nearest one of a millisecond is exact.
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def midnight(day: int) -> datetime:
    """When a day, counted since the Unix epoch, begins."""
    return from_epoch_ms(day * DAY_MS)
