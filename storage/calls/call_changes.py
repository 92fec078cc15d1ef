"""Changes of one call and its task, committed to the organization's stream of jobs.

Task, job and limiter change in one transaction. A call therefore holds a slot from its intent to its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from storage.calls.documents import (
    DO_NOT_CALL,
    JOBS,
    LIMITS,
    TASKS,
    CallJobDocument,
    CallTaskDocument,
    DoNotCallDocument,
    LatestCall,
    PhoneNumberId,
)
from storage.calls.job_changes import (
    complete_if_done,
    copy_job,
    count_outcome,
    emit_job_changed,
    emit_task_changed,
)
from storage.calls.limiter import JITTER_S, Limiter
from storage.calls.records import (
    ACTIVE_STATES,
    FINAL_STATE_BY_OUTCOME,
    RETRIED_OUTCOMES,
    CallJobState,
    CallKey,
    CallOutcome,
    CallReportKind,
    CallTask,
    CallTaskState,
    TaskKey,
    task_record,
)
from storage.calls.windows import CallingWindow
from storage.errors import BadUserInput, NotFound
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, DocumentKey, SystemChange

START_LOOKAHEAD = timedelta(milliseconds=60)
"""How long before its start time a call may be committed. The broker sends the call at the start time."""

POLL_AFTER = timedelta(seconds=30)
POLL_INTERVAL = timedelta(seconds=60)
NOT_FOUND_TRUSTED_AFTER = timedelta(seconds=5)
"""How long after notAfter "no such call" is not yet trusted as an answer, since a delayed request may still arrive."""

UNREPORTED = -1
"""The sequence number that is stored for a call without a report. Services count reports from 0 or from 1."""

UNTRIED = 0
"""The queue position of a number without a call. A retry has the Unix time in microseconds at which it is due."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call for the telephony service, which must not begin it after `not_after`."""

    key: CallKey
    organization_id: str
    phone_number: str
    scenario: str
    variables: Sequence[tuple[str, str]]
    start_at: datetime
    reference: str | None = None
    """The service's own identifier of the call; None until it is known."""

    @property
    def id(self) -> str:
        """The callId."""
        return self.key.id

    @property
    def not_after(self) -> datetime:
        """The latest start that keeps the limit of calls in any rolling second."""
        return self.start_at + timedelta(seconds=JITTER_S)


@dataclass(frozen=True, slots=True)
class CommittedCallStart:
    """A committed start. The call begins `delay_s` after the commit. The next call begins at least `gap_s` later."""

    call: Call
    delay_s: float
    gap_s: float


class StartRefusal(Enum):
    """Why a call was not started."""

    NO_SLOT = "no free slot"
    TOO_EARLY = "the next start is not due"
    NOT_CALLABLE = "the task may not be called now"
    DO_NOT_CALL = "the number must not be called"


@dataclass(slots=True)
class _TaskChange:
    """Base of changes of one task. They change copies of the task, its job and the limiter."""

    organization_id: str
    task: TaskKey

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the task, its job and the limiter."""
        return [(TASKS, self.task.document_id), (JOBS, self.task.job_id), (LIMITS, self.organization_id)]

    def copy_task(self, batch: Batch) -> CallTaskDocument:
        """Returns a copy of the batch's task. Raises: NotFound."""
        stored: CallTaskDocument | None = batch.get(TASKS, self.task.document_id)
        if stored is None or stored["org"] != self.organization_id:
            raise NotFound("call task", self.task.id)
        task = stored.copy()
        if "call" in stored:
            task["call"] = stored["call"].copy()
        return task

    def set_state(self, batch: Batch, job: CallJobDocument, task: CallTaskDocument, state: CallTaskState) -> None:
        """Sets the task's state, updates the job's counts and completes the job if possible. Puts both, with events."""
        old_state = task["state"]
        if state is CallTaskState.QUEUED and job["state"] == CallJobState.CANCELLED.value:
            state = CallTaskState.CANCELLED
        job["counts"][old_state] -= 1
        job["counts"][state.value] += 1
        task["state"] = state.value
        if state is not CallTaskState.QUEUED:
            task.pop("queue", None)
        if state not in ACTIVE_STATES and state is not CallTaskState.UNKNOWN:
            task.pop("poll_at", None)
        is_completed = complete_if_done(job, batch.at)
        emit_task_changed(batch, job, task)
        batch.put(TASKS, task)
        emit_job_changed(batch, job, at_once=is_completed)

    def free_slot(self, batch: Batch, call: LatestCall) -> None:
        """Frees the slot of the task's latest call."""
        limiter = Limiter.from_batch(batch, self.organization_id)
        if limiter.free_slot(CallKey(self.task, call["n"]).id):
            limiter.put(batch)


