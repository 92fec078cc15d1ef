"""When a job may call: wall-clock windows in their own time zone, and how long work takes inside them. Pure; no I/O.

What counts is the clock on the wall: a time that daylight saving skips or repeats is inside when its hands say so.
A window over midnight belongs to the weekday that it begins on; one that ends when it begins lasts a day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from storage.mongo import Document

DAYS_AHEAD = 9
MAX_OPENINGS = 4000
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


class Weekday(Enum):
    """Days, in the order of datetime.weekday()."""

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
    """Times of day, "HH:MM", in an IANA zone; at least one weekday."""

    start: str
    end: str
    time_zone: str
    weekdays: tuple[Weekday, ...]

    @classmethod
    def of_document(cls, document: Document) -> "CallingWindow":
        """As it was stored."""
        days = tuple(Weekday(day) for day in document["weekdays"])
        return cls(document["start"], document["end"], document["zone"], days)

    @property
    def document(self) -> Document:
        """As it is stored."""
        days = [day.value for day in self.weekdays]
        return {"start": self.start, "end": self.end, "zone": self.time_zone, "weekdays": days}

    def is_open(self, instant: datetime) -> bool:
        """Whether somebody may be called at this moment."""
        local = instant.astimezone(ZoneInfo(self.time_zone))
        now, start, end = local.time(), time.fromisoformat(self.start), time.fromisoformat(self.end)
        today, yesterday = WEEK[local.weekday()], WEEK[local.weekday() - 1]
        if start < end:
            return today in self.weekdays and start <= now < end
        return (today in self.weekdays and now >= start) or (yesterday in self.weekdays and now < end)

    def next_change(self, instant: datetime) -> datetime | None:
        """The first moment after this one at which it opens, or closes when it is open now; None when it never does."""
        is_open = self.is_open(instant)
        moments = sorted(moment for moment in self._moments(instant) if moment > instant)
        return next((moment for moment in moments if self.is_open(moment) != is_open), None)

    def _moments(self, instant: datetime) -> Iterator[datetime]:
        """Every moment at which it may change, some days ahead: its own times, and where the clocks are changed."""
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
    """The first moment at which another offset holds between the two, to the minute, if there is one."""
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
    """When `remaining` calls can be over at the earliest, begun at `at`; None when that is never."""
    if remaining == 0:
        return at
    rate = min(concurrent / max(expected_call_s, 1), per_second)
    # The last call takes its time however fast they start.
    work_s = max(remaining / rate, expected_call_s) if rate > 0 else float("inf")
    if work_s > MAX_OPENINGS * DAY.total_seconds():
        return None
    left = timedelta(seconds=work_s)
    try:
        return at + left if window is None else _end_inside(window, at, left)
    except OverflowError:
        # No calendar goes so far.
        return None


def _end_inside(window: CallingWindow, at: datetime, left: timedelta) -> datetime | None:
    """Spends the time only while the window is open."""
    for _ in range(MAX_OPENINGS):
        change = window.next_change(at)
        if window.is_open(at):
            if change is None or at + left <= change:
                return at + left
            left -= change - at
        elif change is None:
            return None
        assert change is not None
        at = change
    return None
