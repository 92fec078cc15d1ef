"""Everything that each change of a job or of the limits stores, and the limits of events about progress."""

from datetime import timedelta
from typing import Any

import pytest

from storage.calls.documents import DRAFTS, JOBS, LIMITS
from storage.calls.job_changes import (
    ActOnJob,
    JobAction,
    LaunchJob,
    RefreshJobState,
    SetLimits,
    TakeOver,
    complete_if_done,
    emit_job_changed,
    emit_task_changed,
    job_event_delay,
    reserve_task_event,
    state_at,
)
from storage.calls.limiter import BrokerSuperseded
from storage.calls.records import CallJobState, job_record
from storage.calls.windows import WEEK, CallingWindow
from storage.errors import Conflict, NotFound
from storage.identity.audit import Actor
from storage.mongo import Document
from storage.streams.changes import Batch, Change
from storage.streams.log import jobs_stream
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.calls.stored_calls import (
    JOB_EMITTED,
    StoredCalls,
    counts,
    ended_job,
    queued_task,
    stored_job,
    stored_limits,
)
from tests.storage.in_memory_stream import BEGIN, ORG, REMOVED, differences, in_s, without

ADA = Actor(ORG, "ada")
OPEN, CLOSED = CallingWindow("12:00", "13:00", "UTC", WEEK), CallingWindow("13:00", "14:00", "UTC", WEEK)


@pytest.mark.parametrize(
    ("fields", "task_count", "errors", "state"),
    [
        ({}, 3, 0, "RUNNING"),
        ({"start_at": BEGIN, "window": OPEN}, 3, 0, "RUNNING"),
        ({"start_at": in_s(0.001)}, 3, 0, "SCHEDULED"),
        ({"window": CLOSED}, 3, 0, "WAITING_FOR_WINDOW"),
        ({}, 0, 0, "COMPLETED"),
        ({}, 0, 2, "REJECTED"),
    ],
)
def test_launched_job_is_stored_and_its_draft_removed(
    fields: Document, task_count: int, errors: int, state: str
) -> None:
    new = new_job(id="job", max_attempts=2, retry_delay_s=30, **fields)
    stream = StoredCalls()
    stream.put(DRAFTS, {"_id": "job"})
    change = LaunchJob(new, task_count, errors, actor=ADA)
    job = stream.commit(change)
    stored: Any = stream.get(JOBS, "job")
    window = fields.get("window")
    expected = stored_job(created_at=BEGIN, ts=int(BEGIN.timestamp() * 1e6), counts=counts(QUEUED=task_count))
    expected |= {"row_errors": errors, "start_at": fields.get("start_at"), "window": window and window.document}
    end = {"ended_at": BEGIN} if state in ("COMPLETED", "REJECTED") else {}
    assert stored == (without(expected, "open") if end else expected) | end | {"state": state} | JOB_EMITTED
    assert (job, change.result_id(job), stream.get(DRAFTS, "job")) == (job_record(stored), "job", None)
    assert stream.emitted == [("CallJobChanged", "job")]
    details = {"numbers": str(task_count), "rowErrors": str(errors)}
    entry = {"actor": "ada", "action": "CALL_JOB_LAUNCHED", "kind": "CALL_JOB", "target": "job", "details": details}
    assert stream.audited == [entry]


@pytest.mark.parametrize("draft", [None, {"_id": "job", "discarded": True}])
def test_launch_without_draft_is_conflict(draft: Document | None) -> None:
    stream = StoredCalls()
    if draft is not None:
        stream.put(DRAFTS, draft)
    with pytest.raises(Conflict):
        stream.commit(LaunchJob(new_job(id="job"), 1, 0))
    assert stream.get(JOBS, "job") is None


PAUSE, RESUME, CANCEL = JobAction.PAUSE, JobAction.RESUME, JobAction.CANCEL
PAUSED = stored_job(state="PAUSED")


