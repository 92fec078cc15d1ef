"""A model of the limiter and of the tasks' state machine: whatever happens in whatever order, the numbers hold."""

from collections import Counter
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage.calls.call_changes import (
    DO_NOT_CALL,
    Call,
    CallStart,
    FailCall,
    MarkCallUnknown,
    ReportCall,
    RequeueCall,
    StartCall,
    StartRefusal,
)
from storage.calls.job_changes import ActOnJob, JobAction, RefreshJobState, SetLimits, TakeOver
from storage.calls.limiter import Superseded
from storage.calls.records import ACTIVE_STATES, CallJobState, CallOutcome, CallReportEvent, CallTaskState, TaskKey
from storage.calls.windows import WEEK, CallingWindow
from storage.errors import Conflict
from tests.storage.calls.in_memory_stream import BEGIN, ORG, InMemoryStream

FINAL = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}


class CallMachine(RuleBasedStateMachine):
    """Two brokers, a telephony side that repeats and loses reports, people who pause, cancel and change limits."""

    def __init__(self) -> None:
        super().__init__()
        self.world = InMemoryStream()
        self.fence, self.led = 1, 0
        self.limit = 1
        self.rate = 1.0
        self.starts: list[tuple[Any, float]] = []
        self.calls: dict[str, Call] = {}
        self.settled: set[str] = set()
        self.given_back: set[str] = set()
        self.final: dict[tuple[str, int], str] = {}
        self.jobs: list[str] = []

    @initialize(numbers=st.integers(1, 8), attempts=st.integers(1, 3), limit=st.integers(1, 2))
    def begin(self, numbers: int, attempts: int, limit: int) -> None:
        self.change_limits(limit, 100.0)
        self.launch(numbers, attempts)

    @rule(numbers=st.integers(1, 4), attempts=st.integers(1, 3))
    def launch(self, numbers: int, attempts: int) -> None:
        if len(self.jobs) < 3:
            self.jobs.append(self.world.launch(numbers, max_attempts=attempts, retry_delay_s=5).id)

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 1.1, 6.0]))
    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule()
    def another_broker_takes_over(self) -> None:
        self.fence += 1
        self.led = self.fence
        self.world.commit(TakeOver(ORG, self.fence))

    @rule(pick=st.integers(0, 20), is_old=st.booleans(), lead_s=st.sampled_from([0.0, 0.0, 0.07, 1.5]))
    def start(self, pick: int, is_old: bool, lead_s: float) -> None:
        task = self.world.tasks[pick % len(self.world.tasks)]
        key = TaskKey(task["_id"]["j"], task["_id"]["r"])
        fence = self.fence - is_old
        try:
            result = self.world.commit(StartCall(ORG, key, fence, task["phone"], timedelta(seconds=lead_s)))
        except Superseded:
            assert self.world.limits["fence"] > fence
            return
        if isinstance(result, CallStart):
            assert fence >= self.led, "A broker dials that another one took over from."
            self.led = fence
            assert task["state"] == "QUEUED"
            assert self.world.get(DO_NOT_CALL, {"org": ORG, "phone": task["phone"]}) is None
            assert result.call.id not in self.calls, "A callId is used once."
            assert len(self.world.limits["slots"]) <= self.limit
            assert result.delay_s >= lead_s
            self.calls[result.call.id] = result.call
            self.starts.append((result.call.start_at, self.rate))

    @rule(pick=st.integers(0, 50), sequence=st.integers(1, 4), outcome=st.none() | st.sampled_from(CallOutcome))
    def report(self, pick: int, sequence: int, outcome: CallOutcome | None) -> None:
        if self.calls:
            call = [*self.calls.values()][pick % len(self.calls)]
            event = CallReportEvent.ANSWERED if outcome is None else CallReportEvent.ENDED
            self.world.commit(ReportCall(ORG, call.key.task, call.key.number, sequence, event, outcome))

    @rule(pick=st.integers(0, 50), how=st.sampled_from(["give back", "fail", "lose", "lose for good"]))
    def settle(self, pick: int, how: str) -> None:
        if self.calls:
            call = [*self.calls.values()][pick % len(self.calls)]
            key, number = call.key.task, call.key.number
            changes: dict[str, RequeueCall | FailCall | MarkCallUnknown] = {
                "give back": RequeueCall(ORG, key, number, 0.5),
                "fail": FailCall(ORG, key, number, "no"),
                "lose": MarkCallUnknown(ORG, key, number, "silence", keeps_slot=True),
                "lose for good": MarkCallUnknown(ORG, key, number, "forgotten", keeps_slot=False),
            }
            if self.world.commit(changes[how]) and how == "give back":
                self.given_back.add(call.id)

    @rule(pick=st.integers(0, 5), action=st.sampled_from(JobAction))
    def act(self, pick: int, action: JobAction) -> None:
        job_id = self.jobs[pick % len(self.jobs)]
        before = self.world.job(job_id)["state"]
        try:
            after = self.world.commit(ActOnJob(ORG, job_id, action)).state
        except Conflict:
            assert before in {"COMPLETED", "CANCELLED"}
        else:
            assert after is not CallJobState.REJECTED

    @rule(pick=st.integers(0, 5))
    def the_clock_is_followed(self, pick: int) -> None:
        self.world.commit(RefreshJobState(ORG, self.jobs[pick % len(self.jobs)]))

    @rule(pick=st.integers(0, 20))
    def must_not_be_called(self, pick: int) -> None:
        phone = self.world.tasks[pick % len(self.world.tasks)]["phone"]
        self.world.put(DO_NOT_CALL, {"_id": {"org": ORG, "phone": phone}})

    @rule(limit=st.integers(0, 4), rate=st.sampled_from([0.5, 1.0, 2.5, 10.0, 100.0]))
    def change_limits(self, limit: int, rate: float) -> None:
        self.world.commit(SetLimits(ORG, limit, rate))
        self.limit, self.rate = limit, rate

    @invariant()
    def slots_are_exactly_the_calls_under_way(self) -> None:
        under_way = {
            f"{task['_id']['j']}-{task['_id']['r']}-{task['call']['n']}"
            for task in self.world.tasks
            if task["state"] in {state.value for state in ACTIVE_STATES}
        }
        slots = self.world.limits["slots"]
        assert under_way <= set(slots)
        assert len(slots) == len(set(slots))
        unknown = {slot for slot in slots if slot not in under_way}
        for slot in unknown:
            assert self.world.task(self.calls[slot].key.task)["state"] == "UNKNOWN"

    @invariant()
    def no_rolling_second_has_more_starts_than_allowed_even_when_each_is_100_ms_late(self) -> None:
        for i, (last, rate) in enumerate(self.starts):
            span_s, allowed = (1.0, int(rate)) if rate >= 1 else (1 / rate, 1)
            if i >= allowed:
                first = self.starts[i - allowed][0]
                assert (last - first).total_seconds() >= span_s + 0.1

    @invariant()
    def progress_is_what_the_tasks_say(self) -> None:
        for job_id in self.jobs:
            job = self.world.job(job_id)
            states = Counter(task["state"] for task in self.world.tasks if task["_id"]["j"] == job_id)
            if job["state"] == "CANCELLED":
                states["CANCELLED"] += states.pop("QUEUED", 0)
            assert {state: count for state, count in job["counts"].items() if count} == {
                k: n for k, n in states.items() if n
            }
            if job["state"] == "COMPLETED":
                assert [states[state] for state in ("QUEUED", "DIALLING", "IN_CALL")] == [0, 0, 0]

    @invariant()
    def what_ended_stays_ended_and_attempts_are_kept(self) -> None:
        for task in self.world.tasks:
            job = self.world.job(task["_id"]["j"])
            assert 0 <= task["attempts"] <= job["max_attempts"]
            made = [c for c in self.calls.values() if c.key.task.document_id == task["_id"]]
            assert task["attempts"] == len([c for c in made if c.id not in self.given_back])
            place = tuple(task["_id"].values())
            if place in self.final:
                assert task["state"] == self.final[place]
            if task["state"] in FINAL:
                self.final[place] = task["state"]
            assert ("ask_at" in task) >= (task["state"] in {CallTaskState.DIALLING.value, CallTaskState.IN_CALL.value})


CallMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestCallMachine = CallMachine.TestCase


def test_nothing_is_dialled_whose_moment_lies_behind_the_end_of_the_window() -> None:
    world = InMemoryStream(BEGIN - timedelta(milliseconds=30))
    window = CallingWindow("00:00", f"{BEGIN:%H:%M}", "UTC", WEEK)
    job = world.launch(1, window=window)
    start = StartCall(ORG, TaskKey(job.id, 2), 1, "+819010000002", timedelta(milliseconds=50))
    assert world.commit(start) is StartRefusal.NOT_CALLABLE
    start.lead = timedelta()
    assert isinstance(world.commit(start), CallStart)


def test_what_is_told_late_of_an_earlier_call_does_not_end_the_one_that_is_under_way() -> None:
    world = InMemoryStream()
    world.commit(SetLimits(ORG, 1, 100.0))
    key = TaskKey(world.launch(1, max_attempts=3, retry_delay_s=0).id, 2)
    start = StartCall(ORG, key, 1, "+819010000002")
    assert isinstance(world.commit(start), CallStart)
    world.commit(ReportCall(ORG, key, 1, 2, CallReportEvent.ENDED, CallOutcome.NO_ANSWER))
    world.wait(5)
    assert isinstance(world.commit(start), CallStart)
    for sequence in (1, 2, 3):
        world.commit(ReportCall(ORG, key, 1, sequence, CallReportEvent.ENDED, CallOutcome.BUSY))
    assert world.task(key)["state"] == "DIALLING"
    assert world.limits["slots"] == [f"{key.id}-2"]
    assert world.job(key.job_id)["outcomes"] == {"NO_ANSWER": 1}


