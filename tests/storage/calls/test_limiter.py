"""The limiter, asked again and again by a broker in a hurry: what it allows at every rate, and when rates change."""

import random
from datetime import datetime, timedelta

import pytest

from storage.calls.call_changes import START_LOOKAHEAD, CallStart, ReportCall, RequeueCall, StartCall, StartRefusal
from storage.calls.job_changes import SetLimits
from storage.calls.limiter import JITTER_S
from storage.calls.records import CallOutcome, CallReportEvent, TaskKey
from tests.storage.calls.in_memory_stream import ORG, InMemoryStream

RATES = (0.1, 0.5, 1.0, 2.5, 10.0, 100.0)
MILLISECOND = timedelta(milliseconds=1)


def dial(world: InMemoryStream, job_id: str, row: int, lead: timedelta = timedelta()) -> CallStart | StartRefusal:
    key = TaskKey(job_id, row)
    return world.commit(StartCall(ORG, key, 1, world.task(key)["phone"], lead))


def dial_soon(world: InMemoryStream, job_id: str, row: int) -> datetime:
    """When the call starts that is asked for until it may; a millisecond before it could not be committed."""
    first = world.limits["next_at"] - START_LOOKAHEAD
    if first - MILLISECOND > world.now:
        world.now = first - MILLISECOND
        assert dial(world, job_id, row) is StartRefusal.TOO_EARLY
        world.now = first
    dialled = dial(world, job_id, row)
    assert isinstance(dialled, CallStart)
    return dialled.call.start_at


def too_close(starts: list[tuple[datetime, float]]) -> list[tuple[int, float]]:
    """Starts that stand in one rolling second (below 1: in one of 1/rate seconds) with too many others.

    Each start has the rate that it was made at. Any of them may be up to 100 ms late.
    """
    found = []
    for i, (last, rate) in enumerate(starts):
        span_s, allowed = (1.0, int(rate)) if rate >= 1 else (1 / rate, 1)
        if i >= allowed and (apart_s := (last - starts[i - allowed][0]).total_seconds()) < span_s + JITTER_S:
            found.append((i, apart_s))
    return found


@pytest.mark.parametrize("rate", RATES)
def test_no_rolling_second_has_more_starts_than_allowed_however_hard_a_broker_tries(rate: float) -> None:
    world = InMemoryStream()
    world.commit(SetLimits(ORG, 1000, rate))
    numbers = int(max(rate, 1)) * 2 + 3
    job = world.launch(numbers)
    starts = [(dial_soon(world, job.id, row), rate) for row in range(2, numbers + 2)]
    assert too_close(starts) == []
    # And no slower than that: the jitter, and a millisecond that instants are rounded by.
    took_s = (starts[-1][0] - starts[0][0]).total_seconds()
    assert took_s <= (numbers - 1) * (1 / rate if rate < 1 else 1 / int(rate)) * 1.1 + numbers * 0.1 * (rate < 1) + 0.4


@pytest.mark.parametrize("seed", range(20))
def test_no_rolling_second_has_starts_of_two_rates_that_together_are_too_many(seed: int) -> None:
    chance, world = random.Random(seed), InMemoryStream()
    job = world.launch(60)
    rate, starts = 1.0, list[tuple[datetime, float]]()
    for row in range(2, 62):
        if chance.random() < 0.2:
            rate = chance.choice(RATES)
            world.commit(SetLimits(ORG, 1000, rate))
        elif row == 2:
            world.commit(SetLimits(ORG, 1000, rate))
        starts.append((dial_soon(world, job.id, row), rate))
        world.wait(chance.choice([0, 0, 0, 0.01, 0.3]))
    assert too_close(starts) == []


def test_a_slot_is_there_for_so_many_calls_as_are_allowed_and_again_when_one_has_ended() -> None:
    world = InMemoryStream()
    world.commit(SetLimits(ORG, 2, 100.0))
    job = world.launch(4)
    for row in (2, 3):
        dial_soon(world, job.id, row)
    world.wait(5)
    assert dial(world, job.id, 4) is StartRefusal.NO_SLOT
    world.commit(ReportCall(ORG, TaskKey(job.id, 2), 1, 1, CallReportEvent.ANSWERED, None))
    assert dial(world, job.id, 4) is StartRefusal.NO_SLOT, "who talks has a slot"
    world.commit(ReportCall(ORG, TaskKey(job.id, 2), 1, 2, CallReportEvent.ENDED, CallOutcome.ANSWERED))
    assert isinstance(dial(world, job.id, 4), CallStart)
    world.commit(SetLimits(ORG, 1, 100.0))
    world.wait(5)
    assert dial(world, job.id, 5) is StartRefusal.NO_SLOT, "a lower limit holds at once"


@pytest.mark.parametrize("rate", RATES)
def test_a_new_rate_does_not_end_the_patience_that_the_telephony_side_asked_for(rate: float) -> None:
    world = InMemoryStream()
    world.commit(SetLimits(ORG, 10, 2.0))
    job = world.launch(2)
    dial_soon(world, job.id, 2)
    world.commit(RequeueCall(ORG, TaskKey(job.id, 2), 1, hold_off_s=60.0))
    until = world.now + timedelta(seconds=60)
    world.commit(SetLimits(ORG, 10, rate))
    assert dial_soon(world, job.id, 3) >= until


def test_a_start_that_is_chosen_later_keeps_its_distance_from_the_next() -> None:
    world = InMemoryStream()
    world.commit(SetLimits(ORG, 10, 1.0))
    job = world.launch(2)
    first = dial(world, job.id, 2, lead=timedelta(seconds=1))
    assert isinstance(first, CallStart)
    assert first.delay_s == 1.0
    assert dial_soon(world, job.id, 3) - first.call.start_at >= timedelta(seconds=1 + JITTER_S)
    assert first.gap_s >= 1 + JITTER_S
