"""Conversion between datetimes, milliseconds and days since the Unix epoch."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from storage.mail.epoch_time import DAY_MS, epoch_ms, from_epoch_ms, midnight

LAST_MS = epoch_ms(datetime(2242, 1, 1, tzinfo=UTC))


@given(st.integers(0, LAST_MS))
def test_epoch_ms_round_trips_every_millisecond(at_ms: int) -> None:
    assert epoch_ms(from_epoch_ms(at_ms)) == at_ms


def test_epoch_ms_ignores_time_zone_and_microseconds() -> None:
    tokyo = datetime(2026, 11, 22, 9, 0, 0, 999, tzinfo=timezone(timedelta(hours=9)))
    assert epoch_ms(tokyo) == epoch_ms(datetime(2026, 11, 22, tzinfo=UTC))
    assert from_epoch_ms(epoch_ms(tokyo)).tzinfo is UTC


def test_midnight_is_start_of_utc_day() -> None:
    assert midnight(20_779) == from_epoch_ms(20_779 * DAY_MS) == datetime(2026, 11, 22, tzinfo=UTC)
