"""Outbound calls: jobs, their numbers, limits."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.calls.jobs
from schema.binding import field, shared_field
from schema.timeline import OfPage, Timeline
from storage.calls.records import CallJobState, CallOutcome, CallTaskState
from storage.calls.windows import Weekday
from storage.timeline import Timestamp

strawberry.enum(
    CallJobState,
    description=(
        "SCHEDULED: before startAt. RUNNING: numbers are called. WAITING_FOR_WINDOW: outside the calling window. "
        "PAUSED: until it is resumed. COMPLETED, CANCELLED and REJECTED (its list has bad rows) are final."
    ),
)
strawberry.enum(
    CallTaskState,
    description=(
        "QUEUED: to be called, perhaps again. DIALLING: handed to the telephony side. IN_CALL: answered. COMPLETED, "
        "FAILED, SKIPPED and CANCELLED are final. UNKNOWN: nobody can tell what became of the call."
    ),
)


@strawberry.type(description="How much the organization may call at once. One per organization.")
class CallLimits:
    id: ID = strawberry.field(description="The organization's id.")
    concurrent_calls: int = strawberry.field(description="Calls at a time.")
    calls_per_second: float = strawberry.field(description="Starts in any rolling second.")
    active_calls: int = strawberry.field(description="Calls under way.")


@strawberry.type(description="When calls may begin; HH:MM, local to timeZone.")
class CallingWindow:
    start: str = strawberry.field(description="From then on.")
    end: str = strawberry.field(description="Until then; before the start it is on the next day.")
    time_zone: str = strawberry.field(description="IANA zone.")
    weekdays: list[Weekday] = strawberry.field(description="Days on which the window begins.")


@strawberry.type(description="How many calls ended so.")
class CallOutcomeCount:
    outcome: CallOutcome = strawberry.field(description="How they ended.")
    count: int = strawberry.field(description="How many.")


@strawberry.type(
    description="Where the numbers of a job are. total is the sum of the others; outcomes counts finished calls."
)
class CallJobProgress:
    total: int = strawberry.field(description="All numbers.")
    queued: int = strawberry.field(description="To be called, perhaps again.")
    active: int = strawberry.field(description="Being dialled, or in a call.")
    completed: int = strawberry.field(description="Answered by somebody or by a machine.")
    failed: int = strawberry.field(description="Not reached.")
    unknown: int = strawberry.field(description="Nobody can tell what became of the call.")
    skipped: int = strawberry.field(description="Must not be called, or not any more.")
    cancelled: int = strawberry.field(description="Not called before the job was cancelled.")
    outcomes: list[CallOutcomeCount] = strawberry.field(description="Finished calls, repeated ones too, by outcome.")


@strawberry.type(description="A bad row of a list.")
class CallRowError:
    row: int = strawberry.field(description="The line that the row begins on; the header is line 1.")
    column: str | None = strawberry.field(description="The column; null when the whole row is bad.")
    message: str = strawberry.field(description="What is wrong, for people.")


@strawberry.type(description="A value for the scenario.")
class CallVariable:
    name: str = strawberry.field(description="The column's name.")
    value: str = strawberry.field(description="As in the list.")


@strawberry.type(description="One number of a job.")
class CallTask:
    id: ID = strawberry.field(description="Opaque.")
    job_id: ID = strawberry.field(description="The job that it belongs to.")
    row: int = strawberry.field(description="The line of its row in the list; the header is line 1.")
    phone_number: str = strawberry.field(description="In E.164 spelling.")
    variables: list[CallVariable] = strawberry.field(description="What the scenario is told.")
    state: CallTaskState = strawberry.field(description="Where it is.")
    outcome: CallOutcome | None = strawberry.field(description="How its last call ended.")
    attempts: int = strawberry.field(description="Calls so far.")
    call_id: str | None = strawberry.field(description="What the telephony side knows its last call by.")
    started_at: datetime | None = strawberry.field(description="When its last call began.")
    ended_at: datetime | None = strawberry.field(description="When its last call ended.")
    error: str | None = strawberry.field(description="What went wrong, for people.")


@strawberry.type(description="A launched list of numbers.")
class CallJob:
    id: ID = strawberry.field(description="Opaque.")
    timestamp: Timestamp = strawberry.field(description="Of its creation; unique in the organization.")
    name: str = strawberry.field(description="What people call it.")
    scenario: str = strawberry.field(description="What the telephony side does in a call.")
    state: CallJobState = strawberry.field(description="Where it is.")
    created_at: datetime = strawberry.field(description="When it was launched.")
    start_at: datetime | None = strawberry.field(description="It does not begin before then.")
    window: CallingWindow | None = strawberry.field(description="Calls begin inside it only.")
    progress: CallJobProgress = strawberry.field(description="Where its numbers are.")
    estimated_end_at: datetime | None = shared_field(
        resolvers.calls.jobs.estimated_end_at,
        "Earliest possible end under today's limits and window; null when finished, or when it is never.",
    )
    row_error_count: int = strawberry.field(description="How many rows of its list are bad.")
    row_errors: list[CallRowError] = shared_field(resolvers.calls.jobs.row_errors, "The bad rows of its list, by row.")
    tasks: list[CallTask] = shared_field(resolvers.calls.jobs.tasks, "Its numbers in list order.")


@strawberry.type(description="Call jobs in the order of the range.")
class CallJobTimeline(OfPage, Timeline):
    items: list[CallJob] = strawberry.field(description="The page.")


@strawberry.type(description="What is in a list. Nothing was stored.")
class CallListCheck:
    rows: int = strawberry.field(
        description="Rows without the header; a number that comes again counts, and is called once."
    )
    row_error_count: int = strawberry.field(description="How many rows are bad.")
    row_errors: list[CallRowError] = field(resolvers.calls.jobs.check_row_errors, "The bad rows, by row.")
    estimated_end_at: datetime | None = strawberry.field(
        description="Earliest possible end if it was launched now; null with bad rows, or when it is never."
    )
