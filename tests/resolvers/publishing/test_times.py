"""Due times: instants, time zones, and local times that do not exist or occur twice."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.publishing.times import due_moment
from storage.errors import BadUserInput


def moment(text: str, zone: str) -> str:
    return due_moment(datetime.fromisoformat(text), zone).isoformat()


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2026-11-21T12:00:00Z", "UTC", "2026-11-21T12:00:00+00:00"),
        ("2026-11-21T21:00:00+09:00", "Asia/Tokyo", "2026-11-21T12:00:00+00:00"),
        ("2026-07-01T02:30:00+02:00", "Europe/Berlin", "2026-07-01T00:30:00+00:00"),
        # A time in UTC, or with an offset that Berlin never has, is an instant. Local time in Berlin does not matter.
        ("2026-10-25T00:30:00Z", "Europe/Berlin", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25T01:30:00Z", "Europe/Berlin", "2026-10-25T01:30:00+00:00"),
        ("2026-03-29T02:30:00+09:00", "Europe/Berlin", "2026-03-28T17:30:00+00:00"),
        # The last times before, and the first times after, the skipped and the repeated hour.
        ("2026-03-29T01:59:59+01:00", "Europe/Berlin", "2026-03-29T00:59:59+00:00"),
        ("2026-03-29T03:00:00+02:00", "Europe/Berlin", "2026-03-29T01:00:00+00:00"),
        ("2026-10-25T01:59:59+02:00", "Europe/Berlin", "2026-10-24T23:59:59+00:00"),
        ("2026-10-25T03:00:00+01:00", "Europe/Berlin", "2026-10-25T02:00:00+00:00"),
    ],
)
def test_due_moment_is_instant_of_text(text: str, zone: str, instant: str) -> None:
    assert moment(text, zone) == instant


@pytest.mark.parametrize(
    ("text", "zone", "first", "second", "problem"),
    [
        ("2026-03-29T02:30:00+01:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z", "does not exist"),
        ("2026-03-29T02:30:00+02:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z", "does not exist"),
        ("2026-10-25T02:30:00+02:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z", "occurs twice"),
        ("2026-10-25T02:30:00+01:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z", "occurs twice"),
        ("2026-11-01T01:15:00-04:00", "America/New_York", "05:15:00Z", "06:15:00Z", "occurs twice"),
        ("2026-04-05T01:45:00+10:30", "Australia/Lord_Howe", "14:45:00Z", "15:15:00Z", "occurs twice"),
    ],
)
def test_ambiguous_local_time_is_refused_with_both_readings(
    text: str, zone: str, first: str, second: str, problem: str
) -> None:
    with pytest.raises(BadUserInput) as error:
        moment(text, zone)
    expected = str(error.value.details["expected"])
    assert error.value.details["field"] == "dueAt"
    for words in (first, second, problem, zone):
        assert words in expected
    readings = expected.split(", because")[0].split(" or ")
    assert [due_moment(datetime.fromisoformat(each), zone).tzinfo for each in readings] == [UTC, UTC]


@given(st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.timezones()))
def test_due_moment_rounds_up_to_millisecond(instant: datetime) -> None:
    due_at = due_moment(instant.astimezone(UTC), "Europe/Berlin")
    assert timedelta(0) <= due_at - instant < timedelta(milliseconds=1)
    assert due_at.microsecond % 1000 == 0


def test_due_time_beyond_timestamps_is_refused() -> None:
    with pytest.raises(BadUserInput):
        moment("9999-01-01T00:00:00Z", "UTC")
