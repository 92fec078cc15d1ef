"""The broker pool: one broker for each organization with work, in any number of processes."""

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
from storage.locks import Lock, Locks
from storage.mongo import Mongo
from storage.redis.keys import RedisKeys
from storage.stores import Stores, open_stores
from tests.jobs.calls.call_centre import CallCentre, call_centre
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.anyio


async def is_completed(centre: CallCentre, job: CallJob) -> bool:
    return (await centre.job(job)).state is CallJobState.COMPLETED


async def lock_fence(centre: CallCentre) -> int:
    """Returns the fence of the organization's lock, or 0 if no process has acquired the lock yet."""
    lock = await centre.stores.mongo["process_locks"].find_one({"_id": lock_name(centre.org)})
    return 0 if lock is None else int(lock["fence"])


@asynccontextmanager
async def running_pool(centre: CallCentre) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(run_broker_pool(centre.jobs))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_launched_job_is_called_and_its_lock_released(stores: Stores) -> None:
    async with call_centre(stores, 2, talk_s=(0.02, 0.05)) as centre, running_pool(centre):
        await centre.limit(2, 50)
        job = await centre.launch(6)
        await until(lambda: is_completed(centre, job))
        await until(lambda: is_free(centre))
        second_job = await centre.launch(2)
        await until(lambda: is_completed(centre, second_job))
        assert set(centre.twin.dialled.values()) == {2, 1}


async def is_free(centre: CallCentre) -> bool:
    return not await centre.stores.locks.remaining_leases_s([lock_name(centre.org)])


async def test_many_pools_start_one_broker(stores: Stores, mongodb_uri: str, redis_url: str, database: str) -> None:
    async with (
        call_centre(stores, 2, talk_s=(0.2, 0.3)) as centre,
        open_stores(mongodb_uri, redis_url, database) as other_stores,
    ):
        other_centre = replace(centre, stores=other_stores)
        await centre.limit(2, 50)
        job = await centre.launch(8)
        async with running_pool(centre), running_pool(other_centre), running_pool(centre):
            await until(lambda: is_completed(centre, job))
        assert centre.twin.faults == []
        assert set(centre.twin.dialled.values()) == {1}


