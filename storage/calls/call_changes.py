"""What can happen to one number of a list, as changes committed to the organization's stream of jobs.

Task, job and limiter change in one transaction, so a call has a slot from its intent to its end, and nothing else has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from storage.calls.job_changes import (
    JOBS,
    complete_if_done,
    copy_job,
    count_outcome,
    emit_job_changed,
    emit_task_changed,
)
from storage.calls.limiter import JITTER_S, LIMITS, Limiter
from storage.calls.records import (
    ACTIVE_STATES,
    STATE_AFTER,
    TRIED_AGAIN,
    CallJobState,
    CallKey,
    CallOutcome,
    CallReportEvent,
    CallTask,
    CallTaskState,
    TaskKey,
    task_record,
)
from storage.calls.windows import CallingWindow
from storage.errors import BadUserInput, NotFound
from storage.mongo import Document
from storage.streams.changes import Batch, Change, Need

TASKS = "call_tasks"
DO_NOT_CALL = "do_not_call"

START_LOOKAHEAD = timedelta(milliseconds=60)
"""How early a start may be committed: it is held until its moment."""

POLL_AFTER = timedelta(seconds=30)
POLL_INTERVAL = timedelta(seconds=60)
NOT_FOUND_TRUSTED_AFTER = timedelta(seconds=5)
"""How long after notAfter the telephony side's "never heard of it" is believed."""

UNREPORTED = -1
"""The sequence of a call that nothing was reported on. Services count from 0 or from 1."""

UNTRIED = 0
"""The place in the queue of numbers that were never tried; others have the microsecond from which they may be tried."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it is handed to the telephony side, which must not begin it after `not_after`."""

    key: CallKey
    organization_id: str
    phone_number: str
    scenario: str
    variables: Sequence[tuple[str, str]]
    start_at: datetime
    reference: str | None = None
    """The service's own name of the call, once that is known."""

    @property
    def id(self) -> str:
        """The callId."""
        return self.key.id

    @property
    def not_after(self) -> datetime:
        """A later start would break a rolling second."""
        return self.start_at + timedelta(seconds=JITTER_S)


@dataclass(frozen=True, slots=True)
class CallStart:
    """The call has its slot: it starts `delay_s` after this was committed, and the next one at least `gap_s` later."""

    call: Call
    delay_s: float
    gap_s: float


class StartRefusal(Enum):
    """Why nothing was dialled."""

    NO_SLOT = "no free slot"
    TOO_EARLY = "the next start is not due"
    GONE = "the task is not to be dialled now"
    DO_NOT_CALL = "the number must not be called"


@dataclass(slots=True)
class _TaskChange:
    """A change of one task; the copies of task, job and limiter that it plans on."""

    organization_id: str
    task: TaskKey

    def needs(self) -> Sequence[Need]:
        """The task, its job and the limiter."""
        return [(TASKS, self.task.document_id), (JOBS, self.task.job_id), (LIMITS, self.organization_id)]

    def copy_task(self, batch: Batch) -> Document:
        """The batch's own copy. Raises: NotFound."""
        stored: Document | None = batch.get(TASKS, self.task.document_id)
        if stored is None or stored["org"] != self.organization_id:
            raise NotFound("call task", self.task.id)
        return stored | ({"call": dict(stored["call"])} if "call" in stored else {})

    def move(self, batch: Batch, job: Document, task: Document, state: CallTaskState) -> None:
        """Counts the task where it is now, puts it and tells of it. A job that is done with it is completed."""
        before = task["state"]
        if state is CallTaskState.QUEUED and job["state"] == CallJobState.CANCELLED.value:
            state = CallTaskState.CANCELLED
        job["counts"][before] -= 1
        job["counts"][state.value] += 1
        task["state"] = state.value
        if state is not CallTaskState.QUEUED:
            task.pop("queue", None)
        if state not in ACTIVE_STATES and state is not CallTaskState.UNKNOWN:
            task.pop("ask_at", None)
        finished = complete_if_done(job)
        emit_task_changed(batch, job, task)
        batch.put(TASKS, task)
        emit_job_changed(batch, job, at_once=finished)

    def free(self, batch: Batch, task: Document) -> None:
        """Ends the slot of the task's call."""
        limiter = Limiter.of(batch, self.organization_id)
        if limiter.free(CallKey(self.task, task["call"]["n"]).id):
            limiter.put(batch)


