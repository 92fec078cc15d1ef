"""Headers that ask for a pause: seconds, times, and values that mean nothing."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.providers.retry_after import LONGEST_S, reset_in_s, retry_after_s


@pytest.mark.parametrize(("header", "seconds"), [("0", 0.0), ("7", 7.0), (" 120 ", 120.0), ("999999", 999_999.0)])
def test_seconds_are_returned(header: str, seconds: float) -> None:
    assert retry_after_s(header) == seconds


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs the test in a time zone that is 9 h ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_date_counts_from_now_in_utc() -> None:
    at = time.time() + 3600
    for header in (formatdate(at, usegmt=True), formatdate(at), formatdate(at, localtime=True)):
        seconds = retry_after_s(header)
        assert seconds is not None
        # The date has no fractions of a second.
        assert at - time.time() - 1 <= seconds <= 3600


@pytest.mark.parametrize("header", ["9" * 400, "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_long_time_is_limited(header: str) -> None:
    assert retry_after_s(header) == LONGEST_S


def test_past_date_is_now() -> None:
    assert retry_after_s("Fri, 31 Dec 1999 23:59:59 GMT") == 0.0


@pytest.mark.parametrize(
    "header",
    [
        *("", "soon", "-1", "1.5", "1e3", "²", "٣", "nan", "inf", "7, 8"),
        "Fri, 32 Dec 1999 23:59:59 GMT",
        f"Fri, 31 Dec {'9' * 20} 23:59:59 GMT",
    ],
)
def test_invalid_header_says_nothing(header: str) -> None:
    assert retry_after_s(header) is None


@given(st.text() | st.text("0123456789 :,+-GMTDecFri", max_size=40))
def test_any_header_is_read(header: str) -> None:
    seconds = retry_after_s(header)
    assert seconds is None or 0 <= seconds <= LONGEST_S


@pytest.mark.usefixtures("tokyo")
def test_end_of_rate_limit_counts_from_now() -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    utc = at.replace(tzinfo=None).isoformat()
    tokyo = at.astimezone(timezone(timedelta(hours=9))).isoformat()
    for header in (str(round(at.timestamp())), at.isoformat(), f" {utc}Z", utc, tokyo, "3600"):
        seconds = reset_in_s(header)
        assert seconds is not None
        assert at.timestamp() - time.time() - 1 <= seconds <= 3601


@pytest.mark.parametrize("header", ["", "soon", "-1", "0", "1.5", "²", "1700000000", "2020-01-01T00:00:00Z"])
def test_past_or_invalid_end_of_rate_limit_says_nothing(header: str) -> None:
    assert reset_in_s(header) is None


@given(st.text() | st.text("0123456789 :,+-TZ.", max_size=40))
def test_any_end_of_rate_limit_is_read(header: str) -> None:
    seconds = reset_in_s(header)
    assert seconds is None or 0 < seconds <= LONGEST_S
