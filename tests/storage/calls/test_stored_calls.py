"""Everything that each change of a call stores: in its task, its job and the limiter, with its events."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from storage.calls.call_changes import (
    NOT_FOUND_TRUSTED_AFTER,
    POLL_AFTER,
    Call,
    CommittedCallStart,
    FailCall,
    MarkCallUnknown,
    ReportCall,
    RequeueCall,
    StartCall,
    StartRefusal,
)
from storage.calls.documents import DO_NOT_CALL, JOBS, LIMITS, TASKS
from storage.calls.limiter import JITTER_S, BrokerSuperseded
from storage.calls.records import CallJobState, CallKey, CallOutcome, CallReportKind, task_record
from storage.calls.windows import WEEK, CallingWindow
from storage.errors import BadUserInput, DomainError, NotFound
from storage.mongo import Document
from storage.streams.changes import Change
from tests.storage.calls.stored_calls import (
    BOTH_EMITTED,
    EVENTS,
    OTHER_CALL,
    TASK,
    StoredCalls,
    called_task,
    counts,
    ended_job,
    queued_task,
    stored_job,
    stored_limits,
)
from tests.storage.in_memory_stream import BEGIN, ORG, REMOVED, in_s

ANSWERED, ENDED = CallReportKind.ANSWERED, CallReportKind.ENDED
PHONE = {"org": ORG, "phone": "+81901"}
FREED = {"slots": [OTHER_CALL]}
START = StartCall(ORG, TASK, 4, "+81901")
QUEUED_JOB = stored_job(counts=counts(QUEUED=1))
COMPLETED = {"state": "COMPLETED", "open": REMOVED, "ended_at": BEGIN}


def report(kind: CallReportKind, outcome: CallOutcome | None = None, **fields: Any) -> ReportCall:
    return replace(ReportCall(ORG, TASK, 2, 7, kind, outcome), **fields)


def latest(**fields: Any) -> Document:
    return {"call": {"n": 2, "seq": -1, "over": False, "start_at": in_s(-9)} | fields}


def test_start_stores_intent_slot_and_next_start() -> None:
    stream = StoredCalls()
    task = queued_task(attempts=1, dials=2, queue=int(BEGIN.timestamp() * 1_000_000))
    changed = stream.change(START, task, QUEUED_JOB, stored_limits(next_at=in_s(0.05), slots=[OTHER_CALL]))
    call = Call(CallKey(TASK, 3), ORG, "+81901", "Hello", [("name", "Ann")], in_s(0.05))
    assert stream.result == CommittedCallStart(call, 0.05, 0.111)
    assert (call.id, call.not_after) == ("job-2-3", in_s(0.15))
    begun: Document = {"state": "DIALLING", "queue": REMOVED, "attempts": 2, "dials": 3, "started_at": in_s(0.05)}
    begun |= latest(n=3, start_at=in_s(0.05)) | {
        "poll_at": in_s(30.05),
        "ended_at": None,
        "outcome": None,
        "error": None,
    }
    limits = {"slots": [OTHER_CALL, "job-2-3"], "last_start": in_s(0.05), "next_at": in_s(0.161), "fence": 4}
    assert changed == (begun, BOTH_EMITTED | {"counts": counts(DIALLING=1)}, limits)
    assert stream.emitted == EVENTS


@pytest.mark.parametrize("lead_s", [0, 1])
def test_start_is_committed_at_most_60_ms_early(lead_s: int) -> None:
    start, latest_ms = replace(START, lead=timedelta(seconds=lead_s)), lead_s * 1000 + 60
    stream = StoredCalls()
    stream.change(start, queued_task(), QUEUED_JOB, stored_limits(next_at=in_s(latest_ms / 1000)))
    assert stream.result.delay_s == latest_ms / 1000
    stream = StoredCalls()
    changed = stream.change(start, queued_task(), QUEUED_JOB, stored_limits(next_at=in_s((latest_ms + 1) / 1000)))
    assert (stream.result, changed) == (StartRefusal.TOO_EARLY, ({}, {}, {}))
    stream = StoredCalls()
    stream.change(start, queued_task(), QUEUED_JOB)
    assert stream.result.delay_s == lead_s


CLOSED = CallingWindow("13:00", "14:00", "UTC", WEEK).document
OPEN = CallingWindow("12:00", "13:00", "UTC", WEEK).document


@pytest.mark.parametrize(
    ("task", "job", "limits", "refusal"),
    [
        ({}, {"state": "PAUSED"}, {}, StartRefusal.NOT_CALLABLE),
        ({"state": "DIALLING"}, {}, {}, StartRefusal.NOT_CALLABLE),
        ({"queue": int(BEGIN.timestamp() * 1_000_000) + 1000}, {}, {}, StartRefusal.NOT_CALLABLE),
        ({}, {"window": CLOSED}, {}, StartRefusal.NOT_CALLABLE),
        ({}, {}, {"concurrent": 2}, StartRefusal.NO_SLOT),
        ({}, {"window": OPEN}, {"concurrent": 2}, StartRefusal.NO_SLOT),
    ],
)
def test_refused_start_stores_nothing(task: Document, job: Document, limits: Document, refusal: StartRefusal) -> None:
    stream = StoredCalls()
    changed = stream.change(START, queued_task(**task), stored_job(**job), stored_limits(**limits))
    assert (stream.result, changed, stream.events) == (refusal, ({}, {}, {}), [])


def test_start_by_older_broker_is_refused() -> None:
    with pytest.raises(BrokerSuperseded):
        StoredCalls().change(START, queued_task(), limits=stored_limits(fence=5))


def test_number_on_do_not_call_list_is_skipped() -> None:
    stream = StoredCalls()
    stream.put(DO_NOT_CALL, {"_id": PHONE})
    changed = stream.change(START, queued_task(), QUEUED_JOB, stored_limits(concurrent=0))
    skipped = {"state": "SKIPPED", "queue": REMOVED, "outcome": "DO_NOT_CALL", "ended_at": BEGIN}
    job = BOTH_EMITTED | COMPLETED | {"counts": counts(SKIPPED=1), "outcomes": {"DO_NOT_CALL": 1}}
    assert (stream.result, changed) == (StartRefusal.DO_NOT_CALL, (skipped, job, {}))
    assert stream.emitted == EVENTS


@pytest.mark.parametrize("state", ["DIALLING", "IN_CALL"])
@pytest.mark.parametrize("outcome", [None, CallOutcome.BUSY])
def test_answer_is_stored_and_postpones_poll(state: str, outcome: CallOutcome | None) -> None:
    stream, before = StoredCalls(), counts(QUEUED=1, DIALLING=1, IN_CALL=1)
    changed = stream.change(report(ANSWERED, outcome), called_task(state), stored_job(counts=before))
    number = {"counts": counts(QUEUED=1, IN_CALL=2)} if state == "DIALLING" else {}
    new_state = {"state": "IN_CALL"} if state == "DIALLING" else {}
    assert changed == (latest(seq=7) | {"poll_at": in_s(60)} | new_state, BOTH_EMITTED | number, {})
    assert stream.result == task_record(stream.get(TASKS, TASK.document_id))  # type: ignore[arg-type]
    assert stream.emitted == EVENTS


def test_answer_of_unknown_call_stores_only_sequence() -> None:
    stream = StoredCalls()
    changed = stream.change(report(ANSWERED), called_task("UNKNOWN"))
    assert (changed, stream.events) == ((latest(seq=7), {}, {}), [])


@pytest.mark.parametrize(
    ("at", "ended_at"),
    [(None, BEGIN), (in_s(-3), in_s(-3)), (in_s(-20), in_s(-9)), (in_s(1), BEGIN)],
)
def test_end_is_stored_between_start_of_call_and_now(at: datetime | None, ended_at: datetime) -> None:
    stream = StoredCalls()
    job = stored_job(counts=counts(QUEUED=1, IN_CALL=1), outcomes={"ANSWERED": 2})
    changed = stream.change(report(ENDED, CallOutcome.ANSWERED, at=at), called_task("IN_CALL"), job)
    ended = {"state": "COMPLETED", "outcome": "ANSWERED", "ended_at": ended_at, "error": None, "poll_at": REMOVED}
    numbers = {"counts": counts(QUEUED=1, COMPLETED=1), "outcomes": {"ANSWERED": 3}}
    assert changed == (ended | latest(seq=7, over=True), BOTH_EMITTED | numbers, FREED)
    assert (stream.emitted, stream.get(DO_NOT_CALL, PHONE)) == (EVENTS, None)


def test_end_of_call_counts_in_cancelled_job() -> None:
    stream, job = StoredCalls(), ended_job("CANCELLED")
    task, changed, _ = stream.change(report(ENDED, CallOutcome.ANSWERED), called_task(), job)
    assert (task["state"], changed["counts"]) == ("COMPLETED", job["counts"] | {"DIALLING": 0, "COMPLETED": 1})


@pytest.mark.parametrize(
    ("attempts", "job", "is_retried"),
    [(1, stored_job(), True), (2, stored_job(), False), (1, ended_job("COMPLETED"), False)],
)
def test_unanswered_number_is_retried_while_job_is_open(attempts: int, job: Document, is_retried: bool) -> None:
    task = called_task() | {"attempts": attempts}
    ended = {"outcome": "NO_ANSWER", "ended_at": BEGIN, "error": None, "poll_at": REMOVED} | latest(seq=7, over=True)
    state = "QUEUED" if is_retried else "FAILED"
    queue = {"queue": int(in_s(30).timestamp() * 1_000_000)} if is_retried else {}
    numbers = counts(UNKNOWN=1, **({"QUEUED": 2} if is_retried else {"QUEUED": 1, "FAILED": 1}))
    stream = StoredCalls()
    changed = stream.change(report(ENDED, CallOutcome.NO_ANSWER), task, job)
    expected = BOTH_EMITTED | {"counts": numbers, "outcomes": {"NO_ANSWER": 1}}
    assert changed == (ended | queue | {"state": state}, expected, FREED)


@pytest.mark.parametrize(("phone", "is_listed"), [("+81901", False), ("+81901", True), ("", False)])
def test_do_not_call_outcome_adds_number_to_the_list(phone: str, is_listed: bool) -> None:
    stream = StoredCalls()
    if is_listed:
        stream.put(DO_NOT_CALL, {"_id": PHONE, "at": in_s(-5)})
    for collection, document in ((TASKS, called_task() | {"phone": phone}), (JOBS, stored_job())):
        stream.put(collection, document)
    stream.commit(report(ENDED, CallOutcome.DO_NOT_CALL), (DO_NOT_CALL, PHONE))
    assert stream.get(LIMITS, ORG) is None
    entry = {"_id": PHONE, "at": in_s(-5) if is_listed else BEGIN}
    assert stream.get(DO_NOT_CALL, PHONE) == (entry if phone else None)
    assert stream.get(DO_NOT_CALL, {"org": ORG, "phone": ""}) is None
    task = stream.get(TASKS, TASK.document_id)
    assert task is not None
    assert (task["state"], task["outcome"]) == ("SKIPPED", "DO_NOT_CALL")


@pytest.mark.parametrize(
    ("ordinal", "sequence", "call"),
    [(1, 7, {}), (2, 7, {"over": True}), (2, 7, {"seq": 7}), (2, 6, {"seq": 7})],
)
def test_old_report_changes_nothing(ordinal: int, sequence: int, call: Document) -> None:
    stream, change = StoredCalls(), report(ENDED, CallOutcome.BUSY, ordinal=ordinal, sequence=sequence)
    assert (stream.change(change, called_task(**call)), stream.events) == (({}, {}, {}), [])
    assert stream.result.call_id == "job-2-2"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (report(ENDED), BadUserInput),
        (report(ANSWERED, ordinal=0), NotFound),
        (report(ANSWERED, ordinal=3), NotFound),
        (report(ANSWERED, organization_id="elsewhere"), NotFound),
    ],
)
def test_invalid_report_is_refused(change: ReportCall, error: type[DomainError]) -> None:
    with pytest.raises(error):
        StoredCalls().change(change, called_task())


def test_report_reads_limiter_only_for_end() -> None:
    task, job, limits = (TASKS, TASK.document_id), (JOBS, "job"), (LIMITS, ORG)
    assert report(ANSWERED).needs() == [task, job]
    assert report(ENDED, CallOutcome.BUSY).needs() == [task, job, limits]
    assert START.needs() == [task, job, limits, (DO_NOT_CALL, PHONE)]


@pytest.mark.parametrize("state", ["DIALLING", "UNKNOWN"])
@pytest.mark.parametrize(("hold_off_s", "held"), [(0, {}), (5, {"next_at": in_s(5), "hold_until": in_s(5)})])
def test_requeued_call_does_not_count_as_attempt(state: str, hold_off_s: float, held: Document) -> None:
    stream, job = StoredCalls(), stored_job()
    changed = stream.change(RequeueCall(ORG, TASK, 2, hold_off_s), called_task(state), job)
    task = {"state": "QUEUED", "queue": 0, "attempts": 0, "started_at": None, "error": None, "poll_at": REMOVED}
    numbers = {"counts": job["counts"] | {state: 0, "QUEUED": 2}}
    assert changed == (task | latest(over=True), BOTH_EMITTED | numbers, FREED | held)
    assert (stream.result, stream.emitted) == (True, EVENTS)


@pytest.mark.parametrize("job_state", ["COMPLETED", "CANCELLED"])
def test_requeued_call_of_ended_job_is_not_queued(job_state: str) -> None:
    stream, job = StoredCalls(), ended_job(job_state)
    changed = stream.change(RequeueCall(ORG, TASK, 2), called_task("UNKNOWN"), job)
    if job_state == "COMPLETED":
        task = {"state": "FAILED", "error": "The telephony service never made this call.", "ended_at": BEGIN}
    else:
        task = {"state": "CANCELLED", "started_at": None, "error": None}
    numbers = {"counts": job["counts"] | {"UNKNOWN": 0, task["state"]: 1}}
    common = {"attempts": 0, "poll_at": REMOVED} | latest(over=True)
    assert changed == (task | common, BOTH_EMITTED | numbers, FREED)


@pytest.mark.parametrize("state", ["DIALLING", "UNKNOWN"])
def test_failed_call_is_stored_with_its_error(state: str) -> None:
    stream, job = StoredCalls(), stored_job()
    changed = stream.change(FailCall(ORG, TASK, 2, "refused"), called_task(state), job)
    task = {"state": "FAILED", "error": "refused", "ended_at": BEGIN, "poll_at": REMOVED} | latest(over=True)
    assert changed == (task, BOTH_EMITTED | {"counts": job["counts"] | {state: 0, "FAILED": 1}}, FREED)
    assert (stream.result, stream.emitted) == (True, EVENTS)


@pytest.mark.parametrize(
    "task",
    [queued_task(), called_task(n=1), called_task(over=True), called_task(seq=0), called_task("IN_CALL")],
)
@pytest.mark.parametrize("change", [RequeueCall(ORG, TASK, 2, 5), FailCall(ORG, TASK, 2, "refused")])
def test_reported_or_ended_call_is_neither_requeued_nor_failed(change: Change[bool], task: Document) -> None:
    stream = StoredCalls()
    assert (stream.change(change, task), stream.result, stream.events) == (({}, {}, {}), False, [])


@pytest.mark.parametrize("state", ["DIALLING", "IN_CALL", "UNKNOWN"])
@pytest.mark.parametrize("keeps_slot", [True, False])
def test_unknown_call_keeps_or_loses_both_slot_and_poll(state: str, keeps_slot: bool) -> None:
    stream, job = StoredCalls(), stored_job(counts=counts(**{state: 1}))
    changed = stream.change(MarkCallUnknown(ORG, TASK, 2, "silence", keeps_slot), called_task(state), job)
    if state == "UNKNOWN" and keeps_slot:
        assert (changed, stream.result, stream.events) == (({}, {}, {}), False, [])
        return
    is_new = state != "UNKNOWN"
    task = (
        {"error": "silence"} | ({"state": "UNKNOWN"} if is_new else {}) | ({} if keeps_slot else {"poll_at": REMOVED})
    )
    numbers = {"counts": counts(UNKNOWN=1)} if is_new else {}
    assert changed == (task, BOTH_EMITTED | COMPLETED | numbers, {} if keeps_slot else FREED)
    assert (stream.result, stream.emitted) == (True, EVENTS)


@pytest.mark.parametrize("task", [queued_task(), called_task(n=1), called_task(over=True)])
def test_finished_call_does_not_become_unknown(task: Document) -> None:
    for keeps_slot in (True, False):
        stream = StoredCalls()
        changed = stream.change(MarkCallUnknown(ORG, TASK, 2, "silence", keeps_slot), task)
        assert (changed, stream.result) == (({}, {}, {}), False)


@pytest.mark.parametrize("change", [START, report(ANSWERED), RequeueCall(ORG, TASK, 2), FailCall(ORG, TASK, 2, "x")])
def test_change_of_missing_task_is_not_found(change: Change[Any]) -> None:
    stream = StoredCalls()
    stream.put(JOBS, stored_job())
    with pytest.raises(NotFound):
        stream.commit(change)


def test_late_report_of_cancelled_job_returns_cancelled_task() -> None:
    stream = StoredCalls()
    queued = called_task(over=True) | {"state": "QUEUED"}
    stream.change(report(ENDED, CallOutcome.BUSY), queued, ended_job("CANCELLED"))
    assert stream.result == task_record(queued, CallJobState.CANCELLED)  # type: ignore[arg-type]


def test_not_found_is_trusted_after_jitter_and_before_poll() -> None:
    assert timedelta(seconds=JITTER_S) < NOT_FOUND_TRUSTED_AFTER < POLL_AFTER
