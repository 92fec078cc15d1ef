"""The manager: a broker for whoever has work, one at a time however many processes look, handed over and taken over."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from jobs.calls.broker_pool import BrokerPool, lock_name, run_broker_pool
from storage.calls.job_changes import JobAction
from storage.calls.records import CallJob, CallJobState
from storage.calls.wake_ups import WakeUpChannel, WakeUpHandler
from storage.calls.windows import CallingWindow, Weekday
from storage.keys import Keys
from storage.locks import Lock, Locks
from storage.mongo import Mongo
from storage.stores import Stores, open_stores
from tests.jobs.calls.call_centre import CallCentre, calling
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.anyio


async def is_over(house: CallCentre, job: CallJob) -> bool:
    return (await house.job(job)).state is CallJobState.COMPLETED


async def fence(house: CallCentre) -> int:
    row = await house.stores.mongo["process_locks"].find_one({"_id": lock_name(house.org)})
    return 0 if row is None else int(row["fence"])


@asynccontextmanager
async def managed(house: CallCentre) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(run_broker_pool(house.jobs))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_launched_job_is_called_at_once_and_its_lock_given_back(stores: Stores) -> None:
    async with calling(stores, 2, talk_s=(0.02, 0.05)) as house, managed(house):
        await house.limit(2, 50)
        job = await house.launch(6)
        await until(lambda: is_over(house, job))
        await until(lambda: is_free(house))
        again = await house.launch(2)
        await until(lambda: is_over(house, again))
        assert set(house.twin.dialled.values()) == {2, 1}


async def is_free(house: CallCentre) -> bool:
    return not await house.stores.locks.leases_s([lock_name(house.org)])


async def test_many_managers_start_one_broker(stores: Stores, mongodb_uri: str, redis_url: str, database: str) -> None:
    async with calling(stores, 2, talk_s=(0.2, 0.3)) as house, open_stores(mongodb_uri, redis_url, database) as others:
        there = replace(house, stores=others)
        await house.limit(2, 50)
        job = await house.launch(8)
        async with managed(house), managed(there), managed(house):
            await until(lambda: is_over(house, job))
        assert house.twin.faults == []
        assert set(house.twin.dialled.values()) == {1}


async def test_a_manager_that_stops_hands_over_to_the_next_at_once(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> None:
    async with calling(stores, 2, talk_s=(0.05, 0.1)) as house, open_stores(mongodb_uri, redis_url, database) as others:
        there = replace(house, stores=others)
        await house.limit(2, 20)
        job = await house.launch(40)
        async with managed(house) as first:
            await until(lambda: has_calls(house, 1))
            async with managed(there):
                before = await fence(house)
                first.cancel()
                # A lease that runs out would take longer.
                await until(lambda: is_next(house, before), 8)
                await until(lambda: is_over(house, job))
        assert set(house.twin.dialled.values()) == {1}
        assert house.twin.faults == []


async def has_calls(house: CallCentre, count: int) -> bool:
    return len(house.twin.calls) >= count


async def is_next(house: CallCentre, before: int) -> bool:
    return await fence(house) > before


async def test_the_broker_of_a_dead_process_is_taken_over_when_its_lease_runs_out(stores: Stores) -> None:
    async with calling(stores, 1, talk_s=(0.02, 0.05)) as house:
        await house.limit(1, 50)
        dead = await Locks(stores.mongo, ttl_s=1.0).acquire(lock_name(house.org), "a process that died")
        assert dead is not None
        row = await stores.mongo["process_locks"].find_one({"_id": dead.name})
        job = await house.launch(2)
        async with managed(house):
            await until(lambda: is_over(house, job))
        assert await fence(house) == dead.fence + 1
        tasks = await stores.call_jobs.tasks(await house.job(job), None, 0, 10)
        assert row is not None
        assert all(task.started_at and task.started_at >= row["expires_at"] for task in tasks)


class _Raced(Locks):
    """Another process takes the lock just before this one does for the first time, and dies a second later."""

    wins: Lock | None = None

    async def acquire(self, name: str, holder: str = "") -> Lock | None:
        self.wins = self.wins or await Locks(self._mongo, ttl_s=1.0).acquire(name, "a process that was faster")
        return await super().acquire(name, holder)


async def test_who_was_too_late_for_a_lock_takes_over_when_its_holder_dies(stores: Stores) -> None:
    async with calling(replace(stores, locks=_Raced(stores.mongo)), 1, talk_s=(0.02, 0.05)) as house:
        await house.limit(1, 50)
        job = await house.launch(2)
        async with managed(house):
            # Looking once a minute would take longer.
            await until(lambda: is_over(house, job))


class _Slow(Locks):
    """Its locks are taken when it is told to, and it says that one is wanted."""

    def __init__(self, mongo: Mongo) -> None:
        super().__init__(mongo)
        self.wanted, self.go = asyncio.Event(), asyncio.Event()

    async def acquire(self, name: str, holder: str = "") -> Lock | None:
        self.wanted.set()
        await self.go.wait()
        return await super().acquire(name, holder)


async def test_a_manager_that_stops_while_it_takes_a_lock_gives_it_back_and_calls_nobody(stores: Stores) -> None:
    locks = _Slow(stores.mongo)
    async with calling(replace(stores, locks=locks), 1) as house, managed(house) as running:
        await house.limit(1, 50)
        job = await house.launch(50)
        await locks.wanted.wait()
        running.cancel()
        await asyncio.sleep(0)
        locks.go.set()
        await asyncio.wait([running], timeout=DEADLINE_S)
        assert running.done()
        assert await fence(house) == 1
        assert await is_free(house)
        assert (await house.job(job)).progress.queued == 50


class _Watched(Locks):
    """Tells when somebody has looked whose locks are held."""

    def __init__(self, mongo: Mongo) -> None:
        super().__init__(mongo)
        self.looked = asyncio.Event()

    async def leases_s(self, names: Sequence[str]) -> dict[str, float]:
        found = await super().leases_s(names)
        self.looked.set()
        return found


class _Deaf(WakeUpChannel):
    """Hears nothing until it may."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        super().__init__(redis, keys)
        self.may_hear = asyncio.Event()

    async def listen(self, heard: WakeUpHandler, missed: Callable[[], None] | None = None) -> None:
        await self.may_hear.wait()
        await super().listen(heard, missed)


