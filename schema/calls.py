"""GraphQL types of outbound calls: jobs, their numbers, and limits."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.calls.jobs
import resolvers.calls.limits
import resolvers.calls.lines
import resolvers.calls.recordings
from schema.binding import field, shared_field
from schema.nodes import Node, own_id
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.calls.records import CallJobState, CallOutcome, CallTaskState, TelephonyProvider
from storage.calls.windows import Weekday
from storage.timeline import Timestamp

strawberry.enum(
    CallJobState,
    description=(
        "State of a call job. SCHEDULED: before startAt. RUNNING: numbers are called. WAITING_FOR_WINDOW: outside the "
        "calling window. PAUSED: until resumeCallJob. COMPLETED, CANCELLED and REJECTED (a row of the list is bad) are "
        "final."
    ),
)
strawberry.enum(
    CallTaskState,
    description=(
        "State of a number. QUEUED: waits for its first or next call. DIALLING: the call was handed to the telephony "
        "service. IN_CALL: answered. COMPLETED, FAILED, SKIPPED and CANCELLED are final. UNKNOWN: the outcome of the "
        "call is not known; a late report can still change the state."
    ),
)

strawberry.enum(
    TelephonyProvider,
    description=(
        "Service that makes calls. SIMULATOR: calls nobody and invents outcomes. WEBHOOK: a service of the operator, "
        "which gets each call as an HTTP request. TWILIO: Twilio's API."
    ),
)


@strawberry.type(description="Limits of an organization's calls. Each organization has one such object.")
class CallLimits:
    id: ID = own_id("CallLimits", "Unique identifier. Treat as an opaque string.")
    concurrent_calls: int = strawberry.field(description="Number of calls that may be active at a time.")
    calls_per_second: float = strawberry.field(description="Number of calls that may start in any rolling second.")
    active_calls: int = strawberry.field(description="Number of calls that are active now.")


@strawberry.type(description="A line by which the calls of call jobs are made.")
class TelephonyLine:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    provider: TelephonyProvider = strawberry.field(description="Service that makes the calls.")
    caller_number: str | None = strawberry.field(
        description="Phone number that the calls come from, such as +15005550006. Null when the provider chooses it."
    )


@strawberry.type(description="Times of day (HH:MM) between which calls may begin, local to timeZone.")
class CallingWindow:
    start: str = strawberry.field(description="Time of day from which calls may begin.")
    end: str = strawberry.field(
        description="Time of day from which no call begins. If it is not after `start`, it is on the next day."
    )
    time_zone: str = strawberry.field(description="IANA time zone of start and end.")
    weekdays: list[Weekday] = strawberry.field(description="Days on which the window begins.")


@strawberry.type(description="Number of finished calls with one outcome.")
class CallOutcomeCount:
    outcome: CallOutcome = strawberry.field(description="How the calls ended.")
    count: int = strawberry.field(description="Number of calls that ended this way.")


@strawberry.type(description="Numbers of a job by state, and finished calls by outcome.")
class CallJobProgress:
    total: int = strawberry.field(description="All numbers: the sum of the following counts.")
    queued: int = strawberry.field(description="Numbers that wait for their first or next call.")
    active: int = strawberry.field(description="Numbers that are being dialled or in a call.")
    completed: int = strawberry.field(description="Numbers that were answered by a person or a machine.")
    failed: int = strawberry.field(description="Numbers that were not reached.")
    unknown: int = strawberry.field(description="Numbers whose last call has no known outcome.")
    skipped: int = strawberry.field(description="Numbers that are on the do-not-call list, or whose call expired.")
    cancelled: int = strawberry.field(description="Numbers that were still queued when the job was cancelled.")
    outcomes: list[CallOutcomeCount] = strawberry.field(
        description="Finished calls by outcome, including repeated calls of a number."
    )


@strawberry.type(description="A bad row of a list.")
class CallRowError:
    row: int = strawberry.field(description="Line on which the row begins. Lines count from 1.")
    column: str | None = strawberry.field(description="Name of the bad column. Null when the whole row is bad.")
    message: str = strawberry.field(description="What is wrong, as a sentence for people.")


@strawberry.type(description="A variable of the scenario, with its value for one number.")
class CallVariable:
    name: str = strawberry.field(description="Name of the column in the list.")
    value: str = strawberry.field(description="Value of the cell in the list.")


@strawberry.type(description="The stored recording of a call.")
class CallRecording:
    url: str = strawberry.field(
        description="Path of the recording, relative to the server's origin. Each request needs the credentials of an "
        "OPERATOR: the cookie of a session, or the header Authorization. It is sent as an attachment."
    )
    content_type: str = strawberry.field(
        description="Type by the bytes of the recording: audio/wav, audio/mpeg, audio/mp4 or audio/flac."
    )
    size: int = strawberry.field(description="Size of a download in bytes.")


@strawberry.type(description="One phone number of a call job.")
class CallTask:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    job_id: ID = strawberry.field(description="Id of the job that the number belongs to.")
    row: int = strawberry.field(description="Line of the number in the list. Lines count from 1.")
    phone_number: str = strawberry.field(
        description="The phone number in E.164 form. Empty once a retention rule of the organization has removed it."
    )
    variables: list[CallVariable] = strawberry.field(
        description="Variables of the scenario, from the other columns of the list. Empty once a retention rule has "
        "removed them."
    )
    state: CallTaskState = strawberry.field(description="Current state.")
    outcome: CallOutcome | None = strawberry.field(description="How the last call ended. Null until it has ended.")
    attempts: int = strawberry.field(
        description="Number of calls so far. Calls that provably never happened are not counted."
    )
    call_id: str | None = strawberry.field(
        description="Id of the last call, as the telephony service received it. Null before the first call."
    )
    started_at: datetime | None = strawberry.field(description="When the last call began. Null before the first call.")
    ended_at: datetime | None = strawberry.field(description="When the last call ended. Null until it has ended.")
    error: str | None = strawberry.field(
        description="What went wrong, as a sentence for people. Null when nothing did."
    )
    recording: CallRecording | None = field(
        resolvers.calls.recordings.recording,
        "Recording of the latest call that has one. Null until it is stored, once a retention rule has removed it, and "
        "for viewers without the role OPERATOR.",
        batch_resolver=resolvers.calls.recordings.recordings,
    )


@strawberry.type(description="A launched list of phone numbers.")
class CallJob(Node):
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    timestamp: Timestamp = strawberry.field(
        description="Creation time, unique in the organization. The job's position in callJobs."
    )
    name: str = strawberry.field(description="Display name of the job.")
    scenario: str = strawberry.field(description="Instructions for the telephony service.")
    state: CallJobState = strawberry.field(description="Current state.")
    created_at: datetime = strawberry.field(description="When the job was launched.")
    start_at: datetime | None = strawberry.field(
        description="Time before which no call begins. Null when the job started at once."
    )
    window: CallingWindow | None = strawberry.field(
        description="Calls begin only inside this window. Null when they may begin at any time."
    )
    progress: CallJobProgress = strawberry.field(description="Numbers by state, and calls by outcome.")
    estimated_end_at: datetime | None = shared_field(
        resolvers.calls.jobs.estimated_end_at,
        "Earliest possible end under the current limits and window. Null when the state is final, and when the job can "
        "never end, such as with `concurrentCalls` of 0.",
        batch_resolver=resolvers.calls.jobs.estimated_ends,
    )
    row_error_count: int = strawberry.field(description="Number of bad rows in the list.")
    row_errors: list[CallRowError] = shared_field(
        resolvers.calls.jobs.row_errors, "Bad rows of the list, ordered by line.", queries_per_object=True
    )
    tasks: list[CallTask] = shared_field(
        resolvers.calls.jobs.tasks, "The phone numbers in the order of the list.", queries_per_object=True
    )


@strawberry.type(description="A page of call jobs.")
class CallJobTimeline(ConnectionPage, Timeline):
    items: list[CallJob] = strawberry.field(description="The jobs of the page, in the requested order.")
    edges: list[Edge[CallJob]] = strawberry.field(description="The items, the newest first.")


@strawberry.type(description="Result of checking a list. Nothing was stored.")
class CallListCheck:
    rows: int = strawberry.field(
        description="Number of rows, without the header. A phone number in several rows counts several times, but is "
        "called once."
    )
    row_error_count: int = strawberry.field(description="Number of bad rows.")
    row_errors: list[CallRowError] = field(resolvers.calls.jobs.check_row_errors, "Bad rows, ordered by line.")
    estimated_end_at: datetime | None = strawberry.field(
        description="Earliest possible end of a job that is launched now. Null with bad rows, and when the job could "
        "never end."
    )


@strawberry.type
class CallQuery:
    call_job: CallJob | None = field(
        resolvers.calls.jobs.call_job,
        "Call job with this id. NOT_FOUND if the organization has none. Needs the role OPERATOR.",
    )
    call_jobs: CallJobTimeline = field(
        resolvers.calls.jobs.call_jobs,
        "Call jobs of the organization, ordered by creation. Needs the role OPERATOR.",
        is_connection=True,
    )
    call_limits: CallLimits = field(
        resolvers.calls.limits.call_limits, "Limits of the organization's calls. Needs the role OPERATOR."
    )
    telephony_lines: list[TelephonyLine] = field(
        resolvers.calls.lines.telephony_lines,
        "Lines by which the organization's calls are made. Empty when the server has no telephony provider: then no "
        "call job can be launched. Needs the role OPERATOR.",
    )
    do_not_call: list[bool] = field(
        resolvers.calls.limits.do_not_call,
        "Whether each phone number is on the do-not-call list, in the order of the argument. Needs the role OPERATOR.",
    )
    check_call_list: CallListCheck = field(
        resolvers.calls.jobs.check_call_list,
        "Validates a call list without storing or dialling anything. Needs the role OPERATOR.",
        accepts_large_body=True,
    )
