"""The limiter under a broker that starts calls as early as it may: every rate, and changes of the rate."""

import random
from datetime import datetime, timedelta

import pytest

from storage.calls.call_changes import (
    START_LOOKAHEAD,
    CommittedCallStart,
    ReportCall,
    RequeueCall,
    StartCall,
    StartRefusal,
)
from storage.calls.job_changes import SetLimits
from storage.calls.limiter import JITTER_S
from storage.calls.records import CallOutcome, CallReportKind, TaskKey
from tests.storage.calls.in_memory_jobs import InMemoryJobs
from tests.storage.in_memory_stream import ORG

RATES = (0.1, 0.5, 1.0, 1.5, 2.5, 10.0, 100.0)
MILLISECOND = timedelta(milliseconds=1)


def start_call(
    stream: InMemoryJobs, job_id: str, row: int, lead: timedelta = timedelta()
) -> CommittedCallStart | StartRefusal:
    key = TaskKey(job_id, row)
    return stream.commit(StartCall(ORG, key, 1, stream.task(key)["phone"], lead))


def start_at_earliest(stream: InMemoryJobs, job_id: str, row: int) -> datetime:
    """Commits the start of a call at the earliest possible time. Returns the start time of the call.

    Asserts that the start is refused a millisecond earlier.
    """
    earliest = stream.limits["next_at"] - START_LOOKAHEAD
    if earliest - MILLISECOND > stream.now:
        stream.now = earliest - MILLISECOND
        assert start_call(stream, job_id, row) is StartRefusal.TOO_EARLY
        stream.now = earliest
    start = start_call(stream, job_id, row)
    assert isinstance(start, CommittedCallStart)
    return start.call.start_at


def find_close_starts(starts: list[tuple[datetime, float]]) -> list[tuple[int, float]]:
    """Returns the starts that exceed their rate: the index, and the distance in seconds to an earlier start.

    `starts` holds start times, each with the rate that applied. A rolling second may hold `rate` starts; with a rate
    below 1, a span of 1/rate seconds may hold one. Each start may be up to 100 ms late.
    """
    close_starts = []
    for i, (last, rate) in enumerate(starts):
        span_s, allowed = (1.0, int(rate)) if rate >= 1 else (1 / rate, 1)
        if i >= allowed and (apart_s := (last - starts[i - allowed][0]).total_seconds()) < span_s + JITTER_S:
            close_starts.append((i, apart_s))
    return close_starts


@pytest.mark.parametrize("rate", RATES)
def test_starts_as_early_as_allowed_keep_the_rate(rate: float) -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 1000, rate))
    numbers = int(max(rate, 1)) * 2 + 3
    job = stream.launch(numbers)
    starts = [(start_at_earliest(stream, job.id, row), rate) for row in range(2, numbers + 2)]
    assert find_close_starts(starts) == []
    # The limiter adds only the jitter and the rounding to milliseconds.
    duration_s = (starts[-1][0] - starts[0][0]).total_seconds()
    assert (
        duration_s <= (numbers - 1) * (1 / rate if rate < 1 else 1 / int(rate)) * 1.1 + numbers * 0.1 * (rate < 1) + 0.4
    )


def test_only_a_new_rate_delays_the_next_start() -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 1000, 10.0))
    started_at = start_at_earliest(stream, stream.launch(2).id, 2)
    next_at = stream.limits["next_at"]
    assert next_at < started_at + timedelta(seconds=0.2)
    stream.commit(SetLimits(ORG, 500, 10.0))
    assert stream.limits["next_at"] == next_at
    stream.commit(SetLimits(ORG, 500, 20.0))
    assert stream.limits["next_at"] == started_at + timedelta(seconds=1 + JITTER_S) + MILLISECOND


@pytest.mark.parametrize("seed", range(8))
def test_starts_across_rate_changes_keep_both_rates(seed: int) -> None:
    rng, stream = random.Random(seed), InMemoryJobs()
    job = stream.launch(60)
    rate, starts = 1.0, list[tuple[datetime, float]]()
    for row in range(2, 62):
        if rng.random() < 0.2:
            rate = rng.choice(RATES)
            stream.commit(SetLimits(ORG, 1000, rate))
        elif row == 2:
            stream.commit(SetLimits(ORG, 1000, rate))
        starts.append((start_at_earliest(stream, job.id, row), rate))
        stream.wait(rng.choice([0, 0, 0, 0.01, 0.3]))
    assert find_close_starts(starts) == []


def test_slots_are_limited_and_freed_when_a_call_ends() -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 2, 100.0))
    job = stream.launch(4)
    for row in (2, 3):
        start_at_earliest(stream, job.id, row)
    stream.wait(5)
    assert start_call(stream, job.id, 4) is StartRefusal.NO_SLOT
    stream.commit(ReportCall(ORG, TaskKey(job.id, 2), 1, 1, CallReportKind.ANSWERED, None))
    assert start_call(stream, job.id, 4) is StartRefusal.NO_SLOT, "An answered call keeps its slot."
    stream.commit(ReportCall(ORG, TaskKey(job.id, 2), 1, 2, CallReportKind.ENDED, CallOutcome.ANSWERED))
    assert isinstance(start_call(stream, job.id, 4), CommittedCallStart)
    stream.commit(SetLimits(ORG, 1, 100.0))
    stream.wait(5)
    assert start_call(stream, job.id, 5) is StartRefusal.NO_SLOT, "A lower limit holds at once."


@pytest.mark.parametrize("rate", RATES)
def test_new_rate_keeps_hold_off_of_telephony_service(rate: float) -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 10, 2.0))
    job = stream.launch(2)
    start_at_earliest(stream, job.id, 2)
    stream.commit(RequeueCall(ORG, TaskKey(job.id, 2), 1, hold_off_s=60.0))
    until = stream.now + timedelta(seconds=60)
    stream.commit(SetLimits(ORG, 10, rate))
    assert start_at_earliest(stream, job.id, 3) >= until


def test_start_with_lead_keeps_distance_to_next_start() -> None:
    stream = InMemoryJobs()
    stream.commit(SetLimits(ORG, 10, 1.0))
    job = stream.launch(2)
    first = start_call(stream, job.id, 2, lead=timedelta(seconds=1))
    assert isinstance(first, CommittedCallStart)
    assert first.delay_s == 1.0
    assert start_at_earliest(stream, job.id, 3) - first.call.start_at >= timedelta(seconds=1 + JITTER_S)
    assert first.gap_s >= 1 + JITTER_S
