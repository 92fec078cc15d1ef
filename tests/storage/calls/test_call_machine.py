"""State machine tests of tasks and limiter: limits hold, and slots and counts are right, in any order of events."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage.calls.call_changes import (
    Call,
    CommittedCallStart,
    FailCall,
    MarkCallUnknown,
    ReportCall,
    RequeueCall,
    StartCall,
    StartRefusal,
)
from storage.calls.documents import DO_NOT_CALL
from storage.calls.job_changes import ActOnJob, JobAction, RefreshJobState, SetLimits, TakeOver
from storage.calls.limiter import BrokerSuperseded
from storage.calls.records import ACTIVE_STATES, CallJobState, CallOutcome, CallReportKind, CallTaskState, TaskKey
from storage.calls.windows import WEEK, CallingWindow
from storage.errors import Conflict, NotFound
from tests.storage.calls.in_memory_jobs import InMemoryJobs
from tests.storage.in_memory_stream import BEGIN, ORG

OTHER_ORG = "other"
FINAL_STATES = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}


class CallMachine(RuleBasedStateMachine):
    """Two brokers, a service that repeats and loses reports, and users who pause, cancel and change limits.

    `starts` holds the start times of calls, each with the rate that applied. `final` holds the state of each task that
    has reached a final state.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stream = InMemoryJobs()
        self.fence, self.newest_fence = 1, 0
        self.limit = 1
        self.rate = 1.0
        self.starts: list[tuple[Any, float]] = []
        self.calls: dict[str, Call] = {}
        self.requeued: set[str] = set()
        self.final: dict[tuple[str, int], str] = {}
        self.jobs: list[str] = []

    @initialize(numbers=st.integers(1, 8), attempts=st.integers(1, 3), limit=st.integers(1, 2))
    def begin(self, numbers: int, attempts: int, limit: int) -> None:
        self.change_limits(limit, 100.0)
        self.launch(numbers, attempts)

    @rule(numbers=st.integers(1, 4), attempts=st.integers(1, 3))
    def launch(self, numbers: int, attempts: int) -> None:
        if len(self.jobs) < 3:
            self.jobs.append(self.stream.launch(numbers, max_attempts=attempts, retry_delay_s=5).id)

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 1.1, 6.0]))
    def wait(self, seconds: float) -> None:
        self.stream.wait(seconds)

    @rule()
    def another_broker_takes_over(self) -> None:
        self.fence += 1
        self.newest_fence = self.fence
        self.stream.commit(TakeOver(ORG, self.fence))

    @rule(index=st.integers(0, 20), is_old=st.booleans(), lead_s=st.sampled_from([0.0, 0.0, 0.07, 1.5]))
    def start(self, index: int, is_old: bool, lead_s: float) -> None:
        task = self.stream.tasks[index % len(self.stream.tasks)]
        key = TaskKey(task["_id"]["j"], task["_id"]["r"])
        fence = self.fence - is_old
        try:
            result = self.stream.commit(StartCall(ORG, key, fence, task["phone"], timedelta(seconds=lead_s)))
        except BrokerSuperseded:
            assert self.stream.limits["fence"] > fence
            return
        if isinstance(result, CommittedCallStart):
            assert fence >= self.newest_fence, "A superseded broker started a call."
            self.newest_fence = fence
            assert task["state"] == "QUEUED"
            assert self.stream.get(DO_NOT_CALL, {"org": ORG, "phone": task["phone"]}) is None
            assert result.call.id not in self.calls, "A callId was used twice."
            assert len(self.stream.limits["slots"]) <= self.limit
            assert result.delay_s >= lead_s
            self.calls[result.call.id] = result.call
            self.starts.append((result.call.start_at, self.rate))

    @rule(index=st.integers(0, 50), sequence=st.integers(1, 4), outcome=st.none() | st.sampled_from(CallOutcome))
    def report(self, index: int, sequence: int, outcome: CallOutcome | None) -> None:
        if self.calls:
            call = [*self.calls.values()][index % len(self.calls)]
            kind = CallReportKind.ANSWERED if outcome is None else CallReportKind.ENDED
            task = self.stream.commit(ReportCall(ORG, call.key.task, call.key.ordinal, sequence, kind, outcome))
            if task.outcome is CallOutcome.DO_NOT_CALL:
                assert self.stream.get(DO_NOT_CALL, {"org": ORG, "phone": task.phone_number}) is not None

    @rule(index=st.integers(0, 50), change_name=st.sampled_from(["requeue", "fail", "unknown", "unknown without slot"]))
    def end_without_report(self, index: int, change_name: str) -> None:
        if self.calls:
            call = [*self.calls.values()][index % len(self.calls)]
            key, ordinal = call.key.task, call.key.ordinal
            changes: dict[str, RequeueCall | FailCall | MarkCallUnknown] = {
                "requeue": RequeueCall(ORG, key, ordinal, 0.5),
                "fail": FailCall(ORG, key, ordinal, "no"),
                "unknown": MarkCallUnknown(ORG, key, ordinal, "silence", keeps_slot=True),
                "unknown without slot": MarkCallUnknown(ORG, key, ordinal, "forgotten", keeps_slot=False),
            }
            if self.stream.commit(changes[change_name]) and change_name == "requeue":
                self.requeued.add(call.id)

    @rule(index=st.integers(0, 5), action=st.sampled_from(JobAction))
    def act(self, index: int, action: JobAction) -> None:
        job_id = self.jobs[index % len(self.jobs)]
        before = self.stream.job(job_id)["state"]
        try:
            after = self.stream.commit(ActOnJob(ORG, job_id, action)).state
        except Conflict:
            assert before in {"COMPLETED", "CANCELLED"}
        else:
            assert after is not CallJobState.REJECTED

    @rule(index=st.integers(0, 5))
    def refresh_job_state(self, index: int) -> None:
        self.stream.commit(RefreshJobState(ORG, self.jobs[index % len(self.jobs)]))

    @rule(index=st.integers(0, 20))
    def forbid_number(self, index: int) -> None:
        phone = self.stream.tasks[index % len(self.stream.tasks)]["phone"]
        self.stream.put(DO_NOT_CALL, {"_id": {"org": ORG, "phone": phone}})

    @rule(limit=st.integers(0, 4), rate=st.sampled_from([0.5, 1.0, 2.5, 10.0, 100.0]))
    def change_limits(self, limit: int, rate: float) -> None:
        self.stream.commit(SetLimits(ORG, limit, rate))
        self.limit, self.rate = limit, rate

    @invariant()
    def slots_match_active_calls(self) -> None:
        active = {
            f"{task['_id']['j']}-{task['_id']['r']}-{task['call']['n']}"
            for task in self.stream.tasks
            if task["state"] in {state.value for state in ACTIVE_STATES}
        }
        slots = self.stream.limits["slots"]
        assert active <= set(slots)
        assert len(slots) == len(set(slots))
        unknown = {slot for slot in slots if slot not in active}
        for slot in unknown:
            assert self.stream.task(self.calls[slot].key.task)["state"] == "UNKNOWN"

    @invariant()
    def rolling_seconds_hold_the_rate(self) -> None:
        """Asserts that no second has more starts than the rate allows, even if each start is up to 100 ms late."""
        for i, (last, rate) in enumerate(self.starts):
            span_s, allowed = (1.0, int(rate)) if rate >= 1 else (1 / rate, 1)
            if i >= allowed:
                first = self.starts[i - allowed][0]
                assert (last - first).total_seconds() >= span_s + 0.1

    @invariant()
    def progress_matches_tasks(self) -> None:
        for job_id in self.jobs:
            job = self.stream.job(job_id)
            states = Counter(task["state"] for task in self.stream.tasks if task["_id"]["j"] == job_id)
            if job["state"] == "CANCELLED":
                states["CANCELLED"] += states.pop("QUEUED", 0)
            assert {state: count for state, count in job["counts"].items() if count} == {
                k: n for k, n in states.items() if n
            }
            if job["state"] == "COMPLETED":
                assert [states[state] for state in ("QUEUED", "DIALLING", "IN_CALL")] == [0, 0, 0]

    @invariant()
    def final_states_and_attempts_stay(self) -> None:
        for task in self.stream.tasks:
            job = self.stream.job(task["_id"]["j"])
            assert 0 <= task["attempts"] <= job["max_attempts"]
            calls = [call for call in self.calls.values() if call.key.task.document_id == task["_id"]]
            assert task["attempts"] == len([call for call in calls if call.id not in self.requeued])
            task_id = tuple(task["_id"].values())
            if task_id in self.final:
                assert task["state"] == self.final[task_id]
            if task["state"] in FINAL_STATES:
                self.final[task_id] = task["state"]
            # Each task with an active call has a time at which the provider is asked for its status.
            assert ("poll_at" in task) >= (task["state"] in {CallTaskState.DIALLING.value, CallTaskState.IN_CALL.value})


CallMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=50, deadline=None)
TestCallMachine = CallMachine.TestCase


def test_start_after_end_of_window_is_refused() -> None:
    stream = InMemoryJobs(BEGIN - timedelta(milliseconds=30))
    window = CallingWindow("00:00", f"{BEGIN:%H:%M}", "UTC", WEEK)
    job = stream.launch(1, window=window)
    start = StartCall(ORG, TaskKey(job.id, 2), 1, "+819010000002", timedelta(milliseconds=50))
    assert stream.commit(start) is StartRefusal.NOT_CALLABLE
    start.lead = timedelta()
    assert isinstance(stream.commit(start), CommittedCallStart)


def test_late_report_of_earlier_call_keeps_active_call() -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 1, 100.0))
    key = TaskKey(stream.launch(1, max_attempts=3, retry_delay_s=0).id, 2)
    start = StartCall(ORG, key, 1, "+819010000002")
    assert isinstance(stream.commit(start), CommittedCallStart)
    stream.commit(ReportCall(ORG, key, 1, 2, CallReportKind.ENDED, CallOutcome.NO_ANSWER))
    stream.wait(5)
    assert isinstance(stream.commit(start), CommittedCallStart)
    for sequence in (1, 2, 3):
        stream.commit(ReportCall(ORG, key, 1, sequence, CallReportKind.ENDED, CallOutcome.BUSY))
    assert stream.task(key)["state"] == "DIALLING"
    assert stream.limits["slots"] == [f"{key.id}-2"]
    assert stream.job(key.job_id)["outcomes"] == {"NO_ANSWER": 1}