async def test_stopping_pool_hands_over_at_once(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> None:
    async with (
        call_centre(stores, 2, talk_s=(0.05, 0.1)) as centre,
        open_stores(mongodb_uri, redis_url, database) as other_stores,
    ):
        other_centre = replace(centre, stores=other_stores)
        await centre.limit(2, 20)
        job = await centre.launch(14)
        async with running_pool(centre) as first:
            await until(lambda: has_calls(centre, 1))
            async with running_pool(other_centre):
                previous_fence = await lock_fence(centre)
                first.cancel()
                # The expiry of a lease would take longer.
                await until(lambda: has_greater_fence(centre, previous_fence), 8)
                await until(lambda: is_completed(centre, job))
        assert set(centre.twin.dialled.values()) == {1}
        assert centre.twin.faults == []


async def has_calls(centre: CallCentre, count: int) -> bool:
    return len(centre.twin.calls) >= count


async def has_greater_fence(centre: CallCentre, previous_fence: int) -> bool:
    return await lock_fence(centre) > previous_fence


async def test_dead_broker_is_replaced_when_its_lease_expires(stores: Stores) -> None:
    async with call_centre(stores, 1, talk_s=(0.02, 0.05)) as centre:
        await centre.limit(1, 50)
        dead_lock = await Locks(stores.mongo, ttl_s=1.0).acquire(lock_name(centre.org), "a process that died")
        assert dead_lock is not None
        stored_lock = await stores.mongo["process_locks"].find_one({"_id": dead_lock.name})
        job = await centre.launch(2)
        async with running_pool(centre):
            await until(lambda: is_completed(centre, job))
        assert await lock_fence(centre) == dead_lock.fence + 1
        tasks = await stores.call_jobs.tasks(await centre.job(job), None, 0, 10)
        assert stored_lock is not None
        assert all(task.started_at and task.started_at >= stored_lock["expires_at"] for task in tasks)


class _LocksOfRival(Locks):
    """Locks that a rival process acquires just before the first attempt. The rival dies. Its lease lasts 1 s."""

    rival_lock: Lock | None = None

    async def acquire(self, name: str, holder: str = "") -> Lock | None:
        self.rival_lock = self.rival_lock or await Locks(self._mongo, ttl_s=1.0).acquire(
            name, "a process that was faster"
        )
        return await super().acquire(name, holder)


async def test_pool_takes_over_from_rival_that_died_with_the_lock(stores: Stores) -> None:
    async with call_centre(replace(stores, locks=_LocksOfRival(stores.mongo)), 1, talk_s=(0.02, 0.05)) as centre:
        await centre.limit(1, 50)
        job = await centre.launch(2)
        async with running_pool(centre):
            # The pool's search for work, once a minute, would take longer.
            await until(lambda: is_completed(centre, job))


class _HeldLocks(Locks):
    """Locks that set `was_attempted` when a lock is to be acquired, and wait until `may_acquire` is set."""

    def __init__(self, mongo: Mongo) -> None:
        super().__init__(mongo)
        self.was_attempted, self.may_acquire = asyncio.Event(), asyncio.Event()

    async def acquire(self, name: str, holder: str = "") -> Lock | None:
        self.was_attempted.set()
        await self.may_acquire.wait()
        return await super().acquire(name, holder)


async def test_pool_stopped_while_acquiring_releases_the_lock(stores: Stores) -> None:
    locks = _HeldLocks(stores.mongo)
    async with call_centre(replace(stores, locks=locks), 1) as centre, running_pool(centre) as running:
        await centre.limit(1, 50)
        job = await centre.launch(50)
        await locks.was_attempted.wait()
        running.cancel()
        await asyncio.sleep(0)
        locks.may_acquire.set()
        await asyncio.wait([running], timeout=DEADLINE_S)
        assert running.done()
        assert await lock_fence(centre) == 1
        assert await is_free(centre)
        assert (await centre.job(job)).progress.queued == 50


class _ObservedLocks(Locks):
    """Locks that set `has_read_leases` once leases were read."""

    def __init__(self, mongo: Mongo) -> None:
        super().__init__(mongo)
        self.has_read_leases = asyncio.Event()

    async def remaining_leases_s(self, names: Sequence[str]) -> dict[str, float]:
        leases_s = await super().remaining_leases_s(names)
        self.has_read_leases.set()
        return leases_s


class _LateWakeUpChannel(WakeUpChannel):
    """A channel that subscribes only after `may_subscribe` is set."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        super().__init__(redis, keys)
        self.may_subscribe = asyncio.Event()

    async def listen(self, handler: WakeUpHandler, on_subscribed: Callable[[], None] | None = None) -> None:
        await self.may_subscribe.wait()
        await super().listen(handler, on_subscribed)


async def test_pool_looks_again_when_it_has_subscribed(stores: Stores) -> None:
    """The lock is released after the new pool looked for work, and before it subscribed to wake-ups."""
    locks, wake_ups = _ObservedLocks(stores.mongo), _LateWakeUpChannel(stores.redis, stores.keys)
    async with call_centre(replace(stores, locks=locks, call_wake_ups=wake_ups), 1, talk_s=(0.02, 0.05)) as centre:
        await centre.limit(1, 50)
        job = await centre.launch(2)
        # The lease would expire after a minute.
        earlier_lock = await Locks(stores.mongo, ttl_s=60.0).acquire(lock_name(centre.org), "an earlier process")
        assert earlier_lock is not None
        async with running_pool(centre):
            await locks.has_read_leases.wait()
            await locks.release(earlier_lock)
            wake_ups.may_subscribe.set()
            await until(lambda: is_completed(centre, job))


async def test_job_outside_window_or_paused_is_not_called(stores: Stores) -> None:
    async with call_centre(stores, 1, talk_s=(0.02, 0.05)) as centre:
        now = await centre.stores.mongo.now()
        days = list(Weekday)
        closed_window = CallingWindow("00:00", "23:59", "UTC", (days[(now.weekday() + 3) % 7],))
        job = await centre.launch(1, window=closed_window)
        assert job.state is CallJobState.WAITING_FOR_WINDOW
        paused_job = await centre.launch(1, first=1)
        await centre.stores.call_jobs.act(centre.org, paused_job.id, JobAction.PAUSE)
        callable_job = await centre.launch(1, first=2)
        async with running_pool(centre):
            await until(lambda: is_completed(centre, callable_job))
        assert centre.twin.dialled == {"+819010000002": 1}
        assert [(await centre.job(each)).progress.queued for each in (job, paused_job)] == [1, 1]


async def test_failed_broker_is_restarted(stores: Stores) -> None:
    class FailingBroker:
        def __init__(self) -> None:
            self.runs = 0

        def wake(self) -> None: ...
        def stop(self) -> None: ...
        async def run(self, fence: int) -> None:
            self.runs += 1
            raise RuntimeError("broken")

    async with call_centre(stores, 1) as centre:
        await centre.launch(1)
        failing_broker = FailingBroker()
        pool = BrokerPool(centre.jobs, lambda _org: failing_broker)  # type: ignore[arg-type,return-value]
        listening = asyncio.create_task(centre.stores.call_wake_ups.listen(pool.wake))
        running = asyncio.create_task(pool.run())
        try:
            await until(lambda: ran_twice(failing_broker))
        finally:
            for task in (running, listening):
                task.cancel()
            await pool.stop()


async def ran_twice(failing_broker: Any) -> bool:
    return bool(failing_broker.runs >= 2)
