"""Records of the calls area, as read from the database. Instants are aware UTC datetimes, durations are seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from urllib.parse import quote

from storage.calls.documents import CallJobDocument, CallTaskDocument, CallTaskId
from storage.calls.windows import CallingWindow
from storage.errors import NotFound
from storage.timeline import Timestamp

MAX_ID_PART_DIGITS = 9
"""Maximum number of digits of the row, and of the call's ordinal, in a callId."""

POLLED_SEQUENCE = 2**31 - 1
"""The sequence number under which a polled outcome is stored. It is greater than that of every report.

A call accepts a report only if its sequence number is greater than the number of the last accepted report.
"""

MAX_SEQUENCE = POLLED_SEQUENCE - 1
"""The greatest sequence number that a report may have."""


class CallJobState(Enum):
    """The state of a job. REJECTED, COMPLETED and CANCELLED are final."""

    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    WAITING_FOR_WINDOW = "WAITING_FOR_WINDOW"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    REJECTED = "REJECTED"


OPEN_STATES = (
    CallJobState.SCHEDULED,
    CallJobState.RUNNING,
    CallJobState.WAITING_FOR_WINDOW,
    CallJobState.PAUSED,
)


class CallTaskState(Enum):
    """The state of one number of a list."""

    QUEUED = "QUEUED"
    DIALLING = "DIALLING"
    IN_CALL = "IN_CALL"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


ACTIVE_STATES = (CallTaskState.DIALLING, CallTaskState.IN_CALL)


class TelephonyProvider(Enum):
    """A service that makes calls. The simulator calls nobody."""

    SIMULATOR = "SIMULATOR"
    WEBHOOK = "WEBHOOK"
    TWILIO = "TWILIO"


@dataclass(frozen=True, slots=True)
class TelephonyLine:
    """A line by which calls are made. `caller_number` is None if the provider chooses the number."""

    id: str
    provider: TelephonyProvider
    caller_number: str | None = None


SERVER_LINE_ID = "server"
"""The id of the line that the server's settings define for all organizations."""

SIMULATED_LINES = (TelephonyLine(SERVER_LINE_ID, TelephonyProvider.SIMULATOR),)


class CallOutcome(Enum):
    """How a call ended. After DO_NOT_CALL or EXPIRED it is possible that the phone number was never called."""

    ANSWERED = "ANSWERED"
    VOICEMAIL = "VOICEMAIL"
    NO_ANSWER = "NO_ANSWER"
    BUSY = "BUSY"
    REJECTED = "REJECTED"
    INVALID_NUMBER = "INVALID_NUMBER"
    NETWORK_ERROR = "NETWORK_ERROR"
    DO_NOT_CALL = "DO_NOT_CALL"
    EXPIRED = "EXPIRED"


FINAL_STATE_BY_OUTCOME: Mapping[CallOutcome, CallTaskState] = {
    CallOutcome.ANSWERED: CallTaskState.COMPLETED,
    CallOutcome.VOICEMAIL: CallTaskState.COMPLETED,
    CallOutcome.NO_ANSWER: CallTaskState.FAILED,
    CallOutcome.BUSY: CallTaskState.FAILED,
    CallOutcome.REJECTED: CallTaskState.FAILED,
    CallOutcome.INVALID_NUMBER: CallTaskState.FAILED,
    CallOutcome.NETWORK_ERROR: CallTaskState.FAILED,
    CallOutcome.DO_NOT_CALL: CallTaskState.SKIPPED,
    CallOutcome.EXPIRED: CallTaskState.SKIPPED,
}
"""The state of a task whose call ended with this outcome, if the number is not queued again."""

RETRIED_OUTCOMES = frozenset({CallOutcome.NO_ANSWER, CallOutcome.BUSY, CallOutcome.VOICEMAIL})


class CallReportKind(Enum):
    """The kinds of report that the telephony service sends: the call was answered, or it ended."""

    ANSWERED = "ANSWERED"
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """An organization's call limits and active calls. `id` is the organization's id."""

    id: str
    concurrent_calls: int
    calls_per_second: float
    active_calls: int


@dataclass(frozen=True, slots=True)
class CallOutcomeCount:
    """An outcome and the number of finished calls that had it."""

    outcome: CallOutcome
    count: int


@dataclass(frozen=True, slots=True)
class CallJobProgress:
    """How many numbers of a job are in each state, and how many calls had each outcome."""

    queued: int
    active: int
    completed: int
    failed: int
    unknown: int
    skipped: int
    cancelled: int
    outcomes: Sequence[CallOutcomeCount]

    @property
    def total(self) -> int:
        """The number of all phone numbers of the job."""
        inactive = self.completed + self.failed + self.unknown + self.skipped + self.cancelled
        return self.queued + self.active + inactive


@dataclass(frozen=True, slots=True)
class CallJob:
    """One launched list."""

    id: str
    organization_id: str
    timestamp: Timestamp
    name: str
    scenario: str
    state: CallJobState
    created_at: datetime
    start_at: datetime | None
    window: CallingWindow | None
    max_attempts: int
    retry_delay_s: int
    expected_call_s: int
    progress: CallJobProgress
    row_error_count: int


