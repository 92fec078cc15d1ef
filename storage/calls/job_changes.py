"""Changes of a call job, committed to the organization's stream of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from storage.calls.documents import (
    DRAFTS,
    JOBS,
    LIMITS,
    CallDraftDocument,
    CallJobDocument,
    CallTaskDocument,
)
from storage.calls.limiter import Limiter, limits_record
from storage.calls.records import (
    ACTIVE_STATES,
    OPEN_STATES,
    CallJob,
    CallJobState,
    CallLimits,
    CallOutcome,
    CallTaskState,
    TaskKey,
    job_record,
)
from storage.calls.windows import CallingWindow
from storage.errors import Conflict, NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.identity.rights import HasRole
from storage.identity.roles import Role
from storage.ids import new_id
from storage.streams.changes import Batch, Change, DocumentKey, Right, SystemChange
from storage.streams.log import jobs_stream

JOB_EVENT_INTERVAL = timedelta(milliseconds=500)
"""Minimum time between two CallJobChanged events that report only progress."""

TASK_EVENT_WINDOW = timedelta(seconds=1)
MAX_TASK_EVENTS = 10
"""Maximum number of CallTaskChanged events of a job in any TASK_EVENT_WINDOW."""


@dataclass(frozen=True, slots=True)
class NewCallJob:
    """The validated input of a new job, without its list."""

    organization_id: str
    creator_id: str
    name: str
    scenario: str
    start_at: datetime | None
    window: CallingWindow | None
    max_attempts: int
    retry_delay_s: int
    expected_call_s: int
    id: str = field(default_factory=new_id)

    def document(self, at: datetime, timestamp: int, task_count: int, row_error_count: int) -> CallJobDocument:
        """Returns the document to store. With row errors the job is REJECTED."""
        document: CallJobDocument = {
            "_id": self.id,
            "org": self.organization_id,
            "creator": self.creator_id,
            "ts": timestamp,
            "name": self.name,
            "scenario": self.scenario,
            "created_at": at,
            "start_at": self.start_at,
            "window": None if self.window is None else self.window.document,
            "max_attempts": self.max_attempts,
            "retry_delay_s": self.retry_delay_s,
            "expected_call_s": self.expected_call_s,
            "row_errors": row_error_count,
            "counts": {state.value: 0 for state in CallTaskState} | {"QUEUED": task_count},
            "outcomes": {},
            "state": CallJobState.REJECTED.value,
            "ended_at": at,
        }
        if not row_error_count:
            set_state(document, state_at(document, at), at)
        return document


def state_at(job: CallJobDocument, now: datetime) -> CallJobState:
    """Returns the state that an open, unpaused job has at `now`, according to its start time and window."""
    if job["start_at"] is not None and job["start_at"] > now:
        return CallJobState.SCHEDULED
    window = job["window"]
    if window is not None and not CallingWindow.from_document(window).is_open(now):
        return CallJobState.WAITING_FOR_WINDOW
    return CallJobState.RUNNING


def set_state(job: CallJobDocument, state: CallJobState, at: datetime) -> None:
    """Sets the state, the field `open` by which brokers find jobs, and the end of a job."""
    job["state"] = state.value
    if state in OPEN_STATES:
        job["open"] = True
        job.pop("ended_at", None)
    else:
        job.pop("open", None)
        job["ended_at"] = at


def copy_job(batch: Batch, organization_id: str, job_id: str) -> CallJobDocument:
    """Returns a copy of the job, to be changed and put back. Raises: NotFound."""
    stored: CallJobDocument | None = batch.get(JOBS, job_id)
    if stored is None or stored["org"] != organization_id:
        raise NotFound("call job", job_id)
    return stored | {"counts": dict(stored["counts"]), "outcomes": dict(stored["outcomes"])}


def complete_if_done(job: CallJobDocument, at: datetime) -> bool:
    """Completes an open job without queued and active tasks. Returns whether it was completed."""
    counts = job["counts"]
    if "open" not in job or counts["QUEUED"] or any(counts[state.value] for state in ACTIVE_STATES):
        return False
    set_state(job, CallJobState.COMPLETED, at)
    return True


def emit_job_changed(batch: Batch, job: CallJobDocument, at_once: bool) -> None:
    """Puts the job and emits CallJobChanged.

    Unless `at_once`, the event is emitted at most twice a second. The outbox relay emits a delayed event.
    """
    if at_once or job_event_delay(job, batch.at) is None:
        job["emitted_at"] = batch.at
        batch.emit("CallJobChanged", job["_id"])
    elif not job.get("event_pending"):
        job["event_pending"] = True
        batch.add_outbox_row(jobs_stream(job["org"]), "CallJobChanged", job["_id"])
    batch.put(JOBS, job)


def job_event_delay(job: CallJobDocument, at: datetime) -> timedelta | None:
    """Returns how long an event of the job's progress must wait, or None if it may be emitted now."""
    last = job.get("emitted_at")
    return None if last is None or not last <= at < last + JOB_EVENT_INTERVAL else last + JOB_EVENT_INTERVAL - at


