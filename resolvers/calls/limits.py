"""Use cases of call limits, the do-not-call list, and reports of calls."""

from datetime import datetime
from typing import Annotated

import strawberry

from resolvers.access import require_role
from resolvers.calls.arguments import checked_limits, checked_number, checked_phone_numbers, checked_recording_url
from resolvers.calls.inputs import CallLimitsInput, CallReportInput
from resolvers.calls.jobs import require_operator
from resolvers.context import Info
from storage.calls.records import MAX_SEQUENCE, CallLimits, CallOutcome, CallTask
from storage.identity.roles import Role

PhoneNumbers = Annotated[
    list[str],
    strawberry.argument(description="At most 1000 phone numbers with their country code, such as +819012345678."),
]


async def call_limits(info: Info) -> CallLimits:
    """Returns the organization's limits."""
    return await info.context.stores.call_jobs.limits(require_operator(info).organization_id)


async def set_call_limits(
    info: Info, input: Annotated[CallLimitsInput, strawberry.argument(description="The new limits.")]
) -> CallLimits:
    """Sets the organization's limits, which take effect at once."""
    viewer = require_role(info, Role.ADMIN)
    concurrent, per_second = checked_limits(input)
    return await info.context.stores.call_jobs.set_limits(
        viewer.organization_id, concurrent, per_second, info.context.actor
    )


async def do_not_call(info: Info, phone_numbers: PhoneNumbers) -> list[bool]:
    """Returns for each number whether it is on the do-not-call list."""
    viewer = require_operator(info)
    numbers = checked_phone_numbers(phone_numbers)
    listed = await info.context.stores.do_not_call.listed_numbers(viewer.organization_id, numbers)
    return [number in listed for number in numbers]


async def add_do_not_call(info: Info, phone_numbers: PhoneNumbers) -> int:
    """Adds numbers to the do-not-call list. Returns how many were not listed before."""
    viewer = require_operator(info)
    numbers = checked_phone_numbers(phone_numbers)
    return await info.context.stores.do_not_call.add(viewer.organization_id, numbers, info.context.actor)


async def remove_do_not_call(info: Info, phone_numbers: PhoneNumbers) -> int:
    """Removes numbers from the do-not-call list. Returns how many were listed."""
    viewer = require_operator(info)
    numbers = checked_phone_numbers(phone_numbers)
    return await info.context.stores.do_not_call.remove(viewer.organization_id, numbers, info.context.actor)


async def report_call(
    info: Info, input: Annotated[CallReportInput, strawberry.argument(description="The report.")]
) -> CallTask:
    """Applies a report of the telephony service."""
    viewer = require_role(info, Role.SERVICE)
    sequence = checked_number("sequence", input.sequence, 0, MAX_SEQUENCE)
    outcome = input.outcome if isinstance(input.outcome, CallOutcome) else None
    at = input.at if isinstance(input.at, datetime) else None
    url = checked_recording_url(input.recording_url)
    stores, organization_id = info.context.stores, viewer.organization_id
    task = await stores.calls.report(input.call_id, sequence, input.event, outcome, organization_id, at)
    if url is not None:
        await stores.call_recordings.report(organization_id, input.call_id, url)
    return task