@pytest.mark.parametrize(
    ("before", "action", "changed"),
    [
        (stored_job(), PAUSE, {"state": "PAUSED"}),
        (PAUSED, PAUSE, {}),
        (PAUSED, RESUME, {"state": "RUNNING"}),
        (PAUSED | {"start_at": in_s(1)}, RESUME, {"state": "SCHEDULED"}),
        (PAUSED | {"window": CLOSED.document}, RESUME, {"state": "WAITING_FOR_WINDOW"}),
        (stored_job(state="SCHEDULED"), RESUME, {}),
        (ended_job("CANCELLED"), CANCEL, {}),
        (
            stored_job(counts=counts(QUEUED=2, CANCELLED=1, DIALLING=1)),
            CANCEL,
            {"state": "CANCELLED", "open": REMOVED, "ended_at": BEGIN, "counts": counts(CANCELLED=3, DIALLING=1)},
        ),
    ],
)
def test_action_stores_state_and_is_audited_once(before: Document, action: JobAction, changed: Document) -> None:
    stream = StoredCalls()
    stream.put(JOBS, dict(before))
    result = stream.commit(ActOnJob(ORG, "job", action, ADA))
    stored: Any = stream.get(JOBS, "job")
    assert differences(before, stored) == changed | (JOB_EMITTED if changed else {})
    assert (result, stream.emitted) == (job_record(stored), [("CallJobChanged", "job")] if changed else [])
    name = {PAUSE: "CALL_JOB_PAUSED", RESUME: "CALL_JOB_RESUMED", CANCEL: "CALL_JOB_CANCELLED"}[action]
    entry = {"actor": "ada", "action": name, "kind": "CALL_JOB", "target": "job", "details": {}}
    assert stream.audited == ([entry] if changed else [])


@pytest.mark.parametrize(
    ("state", "action"), [("COMPLETED", CANCEL), ("REJECTED", PAUSE), ("CANCELLED", RESUME), ("CANCELLED", PAUSE)]
)
def test_ended_job_takes_no_action(state: str, action: JobAction) -> None:
    stream = StoredCalls()
    stream.put(JOBS, ended_job(state))
    with pytest.raises(Conflict):
        stream.commit(ActOnJob(ORG, "job", action))
    assert stream.get(JOBS, "job") == ended_job(state)


def test_missing_job_is_not_found() -> None:
    for change in (ActOnJob(ORG, "job", CANCEL), RefreshJobState(ORG, "job")):
        with pytest.raises(NotFound):
            StoredCalls().commit(change)


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        (stored_job(state="SCHEDULED", start_at=BEGIN), {"state": "RUNNING"}),
        (stored_job(window=CLOSED.document), {"state": "WAITING_FOR_WINDOW"}),
        (stored_job(), {}),
        (PAUSED, {}),
        (ended_job("COMPLETED"), {}),
    ],
)
def test_refresh_sets_state_by_start_time_and_window(before: Document, changed: Document) -> None:
    stream = StoredCalls()
    stream.put(JOBS, dict(before))
    stream.commit(RefreshJobState(ORG, "job"))
    assert differences(before, stream.get(JOBS, "job") or {}) == changed | (JOB_EMITTED if changed else {})
    assert stream.emitted == ([("CallJobChanged", "job")] if changed else [])
    state = state_at(stream.get(JOBS, "job"), BEGIN)  # type: ignore[arg-type]
    assert state is CallJobState(changed.get("state", "RUNNING"))


@pytest.mark.parametrize("change", [ActOnJob(ORG, "job", PAUSE), RefreshJobState(ORG, "job")])
def test_new_state_is_emitted_despite_recent_progress_event(change: Change[Any]) -> None:
    stream = StoredCalls()
    stream.put(JOBS, stored_job(emitted_at=in_s(-0.1), window=CLOSED.document))
    stream.commit(change)
    assert stream.emitted == [("CallJobChanged", "job")]


@pytest.mark.parametrize(("concurrent", "per_second"), [(3, 10.0), (4, 2.5)])
def test_limits_are_stored_and_audited_if_they_differ(concurrent: int, per_second: float) -> None:
    stream = StoredCalls()
    stream.put(LIMITS, stored_limits())
    result = stream.commit(SetLimits(ORG, concurrent, per_second, ADA))
    changed = differences(stored_limits(), stream.get(LIMITS, ORG) or {})
    is_new = concurrent != 3
    assert changed == ({"concurrent": 4, "per_second": 2.5, "next_at": in_s(-7.899)} if is_new else {})
    assert (result.concurrent_calls, result.calls_per_second) == (concurrent, per_second)
    assert stream.emitted == [("CallLimitsChanged", ORG)]
    details = {"before": "3 at a time, 10 a second", "after": "4 at a time, 2.5 a second"}
    entry = {"actor": "ada", "action": "CALL_LIMITS_SET", "kind": "CALL_LIMITS", "target": ORG, "details": details}
    assert stream.audited == ([entry] if is_new else [])