def test_report_out_of_order_or_after_end_changes_nothing() -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 1, 100.0))
    key = TaskKey(stream.launch(1).id, 2)
    stream.commit(StartCall(ORG, key, 1, "+819010000002"))
    stream.commit(ReportCall(ORG, key, 1, 5, CallReportKind.ANSWERED, None))
    stream.commit(ReportCall(ORG, key, 1, 4, CallReportKind.ENDED, CallOutcome.BUSY))
    assert stream.task(key)["state"] == "IN_CALL", "A report with a lower sequence number changed the task."
    stream.commit(ReportCall(ORG, key, 1, 6, CallReportKind.ENDED, CallOutcome.ANSWERED))
    stream.commit(ReportCall(ORG, key, 1, 7, CallReportKind.ENDED, CallOutcome.BUSY))
    assert stream.task(key)["state"] == "COMPLETED"
    assert stream.job(key.job_id)["outcomes"] == {"ANSWERED": 1}


def test_report_with_repeated_sequence_changes_nothing() -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 1, 100.0))
    key = TaskKey(stream.launch(1).id, 2)
    stream.commit(StartCall(ORG, key, 1, "+819010000002"))
    stream.commit(ReportCall(ORG, key, 1, 5, CallReportKind.ANSWERED, None))
    task, job, events = dict(stream.task(key)), dict(stream.job(key.job_id)), len(stream.events)
    stream.wait(5)
    for kind, outcome in ((CallReportKind.ANSWERED, None), (CallReportKind.ENDED, CallOutcome.BUSY)):
        result = stream.commit(ReportCall(ORG, key, 1, 5, kind, outcome))
        assert result.state is CallTaskState.IN_CALL
        assert (stream.task(key), stream.job(key.job_id), len(stream.events)) == (task, job, events)
    assert stream.limits["slots"] == [f"{key.id}-1"]


@pytest.mark.parametrize(
    "change",
    [
        lambda job, task: ActOnJob(OTHER_ORG, job, JobAction.CANCEL),
        lambda job, task: RefreshJobState(OTHER_ORG, job),
        lambda job, task: StartCall(OTHER_ORG, task, 1, "+819010000000"),
        lambda job, task: ReportCall(OTHER_ORG, task, 1, 1, CallReportKind.ANSWERED, None),
        lambda job, task: RequeueCall(OTHER_ORG, task, 1),
        lambda job, task: FailCall(OTHER_ORG, task, 1, "refused"),
        lambda job, task: MarkCallUnknown(OTHER_ORG, task, 1, "silence", keeps_slot=True),
    ],
    ids=["act", "refresh", "start", "report", "requeue", "fail", "mark unknown"],
)
def test_changes_by_another_organization_find_nothing(change: Callable[[str, TaskKey], Any]) -> None:
    stream = InMemoryJobs()
    job = stream.launch(1)
    task = TaskKey(job.id, stream.tasks[0]["_id"]["r"])
    before = stream.job(job.id), stream.task(task)
    with pytest.raises(NotFound):
        stream.commit(change(job.id, task))
    assert (stream.job(job.id), stream.task(task)) == before
