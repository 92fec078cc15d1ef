"""Validation of the calls area's inputs."""

import re
from collections.abc import Sequence
from datetime import datetime

from strawberry import UNSET

from resolvers.arguments import checked_text, checked_time_zone
from resolvers.calls.inputs import CallingWindowInput, CallLimitsInput, LaunchCallJobInput
from resolvers.publishing.addresses import checked_web_address
from storage.calls.job_changes import NewCallJob
from storage.calls.limiter import MAX_CONCURRENT, MAX_PER_SECOND, MIN_PER_SECOND
from storage.calls.phone_numbers import EXPECTED_PHONE_NUMBER, is_region, parse_phone_number
from storage.calls.windows import CallingWindow
from storage.errors import BadUserInput
from storage.identity.records import User

MAX_NAME_CHARS = 200
MAX_SCENARIO_CHARS = 4000
MAX_ATTEMPTS = 10
MAX_RETRY_DELAY_S = 7 * 86_400
MAX_CALL_S = 86_400
MAX_PHONE_NUMBERS = 1000

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


def new_call_job(viewer: User, input: LaunchCallJobInput) -> NewCallJob:
    """Returns the validated job, without its list of numbers. Raises: BadUserInput."""
    return NewCallJob(
        organization_id=viewer.organization_id,
        creator_id=viewer.id,
        name=checked_text("name", input.name, 1, MAX_NAME_CHARS),
        scenario=checked_text("scenario", input.scenario, 1, MAX_SCENARIO_CHARS),
        start_at=input.start_at if isinstance(input.start_at, datetime) else None,
        window=_calling_window(input.window) if isinstance(input.window, CallingWindowInput) else None,
        max_attempts=checked_number("maxAttempts", input.max_attempts, 1, MAX_ATTEMPTS),
        retry_delay_s=checked_number("retryDelayS", input.retry_delay_s, 0, MAX_RETRY_DELAY_S),
        expected_call_s=checked_number("expectedCallS", input.expected_call_s, 1, MAX_CALL_S),
    )


def _calling_window(input: CallingWindowInput) -> CallingWindow:
    for name in ("start", "end"):
        if not _TIME.fullmatch(getattr(input, name)):
            raise BadUserInput(name, "a time of day from 00:00 to 23:59, such as 09:30")
    if not input.weekdays:
        raise BadUserInput("weekdays", "at least one day of the week")
    return CallingWindow(
        input.start, input.end, checked_time_zone(input.time_zone), tuple(dict.fromkeys(input.weekdays))
    )


def checked_recording_url(url: object) -> str | None:
    """Returns the address of a recording; None if it is omitted or null. Raises: BadUserInput."""
    return None if url is UNSET or url is None else checked_web_address("recordingUrl", str(url))


def checked_number(field: str, value: int, minimum: int, maximum: int) -> int:
    """Returns the number if it is from `minimum` to `maximum`. Raises: BadUserInput."""
    if not minimum <= value <= maximum:
        raise BadUserInput(field, f"a number from {minimum} to {maximum}, not {value}")
    return value


def checked_limits(input: CallLimitsInput) -> tuple[int, float]:
    """Returns the validated limits: concurrent calls, and calls per second. Raises: BadUserInput."""
    concurrent = checked_number("concurrentCalls", input.concurrent_calls, 0, MAX_CONCURRENT)
    rate = input.calls_per_second
    if not MIN_PER_SECOND <= rate <= MAX_PER_SECOND:
        raise BadUserInput("callsPerSecond", f"a number from {MIN_PER_SECOND} to {MAX_PER_SECOND:g}, not {rate}")
    return concurrent, rate


def checked_region(region: str | None) -> str | None:
    """Returns the region, or None if it is omitted. Raises: BadUserInput for an unknown region."""
    if region is None or region is UNSET:
        return None
    if not is_region(region):
        raise BadUserInput("defaultRegion", "a country by its two capital letters of ISO 3166, such as JP")
    return region


def checked_phone_numbers(values: Sequence[str]) -> list[str]:
    """Returns the numbers in E.164 form, in the same order. Raises: BadUserInput, also for more than 1000 numbers."""
    if len(values) > MAX_PHONE_NUMBERS:
        raise BadUserInput("phoneNumbers", f"at most {MAX_PHONE_NUMBERS} numbers")
    return [_checked_phone_number(index, value) for index, value in enumerate(values)]


def _checked_phone_number(index: int, value: str) -> str:
    try:
        return parse_phone_number(value)
    except ValueError as error:
        raise BadUserInput("phoneNumbers", EXPECTED_PHONE_NUMBER, f"phoneNumbers[{index}]: {error}") from None