def emit_task_changed(batch: Batch, job: CallJobDocument, task: CallTaskDocument) -> None:
    """Emits CallTaskChanged, or marks the task so that the outbox relay emits it later.

    The caller puts the job and the task.
    """
    if reserve_task_event(job, batch.at) is None:
        task.pop("event_pending", None)
        batch.emit("CallTaskChanged", TaskKey.from_id(task["_id"]).id)
        return
    task["event_pending"] = True
    if not job.get("task_events_pending"):
        # One row for the whole job. Thousands of rows would delay the other rows of the stream.
        job["task_events_pending"] = True
        batch.add_outbox_row(jobs_stream(job["org"]), "CallTaskChanged", job["_id"])


def reserve_task_event(job: CallJobDocument, at: datetime) -> timedelta | None:
    """Reserves one of the ten task events that the job may emit in any second.

    Returns None if the event may be emitted now, otherwise how long it must wait.
    """
    emitted_at = job.get("task_events_at", [])
    # Instants after `at` come from the clock of another primary. They are ignored, as they would delay every event.
    recent = [each for each in emitted_at if each <= at < each + TASK_EVENT_WINDOW]
    if len(recent) >= MAX_TASK_EVENTS:
        return recent[-MAX_TASK_EVENTS] + TASK_EVENT_WINDOW - at
    job["task_events_at"] = [*recent, at]
    return None


