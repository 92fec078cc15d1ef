"""Due times: instants with an offset, and local times of a zone, which clock changes may skip or repeat."""

from datetime import UTC, datetime, timedelta
from typing import NewType
from zoneinfo import ZoneInfo

from storage.errors import BadUserInput
from storage.timeline import MAX_TIMESTAMP

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime.fromtimestamp(MAX_TIMESTAMP // 1_000_000, UTC)

LocalDateTime = NewType("LocalDateTime", datetime)
"""A date and a time of day without an offset."""

NO_ZONE = "UTC"
"""The time zone of clients that name none. It has no local times which an offset could contradict."""


def new_due_moment(due_at: object, due_at_local: object, zone_name: str) -> datetime | None:
    """Returns the instant of the argument that is given, or None if both are omitted or null. Raises: BadUserInput."""
    if isinstance(due_at, datetime) and isinstance(due_at_local, datetime):
        raise BadUserInput("dueAtLocal", "dueAt or dueAtLocal, not both")
    if isinstance(due_at_local, datetime):
        return local_due_moment(LocalDateTime(due_at_local), zone_name)
    return due_moment(due_at, zone_name) if isinstance(due_at, datetime) else None


def due_moment(written: datetime, zone_name: str) -> datetime:
    """Returns the instant in UTC, rounded up to a millisecond.

    An offset must be the offset of the zone at that instant. In a repeated hour it selects one of two instants. A time
    that was written with Z has `UTC` itself as its `tzinfo`: it is an instant in any zone. So is a time with +00:00,
    unless it is a local time that the zone skips. Raises: BadUserInput.
    """
    moment = _rounded(_checked("dueAt", written.astimezone(UTC)))
    if written.tzinfo is not UTC and zone_name != NO_ZONE:
        _check_offset(written, ZoneInfo(zone_name))
    return moment


def local_due_moment(local: LocalDateTime, zone_name: str) -> datetime:
    """Returns the instant in UTC, rounded up to a millisecond.

    Raises: BadUserInput for a local time that the zone skips or repeats; the error contains both possible instants.
    """
    _checked("dueAtLocal", local.replace(tzinfo=UTC))
    zone = ZoneInfo(zone_name)
    first, second = _readings(local, zone)
    if first != second:
        raise _ambiguous("dueAtLocal", local, zone)
    return _rounded(first)


def _check_offset(written: datetime, zone: ZoneInfo) -> None:
    """Rejects an offset that the zone does not have at that instant. Raises: BadUserInput."""
    in_zone = written.astimezone(zone)
    if in_zone.utcoffset() == written.utcoffset():
        return
    local = written.replace(tzinfo=None)
    if written.astimezone(UTC) in _readings(local, zone):
        raise _ambiguous("dueAt", local, zone)
    if not written.utcoffset():
        return
    valid = f"{in_zone.isoformat()} or {_instant_text(written.astimezone(UTC))}"
    problem = f"{written.isoformat()} is {in_zone.isoformat()} in {zone.key}"
    message = f"dueAt must have the offset of timeZone, but {problem}. Pass {valid}, or a local time as dueAtLocal."
    raise BadUserInput("dueAt", f"{valid}, because {problem}", message)


def _ambiguous(field: str, local: datetime, zone: ZoneInfo) -> BadUserInput:
    """Returns the refusal of a local time that the zone skips or repeats."""
    readings = _readings(local, zone)
    first, second = map(_instant_text, readings)
    is_repeated = readings[0].astimezone(zone).replace(tzinfo=None) == local
    problem = f"{local:%Y-%m-%d %H:%M:%S} {'occurs twice' if is_repeated else 'does not exist'} in {zone.key}"
    clocks = "because clocks go back" if is_repeated else "because clocks go forward"
    message = f"{field} must name one instant, but {problem} {clocks}. Pass {first} or {second} as dueAt."
    return BadUserInput(field, f"{first} or {second}, because {problem}", message)


def _readings(local: datetime, zone: ZoneInfo) -> list[datetime]:
    """Returns the two instants that a local time may mean, in UTC and in order. They are equal for most times."""
    return sorted(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def _instant_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _checked(field: str, moment: datetime) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise BadUserInput(field, f"a time after the year {EARLIEST.year - 1} and before the year {LATEST.year}")
    return moment


def _rounded(moment: datetime) -> datetime:
    rest = moment.microsecond % 1000
    return moment + timedelta(microseconds=1000 - rest) if rest else moment
