"""Milliseconds and days since the Unix epoch, and back."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from storage.mail.epoch_time import DAY_MS, epoch_ms, from_epoch_ms, midnight

LAST_MS = epoch_ms(datetime(2242, 1, 1, tzinfo=UTC))


@given(st.integers(0, LAST_MS))
def test_every_millisecond_comes_back(at_ms: int) -> None:
    assert epoch_ms(from_epoch_ms(at_ms)) == at_ms


def test_it_is_the_moment_that_counts_and_not_how_it_was_written() -> None:
    tokyo = datetime(2026, 11, 22, 9, 0, 0, 999, tzinfo=timezone(timedelta(hours=9)))
    assert epoch_ms(tokyo) == epoch_ms(datetime(2026, 11, 22, tzinfo=UTC))
    assert from_epoch_ms(epoch_ms(tokyo)).tzinfo is UTC


def test_a_day_begins_at_midnight_utc() -> None:
    assert midnight(20_779) == from_epoch_ms(20_779 * DAY_MS) == datetime(2026, 11, 22, tzinfo=UTC)