@dataclass(slots=True)
class LaunchJob(Change[CallJob]):
    """Creates a job whose tasks or row errors are already stored."""

    max_timestamps = 1
    new: NewCallJob
    task_count: int
    row_error_count: int
    idempotency: IdempotencyKey | None = None
    actor: Actor | None = None
    """The operator, for the audit log; None for a job without a request."""

    def rights(self) -> Sequence[Right]:
        """Returns the role OPERATOR."""
        return () if self.actor is None else (HasRole(self.actor, Role.OPERATOR),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the draft, which shows that the tasks still exist."""
        return [(DRAFTS, self.new.id)]

    def plan(self, batch: Batch) -> CallJob:
        """Puts the job. Raises: Conflict if storing took over an hour, so that the sweeper removed the tasks."""
        draft: CallDraftDocument | None = batch.get(DRAFTS, self.new.id)
        if draft is None or draft.get("discarded"):
            raise Conflict("Storing the list took too long. Launch it again.")
        batch.remove(DRAFTS, self.new.id)
        job = self.new.document(batch.at, batch.take_timestamp(), self.task_count, self.row_error_count)
        complete_if_done(job, batch.at)
        emit_job_changed(batch, job, at_once=True)
        details = {"numbers": str(self.task_count), "rowErrors": str(self.row_error_count)}
        put_entry(batch, self.actor, AuditAction.CALL_JOB_LAUNCHED, TargetKind.CALL_JOB, self.new.id, **details)
        return job_record(job)

    def result_id(self, result: CallJob) -> str:
        """Returns the job's id."""
        return result.id


class JobAction(Enum):
    """A user's action on a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


_AUDIT_ACTIONS = {
    JobAction.PAUSE: AuditAction.CALL_JOB_PAUSED,
    JobAction.RESUME: AuditAction.CALL_JOB_RESUMED,
    JobAction.CANCEL: AuditAction.CALL_JOB_CANCELLED,
}
_FINAL_STATES: Mapping[JobAction, CallJobState] = {JobAction.CANCEL: CallJobState.CANCELLED}


@dataclass(slots=True)
class ActOnJob(Change[CallJob]):
    """Pauses, resumes or cancels a job. Active calls continue. After a pause or cancel is committed, no call starts."""

    organization_id: str
    job_id: str
    action: JobAction
    actor: Actor | None = None
    """The operator, for the audit log."""

    def rights(self) -> Sequence[Right]:
        """Returns the role OPERATOR."""
        return () if self.actor is None else (HasRole(self.actor, Role.OPERATOR),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the job."""
        return [(JOBS, self.job_id)]

    def plan(self, batch: Batch) -> CallJob:
        """Sets the job's state. Idempotent. Raises: NotFound, Conflict for a job in a final state."""
        job = copy_job(batch, self.organization_id, self.job_id)
        state = CallJobState(job["state"])
        if state is _FINAL_STATES.get(self.action):
            return job_record(job)
        if state not in OPEN_STATES:
            raise Conflict(f"The job is {state.value}, which is final. There is nothing to {self.action.value}.")
        new_state = self._apply_action(job, state, batch.at)
        if new_state is not state:
            set_state(job, new_state, batch.at)
            emit_job_changed(batch, job, at_once=True)
            put_entry(batch, self.actor, _AUDIT_ACTIONS[self.action], TargetKind.CALL_JOB, self.job_id)
        return job_record(job)

    def _apply_action(self, job: CallJobDocument, state: CallJobState, at: datetime) -> CallJobState:
        """Returns the state after the action. Cancelling also counts the queued tasks as cancelled."""
        if self.action is JobAction.PAUSE:
            return CallJobState.PAUSED
        if self.action is JobAction.RESUME:
            return state_at(job, at) if state is CallJobState.PAUSED else state
        counts = job["counts"]
        counts["CANCELLED"] += counts["QUEUED"]
        counts["QUEUED"] = 0
        return CallJobState.CANCELLED


@dataclass(slots=True)
class RefreshJobState(SystemChange[None]):
    """Updates a job whose start time has come, or whose window has opened or closed."""

    organization_id: str
    job_id: str

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the job."""
        return [(JOBS, self.job_id)]

    def plan(self, batch: Batch) -> None:
        """Sets the state, unless the job is paused or final. Raises: NotFound."""
        job = copy_job(batch, self.organization_id, self.job_id)
        if "open" not in job or job["state"] == CallJobState.PAUSED.value:
            return
        if (state := state_at(job, batch.at)).value != job["state"]:
            set_state(job, state, batch.at)
            emit_job_changed(batch, job, at_once=True)


@dataclass(slots=True)
class SetLimits(Change[CallLimits]):
    """Sets the organization's limits."""

    organization_id: str
    concurrent: int
    per_second: float
    actor: Actor | None = None
    """The administrator, for the audit log."""

    def rights(self) -> Sequence[Right]:
        """Returns the role ADMIN."""
        return () if self.actor is None else (HasRole(self.actor, Role.ADMIN),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the limiter."""
        return [(LIMITS, self.organization_id)]

    def plan(self, batch: Batch) -> CallLimits:
        """Sets the limits, which apply to every later start. Active calls continue."""
        limiter = Limiter.from_batch(batch, self.organization_id)
        before = limits_record(limiter.document)
        limiter.set_limits(self.concurrent, self.per_second)
        limiter.put(batch)
        batch.emit("CallLimitsChanged", self.organization_id)
        after = limits_record(limiter.document)
        if after != before:
            details = {"before": _limits_text(before), "after": _limits_text(after)}
            action, kind = AuditAction.CALL_LIMITS_SET, TargetKind.CALL_LIMITS
            put_entry(batch, self.actor, action, kind, self.organization_id, **details)
        return after


def _limits_text(limits: CallLimits) -> str:
    return f"{limits.concurrent_calls} at a time, {limits.calls_per_second:g} a second"


@dataclass(slots=True)
class TakeOver(SystemChange[None]):
    """Stores the fence of a broker. Brokers with a smaller fence can start no calls afterwards."""

    usual_events = 0
    organization_id: str
    fence: int

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the limiter."""
        return [(LIMITS, self.organization_id)]

    def plan(self, batch: Batch) -> None:
        """Stores the fence. Raises: BrokerSuperseded if the stored fence is greater."""
        limiter = Limiter.from_batch(batch, self.organization_id)
        limiter.check_fence(self.fence)
        limiter.put(batch)


def count_outcome(job: CallJobDocument, outcome: CallOutcome) -> None:
    """Adds one finished call to the count of its outcome."""
    job["outcomes"][outcome.value] = job["outcomes"].get(outcome.value, 0) + 1
