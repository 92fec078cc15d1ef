"""Use cases of call jobs: checking lists, launching, pausing, and the fields of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_limit, page_range
from resolvers.calls.arguments import checked_number, checked_region, new_call_job
from resolvers.calls.inputs import LaunchCallJobInput
from resolvers.context import Context, Info
from resolvers.idempotency import input_key
from storage.calls.job_changes import JobAction, NewCallJob
from storage.calls.records import (
    MAX_ID_PART_DIGITS,
    OPEN_STATES,
    CallJob,
    CallJobState,
    CallLimits,
    CallRowError,
    CallTask,
    CallTaskState,
)
from storage.calls.windows import earliest_end
from storage.errors import BadUserInput, Unavailable
from storage.identity.records import User
from storage.identity.roles import Role
from storage.timeline import TimelinePage

MAX_START_AHEAD = timedelta(days=3660)
NO_PROVIDER = "Calls cannot be made, because this server has no telephony provider. Set NOROSHI_TELEPHONY."
NO_PROVIDER_RETRY_MS = 60_000

CallJobId = Annotated[ID, strawberry.argument(description="Id of the call job.")]
AfterRow = Annotated[int, strawberry.argument(description="Only rows after this line of the list are returned.")]
RowLimit = Annotated[int, strawberry.argument(description="Maximum number of entries, 1 to 999.")]
CallListArgument = Annotated[LaunchCallJobInput, strawberry.argument(description="The list, and how to call it.")]


@dataclass(frozen=True, slots=True)
class CallListCheck:
    """The result of checking a list that was not stored."""

    rows: int
    errors: Sequence[CallRowError]
    estimated_end_at: datetime | None

    @property
    def row_error_count(self) -> int:
        """The number of rows with errors."""
        return len(self.errors)


def require_operator(info: Info) -> User:
    """Returns the viewer, who must be an operator. Raises: Unauthenticated, Forbidden."""
    return require_role(info, Role.OPERATOR)


async def call_job(info: Info, id: CallJobId) -> CallJob:
    """Returns a job of the organization. Raises: NotFound."""
    return await info.context.stores.call_jobs.get(require_operator(info).organization_id, id)


async def call_jobs(
    info: Info,
    states: Annotated[
        list[CallJobState] | None,
        strawberry.argument(description="Only jobs in one of these states. Omitted, null or empty: jobs in any state."),
    ] = UNSET,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[CallJob]:
    """Returns a page of the organization's jobs, ordered by creation."""
    viewer = require_operator(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    return await info.context.stores.call_jobs.page(viewer.organization_id, states or None, range_)


async def check_call_list(info: Info, input: CallListArgument) -> CallListCheck:
    """Checks a list without storing it."""
    new_job = await _validated_job(info, require_operator(info), input)
    checked = await info.context.stores.call_jobs.check(input.csv, checked_region(input.default_region))
    end_at = None if checked.errors else await _estimated_end_of_new(info.context, new_job, checked.tasks)
    return CallListCheck(checked.rows, checked.errors, end_at)


async def launch_call_job(info: Info, input: CallListArgument) -> CallJob:
    """Stores a list as a job. Its numbers are called from the job's start time on."""
    operator = require_operator(info)
    new_job = await _validated_job(info, operator, input)
    region = checked_region(input.default_region)
    if not info.context.telephony_lines:
        raise Unavailable(NO_PROVIDER, NO_PROVIDER_RETRY_MS)
    key = input_key(operator, "launchCallJob", input)
    return await info.context.stores.call_jobs.launch(new_job, input.csv, key, info.context.actor, region)


async def _validated_job(info: Info, operator: User, input: LaunchCallJobInput) -> NewCallJob:
    """Returns the operator's validated job, without its list. Raises: BadUserInput."""
    new_job = new_call_job(operator, input)
    if new_job.start_at is not None and new_job.start_at > await info.context.stores.mongo.now() + MAX_START_AHEAD:
        raise BadUserInput("startAt", f"a time at most {MAX_START_AHEAD.days} days ahead")
    return new_job


async def pause_call_job(info: Info, id: CallJobId) -> CallJob:
    """Pauses the job. Its numbers are not called until it is resumed."""
    return await _act(info, id, JobAction.PAUSE)


async def resume_call_job(info: Info, id: CallJobId) -> CallJob:
    """Resumes the job."""
    return await _act(info, id, JobAction.RESUME)


async def cancel_call_job(info: Info, id: CallJobId) -> CallJob:
    """Cancels the job. Its queued numbers are not called."""
    return await _act(info, id, JobAction.CANCEL)


async def _act(info: Info, id_: str, action: JobAction) -> CallJob:
    organization_id = require_operator(info).organization_id
    return await info.context.stores.call_jobs.act(organization_id, id_, action, info.context.actor)


async def estimated_end_at(root: Parent[CallJob], info: Info) -> datetime | None:
    """Returns the earliest possible end of the job, or None if the job has ended or can never end."""
    return (await estimated_ends([root], info))[0]


async def estimated_ends(jobs: Sequence[CallJob], info: Info) -> list[datetime | None]:
    """Returns the earliest possible end of each job, or None if the job has ended or can never end."""
    stores = info.context.stores
    organizations = {each.organization_id for each in jobs if each.state in OPEN_STATES}
    if not organizations:
        return [None for _ in jobs]
    now = await stores.clock.now()
    limits = {each: await stores.call_jobs.limits(each) for each in organizations}
    return [
        _earliest_end(each.progress.queued + each.progress.active, limits[each.organization_id], each, now)
        if each.state in OPEN_STATES
        else None
        for each in jobs
    ]


async def _estimated_end_of_new(context: Context, new_job: NewCallJob, tasks: int) -> datetime | None:
    limits = await context.stores.call_jobs.limits(new_job.organization_id)
    return _earliest_end(tasks, limits, new_job, await context.stores.mongo.now())


def _earliest_end(remaining: int, limits: CallLimits, job: CallJob | NewCallJob, now: datetime) -> datetime | None:
    begin = now if job.start_at is None else max(now, job.start_at)
    concurrent, per_second = limits.concurrent_calls, limits.calls_per_second
    return earliest_end(remaining, concurrent, per_second, job.expected_call_s, job.window, begin)


async def row_errors(
    root: Parent[CallJob], info: Info, after_row: AfterRow = 0, limit: RowLimit = 100
) -> list[CallRowError]:
    """Returns the rows with errors of a rejected list."""
    return await info.context.stores.call_jobs.row_errors(root, _checked_row(after_row), checked_limit(limit))


async def check_row_errors(
    root: Parent[CallListCheck], after_row: AfterRow = 0, limit: RowLimit = 100
) -> list[CallRowError]:
    """Returns the rows with errors of a checked list."""
    row, count = _checked_row(after_row), checked_limit(limit)
    return [error for error in root.errors if error.row > row][:count]


async def tasks(
    root: Parent[CallJob],
    info: Info,
    states: Annotated[
        list[CallTaskState] | None,
        strawberry.argument(
            description="Only numbers in one of these states. Omitted, null or empty: numbers in any state."
        ),
    ] = UNSET,
    after_row: AfterRow = 0,
    limit: RowLimit = 100,
) -> list[CallTask]:
    """Returns the job's numbers in list order."""
    return await info.context.stores.call_jobs.tasks(
        root, states or None, _checked_row(after_row), checked_limit(limit)
    )


def _checked_row(after_row: int) -> int:
    return checked_number("afterRow", after_row, 0, 10**MAX_ID_PART_DIGITS - 1)
