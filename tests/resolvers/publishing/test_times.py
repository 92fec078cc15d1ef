"""Due times: instants with an offset, and local times that do not exist or occur twice."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.publishing.times import LocalDateTime, due_moment, local_due_moment, new_due_moment
from schema.root import schema
from storage.errors import BadUserInput

DATE_TIME = schema._schema.type_map["DateTime"]


def moment(text: str, zone: str) -> str:
    """Returns the due moment of a text of a client."""
    return due_moment(DATE_TIME.parse_value(text), zone).isoformat()  # type: ignore[attr-defined]


def local_moment(text: str, zone: str) -> str:
    return local_due_moment(LocalDateTime(datetime.fromisoformat(text)), zone).isoformat()


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2026-11-21T12:00:00Z", "UTC", "2026-11-21T12:00:00+00:00"),
        ("2026-11-21T21:00:00+09:00", "Asia/Tokyo", "2026-11-21T12:00:00+00:00"),
        ("2026-07-01T02:30:00+02:00", "Europe/Berlin", "2026-07-01T00:30:00+00:00"),
        # A time with Z, or with an unknown offset, is an instant. Clocks in Berlin do not matter.
        ("2026-10-25T00:30:00Z", "Europe/Berlin", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25T01:30:00z", "Europe/Berlin", "2026-10-25T01:30:00+00:00"),
        ("2026-10-25T01:30:00-00:00", "Europe/Berlin", "2026-10-25T01:30:00+00:00"),
        # So is any time without a time zone, which is UTC.
        ("2026-11-21T21:00:00+09:00", "UTC", "2026-11-21T12:00:00+00:00"),
        # The last times before, and the first times after, the skipped and the repeated hour.
        ("2026-03-29T01:59:59+01:00", "Europe/Berlin", "2026-03-29T00:59:59+00:00"),
        ("2026-03-29T03:00:00+02:00", "Europe/Berlin", "2026-03-29T01:00:00+00:00"),
        ("2026-10-25T01:59:59+02:00", "Europe/Berlin", "2026-10-24T23:59:59+00:00"),
        ("2026-10-25T03:00:00+01:00", "Europe/Berlin", "2026-10-25T02:00:00+00:00"),
        # In a repeated hour the offset decides.
        ("2026-10-25T02:30:00+02:00", "Europe/Berlin", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25T02:30:00+01:00", "Europe/Berlin", "2026-10-25T01:30:00+00:00"),
        ("2026-04-05T01:45:00+11:00", "Australia/Lord_Howe", "2026-04-04T14:45:00+00:00"),
        ("2026-04-05T01:45:00+10:30", "Australia/Lord_Howe", "2026-04-04T15:15:00+00:00"),
        # Many clients write Z as +00:00.
        ("2027-04-01T09:00:00+00:00", "Asia/Tokyo", "2027-04-01T09:00:00+00:00"),
        ("2027-07-01T09:00:00+00:00", "Europe/Dublin", "2027-07-01T09:00:00+00:00"),
        ("2027-04-01T09:00:00+00:00", "Africa/Casablanca", "2027-04-01T09:00:00+00:00"),
        # Winter in Dublin and Ramadan in Casablanca have negative daylight saving.
        ("2027-10-31T01:30:00+01:00", "Europe/Dublin", "2027-10-31T00:30:00+00:00"),
        ("2027-10-31T01:30:00+00:00", "Europe/Dublin", "2027-10-31T01:30:00+00:00"),
        ("2027-02-07T02:30:00+01:00", "Africa/Casablanca", "2027-02-07T01:30:00+00:00"),
        ("2027-02-07T02:30:00+00:00", "Africa/Casablanca", "2027-02-07T02:30:00+00:00"),
    ],
)
def test_due_moment_is_instant_of_text(text: str, zone: str, instant: str) -> None:
    assert moment(text, zone) == instant


@pytest.mark.parametrize(
    ("text", "zone", "in_zone"),
    [
        ("2027-03-15T09:00:00-05:00", "America/New_York", "2027-03-15T10:00:00-04:00"),
        ("2027-01-15T09:00:00-04:00", "America/New_York", "2027-01-15T08:00:00-05:00"),
        ("2026-03-29T02:30:00+09:00", "Europe/Berlin", "2026-03-28T18:30:00+01:00"),
        ("2027-12-01T09:00:00+01:00", "Europe/Dublin", "2027-12-01T08:00:00+00:00"),
        ("2027-02-20T09:00:00+01:00", "Africa/Casablanca", "2027-02-20T08:00:00+00:00"),
        ("2027-04-01T09:00:00+01:00", "Etc/GMT", "2027-04-01T08:00:00+00:00"),
    ],
)
def test_offset_that_contradicts_the_zone_is_refused(text: str, zone: str, in_zone: str) -> None:
    with pytest.raises(BadUserInput) as error:
        moment(text, zone)
    assert error.value.details["field"] == "dueAt"
    expected = str(error.value.details["expected"])
    for words in (text, zone, "dueAtLocal"):
        assert words in error.value.message
    with_offset, in_utc = expected.split(", because")[0].split(" or ")
    assert with_offset == in_zone
    instant = datetime.fromisoformat(text).astimezone(UTC).isoformat()
    assert [moment(each, zone) for each in (with_offset, in_utc)] == [instant, instant]


AMBIGUOUS = [
    ("2026-03-29T02:30:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z", "does not exist"),
    ("2026-10-25T02:30:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z", "occurs twice"),
    ("2026-11-01T01:15:00", "America/New_York", "05:15:00Z", "06:15:00Z", "occurs twice"),
    ("2026-04-05T01:45:00", "Australia/Lord_Howe", "14:45:00Z", "15:15:00Z", "occurs twice"),
    ("2027-03-28T01:30:00", "Europe/Dublin", "00:30:00Z", "01:30:00Z", "does not exist"),
    ("2027-10-31T01:30:00", "Europe/Dublin", "00:30:00Z", "01:30:00Z", "occurs twice"),
    ("2027-02-07T02:30:00", "Africa/Casablanca", "01:30:00Z", "02:30:00Z", "occurs twice"),
    ("2027-03-14T02:30:00", "Africa/Casablanca", "01:30:00Z", "02:30:00Z", "does not exist"),
]


@pytest.mark.parametrize(("text", "zone", "first", "second", "problem"), AMBIGUOUS)
def test_ambiguous_local_time_is_refused_with_both_readings(
    text: str, zone: str, first: str, second: str, problem: str
) -> None:
    with pytest.raises(BadUserInput) as error:
        local_moment(text, zone)
    assert error.value.details["field"] == "dueAtLocal"
    check_readings(error.value, zone, first, second, problem)


@pytest.mark.parametrize(
    ("text", "zone", "first", "second"),
    [
        ("2026-03-29T02:30:00+01:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z"),
        ("2026-03-29T02:30:00+02:00", "Europe/Berlin", "00:30:00Z", "01:30:00Z"),
        ("2027-03-28T01:30:00+00:00", "Europe/Dublin", "00:30:00Z", "01:30:00Z"),
        ("2027-03-14T02:30:00+00:00", "Africa/Casablanca", "01:30:00Z", "02:30:00Z"),
    ],
)
def test_skipped_time_with_offset_is_refused_with_both_readings(text: str, zone: str, first: str, second: str) -> None:
    with pytest.raises(BadUserInput) as error:
        moment(text, zone)
    assert error.value.details["field"] == "dueAt"
    check_readings(error.value, zone, first, second, "does not exist")


def check_readings(refusal: BadUserInput, zone: str, *words: str) -> None:
    """Checks that the refusal contains the words, and two instants that are accepted."""
    expected = str(refusal.details["expected"])
    for each in (*words, zone):
        assert each in expected
    readings = expected.split(", because")[0].split(" or ")
    assert [moment(each, zone)[-6:] for each in readings] == ["+00:00", "+00:00"]


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2027-03-15T09:00", "America/New_York", "2027-03-15T13:00:00+00:00"),
        ("2027-03-13T09:00", "America/New_York", "2027-03-13T14:00:00+00:00"),
        ("2027-07-01T09:00", "Europe/Dublin", "2027-07-01T08:00:00+00:00"),
        ("2027-12-01T09:00", "Europe/Dublin", "2027-12-01T09:00:00+00:00"),
        ("2027-02-20T09:00", "Africa/Casablanca", "2027-02-20T09:00:00+00:00"),
        ("2027-04-01T09:00:00.0005", "Africa/Casablanca", "2027-04-01T08:00:00.001000+00:00"),
        ("2026-03-29T01:59:59", "Europe/Berlin", "2026-03-29T00:59:59+00:00"),
        ("2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00:00+00:00"),
        ("2026-10-25T01:59:59", "Europe/Berlin", "2026-10-24T23:59:59+00:00"),
        ("2026-10-25T03:00", "Europe/Berlin", "2026-10-25T02:00:00+00:00"),
        ("2027-03-15T09:00", "UTC", "2027-03-15T09:00:00+00:00"),
    ],
)
def test_local_due_moment_is_what_clocks_show(text: str, zone: str, instant: str) -> None:
    assert local_moment(text, zone) == instant


@given(st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.timezones()))
def test_due_moment_rounds_up_to_millisecond(instant: datetime) -> None:
    due_at = due_moment(instant.astimezone(UTC), "Europe/Berlin")
    assert timedelta(0) <= due_at - instant < timedelta(milliseconds=1)
    assert due_at.microsecond % 1000 == 0


@pytest.mark.parametrize("text", ["9999-01-01T00:00:00", "0001-01-01T00:00:00", "2286-12-01T00:00:00"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_due_time_beyond_timestamps_is_refused(text: str, zone: str) -> None:
    for refused in (lambda: moment(f"{text}Z", zone), lambda: moment(f"{text}+00:00", zone)):
        with pytest.raises(BadUserInput, match="dueAt: expected a time after the year 1969"):
            refused()
    with pytest.raises(BadUserInput, match="dueAtLocal: expected a time after the year 1969"):
        local_moment(text, zone)


def test_two_due_times_together_are_refused() -> None:
    local, instant = datetime(2027, 3, 15, 9), datetime(2027, 3, 15, tzinfo=UTC)
    assert new_due_moment(None, None, "Asia/Tokyo") is None
    assert new_due_moment(instant, None, "Asia/Tokyo") == instant
    assert new_due_moment(None, local, "Asia/Tokyo") == instant
    with pytest.raises(BadUserInput, match="not both"):
        new_due_moment(instant, local, "Asia/Tokyo")