def test_broker_takes_over_with_greater_fence() -> None:
    stream = StoredCalls()
    stream.put(LIMITS, stored_limits())
    stream.commit(TakeOver(ORG, 4))
    assert (differences(stored_limits(), stream.get(LIMITS, ORG) or {}), stream.events) == ({"fence": 4}, [])
    with pytest.raises(BrokerSuperseded):
        stream.commit(TakeOver(ORG, 3))


@pytest.mark.parametrize(
    ("numbers", "is_open", "is_completed"),
    [
        ({"COMPLETED": 2, "UNKNOWN": 1}, True, True),
        ({"QUEUED": 1}, True, False),
        ({"DIALLING": 1}, True, False),
        ({"IN_CALL": 1}, True, False),
        ({}, False, False),
    ],
)
def test_job_completes_without_queued_and_active_tasks(
    numbers: dict[str, int], is_open: bool, is_completed: bool
) -> None:
    before = (stored_job() if is_open else ended_job("CANCELLED")) | {"counts": counts(**numbers)}
    job: Any = dict(before)
    assert complete_if_done(job, BEGIN) is is_completed
    changed = {"state": "COMPLETED", "open": REMOVED, "ended_at": BEGIN} if is_completed else {}
    assert differences(before, job) == changed


def empty_batch() -> Batch:
    return Batch(jobs_stream(ORG), {"committed_at": BEGIN}, 0, 1)


@pytest.mark.parametrize(
    ("emitted_at", "delay_s"),
    [(None, None), (-0.5, None), (-0.499, 0.001), (0, 0.5), (0.001, None), (60, None)],
)
def test_progress_is_emitted_at_most_twice_a_second(emitted_at: float | None, delay_s: float | None) -> None:
    before = stored_job() if emitted_at is None else stored_job(emitted_at=in_s(emitted_at))
    delay = None if delay_s is None else timedelta(seconds=delay_s)
    job: Any = dict(before)
    assert job_event_delay(job, BEGIN) == delay
    batch = empty_batch()
    emit_job_changed(batch, job, at_once=False)
    assert batch.get(JOBS, "job") is job
    if delay is None:
        assert (job["emitted_at"], [each.ref for each in batch.events], batch.outbox) == (BEGIN, ["job"], [])
        return
    assert differences(before, job) == {"event_pending": True}
    (row,) = batch.outbox
    assert (row["stream"], row["kind"], row["ref"]) == ("jobs:acme", "CallJobChanged", "job")
    batch = empty_batch()
    emit_job_changed(batch, job, at_once=False)
    assert (batch.events, batch.outbox) == ([], [])
    emit_job_changed(batch, job, at_once=True)
    assert [each.kind for each in batch.events] == ["CallJobChanged"]


@pytest.mark.parametrize(
    ("earlier", "kept", "delay_s"),
    [
        ([-1, 0.001, 60], [], None),
        ([-0.999] * 9, [-0.999] * 9, None),
        ([-0.999, *[0] * 9], None, 0.001),
        ([*[-0.9] * 3, -0.5, *[-0.1] * 9], None, 0.5),
    ],
)
def test_at_most_ten_task_events_are_emitted_a_second(
    earlier: list[float], kept: list[float] | None, delay_s: float | None
) -> None:
    job: Any = stored_job(task_events_at=[in_s(each) for each in earlier])
    delay = reserve_task_event(job, BEGIN)
    assert delay == (None if delay_s is None else timedelta(seconds=delay_s))
    times = earlier if kept is None else [*kept, 0]
    assert job["task_events_at"] == [in_s(each) for each in times]


def test_delayed_task_events_of_a_job_share_one_row() -> None:
    job: Any = stored_job(task_events_at=[BEGIN] * 10)
    task: Any = queued_task()
    batch = empty_batch()
    emit_task_changed(batch, job, task)
    (row,) = batch.outbox
    assert (row["stream"], row["kind"], row["ref"]) == ("jobs:acme", "CallTaskChanged", "job")
    assert (batch.events, task["event_pending"], job["task_events_pending"]) == ([], True, True)
    batch = empty_batch()
    emit_task_changed(batch, job, task)
    assert (batch.events, batch.outbox) == ([], [])
    emit_task_changed(batch, stored_job(), task)  # type: ignore[arg-type]
    assert ([each.ref for each in batch.events], batch.outbox, "event_pending" in task) == (["job-2"], [], False)