@dataclass(frozen=True, slots=True)
class CallRowError:
    """A bad row. `row` is the line of the list on which it begins, counted from 1."""

    row: int
    column: str | None
    message: str


class CallHeaderError(CallRowError):
    """A bad header, or a list without rows. `row` is the line of the header."""


@dataclass(frozen=True, slots=True)
class CallVariable:
    """One variable of the scenario, with its value for a number."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TaskKey:
    """The key of a task: its job and the line of its row. Clients see the id "job-row"."""

    job_id: str
    row: int

    @classmethod
    def from_id(cls, id_: CallTaskId) -> "TaskKey":
        """Returns the key of a stored task."""
        return cls(id_["j"], id_["r"])

    @property
    def id(self) -> str:
        """The task's public id."""
        return f"{self.job_id}-{self.row}"

    @property
    def document_id(self) -> CallTaskId:
        """The task's `_id`. Its order is the order of the list."""
        return {"j": self.job_id, "r": self.row}


@dataclass(frozen=True, slots=True)
class CallKey:
    """The key of a call: its task and its ordinal.

    The calls of a task are counted from 1. Clients see the callId "job-row-ordinal".
    """

    task: TaskKey
    ordinal: int

    @property
    def id(self) -> str:
        """The callId, which identifies the call to the telephony service."""
        return f"{self.task.id}-{self.ordinal}"


def parse_call_id(id_: str) -> CallKey:
    """Returns the key of a callId. Raises: NotFound for text that cannot be a callId."""
    job_id, *numbers = id_.rsplit("-", 2)
    if not job_id or len(numbers) != 2 or not all(map(_is_number, numbers)):
        raise NotFound("call", id_)
    return CallKey(TaskKey(job_id, int(numbers[0])), int(numbers[1]))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_ID_PART_DIGITS


@dataclass(frozen=True, slots=True)
class CallTask:
    """One number of a list, with its latest call."""

    key: TaskKey
    organization_id: str
    phone_number: str
    variables: Sequence[CallVariable]
    state: CallTaskState
    outcome: CallOutcome | None
    attempts: int
    call_id: str | None
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    recording_count: int = 0
    """Number of calls whose recordings were reported, whether or not they are stored."""

    @property
    def id(self) -> str:
        """The id that clients see, unique across jobs."""
        return self.key.id

    @property
    def job_id(self) -> str:
        """The id of the task's job."""
        return self.key.job_id

    @property
    def row(self) -> int:
        """The line of the task's row in the list."""
        return self.key.row


@dataclass(frozen=True, slots=True)
class CallRecording:
    """The stored recording of a call."""

    file_id: str
    name: str
    content_type: str
    size: int

    @property
    def url(self) -> str:
        """Path of the recording, relative to the server's origin."""
        return f"/files/{self.file_id}/{quote(self.name, safe='')}"


def job_record(document: CallJobDocument) -> CallJob:
    """Returns the record of a stored job."""
    window = document.get("window")
    return CallJob(
        id=document["_id"],
        organization_id=document["org"],
        timestamp=Timestamp(document["ts"]),
        name=document["name"],
        scenario=document["scenario"],
        state=CallJobState(document["state"]),
        created_at=document["created_at"],
        start_at=document.get("start_at"),
        window=None if window is None else CallingWindow.from_document(window),
        max_attempts=document["max_attempts"],
        retry_delay_s=document["retry_delay_s"],
        expected_call_s=document["expected_call_s"],
        progress=_progress(document),
        row_error_count=document["row_errors"],
    )


def _progress(document: CallJobDocument) -> CallJobProgress:
    counts, outcomes = document["counts"], document["outcomes"]
    return CallJobProgress(
        queued=counts["QUEUED"],
        active=sum(counts[state.value] for state in ACTIVE_STATES),
        completed=counts["COMPLETED"],
        failed=counts["FAILED"],
        unknown=counts["UNKNOWN"],
        skipped=counts["SKIPPED"],
        cancelled=counts["CANCELLED"],
        outcomes=[CallOutcomeCount(each, outcomes[each.value]) for each in CallOutcome if each.value in outcomes],
    )


def task_record(document: CallTaskDocument, job_state: CallJobState | None = None) -> CallTask:
    """Returns the record of a stored task. Tasks of a CANCELLED job that are stored as QUEUED are CANCELLED."""
    key = TaskKey.from_id(document["_id"])
    state, outcome = CallTaskState(document["state"]), document.get("outcome")
    if job_state is CallJobState.CANCELLED and state is CallTaskState.QUEUED:
        state = CallTaskState.CANCELLED
    call = document.get("call")
    return CallTask(
        key=key,
        organization_id=document["org"],
        phone_number=document["phone"],
        variables=[CallVariable(name, value) for name, value in document["variables"]],
        state=state,
        outcome=None if outcome is None else CallOutcome(outcome),
        attempts=document["attempts"],
        call_id=None if call is None else CallKey(key, call["n"]).id,
        started_at=document.get("started_at"),
        ended_at=document.get("ended_at"),
        error=document.get("error"),
        recording_count=document.get("recordings", 0),
    )
