"""Quiet hours: the local times between which a person gets no offline notification."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MINUTES_OF_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Quiet hours of every day. They end on the next day if `end_minute` is before `start_minute`."""

    start_minute: int
    """Minutes since local midnight."""

    end_minute: int
    """Minutes since local midnight; another number than `start_minute`."""

    time_zone: str
    """Name of an IANA time zone."""

    @property
    def start(self) -> str:
        """The local time at which the quiet hours begin, as HH:MM."""
        return _clock_time(self.start_minute)

    @property
    def end(self) -> str:
        """The local time at which the quiet hours end, as HH:MM."""
        return _clock_time(self.end_minute)

    def end_after(self, at: datetime) -> datetime | None:
        """Returns when the quiet hours end that contain the instant; None outside of quiet hours."""
        local = at.astimezone(ZoneInfo(self.time_zone))
        minute = local.hour * 60 + local.minute
        is_over_midnight = self.end_minute < self.start_minute
        is_evening = is_over_midnight and minute >= self.start_minute
        is_morning = minute < self.end_minute and (is_over_midnight or minute >= self.start_minute)
        if not (is_evening or is_morning):
            return None
        ends_at = self._end_on(local.date() + timedelta(days=is_evening))
        # When clocks go back, the first of two equal local times may be over already.
        return ends_at if ends_at > at else None

    def _end_on(self, day: date) -> datetime:
        local_end = datetime.combine(day, time(*divmod(self.end_minute, 60)), ZoneInfo(self.time_zone))
        return local_end.astimezone(UTC)


def _clock_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