async def test_what_was_told_before_a_process_could_hear_it_is_looked_for(stores: Stores) -> None:
    """The holder gives its lock back after the newcomer looked, and before Redis tells the newcomer anything."""
    locks, wakes = _Watched(stores.mongo), _Deaf(stores.redis, stores.keys)
    async with calling(replace(stores, locks=locks, call_wake_ups=wakes), 1, talk_s=(0.02, 0.05)) as house:
        await house.limit(1, 50)
        job = await house.launch(2)
        # Its lease would run out after a minute.
        before = await Locks(stores.mongo, ttl_s=60.0).acquire(lock_name(house.org), "the process before")
        assert before is not None
        async with managed(house):
            await locks.looked.wait()
            await locks.release(before)
            wakes.may_hear.set()
            await until(lambda: is_over(house, job))


async def test_a_job_that_waits_for_its_window_or_start_is_not_dialled_and_says_so(stores: Stores) -> None:
    async with calling(stores, 1) as house, managed(house):
        now = await house.stores.call_jobs.now()
        days = list(Weekday)
        closed = CallingWindow("00:00", "23:59", "UTC", (days[(now.weekday() + 3) % 7],))
        job = await house.launch(1, window=closed)
        assert job.state is CallJobState.WAITING_FOR_WINDOW
        paused = await house.launch(1)
        await house.stores.call_jobs.act(house.org, paused.id, JobAction.PAUSE)
        opened = await house.launch(1)
        await until(lambda: is_over(house, opened))
        assert not await is_over(house, job)
        assert (await house.job(paused)).progress.queued + (await house.job(paused)).progress.active <= 1


async def test_a_broker_that_fails_is_started_again(stores: Stores) -> None:
    class Failing:
        def __init__(self) -> None:
            self.runs = 0

        def wake(self) -> None: ...
        def stop(self) -> None: ...
        async def run(self, fence: int) -> None:
            self.runs += 1
            raise RuntimeError("broken")

    async with calling(stores, 1) as house:
        await house.launch(1)
        failing = Failing()
        pool = BrokerPool(house.jobs, lambda _org: failing)  # type: ignore[arg-type,return-value]
        listening = asyncio.create_task(house.stores.call_wake_ups.listen(pool.wake))
        running = asyncio.create_task(pool.run())
        try:
            await until(lambda: ran_twice(failing))
        finally:
            for task in (running, listening):
                task.cancel()
            await pool.stop()


async def ran_twice(failing: Any) -> bool:
    return bool(failing.runs >= 2)
