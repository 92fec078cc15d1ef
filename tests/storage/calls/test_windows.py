"""Calling windows over time zones, changes of the clock, midnight and weekdays."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.calls.windows import WEEK, CallingWindow, Weekday, earliest_end

ZONES = [
    "UTC", "Asia/Tokyo", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
    "America/St_Johns", "Africa/Casablanca", "Pacific/Apia", "America/Sao_Paulo",
]  # fmt: skip
times = st.builds(
    lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59])
)
windows = st.builds(
    CallingWindow,
    times,
    times,
    st.sampled_from(ZONES),
    st.lists(st.sampled_from(Weekday), min_size=1, unique=True).map(tuple),
)
instants = st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31)).map(lambda naive: naive.replace(tzinfo=UTC))
instants_near_clock_changes = st.sampled_from(
    [datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1), datetime(2026, 3, 8, 7), datetime(2026, 11, 1, 6)]
).flatmap(lambda at: st.integers(-180, 180).map(lambda m: (at + timedelta(minutes=m)).replace(tzinfo=UTC)))


def is_open_by_minutes(window: CallingWindow, instant: datetime) -> bool:
    """Returns what `is_open` should return, computed in another way: from minutes of the local day."""
    local = instant.astimezone(ZoneInfo(window.time_zone))
    minute = local.hour * 60 + local.minute
    start, end = (int(text[:2]) * 60 + int(text[3:]) for text in (window.start, window.end))
    today, yesterday = WEEK[local.weekday()] in window.weekdays, WEEK[(local.weekday() + 6) % 7] in window.weekdays
    if start < end:
        return today and start <= minute < end
    return (today and minute >= start) or (yesterday and minute < end)


@settings(max_examples=400, deadline=None)
@given(windows, instants | instants_near_clock_changes)
def test_window_is_open_by_the_local_clock(window: CallingWindow, instant: datetime) -> None:
    assert window.is_open(instant) == is_open_by_minutes(window, instant)


@settings(max_examples=150, deadline=None)
@given(windows, instants | instants_near_clock_changes)
def test_window_keeps_its_state_until_next_change(window: CallingWindow, instant: datetime) -> None:
    """Checks minute by minute that the next change is the first minute at which the window's state differs."""
    is_open, change = window.is_open(instant), window.next_change(instant)
    at = instant.replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = instant + timedelta(hours=30) if change is None else min(change, instant + timedelta(hours=30))
    while at < end:
        assert window.is_open(at) == is_open, at
        at += timedelta(minutes=1)
    if change is not None:
        assert change > instant
        assert window.is_open(change) != is_open
        assert window.is_open(change - timedelta(minutes=1)) == is_open or change - instant < timedelta(minutes=1)


def test_window_opens_when_clock_skips_its_start() -> None:
    window = CallingWindow("02:30", "04:00", "Europe/Berlin", WEEK)
    before = datetime(2026, 3, 29, 0, 0, tzinfo=UTC)
    assert window.next_change(before) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_window_is_open_in_both_repetitions_of_an_hour() -> None:
    window = CallingWindow("02:00", "02:30", "Europe/Berlin", WEEK)
    both_hours = [datetime(2026, 10, 25, hour, 10, tzinfo=UTC) for hour in (0, 1)]
    assert [window.is_open(at) for at in both_hours] == [True, True]
    assert not window.is_open(datetime(2026, 10, 25, 0, 40, tzinfo=UTC))


def test_window_in_repeated_hour_opens_twice() -> None:
    window = CallingWindow("02:30", "02:45", "Europe/Berlin", WEEK)
    change, changes = datetime(2026, 10, 25, tzinfo=UTC), []
    for _ in range(4):
        found = window.next_change(change)
        assert found is not None
        changes.append(f"{found:%d %H:%M:%S.%f}")
        change = found
    assert changes == [f"25 {time}:00.000000" for time in ("00:30", "00:45", "01:30", "01:45")]


def test_window_opens_when_clock_skips_a_late_start() -> None:
    """The clock of Nuuk went from 22:00 to 23:00."""
    window = CallingWindow("22:30", "23:30", "America/Nuuk", WEEK)
    before = datetime(2022, 3, 26, 12, tzinfo=UTC)
    assert window.next_change(before) == datetime(2022, 3, 27, 1, tzinfo=UTC)