@dataclass(slots=True)
class StartCall(_TaskChange, Change[CallStart | StartRefusal]):
    """The intent: a slot, a moment and an attempt for one number, or the reason why not."""

    events = 2
    fence: int
    phone_number: str
    lead: timedelta = timedelta()
    """How long after this commit the call starts at the earliest."""

    def needs(self) -> Sequence[Need]:
        """Also whether the number must not be called."""
        blocked = {"org": self.organization_id, "phone": self.phone_number}
        return [*_TaskChange.needs(self), (DO_NOT_CALL, blocked)]

    def plan(self, batch: Batch) -> CallStart | StartRefusal:
        """Raises: Superseded for a broker whose lock another one has by now."""
        limiter = Limiter.of(batch, self.organization_id)
        limiter.lead(self.fence)
        job, task = copy_job(batch, self.organization_id, self.task.job_id), self.copy_task(batch)
        start_at = limiter.next_start(batch.at + self.lead)
        if not _is_callable(job, task, batch.at, start_at):
            return StartRefusal.GONE
        if batch.get(DO_NOT_CALL, {"org": self.organization_id, "phone": self.phone_number}) is not None:
            self._skip(batch, job, task)
            return StartRefusal.DO_NOT_CALL
        if not limiter.has_free_slot:
            return StartRefusal.NO_SLOT
        if start_at - batch.at > START_LOOKAHEAD + self.lead:
            return StartRefusal.TOO_EARLY
        call = self._begin(batch, limiter, job, task, start_at)
        gap_s = (limiter.document["next_at"] - start_at).total_seconds()
        return CallStart(call, (start_at - batch.at).total_seconds(), gap_s)

    def _skip(self, batch: Batch, job: Document, task: Document) -> None:
        task |= {"outcome": CallOutcome.DO_NOT_CALL.value, "ended_at": batch.at}
        count_outcome(job, CallOutcome.DO_NOT_CALL)
        self.move(batch, job, task, CallTaskState.SKIPPED)

    def _begin(self, batch: Batch, limiter: Limiter, job: Document, task: Document, start_at: datetime) -> Call:
        key = CallKey(self.task, task["dials"] + 1)
        limiter.take(key.id, start_at)
        limiter.put(batch)
        task |= {
            "attempts": task["attempts"] + 1,
            "dials": key.number,
            "call": {"n": key.number, "seq": UNREPORTED, "over": False, "start_at": start_at},
            "started_at": start_at,
            "ended_at": None,
            "outcome": None,
            "error": None,
            "ask_at": start_at + POLL_AFTER,
        }
        self.move(batch, job, task, CallTaskState.DIALLING)
        return call_of(key, job, task)


def _is_callable(job: Document, task: Document, now: datetime, start_at: datetime) -> bool:
    if job["state"] != CallJobState.RUNNING.value or task["state"] != CallTaskState.QUEUED.value:
        return False
    window = job["window"]
    is_open = window is None or CallingWindow.of_document(window).is_open(start_at)
    return is_open and bool(task["queue"] <= now.timestamp() * 1_000_000)


def call_of(key: CallKey, job: Document, task: Document) -> Call:
    """The task's present call as the telephony side knows it."""
    variables = [(name, value) for name, value in task["variables"]]
    call = task["call"]
    return Call(key, job["org"], task["phone"], job["scenario"], variables, call["start_at"], call.get("reference"))