def test_a_report_that_was_overtaken_and_one_that_follows_the_end_change_nothing() -> None:
    world = InMemoryStream()
    world.commit(SetLimits(ORG, 1, 100.0))
    key = TaskKey(world.launch(1).id, 2)
    world.commit(StartCall(ORG, key, 1, "+819010000002"))
    world.commit(ReportCall(ORG, key, 1, 5, CallReportEvent.ANSWERED, None))
    world.commit(ReportCall(ORG, key, 1, 4, CallReportEvent.ENDED, CallOutcome.BUSY))
    assert world.task(key)["state"] == "IN_CALL", "a lower sequence after a higher one"
    world.commit(ReportCall(ORG, key, 1, 6, CallReportEvent.ENDED, CallOutcome.ANSWERED))
    world.commit(ReportCall(ORG, key, 1, 7, CallReportEvent.ENDED, CallOutcome.BUSY))
    assert world.task(key)["state"] == "COMPLETED"
    assert world.job(key.job_id)["outcomes"] == {"ANSWERED": 1}


def test_report_with_repeated_sequence_changes_nothing() -> None:
    stream = InMemoryStream()
    stream.commit(SetLimits(ORG, 1, 100.0))
    key = TaskKey(stream.launch(1).id, 2)
    stream.commit(StartCall(ORG, key, 1, "+819010000002"))
    stream.commit(ReportCall(ORG, key, 1, 5, CallReportEvent.ANSWERED, None))
    task, job, events = dict(stream.task(key)), dict(stream.job(key.job_id)), len(stream.events)
    stream.wait(5)
    for event, outcome in ((CallReportEvent.ANSWERED, None), (CallReportEvent.ENDED, CallOutcome.BUSY)):
        result = stream.commit(ReportCall(ORG, key, 1, 5, event, outcome))
        assert result.state is CallTaskState.IN_CALL
        assert (stream.task(key), stream.job(key.job_id), len(stream.events)) == (task, job, events)
    assert stream.limits["slots"] == [f"{key.id}-1"]
