"""Calling windows: local times of day in a time zone, and how long work takes inside them. Pure; no I/O.

The local clock decides: a window is open whenever the clock shows a time inside it, also a repeated one. A window over
midnight belongs to the weekday on which it begins. If start and end are equal, the window lasts a day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from storage.calls.documents import WindowDocument

DAYS_AHEAD = 9
MAX_OPENINGS = 4000
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
        """Whether calls may begin at this instant."""
        local = instant.astimezone(ZoneInfo(self.time_zone))
        now, start, end = local.time(), time.fromisoformat(self.start), time.fromisoformat(self.end)
        today, yesterday = WEEK[local.weekday()], WEEK[local.weekday() - 1]
        if start < end:
            return today in self.weekdays and start <= now < end
        return (today in self.weekdays and now >= start) or (yesterday in self.weekdays and now < end)

    def next_change(self, instant: datetime) -> datetime | None:
        """Returns the first later instant at which the window opens or closes, or None when there is none."""
        is_open = self.is_open(instant)
        candidates = sorted(each for each in self._candidates(instant) if each > instant)
        return next((each for each in candidates if self.is_open(each) != is_open), None)

    def _candidates(self, instant: datetime) -> Iterator[datetime]:
        """Yields instants of the next days at which it may open or close: its own times and changes of the clock."""
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
    before = low.astimezone(zone).utcoffset()
    if high.astimezone(zone).utcoffset() == before:
        return
    while high - low > MINUTE:
        middle = low + (high - low) // 2
        middle -= timedelta(seconds=middle.second, microseconds=middle.microsecond)
        if middle <= low:
            break
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
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
    if work_s > MAX_OPENINGS * DAY.total_seconds():
        return None
    left = timedelta(seconds=work_s)
    try:
        return at + left if window is None else _end_inside(window, at, left)
    except OverflowError:
        # The end is beyond datetime.max.
        return None


def _end_inside(window: CallingWindow, at: datetime, left: timedelta) -> datetime | None:
    """Returns when the window has been open for `left`, counted from `at`.

    Weeks without a change of the clock have equal open time. One of them is measured, and the others are skipped.
    """
    horizon = at + MAX_OPENINGS * DAY
    while at < horizon:
        if (equal_weeks := _equal_weeks(ZoneInfo(window.time_zone), at)) > 1:
            _, rest = _spend(window, at, SEVEN_DAYS, SEVEN_DAYS * 2)
            # The week in which the open time is used up is never skipped, even if that is its last instant.
            skipped = min(equal_weeks, -(-left // (SEVEN_DAYS * 2 - rest)) - 1)
            at, left = at + skipped * SEVEN_DAYS, left - skipped * (SEVEN_DAYS * 2 - rest)
        end, left = _spend(window, at, SEVEN_DAYS, left)
        if end is not None:
            return end
        at += SEVEN_DAYS
    return None


def _equal_weeks(zone: ZoneInfo, at: datetime) -> int:
    """Returns how many weeks after `at` have no change of the clock."""
    offset, weeks = at.astimezone(zone).utcoffset(), 0
    while weeks < MAX_OPENINGS // 7 and (at + (weeks + 1) * SEVEN_DAYS).astimezone(zone).utcoffset() == offset:
        weeks += 1
    return weeks


def _spend(
    window: CallingWindow, at: datetime, within: timedelta, left: timedelta
) -> tuple[datetime | None, timedelta]:
    """Returns when the window has been open for `left`, or None if not `within` that time, and the rest of `left`."""
    until = at + within
    while at < until:
        change = min(window.next_change(at) or until, until)
        if window.is_open(at):
            if at + left <= change:
                return at + left, timedelta()
            left -= change - at
        at = change
    return None, left
