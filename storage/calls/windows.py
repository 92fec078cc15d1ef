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
SEVEN_DAYS = timedelta(days=7)
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
    """Spends the time only while the window is open. Weeks without a change of the clocks are alike: one is walked."""
    far = at + MAX_OPENINGS * DAY
    while at < far:
        if (alike := _weeks_alike(ZoneInfo(window.time_zone), at)) > 1:
            _, rest = _spend(window, at, SEVEN_DAYS, SEVEN_DAYS * 2)
            # The week in which the time ends is walked, even where it ends with it.
            skipped = min(alike, -(-left // (SEVEN_DAYS * 2 - rest)) - 1)
            at, left = at + skipped * SEVEN_DAYS, left - skipped * (SEVEN_DAYS * 2 - rest)
        end, left = _spend(window, at, SEVEN_DAYS, left)
        if end is not None:
            return end
        at += SEVEN_DAYS
    return None


def _weeks_alike(zone: ZoneInfo, at: datetime) -> int:
    """How many weeks there are from then on before the clocks are changed."""
    offset, weeks = at.astimezone(zone).utcoffset(), 0
    while weeks < MAX_OPENINGS // 7 and (at + (weeks + 1) * SEVEN_DAYS).astimezone(zone).utcoffset() == offset:
        weeks += 1
    return weeks


def _spend(
    window: CallingWindow, at: datetime, within: timedelta, left: timedelta
) -> tuple[datetime | None, timedelta]:
    """When the time is spent, None for not within that time; and what is left of it then."""
    until = at + within
    while at < until:
        change = min(window.next_change(at) or until, until)
        if window.is_open(at):
            if at + left <= change:
                return at + left, timedelta()
            left -= change - at
        at = change
    return None, left
