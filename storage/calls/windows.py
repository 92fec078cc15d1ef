"""Calling windows: local times of day in a time zone, and how long work takes inside them. Pure; no I/O.

A window is open whenever the local clock shows a time inside it, also when clocks go back and a time occurs twice. A
window over midnight belongs to the weekday on which it begins. If start and end are equal, the window lasts a day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from storage.calls.documents import WindowDocument

DAYS_AHEAD = 9
"""How many days the search for the next opening or closing looks ahead."""

MAX_DAYS = 4000
"""Work that does not end within this time counts as never ending."""
DAY = timedelta(days=1)
SEVEN_DAYS = timedelta(days=7)
MINUTE = timedelta(minutes=1)


class Weekday(Enum):
    """Days of the week, in the order of datetime.weekday()."""

    MON = "MON"
    TUE = "TUE"
    WED = "WED"
    THU = "THU"
    FRI = "FRI"
    SAT = "SAT"
    SUN = "SUN"


WEEK = tuple(Weekday)


@dataclass(frozen=True, slots=True)
class CallingWindow:
    """Local times of day ("HH:MM") in an IANA time zone, on at least one weekday."""

    start: str
    end: str
    time_zone: str
    weekdays: tuple[Weekday, ...]

    @classmethod
    def from_document(cls, document: WindowDocument) -> "CallingWindow":
        """Returns the stored window."""
        days = tuple(Weekday(day) for day in document["weekdays"])
        return cls(document["start"], document["end"], document["zone"], days)

    @property
    def document(self) -> WindowDocument:
        """The document to store."""
        days = [day.value for day in self.weekdays]
        return {"start": self.start, "end": self.end, "zone": self.time_zone, "weekdays": days}

    def is_open(self, instant: datetime) -> bool:
        """Returns whether calls may begin at this instant."""
        local = instant.astimezone(ZoneInfo(self.time_zone))
        now, start, end = local.time(), time.fromisoformat(self.start), time.fromisoformat(self.end)
        today, yesterday = WEEK[local.weekday()], WEEK[local.weekday() - 1]
        if start < end:
            return today in self.weekdays and start <= now < end
        return (today in self.weekdays and now >= start) or (yesterday in self.weekdays and now < end)

    def next_change(self, instant: datetime) -> datetime | None:
        """Returns the first later instant at which the window opens or closes, or None if it never does."""
        is_open = self.is_open(instant)
        candidates = sorted(each for each in self._candidates(instant) if each > instant)
        return next((each for each in candidates if self.is_open(each) != is_open), None)

    def _candidates(self, instant: datetime) -> Iterator[datetime]:
        """Yields instants of the next days at which the window may open or close.

        These are its start and end, midnight, and changes of the clock.
        """
        zone = ZoneInfo(self.time_zone)
        today = instant.astimezone(zone).date()
        for days in range(-1, DAYS_AHEAD):
            day = today + timedelta(days=days)
            for text in (self.start, self.end):
                local = datetime.combine(day, time.fromisoformat(text), zone)
                yield from (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
            midnight = datetime.combine(day, time(), zone).astimezone(UTC)
            yield midnight
            yield from _clock_changes(zone, midnight, midnight + DAY + timedelta(hours=3))


def _clock_changes(zone: ZoneInfo, low: datetime, high: datetime) -> Iterator[datetime]:
    """Yields the first instant between `low` and `high` with another UTC offset, to the minute, if there is one."""
    old_offset = low.astimezone(zone).utcoffset()
    if high.astimezone(zone).utcoffset() == old_offset:
        return
    while high - low > MINUTE:
        middle = low + (high - low) // 2
        middle -= timedelta(seconds=middle.second, microseconds=middle.microsecond)
        if middle <= low:
            break
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == old_offset else (low, middle)
    yield high


def earliest_end(
    remaining: int, concurrent: int, per_second: float, expected_call_s: int, window: CallingWindow | None, at: datetime
) -> datetime | None:
    """Returns the earliest end of `remaining` calls that begin at `at`, or None if they never end."""
    if remaining == 0:
        return at
    rate = min(concurrent / max(expected_call_s, 1), per_second)
    # The last call takes expected_call_s at any rate.
    work_s = max(remaining / rate, expected_call_s) if rate > 0 else float("inf")
    if work_s > MAX_DAYS * DAY.total_seconds():
        return None
    work = timedelta(seconds=work_s)
    try:
        return at + work if window is None else _end_inside(window, at, work)
    except OverflowError:
        # The end is beyond datetime.max.
        return None


def _end_inside(window: CallingWindow, at: datetime, work: timedelta) -> datetime | None:
    """Returns when the window has been open for the time `work`, counted from `at`.

    Weeks without a change of the clock have equal open time. One of them is measured, and the others are skipped.
    """
    horizon = at + MAX_DAYS * DAY
    while at < horizon:
        if (equal_weeks := _equal_weeks(ZoneInfo(window.time_zone), at)) > 1:
            # Two weeks of work cannot end within a week, so the work done in the week equals its open time.
            _, remaining = _work_through(window, at, SEVEN_DAYS, SEVEN_DAYS * 2)
            open_per_week = SEVEN_DAYS * 2 - remaining
            # The week in which the work ends is never skipped, even if the work ends at the week's last instant.
            skipped = min(equal_weeks, -(-work // open_per_week) - 1)
            at, work = at + skipped * SEVEN_DAYS, work - skipped * open_per_week
        end, work = _work_through(window, at, SEVEN_DAYS, work)
        if end is not None:
            return end
        at += SEVEN_DAYS
    return None


def _equal_weeks(zone: ZoneInfo, at: datetime) -> int:
    """Returns how many weeks from `at` on have no change of the clock."""
    offset, weeks = at.astimezone(zone).utcoffset(), 0
    while weeks < MAX_DAYS // 7 and (at + (weeks + 1) * SEVEN_DAYS).astimezone(zone).utcoffset() == offset:
        weeks += 1
    return weeks


def _work_through(
    window: CallingWindow, at: datetime, span: timedelta, work: timedelta
) -> tuple[datetime | None, timedelta]:
    """Does work while the window is open, from `at` for at most `span`.

    Returns when the work ends, or None if it does not end within the span, and the remaining work.
    """
    end = at + span
    while at < end:
        change = min(window.next_change(at) or end, end)
        if window.is_open(at):
            if at + work <= change:
                return at + work, timedelta()
            work -= change - at
        at = change
    return None, work