def test_earliest_end_in_the_distant_future_is_none() -> None:
    window = CallingWindow("00:00", "00:05", "UTC", (Weekday.MON,))
    assert earliest_end(10 * 86_400, 1, 1.0, 1, window, datetime(2026, 11, 23, tzinfo=UTC)) is None


def test_calls_with_one_slot_begin_one_after_the_other() -> None:
    at = datetime(2026, 11, 23, tzinfo=UTC)
    assert earliest_end(10, 1, 100.0, 1, None, at) == at + timedelta(seconds=10)


def test_window_over_midnight_belongs_to_its_first_day() -> None:
    window = CallingWindow("22:00", "02:00", "Asia/Tokyo", (Weekday.FRI,))
    tokyo = ZoneInfo("Asia/Tokyo")
    assert window.is_open(datetime(2026, 11, 20, 23, tzinfo=tokyo))
    assert window.is_open(datetime(2026, 11, 21, 1, 59, tzinfo=tokyo))
    assert not window.is_open(datetime(2026, 11, 21, 2, tzinfo=tokyo))
    assert not window.is_open(datetime(2026, 11, 20, 1, tzinfo=tokyo))


def test_window_with_equal_start_and_end_lasts_a_day() -> None:
    window = CallingWindow("09:00", "09:00", "UTC", (Weekday.MON,))
    assert window.next_change(datetime(2026, 11, 23, 9, tzinfo=UTC)) == datetime(2026, 11, 24, 9, tzinfo=UTC)
    assert CallingWindow("09:00", "09:00", "UTC", WEEK).next_change(datetime(2026, 11, 23, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("remaining", "concurrent", "rate", "window", "expected_s"),
    [
        (600, 6, 1.0, None, 6000),
        (600, 6, 0.05, None, 12_000),
        (0, 6, 1.0, None, 0),
        (1, 6, 1.0, None, 60),
        (10, 0, 1.0, None, None),
        (600, 6, 1.0, CallingWindow("12:00", "13:00", "UTC", WEEK), 24 * 3600 + 2400),
    ],
)
def test_earliest_end_counts_calls_starts_and_windows(
    remaining: int, concurrent: int, rate: float, window: CallingWindow | None, expected_s: int | None
) -> None:
    at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    end = earliest_end(remaining, concurrent, rate, 60, window, at)
    assert end == (None if expected_s is None else at + timedelta(seconds=expected_s))


def end_by_walking(window: CallingWindow, at: datetime, remaining: timedelta) -> datetime | None:
    """Returns what `earliest_end` should return, computed in another way: from each change of the window to the next.

    `remaining` is the time that the window must be open.
    """
    horizon = at + timedelta(days=3900)
    while at < horizon:
        change = window.next_change(at)
        if window.is_open(at):
            if change is None or at + remaining <= change:
                return at + remaining
            remaining -= change - at
        if change is None:
            return None
        at = change
    return None


# The calls begin inside a window and take more than two weeks. The clock changes in the second week.
@example(CallingWindow("09:00", "18:00", "Europe/Berlin", WEEK), datetime(2026, 10, 12, 7, 30, tzinfo=UTC), 200, 3600)
@settings(max_examples=30, deadline=None)
@given(windows, instants | instants_near_clock_changes, st.integers(1, 100), st.sampled_from([60, 3600]))
def test_earliest_end_matches_walk_over_openings(window: CallingWindow, at: datetime, calls: int, call_s: int) -> None:
    actual = earliest_end(calls, 1, 100.0, call_s, window, at)
    expected = end_by_walking(window, at, timedelta(seconds=calls * call_s))
    horizon = at + timedelta(days=3900)
    if actual is not None and actual < horizon:
        assert actual == expected
    else:
        assert expected is None or expected >= horizon


def test_end_years_ahead_is_found_by_whole_weeks(monkeypatch: pytest.MonkeyPatch) -> None:
    computed_changes: list[datetime] = []
    next_change = CallingWindow.next_change

    def recorded_next_change(window: CallingWindow, instant: datetime) -> datetime | None:
        computed_changes.append(instant)
        return next_change(window, instant)

    monkeypatch.setattr(CallingWindow, "next_change", recorded_next_change)
    window = CallingWindow("09:00", "18:00", "Europe/Berlin", WEEK[:5])
    at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    end = earliest_end(100_000, 1, 1.0, 180, window, at)
    assert end is not None
    assert end - at > timedelta(days=700)
    assert len(computed_changes) < 300, "Walking through all days would compute more than a thousand changes."
