"""Quiet hours by local time: over midnight, in other zones, and on days on which clocks change."""

from datetime import UTC, datetime

import pytest

from storage.notifications.quiet_hours import QuietHours

NIGHT = QuietHours(22 * 60, 7 * 60, "Asia/Tokyo")
NOON = QuietHours(12 * 60, 13 * 60 + 30, "UTC")
BERLIN = QuietHours(0, 2 * 60 + 30, "Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "now", "end"),
    [
        (NIGHT, "2026-11-24T12:59:59", None),
        (NIGHT, "2026-11-24T13:00:00", "2026-11-24T22:00:00"),
        (NIGHT, "2026-11-24T21:59:59", "2026-11-24T22:00:00"),
        (NIGHT, "2026-11-24T22:00:00", None),
        (NOON, "2026-11-24T11:59:00", None),
        (NOON, "2026-11-24T12:00:00", "2026-11-24T13:30:00"),
        (NOON, "2026-11-24T13:30:00", None),
    ],
)
def test_quiet_hours_end_at_the_local_time(hours: QuietHours, now: str, end: str | None) -> None:
    assert hours.end_after(at(now)) == (None if end is None else at(end))


def test_quiet_hours_end_once_when_clocks_change() -> None:
    # On 2026-03-29 the local times from 02:00 to 03:00 do not exist. On 2026-10-25 they occur twice.
    assert BERLIN.end_after(at("2026-03-29T00:30:00")) == at("2026-03-29T01:30:00")
    assert BERLIN.end_after(at("2026-10-25T00:15:00")) == at("2026-10-25T00:30:00")
    assert BERLIN.end_after(at("2026-10-25T01:15:00")) is None


def test_quiet_hours_show_clock_times() -> None:
    assert (NIGHT.start, NIGHT.end, NOON.end) == ("22:00", "07:00", "13:30")