@dataclass(slots=True)
class StartCall(_TaskChange, SystemChange[CommittedCallStart | StartRefusal]):
    """Stores the intent of one call, with its slot and start time, and counts the attempt.

    The result is a StartRefusal if the call may not start.
    """

    usual_events = 2
    fence: int
    phone_number: str
    lead: timedelta = timedelta()
    """The minimum time between this commit and the call's start."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the task, its job, the limiter and the number's do-not-call entry."""
        return [*_TaskChange.needs(self), (DO_NOT_CALL, _phone_number_id(self.organization_id, self.phone_number))]

    def plan(self, batch: Batch) -> CommittedCallStart | StartRefusal:
        """Starts the call if all conditions hold. Raises: BrokerSuperseded if another broker has taken over."""
        limiter = Limiter.from_batch(batch, self.organization_id)
        limiter.check_fence(self.fence)
        job, task = copy_job(batch, self.organization_id, self.task.job_id), self.copy_task(batch)
        start_at = limiter.next_start(batch.at + self.lead)
        if not _is_callable(job, task, batch.at, start_at):
            return StartRefusal.NOT_CALLABLE
        if batch.get(DO_NOT_CALL, _phone_number_id(self.organization_id, self.phone_number)) is not None:
            self._skip(batch, job, task)
            return StartRefusal.DO_NOT_CALL
        if not limiter.has_free_slot:
            return StartRefusal.NO_SLOT
        if start_at - batch.at > START_LOOKAHEAD + self.lead:
            return StartRefusal.TOO_EARLY
        call = self._begin(batch, limiter, job, task, start_at)
        gap_s = (limiter.document["next_at"] - start_at).total_seconds()
        return CommittedCallStart(call, (start_at - batch.at).total_seconds(), gap_s)

    def _skip(self, batch: Batch, job: CallJobDocument, task: CallTaskDocument) -> None:
        task |= {"outcome": CallOutcome.DO_NOT_CALL.value, "ended_at": batch.at}
        count_outcome(job, CallOutcome.DO_NOT_CALL)
        self.set_state(batch, job, task, CallTaskState.SKIPPED)

    def _begin(
        self, batch: Batch, limiter: Limiter, job: CallJobDocument, task: CallTaskDocument, start_at: datetime
    ) -> Call:
        key = CallKey(self.task, task["dials"] + 1)
        limiter.take_slot(key.id, start_at)
        limiter.put(batch)
        latest: LatestCall = {"n": key.ordinal, "seq": UNREPORTED, "over": False, "start_at": start_at}
        task |= {
            "attempts": task["attempts"] + 1,
            "dials": key.ordinal,
            "call": latest,
            "started_at": start_at,
            "ended_at": None,
            "outcome": None,
            "error": None,
            "poll_at": start_at + POLL_AFTER,
        }
        self.set_state(batch, job, task, CallTaskState.DIALLING)
        return latest_call(key, job, task, latest)


def _phone_number_id(organization_id: str, phone_number: str) -> PhoneNumberId:
    return {"org": organization_id, "phone": phone_number}


def _is_callable(job: CallJobDocument, task: CallTaskDocument, now: datetime, start_at: datetime) -> bool:
    if job["state"] != CallJobState.RUNNING.value or task["state"] != CallTaskState.QUEUED.value:
        return False
    window = job["window"]
    is_open = window is None or CallingWindow.from_document(window).is_open(start_at)
    return is_open and task["queue"] <= now.timestamp() * 1_000_000