@dataclass(slots=True)
class ReportCall(_TaskChange, Change[CallTask]):
    """What the telephony side told of a call, by itself or because it was asked. The result is the task."""

    events = 2
    number: int
    sequence: int
    event: CallReportEvent
    outcome: CallOutcome | None
    at: datetime | None = None
    """When it happened by the clock of who tells it; None when that is not known."""

    def needs(self) -> Sequence[Need]:
        """The limiter only for an end, which frees a slot."""
        needs = _TaskChange.needs(self)
        return needs if self.event is CallReportEvent.ENDED else [need for need in needs if need[0] != LIMITS]

    def plan(self, batch: Batch) -> CallTask:
        """A sequence that is not higher than the last, and whatever follows the end, changes nothing.

        Raises: NotFound for a call that was never made, BadUserInput for an end without an outcome.
        """
        if self.event is CallReportEvent.ENDED and self.outcome is None:
            raise BadUserInput("outcome", "the outcome of a call that ENDED")
        task = self.copy_task(batch)
        if not 1 <= self.number <= task["dials"]:
            raise NotFound("call", CallKey(self.task, self.number).id)
        job = copy_job(batch, self.organization_id, self.task.job_id)
        if task["call"]["n"] == self.number and not task["call"]["over"] and self.sequence > task["call"]["seq"]:
            self._take(batch, job, task)
        return task_record(task, CallJobState(job["state"]))

    def _take(self, batch: Batch, job: Document, task: Document) -> None:
        task["call"]["seq"] = self.sequence
        if self.outcome is not None and self.event is CallReportEvent.ENDED:
            self._end(batch, job, task, self.outcome)
        elif task["state"] == CallTaskState.UNKNOWN.value:
            # Its job may be over, and its slot another's: only its end settles it.
            batch.put(TASKS, task)
        else:
            task["ask_at"] = batch.at + POLL_INTERVAL
            self.move(batch, job, task, CallTaskState.IN_CALL)

    def _end(self, batch: Batch, job: Document, task: Document, outcome: CallOutcome) -> None:
        task["call"]["over"] = True
        task |= {"outcome": outcome.value, "ended_at": self._ended_at(batch, task), "error": None}
        count_outcome(job, outcome)
        self.free(batch, task)
        if outcome in TRIED_AGAIN and task["attempts"] < job["max_attempts"] and "open" in job:
            due = batch.at + timedelta(seconds=job["retry_delay_s"])
            task["queue"] = int(due.timestamp() * 1_000_000)
            self.move(batch, job, task, CallTaskState.QUEUED)
        else:
            self.move(batch, job, task, STATE_AFTER[outcome])

    def _ended_at(self, batch: Batch, task: Document) -> datetime:
        """As the telephony side says, but no call ended before it began, or will have. Shown, never compared."""
        return batch.at if self.at is None else min(max(self.at, task["call"]["start_at"]), batch.at)


@dataclass(slots=True)
class RequeueCall(_TaskChange, Change[bool]):
    """The call provably never happened: its number is at its place in the queue again, the attempt not counted."""

    events = 2
    number: int
    hold_off_s: float = 0.0

    def plan(self, batch: Batch) -> bool:
        """Whether it was still so: one that was reported on did happen. `hold_off_s` stops the whole organization."""
        task = self.copy_task(batch)
        if not is_waiting(task, self.number):
            return False
        job = copy_job(batch, self.organization_id, self.task.job_id)
        task["call"]["over"] = True
        task["attempts"] -= 1
        limiter = Limiter.of(batch, self.organization_id)
        limiter.free(CallKey(self.task, self.number).id)
        if self.hold_off_s:
            limiter.hold_off(batch.at + timedelta(seconds=self.hold_off_s))
        limiter.put(batch)
        if job["state"] == CallJobState.COMPLETED.value:
            # It was given up as unknown, and the job with it.
            task |= {"error": "The telephony side never made this call.", "ended_at": batch.at}
            self.move(batch, job, task, CallTaskState.FAILED)
        else:
            task |= {"queue": UNTRIED, "started_at": None, "error": None}
            self.move(batch, job, task, CallTaskState.QUEUED)
        return True


def is_waiting(task: Document, number: int) -> bool:
    """Whether nothing was heard of this call since it was committed."""
    call = task.get("call")
    if call is None or call["n"] != number or call["over"] or call["seq"] != UNREPORTED:
        return False
    return task["state"] in (CallTaskState.DIALLING.value, CallTaskState.UNKNOWN.value)


@dataclass(slots=True)
class FailCall(_TaskChange, Change[bool]):
    """The telephony side refused this call for good."""

    events = 2
    number: int
    error: str

    def plan(self, batch: Batch) -> bool:
        """Whether it was still so."""
        task = self.copy_task(batch)
        if not is_waiting(task, self.number):
            return False
        task["call"]["over"] = True
        task |= {"error": self.error, "ended_at": batch.at}
        self.free(batch, task)
        self.move(batch, copy_job(batch, self.organization_id, self.task.job_id), task, CallTaskState.FAILED)
        return True


@dataclass(slots=True)
class MarkCallUnknown(_TaskChange, Change[bool]):
    """What became of the call is not known. Its slot goes on where the telephony side has not answered."""

    events = 2
    number: int
    error: str
    keeps_slot: bool

    def plan(self, batch: Batch) -> bool:
        """Whether that is news."""
        task = self.copy_task(batch)
        call = task.get("call")
        if call is None or call["n"] != self.number or call["over"]:
            return False
        was_unknown = task["state"] == CallTaskState.UNKNOWN.value
        if was_unknown and self.keeps_slot:
            return False
        if not self.keeps_slot:
            self.free(batch, task)
            task.pop("ask_at", None)
        task["error"] = self.error
        self.move(batch, copy_job(batch, self.organization_id, self.task.job_id), task, CallTaskState.UNKNOWN)
        return True
