"""At most one process holds a lock, and of those who believe that they hold it, only the newest changes anything."""

import asyncio
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

import pytest

from server.embedded import Mongod
from storage.ids import new_id
from storage.locks import EPOCH, Lock, LockLost, Locks
from storage.mongo import Session
from storage.stores import Stores
from tests.storage.faults import hanging

pytestmark = pytest.mark.anyio

FOREVER_S = 60.0
SHORT_S = 1.5


@pytest.fixture
def name() -> str:
    return f"test:{new_id()}"


@pytest.fixture
def locks(shared_stores: Stores) -> Locks:
    return Locks(shared_stores.mongo)


async def taken(locks: Locks, name: str) -> Lock:
    lock = await locks.acquire(name)
    assert lock is not None
    return lock


async def let_run_out(stores: Stores, name: str) -> None:
    """What time does to a lease that nobody renews."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    await stores.mongo["process_locks"].update_one({"_id": name}, {"$set": {"expires_at": past}})


async def guarded_write(
    stores: Stores, locks: Locks, lock: Lock, value: str, pause: asyncio.Event | None = None
) -> None:
    async def work(session: Session) -> None:
        await locks.guard(lock, session)
        if pause is not None:
            await pause.wait()
        written = {"$set": {"value": value, "fence": lock.fence}}
        await stores.mongo["guarded"].update_one({"_id": lock.name}, written, upsert=True, session=session)

    await stores.mongo.transact(work)


async def value(stores: Stores, name: str) -> str | None:
    row = await stores.mongo["guarded"].find_one({"_id": name})
    return None if row is None else row["value"]


async def test_of_many_who_ask_at_once_exactly_one_gets_it(shared_stores: Stores, name: str) -> None:
    everybody = [Locks(shared_stores.mongo) for _ in range(20)]
    for turn in range(1, 6):
        got = [lock for lock in await asyncio.gather(*(each.acquire(name) for each in everybody)) if lock]
        assert [lock.fence for lock in got] == [turn]
        await everybody[0].release(got[0])


async def test_a_lock_that_was_given_back_is_free_at_once_and_its_row_stays(
    shared_stores: Stores, locks: Locks, name: str
) -> None:
    lock = await taken(locks, name)
    assert await locks.acquire(name) is None
    await locks.release(lock)
    row = await shared_stores.mongo["process_locks"].find_one({"_id": name})
    assert row is not None
    assert (row["fence"], row["expires_at"], row["unlock_key"]) == (1, EPOCH, None)
    assert (await taken(locks, name)).fence == 2


async def test_a_lease_that_ran_out_is_taken_over_and_can_be_neither_renewed_nor_given_back(
    shared_stores: Stores, locks: Locks, name: str
) -> None:
    old = await taken(locks, name)
    await let_run_out(shared_stores, name)
    assert not await locks.renew(old)
    new = await taken(locks, name)
    assert new.fence > old.fence
    assert not await locks.renew(old)
    await locks.release(old)
    assert await locks.acquire(name) is None
    assert await locks.renew(new)


async def test_a_lease_lasts_as_long_as_it_says_by_the_clock_of_the_database(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=0.5)
    began, fence = asyncio.get_running_loop().time(), None
    await taken(locks, name)
    while fence is None:
        lock = await locks.acquire(name)
        fence = lock and lock.fence
    assert 0.45 < asyncio.get_running_loop().time() - began < 15
    assert fence == 2


async def test_rows_made_by_hand_without_a_lease_are_free(shared_stores: Stores, locks: Locks, name: str) -> None:
    await shared_stores.mongo["process_locks"].insert_one({"_id": name, "unlock_key": None})
    assert (await taken(locks, name)).fence == 1


async def test_an_old_holder_that_wakes_up_changes_nothing(shared_stores: Stores, locks: Locks, name: str) -> None:
    old = await taken(locks, name)
    await guarded_write(shared_stores, locks, old, "old")
    await let_run_out(shared_stores, name)
    new = await taken(locks, name)
    await guarded_write(shared_stores, locks, new, "new")
    with pytest.raises(LockLost):
        await guarded_write(shared_stores, locks, old, "old again")
    assert await value(shared_stores, name) == "new"


async def test_a_transaction_that_was_under_way_at_the_takeover_commits_before_the_next_holders_or_never(
    shared_stores: Stores, locks: Locks, name: str
) -> None:
    old = await taken(locks, name)
    await let_run_out(shared_stores, name)
    new = await taken(locks, name)
    go_on = asyncio.Event()
    late = asyncio.create_task(guarded_write(shared_stores, locks, old, "old", go_on))
    await asyncio.sleep(0)
    early = asyncio.create_task(guarded_write(shared_stores, locks, new, "new"))
    await asyncio.wait([early], timeout=0.3)
    go_on.set()
    outcome = (await asyncio.gather(late, early, return_exceptions=True))[0]
    assert outcome is None or isinstance(outcome, LockLost)
    assert await value(shared_stores, name) == "new"


async def test_it_is_held_for_longer_than_a_lease_and_given_back_at_the_end(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=SHORT_S)
    async with locks.held(name, "ann") as lock:
        assert lock is not None
        row = await shared_stores.mongo["process_locks"].find_one({"_id": name})
        assert row is not None
        assert row["holder"] == "ann"
        ends_at = asyncio.get_running_loop().time() + SHORT_S + 0.5
        while asyncio.get_running_loop().time() < ends_at:
            async with locks.held(name) as other:
                assert other is None
            await asyncio.sleep(0.05)
    assert (await taken(locks, name)).fence == lock.fence + 1


async def test_who_loses_the_lock_is_stopped_at_what_it_awaits(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=SHORT_S)
    thief, lasting = None, Locks(shared_stores.mongo, ttl_s=FOREVER_S)
    with suppress(LockLost):
        async with locks.held(name):
            await let_run_out(shared_stores, name)
            thief = await taken(lasting, name)
            await asyncio.sleep(FOREVER_S)
    assert thief is not None
    # What the loser gives back is not the thief's.
    assert await lasting.renew(thief)


async def test_an_error_of_the_block_goes_through_and_the_lock_is_free(locks: Locks, name: str) -> None:
    with pytest.raises(TimeoutError, match="mine"):
        async with locks.held(name):
            raise TimeoutError("mine")
    assert await locks.acquire(name)


async def test_who_is_cancelled_gives_it_back(locks: Locks, name: str) -> None:
    began = asyncio.Event()

    async def hold() -> None:
        async with locks.held(name):
            began.set()
            await asyncio.sleep(FOREVER_S)

    holder = asyncio.create_task(hold())
    await began.wait()
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert await locks.acquire(name)


async def test_a_database_that_does_not_answer_stops_the_holder_before_the_lease_ends(
    own_mongod: Mongod, own_stores: Stores, name: str
) -> None:
    locks, loop = Locks(own_stores.mongo, ttl_s=SHORT_S), asyncio.get_running_loop()
    began, stopped = loop.time(), 0.0
    with ExitStack() as stack, suppress(LockLost):
        async with locks.held(name):
            stack.enter_context(hanging(own_mongod.pid))
            try:
                await asyncio.sleep(FOREVER_S)
            finally:
                stopped = loop.time()
    assert 0 < stopped - began < SHORT_S
