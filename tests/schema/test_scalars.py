"""Scalars: exact timestamps as strings, instants with an offset, opaque cursors; everything else is refused."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from graphql import GraphQLError, parse_value
from hypothesis import given
from hypothesis import strategies as st

from schema.root import schema
from schema.scalars import SCALARS
from storage.streams.log import Cursor
from storage.timeline import MAX_TIMESTAMP, NOW, Timestamp

TIMESTAMP, DATE_TIME, LOCAL_DATE_TIME, CURSOR = (
    schema._schema.type_map[name] for name in ("Timestamp", "DateTime", "LocalDateTime", "Cursor")
)
INT64 = st.integers(-(2**63), 2**63 - 1)


def parse_variable(scalar: Any, value: object) -> Any:
    """Returns the parsed value of a variable."""
    return scalar.parse_value(value)


def parse_literal_text(scalar: Any, literal: str) -> Any:
    """Returns the parsed value of a literal in a document."""
    return scalar.parse_literal(parse_value(literal))


def refusal(scalar: Any, value: object) -> dict[str, Any]:
    """Returns the extensions of the error that refuses the value."""
    with pytest.raises(GraphQLError) as error:
        parse_variable(scalar, value)
    return dict(error.value.extensions or {})


def test_custom_scalars_are_all_in_the_schema() -> None:
    assert {definition.name for definition in SCALARS.values()} == {
        "ID",
        "Timestamp",
        "DateTime",
        "LocalDateTime",
        "Cursor",
    }


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0.000000", 0),
        ("0.000001", 1),
        ("1639720395.000002", 1_639_720_395_000_002),
        ("1639720395.999999", 1_639_720_395_999_999),
        ("9999999999.999999", MAX_TIMESTAMP),
        ("0001.000000", 1_000_000),
        ("now", NOW),
    ],
)
def test_timestamp_is_parsed_exactly(text: str, microseconds: int) -> None:
    assert parse_variable(TIMESTAMP, text) == microseconds
    assert parse_literal_text(TIMESTAMP, f'"{text}"') == microseconds


@pytest.mark.parametrize(
    "value",
    [
        1639720395,
        1639720395.000002,
        True,
        None,
        [],
        ["1.000000"],
        {},
        "",
        "1639720395",
        "1639720395.",
        ".000002",
        "1639720395.00002",
        "1639720395.0000020",
        "16397203950.000002",
        "1639720395,000002",
        "-1.000000",
        "+1.000000",
        "1e9.000000",
        " 1.000000",
        "1.000000\n",
        "1.000000 ",
        "１.000000",
        "1.00000٠",
        "Now",
        "NOW",
        " now",
        "infinity",
        "2026-11-21T12:00:00Z",
    ],
)
def test_malformed_timestamp_is_refused(value: object) -> None:
    extensions = refusal(TIMESTAMP, value)
    assert extensions["code"] == "BAD_USER_INPUT"
    assert "1639720395.000002" in extensions["expected"]


@pytest.mark.parametrize("literal", ["1639720395", "1639720395.000002", "true", "now", '["now"]', "{a: 1}", '"1.5"'])
def test_malformed_timestamp_literal_error_has_location(literal: str) -> None:
    with pytest.raises(GraphQLError) as error:
        parse_literal_text(TIMESTAMP, literal)
    assert error.value.nodes
    assert error.value.extensions
    assert error.value.extensions["code"] == "BAD_USER_INPUT"


@given(INT64)
def test_timestamp_round_trips_or_is_refused(microseconds: int) -> None:
    text = TIMESTAMP.serialize(microseconds)  # type: ignore[attr-defined]
    if 0 <= microseconds <= MAX_TIMESTAMP:
        assert parse_variable(TIMESTAMP, text) == microseconds
    else:
        refusal(TIMESTAMP, text)


@given(st.integers(0, MAX_TIMESTAMP), st.integers(0, MAX_TIMESTAMP))
def test_timestamp_texts_sort_chronologically(first: int, second: int) -> None:
    texts = [TIMESTAMP.serialize(each).rjust(17, "0") for each in (first, second)]  # type: ignore[attr-defined]
    assert (texts[0] < texts[1], texts[0] == texts[1]) == (first < second, first == second)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-21T12:00:00Z", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("2026-11-21t12:00:00z", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("2026-11-21T12:00:00.5Z", datetime(2026, 11, 21, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-11-21T12:00:00.123456789Z", datetime(2026, 11, 21, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("2026-11-21T21:00:00+09:00", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("2026-11-21T06:30:00-05:30", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("2026-11-21T12:00:00-00:00", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_instant_is_parsed_with_its_offset(text: str, instant: datetime) -> None:
    assert parse_variable(DATE_TIME, text) == instant
    assert parse_literal_text(DATE_TIME, f'"{text}"') == instant
    assert format(parse_variable(DATE_TIME, text), "%z") == text[-6:].upper().replace(":", "").replace(
        "-0000", "+0000"
    ) or (parse_variable(DATE_TIME, text).utcoffset() == timedelta(0) and text[-1] in "Zz")


@pytest.mark.parametrize(
    "value",
    [
        1639720395,
        1639720395.5,
        True,
        None,
        "",
        "now",
        "2026-11-21T12:00:00",
        "2026-11-21",
        "2026-11-21 12:00:00Z",
        "2026-11-21T12:00Z",
        "2026-11-21T12Z",
        "20261121T120000Z",
        "2026-W47-6T12:00:00Z",
        "2026-325T12:00:00Z",
        "2026-11-21T12:00:00,5Z",
        "2026-11-21T12:00:00.Z",
        "2026-11-21T12:00:00+09",
        "2026-11-21T12:00:00+0900",
        "2026-11-21T12:00:00+09:00:30",
        "2026-11-21T12:00:00+24:00",
        "2026-11-21T12:00:00+09:60",
        "2026-02-30T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T12:60:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-11-21T12:00:00Z\n",
        "２026-11-21T12:00:00Z",
        "1639720395.000002",
    ],
)
def test_malformed_instant_is_refused(value: object) -> None:
    assert refusal(DATE_TIME, value)["code"] == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (datetime(2026, 11, 21, 12, tzinfo=UTC), "2026-11-21T12:00:00.000Z"),
        (datetime(2026, 11, 21, 12, 0, 0, 123_999, tzinfo=UTC), "2026-11-21T12:00:00.123Z"),
        (datetime(2026, 11, 21, 21, tzinfo=timezone(timedelta(hours=9))), "2026-11-21T12:00:00.000Z"),
    ],
)
def test_instant_is_written_in_utc_milliseconds(instant: datetime, text: str) -> None:
    assert DATE_TIME.serialize(instant) == text  # type: ignore[attr-defined]
    assert parse_variable(DATE_TIME, text) <= instant


@given(st.datetimes(timezones=st.timezones()))
def test_instant_round_trips_to_the_millisecond(instant: datetime) -> None:
    try:
        instant = instant.astimezone(UTC)
    except OverflowError:
        return
    text = DATE_TIME.serialize(instant)  # type: ignore[attr-defined]
    assert parse_variable(DATE_TIME, text) == instant.replace(microsecond=instant.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("text", "is_utc"),
    [
        ("12:00:00Z", True),
        ("12:00:00z", True),
        ("12:00:00-00:00", True),
        ("12:00:00+00:00", False),
        ("12:00:00.5+00:00", False),
        ("12:00:00+01:00", False),
    ],
)
def test_only_z_and_unknown_offset_are_parsed_as_utc(text: str, is_utc: bool) -> None:
    assert (parse_variable(DATE_TIME, f"2026-11-21T{text}").tzinfo is UTC) is is_utc


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2026-11-21T12:00", datetime(2026, 11, 21, 12)),
        ("2026-11-21t12:00:30", datetime(2026, 11, 21, 12, 0, 30)),
        ("2026-11-21T12:00:30.123456789", datetime(2026, 11, 21, 12, 0, 30, 123_456)),
    ],
)
def test_local_time_is_parsed_without_offset(text: str, local: datetime) -> None:
    assert parse_variable(LOCAL_DATE_TIME, text) == local
    assert parse_literal_text(LOCAL_DATE_TIME, f'"{text}"') == local
    assert LOCAL_DATE_TIME.serialize(local) == local.isoformat()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        1639720395,
        None,
        "",
        "09:00",
        "2026-11-21",
        "2026-11-21 12:00",
        "2026-11-21T12",
        "2026-11-21T12:00Z",
        "2026-11-21T12:00:00Z",
        "2026-11-21T12:00:00+09:00",
        "2026-02-30T12:00",
        "2026-11-21T25:00",
        "2026-11-21T24:00",
        "2026-11-21T12:00\n",
    ],
)
def test_malformed_local_time_is_refused(value: object) -> None:
    extensions = refusal(LOCAL_DATE_TIME, value)
    assert extensions["code"] == "BAD_USER_INPUT"
    assert "without an offset" in extensions["expected"]


def test_cursor_is_passed_unchanged() -> None:
    assert parse_variable(CURSOR, "b3BhcXVl") == "b3BhcXVl"
    assert parse_literal_text(CURSOR, '"b3BhcXVl"') == "b3BhcXVl"
    assert CURSOR.serialize(Cursor("b3BhcXVl")) == "b3BhcXVl"  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [7, 7.5, None, True, [], {}, "a" * 65_537])
def test_cursor_must_be_a_short_string(value: object) -> None:
    extensions = refusal(CURSOR, value)
    assert extensions == {"code": "BAD_USER_INPUT", "expected": "a cursor from this subscription"}


def test_timestamps_are_strings_in_the_api() -> None:
    assert TIMESTAMP.serialize(Timestamp(1_639_720_395_000_002)) == "1639720395.000002"  # type: ignore[attr-defined]
