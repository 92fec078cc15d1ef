"""Stored documents of the calls area, one class for each collection, and the names of the collections.

Instants are aware UTC datetimes with millisecond precision, by the database's clock.
"""

from datetime import datetime
from typing import NotRequired, TypedDict

JOBS = "call_jobs"
DRAFTS = "call_drafts"
TASKS = "call_tasks"
ROW_ERRORS = "call_row_errors"
LIMITS = "call_limits"
DO_NOT_CALL = "do_not_call"
SIMULATED_CALLS = "simulated_calls"


class WindowDocument(TypedDict):
    """A calling window, stored inside its job."""

    start: str
    """Local time of day, "HH:MM"."""
    end: str
    """Local time of day, "HH:MM". An end that is not after the start is on the next day."""
    zone: str
    """IANA time zone."""
    weekdays: list[str]
    """Days on which the window opens: MON to SUN."""


class CallJobDocument(TypedDict):
    """A launched list (`call_jobs`). Never deleted."""

    _id: str
    org: str
    """The organization's id."""
    creator: str
    """The id of the user who launched the job."""
    ts: int
    """Creation in microseconds since the Unix epoch. Unique in the organization."""
    name: str
    scenario: str
    created_at: datetime
    start_at: datetime | None
    """When calls may begin; None: at once."""
    window: WindowDocument | None
    """Calls begin only while the window is open; None: at any time."""
    max_attempts: int
    """Maximum number of calls to each number, including the first."""
    retry_delay_s: int
    expected_call_s: int
    """Expected length of a call in seconds, for estimates."""
    row_errors: int
    """Number of bad rows of the list. A list with a bad row is REJECTED."""
    counts: dict[str, int]
    """Numbers of tasks by CallTaskState. All states are present."""
    outcomes: dict[str, int]
    """Numbers of finished calls by CallOutcome. Outcomes that did not occur are absent."""
    state: str
    """A CallJobState."""
    open: NotRequired[bool]
    """True while the job is not in a final state, then absent. A partial index holds open jobs only."""
    ended_at: NotRequired[datetime]
    """When the job reached its final state. Absent until then, and in jobs that ended in an earlier version."""
    kept: NotRequired[str]
    """Data that a retention rule has left in the tasks: PHONE_NUMBERS, VARIABLES, or NOTHING. Absent: both."""
    emitted_at: NotRequired[datetime]
    """When the last CallJobChanged was emitted."""
    event_pending: NotRequired[bool]
    """True while an outbox row for a delayed CallJobChanged exists."""
    task_events_pending: NotRequired[bool]
    """True while an outbox row for delayed CallTaskChanged events exists."""
    task_events_at: NotRequired[list[datetime]]
    """When the CallTaskChanged events of the last second were emitted; at most ten instants."""


class CallTaskId(TypedDict):
    """The `_id` of a row of a list. The ids of a job's rows are adjacent and in list order."""

    j: str
    """The job's id."""
    r: int
    """The line on which the row begins. Lines count from 1."""


class LatestCall(TypedDict):
    """The latest call of a task, stored inside the task."""

    n: int
    """The call's ordinal within its task, counted from 1; the last part of the callId."""
    seq: int
    """Sequence of the last report that was applied; -1 before the first one."""
    over: bool
    """Whether the call ended, failed or never happened."""
    start_at: datetime
    reference: NotRequired[str]
    """The telephony service's own identifier of the call, if it has one."""


class CallTaskDocument(TypedDict):
    """One number of a job (`call_tasks`). Kept as long as its job."""

    _id: CallTaskId
    org: str
    """The organization's id."""
    phone: str
    """The number in E.164 form; empty once a retention rule has removed it."""
    variables: list[list[str]]
    """Pairs of name and value, in the order of the list's columns; empty once a retention rule has removed them."""
    state: str
    """A CallTaskState."""
    queue: NotRequired[int]
    """When the next try is due, in Unix microseconds; 0 for a number that was never tried, or whose last call never
    happened. Only while QUEUED."""
    attempts: int
    """Number of calls, without calls that provably never happened."""
    dials: int
    """Number of calls, including calls that provably never happened; also the number of the latest call."""
    call: NotRequired[LatestCall]
    outcome: NotRequired[str | None]
    """A CallOutcome of the latest call."""
    started_at: NotRequired[datetime | None]
    """When the latest call began."""
    ended_at: NotRequired[datetime | None]
    """When the latest call ended or failed, or when the number was skipped; the reported time if there is one."""
    error: NotRequired[str | None]
    """Why the task failed or is unknown, as a sentence for people."""
    poll_at: NotRequired[datetime]
    """When to poll the telephony service next. Absent while no call is open."""
    event_pending: NotRequired[bool]
    """True while a delayed CallTaskChanged is due."""
    recordings: NotRequired[int]
    """Number of calls whose recordings were reported; absent before the first one."""


class CallDraftDocument(TypedDict):
    """A list that is being stored (`call_drafts`). Removed by the commit that creates the job, or after an hour."""

    _id: str
    """The future job's id."""
    at: datetime
    """When storing began."""
    org: str
    """The organization's id."""
    discarded: NotRequired[bool]
    """True once the sweeper has begun to remove the list. No job can be created from the list then."""


class CallRowErrorDocument(TypedDict):
    """A bad row of a rejected list (`call_row_errors`). Kept as long as its job."""

    _id: CallTaskId
    column: str | None
    """The bad column; None if the whole row is bad."""
    message: str
    """The error, as a sentence for people."""


class CallLimitsDocument(TypedDict):
    """An organization's limiter (`call_limits`). Never deleted."""

    _id: str
    """The organization's id."""
    concurrent: int
    """Maximum number of active calls."""
    per_second: float
    """Maximum number of starts in any rolling second."""
    slots: list[str]
    """The callIds that count as active."""
    last_start: datetime | None
    """The latest start time of a call; None before the first call."""
    next_at: datetime
    """The earliest time of the next start."""
    hold_until: NotRequired[datetime]
    """Until when the telephony service forbids starts. A change of the limits keeps this time."""
    fence: int
    """The fence of the current broker. It only grows."""


class PhoneNumberId(TypedDict):
    """The `_id` of a do-not-call entry."""

    org: str
    """The organization's id."""
    phone: str
    """The number in E.164 form."""


class DoNotCallDocument(TypedDict):
    """A number that an organization must not call (`do_not_call`). Kept until it is removed."""

    _id: PhoneNumberId
    at: datetime
    """When the number was added."""


class SimulatedCallDocument(TypedDict):
    """A call that the simulator makes (`simulated_calls`). Kept for 7 days."""

    _id: str
    """The callId."""
    at: datetime
    """When the call began."""
