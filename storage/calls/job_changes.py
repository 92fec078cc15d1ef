"""What can happen to a call job, as changes committed to the organization's stream of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from storage.calls.limiter import LIMITS, Limiter, limits_record
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
from storage.ids import new_id
from storage.mongo import Document
from storage.streams.changes import Batch, Change, Need
from storage.streams.log import jobs_stream

JOBS = "call_jobs"
DRAFTS = "call_drafts"
JOB_EVENT_INTERVAL = timedelta(milliseconds=500)
TASK_EVENT_WINDOW = timedelta(seconds=1)
MAX_TASK_EVENTS = 10
"""At most so many events of a job's tasks within that time, wherever it begins."""


@dataclass(frozen=True, slots=True)
class NewCallJob:
    """What a job is made of, checked."""

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

    def document(self, at: datetime, timestamp: int, tasks: int, row_errors: int) -> Document:
        """As it is stored; without tasks it was rejected, or has nothing to do."""
        counts = {state.value: 0 for state in CallTaskState} | {"QUEUED": tasks}
        document: Document = {
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
            "row_errors": row_errors,
            "counts": counts,
            "outcomes": {},
        }
        state = CallJobState.REJECTED if row_errors else state_at(document, at)
        set_state(document, state)
        return document


def state_at(job: Document, now: datetime) -> CallJobState:
    """What an open job that is not paused is at a moment: due, and inside its window?"""
    if job["start_at"] is not None and job["start_at"] > now:
        return CallJobState.SCHEDULED
    window = job["window"]
    if window is not None and not CallingWindow.of_document(window).is_open(now):
        return CallJobState.WAITING_FOR_WINDOW
    return CallJobState.RUNNING


def set_state(job: Document, state: CallJobState) -> None:
    """Moves it. `open` marks what brokers look for."""
    job["state"] = state.value
    if state in OPEN_STATES:
        job["open"] = True
    else:
        job.pop("open", None)


def copy_job(batch: Batch, organization_id: str, job_id: str) -> Document:
    """The batch's own copy of a job, to be changed and put back. Raises: NotFound."""
    stored: Document | None = batch.get(JOBS, job_id)
    if stored is None or stored["org"] != organization_id:
        raise NotFound("call job", job_id)
    return stored | {"counts": dict(stored["counts"]), "outcomes": dict(stored["outcomes"])}


def complete_if_done(job: Document) -> bool:
    """Completes an open job with nothing left to do; whether it did."""
    counts = job["counts"]
    if "open" not in job or counts["QUEUED"] or any(counts[state.value] for state in ACTIVE_STATES):
        return False
    set_state(job, CallJobState.COMPLETED)
    return True


def emit_job_changed(batch: Batch, job: Document, at_once: bool) -> None:
    """Puts the job back and tells of it; of mere progress at most twice a second, the last of it never left out."""
    if at_once or job_event_delay(job, batch.at) is None:
        job["told_at"] = batch.at
        batch.emit("CallJobChanged", job["_id"])
    elif not job.get("untold"):
        job["untold"] = True
        batch.add_outbox_row(jobs_stream(job["org"]), "CallJobChanged", job["_id"])
    batch.put(JOBS, job)


def job_event_delay(job: Document, at: datetime) -> timedelta | None:
    """How long until progress of the job may be told; None for now."""
    told: datetime | None = job.get("told_at")
    return None if told is None or not told <= at < told + JOB_EVENT_INTERVAL else told + JOB_EVENT_INTERVAL - at


def emit_task_changed(batch: Batch, job: Document, task: Document) -> None:
    """Tells of a task, or marks it to be told of when the job's turn comes. Who changed task and job puts them back."""
    if reserve_task_event(job, batch.at) is None:
        task.pop("untold", None)
        batch.emit("CallTaskChanged", TaskKey(task["_id"]["j"], task["_id"]["r"]).id)
        return
    task["untold"] = True
    if not job.get("untold_tasks"):
        # One row a job, however many tasks: other rows of the stream must not wait behind thousands.
        job["untold_tasks"] = True
        batch.add_outbox_row(jobs_stream(job["org"]), "CallTaskChanged", job["_id"])


def reserve_task_event(job: Document, at: datetime) -> timedelta | None:
    """Takes one of the job's ten task events within a second; how long until there is one again when all are taken."""
    told: list[datetime] = job.get("task_events_at", [])
    # Instants to come are those of another primary's clock, and would hold up everything.
    recent = [each for each in told if each <= at < each + TASK_EVENT_WINDOW]
    if len(recent) >= MAX_TASK_EVENTS:
        return recent[-MAX_TASK_EVENTS] + TASK_EVENT_WINDOW - at
    job["task_events_at"] = [*recent, at]
    return None