def latest_call(key: CallKey, job: CallJobDocument, task: CallTaskDocument, latest: LatestCall) -> Call:
    """Returns the task's latest call, in the form that the telephony service receives."""
    variables = [(name, value) for name, value in task["variables"]]
    return Call(key, job["org"], task["phone"], job["scenario"], variables, latest["start_at"], latest.get("reference"))


@dataclass(slots=True)
class ReportCall(_TaskChange, SystemChange[CallTask]):
    """Applies a report of the telephony service, or the outcome that polling found. The result is the task."""

    usual_events = 2
    ordinal: int
    sequence: int
    kind: CallReportKind
    outcome: CallOutcome | None
    at: datetime | None = None
    """When the reported event happened by the reporter's clock; None if unknown."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the task, its job and, for the end of a call, the limiter, whose slot is freed."""
        needs = _TaskChange.needs(self)
        return needs if self.kind is CallReportKind.ENDED else [need for need in needs if need[0] != LIMITS]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the do-not-call entry of a number that must not be called again."""
        task: CallTaskDocument | None = batch.get(TASKS, self.task.document_id)
        if task is not None and self.outcome is CallOutcome.DO_NOT_CALL:
            id_ = _phone_number_id(self.organization_id, task["phone"])
            if (entry := await mongo[DO_NOT_CALL].find_one({"_id": id_}, session=session)) is not None:
                batch.add_loaded(DO_NOT_CALL, entry)

    def plan(self, batch: Batch) -> CallTask:
        """Applies the report if the call is not over and the sequence is higher than that of the last report.

        Raises: NotFound for a call that was never made, BadUserInput for an end without an outcome.
        """
        if self.kind is CallReportKind.ENDED and self.outcome is None:
            raise BadUserInput("outcome", "the outcome of the call, because event is ENDED")
        task = self.copy_task(batch)
        if not 1 <= self.ordinal <= task["dials"]:
            raise NotFound("call", CallKey(self.task, self.ordinal).id)
        job, call = copy_job(batch, self.organization_id, self.task.job_id), task["call"]
        if call["n"] == self.ordinal and not call["over"] and self.sequence > call["seq"]:
            self._apply(batch, job, task, call)
        return task_record(task, CallJobState(job["state"]))

    def _apply(self, batch: Batch, job: CallJobDocument, task: CallTaskDocument, call: LatestCall) -> None:
        call["seq"] = self.sequence
        if self.outcome is not None and self.kind is CallReportKind.ENDED:
            self._end(batch, job, task, call, self.outcome)
        elif task["state"] == CallTaskState.UNKNOWN.value:
            # The job may be completed, and another call may hold the slot. Only a report of the end changes the state.
            batch.put(TASKS, task)
        else:
            task["poll_at"] = batch.at + POLL_INTERVAL
            self.set_state(batch, job, task, CallTaskState.IN_CALL)

    def _end(
        self, batch: Batch, job: CallJobDocument, task: CallTaskDocument, call: LatestCall, outcome: CallOutcome
    ) -> None:
        call["over"] = True
        task |= {"outcome": outcome.value, "ended_at": self._ended_at(batch, call), "error": None}
        count_outcome(job, outcome)
        self.free_slot(batch, call)
        if outcome is CallOutcome.DO_NOT_CALL and task["phone"]:
            self._forbid(batch, task["phone"])
        if outcome in RETRIED_OUTCOMES and task["attempts"] < job["max_attempts"] and "open" in job:
            due = batch.at + timedelta(seconds=job["retry_delay_s"])
            task["queue"] = int(due.timestamp() * 1_000_000)
            self.set_state(batch, job, task, CallTaskState.QUEUED)
        else:
            self.set_state(batch, job, task, FINAL_STATE_BY_OUTCOME[outcome])

    def _forbid(self, batch: Batch, phone_number: str) -> None:
        """Adds the number to the organization's do-not-call list, so that no job calls it again."""
        id_ = _phone_number_id(self.organization_id, phone_number)
        if batch.get(DO_NOT_CALL, id_) is None:
            entry: DoNotCallDocument = {"_id": id_, "at": batch.at}
            batch.put(DO_NOT_CALL, entry)

    def _ended_at(self, batch: Batch, call: LatestCall) -> datetime:
        """Returns the reported time, limited to the span from the call's start to now. Only people see this time."""
        return batch.at if self.at is None else min(max(self.at, call["start_at"]), batch.at)


