"""When somebody means: instants, zones, and local times that don't exist or exist twice."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from storage.errors import BadUserInput
from storage.timeline import END

MAX_LATENESS_S = 7 * 86_400
LATEST = datetime.fromtimestamp(END // 1_000_000, UTC)


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def time_zone(name: str) -> str:
    """The name of an IANA zone. Raises: BadUserInput."""
    if name not in _zones():
        raise BadUserInput("timeZone", "the name of an IANA time zone, such as Asia/Tokyo")
    return name


def due_moment(written: datetime, zone_name: str) -> datetime:
    """The instant in UTC, rounded up to a millisecond.

    A time written with an offset that the zone has around then is the author's local time: one that the zone skips or
    has twice is refused, with both readings. In UTC, or with another place's offset, it is just an instant.
    Raises: BadUserInput.
    """
    moment = written.astimezone(UTC)
    if moment >= LATEST:
        raise BadUserInput("dueAt", f"a time before the year {LATEST.year}")
    readings = _readings(written, ZoneInfo(zone_name)) if written.utcoffset() else None
    if readings is not None:
        how, first, second = readings
        clock = f"{written:%Y-%m-%d %H:%M:%S}"
        raise BadUserInput("dueAt", f"{first} or {second}, since {clock} {how} in {zone_name}")
    rest = moment.microsecond % 1000
    return moment + timedelta(microseconds=1000 - rest) if rest else moment


def _readings(written: datetime, zone: ZoneInfo) -> tuple[str, str, str] | None:
    """How the local time is wrong, and the two instants that may be meant; None when it is right."""
    local = [written.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    offsets = [each.utcoffset() for each in local]
    if offsets[0] == offsets[1] or written.utcoffset() not in offsets:
        return None
    first, second = (each.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for each in local)
    exists = local[0].astimezone(UTC).astimezone(zone).replace(tzinfo=None) == written.replace(tzinfo=None)
    return ("is there twice" if exists else "does not exist"), min(first, second), max(first, second)


def max_lateness(seconds: int) -> int:
    """Raises: BadUserInput."""
    if not 1 <= seconds <= MAX_LATENESS_S:
        raise BadUserInput("maxLatenessS", f"a number of seconds from 1 to {MAX_LATENESS_S}, not {seconds}")
    return seconds