@dataclass(slots=True)
class LaunchJob(Change[CallJob]):
    """A new job, whose tasks or row errors are stored already: this makes them one."""

    timestamps = 1
    new: NewCallJob
    tasks: int
    row_errors: int
    idempotency: IdempotencyKey | None = None

    def needs(self) -> Sequence[Need]:
        """The mark that its tasks are there."""
        return [(DRAFTS, self.new.id)]

    def plan(self, batch: Batch) -> CallJob:
        """Raises: Conflict when the tasks were swept away, since launching took an hour."""
        draft = batch.get(DRAFTS, self.new.id)
        if draft is None or draft.get("discarded"):
            raise Conflict("Storing the list took too long; try again.")
        batch.remove(DRAFTS, self.new.id)
        job = self.new.document(batch.at, batch.take_timestamp(), self.tasks, self.row_errors)
        complete_if_done(job)
        emit_job_changed(batch, job, at_once=True)
        return job_record(job)

    def result_id(self, result: CallJob) -> str:
        """The job's id."""
        return result.id


class JobAction(Enum):
    """What people do to a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


_FINAL_OF: Mapping[JobAction, CallJobState] = {JobAction.CANCEL: CallJobState.CANCELLED}


@dataclass(slots=True)
class ActOnJob(Change[CallJob]):
    """Pauses, resumes or cancels. Calls that are under way go on; nothing new is dialled once this is durable."""

    organization_id: str
    job_id: str
    action: JobAction

    def needs(self) -> Sequence[Need]:
        """The job."""
        return [(JOBS, self.job_id)]

    def plan(self, batch: Batch) -> CallJob:
        """Doing it twice changes nothing. Raises: NotFound, Conflict for a job that is over."""
        job = copy_job(batch, self.organization_id, self.job_id)
        before = CallJobState(job["state"])
        if before is _FINAL_OF.get(self.action):
            return job_record(job)
        if before not in OPEN_STATES:
            raise Conflict(f"The job is {before.value}: there is nothing to {self.action.value}.")
        after = self._after(job, before, batch.at)
        if after is not before:
            set_state(job, after)
            emit_job_changed(batch, job, at_once=True)
        return job_record(job)

    def _after(self, job: Document, before: CallJobState, at: datetime) -> CallJobState:
        if self.action is JobAction.PAUSE:
            return CallJobState.PAUSED
        if self.action is JobAction.RESUME:
            return state_at(job, at) if before is CallJobState.PAUSED else before
        counts = job["counts"]
        counts["CANCELLED"] += counts["QUEUED"]
        counts["QUEUED"] = 0
        return CallJobState.CANCELLED


@dataclass(slots=True)
class RefreshJobState(Change[None]):
    """Brings a job in line with the clock: its start has come, its window opened or closed."""

    organization_id: str
    job_id: str

    def needs(self) -> Sequence[Need]:
        """The job."""
        return [(JOBS, self.job_id)]

    def plan(self, batch: Batch) -> None:
        """Changes nothing about a paused job, or one that is over. Raises: NotFound."""
        job = copy_job(batch, self.organization_id, self.job_id)
        if "open" not in job or job["state"] == CallJobState.PAUSED.value:
            return
        if (state := state_at(job, batch.at)).value != job["state"]:
            set_state(job, state)
            emit_job_changed(batch, job, at_once=True)


@dataclass(slots=True)
class SetLimits(Change[CallLimits]):
    """New limits of the organization."""

    organization_id: str
    concurrent: int
    per_second: float

    def needs(self) -> Sequence[Need]:
        """The limiter."""
        return [(LIMITS, self.organization_id)]

    def plan(self, batch: Batch) -> CallLimits:
        """They hold for every start that is committed after this. Active calls are not ended."""
        limiter = Limiter.of(batch, self.organization_id)
        limiter.set(self.concurrent, self.per_second)
        limiter.put(batch)
        batch.emit("CallLimitsChanged", self.organization_id)
        return limits_record(limiter.document)


@dataclass(slots=True)
class TakeOver(Change[None]):
    """A broker begins: from here on no broker with a smaller fence starts a call."""

    events = 0
    organization_id: str
    fence: int

    def needs(self) -> Sequence[Need]:
        """The limiter."""
        return [(LIMITS, self.organization_id)]

    def plan(self, batch: Batch) -> None:
        """Raises: Superseded."""
        limiter = Limiter.of(batch, self.organization_id)
        limiter.lead(self.fence)
        limiter.put(batch)


def count_outcome(job: Document, outcome: CallOutcome) -> None:
    """Counts one more call that ended so."""
    job["outcomes"][outcome.value] = job["outcomes"].get(outcome.value, 0) + 1