@dataclass(slots=True)
class RequeueCall(_TaskChange, SystemChange[bool]):
    """Queues a number again after a call that provably never happened. The attempt is not counted."""

    usual_events = 2
    ordinal: int
    hold_off_s: float = 0.0
    """For how many seconds the organization must start no call, as the telephony service requested."""

    def plan(self, batch: Batch) -> bool:
        """Queues the number; fails it in a COMPLETED job. Returns False and changes nothing unless `is_unreported`."""
        task = self.copy_task(batch)
        if not is_unreported(task, self.ordinal):
            return False
        job = copy_job(batch, self.organization_id, self.task.job_id)
        task["call"]["over"] = True
        task["attempts"] -= 1
        limiter = Limiter.from_batch(batch, self.organization_id)
        limiter.free_slot(CallKey(self.task, self.ordinal).id)
        if self.hold_off_s:
            limiter.forbid_starts(batch.at + timedelta(seconds=self.hold_off_s))
        limiter.put(batch)
        if job["state"] == CallJobState.COMPLETED.value:
            # The task was UNKNOWN, so the job completed without it.
            task |= {"error": "The telephony service never made this call.", "ended_at": batch.at}
            self.set_state(batch, job, task, CallTaskState.FAILED)
        else:
            task |= {"queue": UNTRIED, "started_at": None, "error": None}
            self.set_state(batch, job, task, CallTaskState.QUEUED)
        return True


def is_unreported(task: CallTaskDocument, ordinal: int) -> bool:
    """Returns whether the call `ordinal` is the task's latest, is not over, and has no report."""
    call = task.get("call")
    if call is None or call["n"] != ordinal or call["over"] or call["seq"] != UNREPORTED:
        return False
    return task["state"] in (CallTaskState.DIALLING.value, CallTaskState.UNKNOWN.value)


@dataclass(slots=True)
class FailCall(_TaskChange, SystemChange[bool]):
    """Fails a call that the telephony service refused permanently."""

    usual_events = 2
    ordinal: int
    error: str

    def plan(self, batch: Batch) -> bool:
        """Fails the task. Returns False and changes nothing unless `is_unreported`."""
        task = self.copy_task(batch)
        if not is_unreported(task, self.ordinal):
            return False
        task["call"]["over"] = True
        task |= {"error": self.error, "ended_at": batch.at}
        self.free_slot(batch, task["call"])
        job = copy_job(batch, self.organization_id, self.task.job_id)
        self.set_state(batch, job, task, CallTaskState.FAILED)
        return True


@dataclass(slots=True)
class MarkCallUnknown(_TaskChange, SystemChange[bool]):
    """Marks a call whose outcome is unknown."""

    usual_events = 2
    ordinal: int
    error: str
    keeps_slot: bool
    """Whether the call may still be active, so that its slot stays."""

    def plan(self, batch: Batch) -> bool:
        """Sets the state to UNKNOWN, and frees the slot unless `keeps_slot`.

        Returns False and changes nothing if the call is over or not the task's latest, or if it is already unknown and
        keeps its slot.
        """
        task = self.copy_task(batch)
        call = task.get("call")
        if call is None or call["n"] != self.ordinal or call["over"]:
            return False
        was_unknown = task["state"] == CallTaskState.UNKNOWN.value
        if was_unknown and self.keeps_slot:
            return False
        if not self.keeps_slot:
            self.free_slot(batch, call)
            task.pop("poll_at", None)
        task["error"] = self.error
        job = copy_job(batch, self.organization_id, self.task.job_id)
        self.set_state(batch, job, task, CallTaskState.UNKNOWN)
        return True
