"""Events of a large job: at most ten task events and two job events a second. The last change is always emitted."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest

from storage.calls.calls import NextCall, TimedStart
from storage.calls.documents import CallJobDocument
from storage.calls.job_changes import reserve_task_event
from storage.calls.records import CallOutcome, CallReportKind, TaskKey
from storage.stores import Stores
from storage.streams.log import jobs_stream
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.in_memory_stream import ORG
from tests.waiting import until

pytestmark = pytest.mark.anyio

NUMBERS = 24


async def call_all_at_once(stores: Stores) -> str:
    """Starts and ends a call to every number of a job, as fast as possible. Returns the job's id."""
    await stores.call_jobs.set_limits(ORG, 100, 100)
    csv = "phone_number\n" + "".join(f"+8190{10_000_000 + n}\n" for n in range(NUMBERS))
    job = await stores.call_jobs.launch(new_job(), csv, None)
    for row in range(2, NUMBERS + 2):
        next_call = NextCall(TaskKey(job.id, row), f"+8190{10_000_000 + row - 2}")
        while not isinstance(start := await stores.calls.start(ORG, next_call, 1), TimedStart):
            await asyncio.sleep(0.005)
        await stores.calls.report(start.call.id, 1, CallReportKind.ENDED, CallOutcome.ANSWERED)
    return job.id


def max_events(times: list[datetime], span_s: float = 1.0) -> int:
    """Returns the largest number of events in any span of `span_s` seconds."""
    return max(sum(1 for at in times if 0 <= (at - first).total_seconds() < span_s) for first in times)


@pytest.mark.parametrize("seed", range(20))
def test_task_events_are_at_most_ten_in_any_second(seed: int) -> None:
    rng, job = random.Random(seed), CallJobDocument()  # type: ignore[typeddict-item]
    at, emitted = datetime(2026, 1, 1, tzinfo=UTC), list[datetime]()
    for _ in range(500):
        at += timedelta(milliseconds=rng.choice([0, 0, 1, 30, 100, 400, 1500]))
        wait = reserve_task_event(job, at)
        if wait is None:
            emitted.append(at)
        else:
            assert reserve_task_event(job.copy(), at + wait) is None, "An event is allowed after the returned wait."
    assert max_events(emitted) == 10


async def test_last_change_of_each_task_is_emitted(stores: Stores) -> None:
    job_id = await call_all_at_once(stores)

    async def is_all_emitted() -> bool:
        tasks = await stores.mongo["call_tasks"].count_documents({"event_pending": True})
        return not tasks and not await stores.mongo["outbox"].count_documents({})

    await until(is_all_emitted, 20)
    events = await stores.events.read(jobs_stream(ORG), 0)
    task_events = [event for event in events if event.kind == "CallTaskChanged"]
    job_events = [event for event in events if event.kind == "CallJobChanged"]
    assert {event.ref for event in task_events} == {f"{job_id}-{row}" for row in range(2, NUMBERS + 2)}
    assert max_events([event.at for event in task_events]) <= 10
    assert len(job_events) < NUMBERS
    # Events carry the current state, so the last event shows the last state.
    tasks = await stores.mongo["call_tasks"].find({}, {"ended_at": 1}).to_list(None)
    last_ended_at = max(task["ended_at"] for task in tasks)
    assert task_events[-1].at >= last_ended_at
    assert job_events[-1].at >= last_ended_at
