"""Due times: instants, time zones, and local times that do not exist or occur twice."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from storage.errors import BadUserInput
from storage.timeline import MAX_TIMESTAMP

LATEST = datetime.fromtimestamp(MAX_TIMESTAMP // 1_000_000, UTC)


def due_moment(written: datetime, zone_name: str) -> datetime:
    """Returns the instant in UTC, rounded up to a millisecond.

    If the zone has the offset of `written` around that time, `written` is the author's local time. A local time that
    the zone skips or repeats is rejected; the error contains both possible instants. With the offset of UTC, or an
    offset that the zone does not have then, `written` is an instant without regard to the zone.
    Raises: BadUserInput.
    """
    moment = written.astimezone(UTC)
    if moment >= LATEST:
        raise BadUserInput("dueAt", f"a time before the year {LATEST.year}")
    if written.utcoffset():
        _check_local_time(written, ZoneInfo(zone_name))
    rest = moment.microsecond % 1000
    return moment + timedelta(microseconds=1000 - rest) if rest else moment


def _check_local_time(written: datetime, zone: ZoneInfo) -> None:
    """Rejects a local time that the zone skips or repeats. Raises: BadUserInput."""
    readings = [written.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    offsets = [each.utcoffset() for each in readings]
    if offsets[0] == offsets[1] or written.utcoffset() not in offsets:
        return
    first, second = sorted(each.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for each in readings)
    is_repeated = readings[0].astimezone(UTC).astimezone(zone).replace(tzinfo=None) == written.replace(tzinfo=None)
    problem = f"{written:%Y-%m-%d %H:%M:%S} {'occurs twice' if is_repeated else 'does not exist'} in {zone.key}"
    clocks = "because clocks go back" if is_repeated else "because clocks go forward"
    message = f"dueAt must name one instant, but {problem} {clocks}. Pass {first} or {second}."
    raise BadUserInput("dueAt", f"{first} or {second}, because {problem}", message)
