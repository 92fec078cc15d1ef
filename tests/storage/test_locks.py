"""At most one process holds a lock, and only the newest holder's guarded writes are committed."""

import asyncio
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

import pytest

from server.embedded import Mongod
from storage.ids import new_id
from storage.locks import EPOCH, Lock, LockLost, Locks
from storage.mongo import Session
from storage.stores import Stores
from tests.storage.faults import sigstopped
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

FOREVER_S = 60.0
"""Longer than any of the tests takes."""

SHORT_TTL_S = 1.5


@pytest.fixture
def name() -> str:
    return f"test:{new_id()}"


@pytest.fixture
def locks(shared_stores: Stores) -> Locks:
    return Locks(shared_stores.mongo)


async def acquire(locks: Locks, name: str) -> Lock:
    lock = await locks.acquire(name)
    assert lock is not None
    return lock


async def expire_lease(stores: Stores, name: str) -> None:
    """Moves the end of the lease into the past."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    await stores.mongo["process_locks"].update_one({"_id": name}, {"$set": {"expires_at": past}})


async def guarded_write(
    stores: Stores, locks: Locks, lock: Lock, value: str, resume: asyncio.Event | None = None
) -> None:
    """Writes a value under the lock's guard in one transaction, which waits for `resume` in the middle."""

    async def work(session: Session) -> None:
        await locks.guard(lock, session)
        if resume is not None:
            await resume.wait()
        update = {"$set": {"value": value, "fence": lock.fence}}
        await stores.mongo["guarded"].update_one({"_id": lock.name}, update, upsert=True, session=session)

    await stores.mongo.transact(work)


async def guarded_value(stores: Stores, name: str) -> str | None:
    document = await stores.mongo["guarded"].find_one({"_id": name})
    return None if document is None else document["value"]


async def test_concurrent_acquires_give_exactly_one_the_lock(shared_stores: Stores, name: str) -> None:
    processes = [Locks(shared_stores.mongo) for _ in range(20)]
    for fence in range(1, 6):
        acquired = [lock for lock in await asyncio.gather(*(each.acquire(name) for each in processes)) if lock]
        assert [lock.fence for lock in acquired] == [fence]
        await processes[0].release(acquired[0])


async def test_released_lock_is_free_at_once_and_keeps_its_fence(
    shared_stores: Stores, locks: Locks, name: str
) -> None:
    lock = await acquire(locks, name)
    assert await locks.acquire(name) is None
    await locks.release(lock)
    document = await shared_stores.mongo["process_locks"].find_one({"_id": name})
    assert document is not None
    assert (document["fence"], document["expires_at"], document["unlock_key"]) == (1, EPOCH, None)
    assert (await acquire(locks, name)).fence == 2


async def test_expired_lock_cannot_be_renewed_or_released(shared_stores: Stores, locks: Locks, name: str) -> None:
    old_lock = await acquire(locks, name)
    await expire_lease(shared_stores, name)
    assert not await locks.renew(old_lock)
    new_lock = await acquire(locks, name)
    assert new_lock.fence > old_lock.fence
    assert not await locks.renew(old_lock)
    await locks.release(old_lock)
    assert await locks.acquire(name) is None
    assert await locks.renew(new_lock)


async def test_lease_ends_after_its_ttl_by_the_database_clock(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=0.5)
    has_begun, fence = asyncio.get_running_loop().time(), None
    await acquire(locks, name)
    while fence is None:
        lock = await locks.acquire(name)
        fence = lock and lock.fence
    assert 0.45 < asyncio.get_running_loop().time() - has_begun < 15
    assert fence == 2


async def test_lock_document_without_a_lease_is_free(shared_stores: Stores, locks: Locks, name: str) -> None:
    await shared_stores.mongo["process_locks"].insert_one({"_id": name, "unlock_key": None})
    assert (await acquire(locks, name)).fence == 1


async def test_guarded_write_of_an_earlier_holder_is_refused(shared_stores: Stores, locks: Locks, name: str) -> None:
    old_lock = await acquire(locks, name)
    await guarded_write(shared_stores, locks, old_lock, "old")
    await expire_lease(shared_stores, name)
    new_lock = await acquire(locks, name)
    await guarded_write(shared_stores, locks, new_lock, "new")
    with pytest.raises(LockLost):
        await guarded_write(shared_stores, locks, old_lock, "old again")
    assert await guarded_value(shared_stores, name) == "new"


async def test_guarded_writes_of_other_locks_have_their_own_fences(
    shared_stores: Stores, locks: Locks, name: str
) -> None:
    await acquire(locks, name)
    await expire_lease(shared_stores, name)
    second = await acquire(locks, name)
    other = await acquire(locks, f"{name}:other")
    assert (second.fence, other.fence) == (2, 1)
    for lock in (second, other, second):
        await guarded_write(shared_stores, locks, lock, "value")
    assert await guarded_value(shared_stores, other.name) == "value"


async def test_remaining_leases_are_those_of_held_named_locks(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=3600.0)
    names = {state: f"{name}:{state}" for state in ("held", "expired", "released", "not named")}
    acquired = {state: await acquire(locks, each) for state, each in names.items()}
    await expire_lease(shared_stores, names["expired"])
    await locks.release(acquired["released"])
    leases_s = await locks.remaining_leases_s([names["held"], names["expired"], names["released"], f"{name}:free"])
    assert list(leases_s) == [names["held"]]
    assert 2400 < leases_s[names["held"]] <= 3600


async def test_transaction_open_at_takeover_overwrites_no_later_write(
    shared_stores: Stores, locks: Locks, name: str
) -> None:
    old_lock = await acquire(locks, name)
    await expire_lease(shared_stores, name)
    new_lock = await acquire(locks, name)
    proceed = asyncio.Event()
    earlier = asyncio.create_task(guarded_write(shared_stores, locks, old_lock, "old", proceed))
    await asyncio.sleep(0)
    later = asyncio.create_task(guarded_write(shared_stores, locks, new_lock, "new"))
    await asyncio.wait([later], timeout=0.3)
    proceed.set()
    outcome = (await asyncio.gather(earlier, later, return_exceptions=True))[0]
    assert outcome is None or isinstance(outcome, LockLost)
    assert await guarded_value(shared_stores, name) == "new"


async def test_held_lock_is_renewed_and_released_at_the_end(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=SHORT_TTL_S)
    async with locks.held(name, "ann") as lock:
        assert lock is not None
        document = await shared_stores.mongo["process_locks"].find_one({"_id": name})
        assert document is not None
        assert document["holder"] == "ann"
        ends_at = asyncio.get_running_loop().time() + SHORT_TTL_S + 0.5
        while asyncio.get_running_loop().time() < ends_at:
            async with locks.held(name) as other:
                assert other is None
            await asyncio.sleep(0.05)
    assert (await acquire(locks, name)).fence == lock.fence + 1


async def test_locks_of_dead_worker_are_released_with_their_fences(shared_stores: Stores) -> None:
    mongo, names = shared_stores.mongo, [f"test:{new_id()}" for _ in range(4)]
    dead, other, unnamed = Locks(mongo, worker="dead"), Locks(mongo, worker="other"), Locks(mongo)
    locks = [await acquire(*each) for each in zip((dead, dead, other, unnamed), names, strict=True)]
    # The second lock has a later holder, which is not released.
    await dead.release(locks[1])
    locks[1] = await acquire(unnamed, names[1])
    assert await unnamed.release_of("dead") == 1
    assert await unnamed.release_of("dead") == 0
    assert [await unnamed.renew(each) for each in locks] == [False, True, True, True]
    assert (await acquire(unnamed, names[0])).fence == locks[0].fence + 1


async def test_holder_that_loses_the_lock_is_cancelled(shared_stores: Stores, name: str) -> None:
    locks = Locks(shared_stores.mongo, ttl_s=SHORT_TTL_S)
    other_lock, other = None, Locks(shared_stores.mongo, ttl_s=FOREVER_S)
    with suppress(LockLost):
        async with locks.held(name):
            await expire_lease(shared_stores, name)
            other_lock = await acquire(other, name)
            await asyncio.sleep(FOREVER_S)
    assert other_lock is not None
    # The release by the first holder leaves the new holder's lease alone.
    assert await other.renew(other_lock)


async def test_error_in_the_block_propagates_and_releases_the_lock(locks: Locks, name: str) -> None:
    with pytest.raises(TimeoutError, match="from the block"):
        async with locks.held(name):
            raise TimeoutError("from the block")
    assert await locks.acquire(name)


@may_leave_sockets
async def test_cancelled_holder_releases_the_lock(locks: Locks, name: str) -> None:
    has_begun = asyncio.Event()

    async def hold() -> None:
        async with locks.held(name):
            has_begun.set()
            await asyncio.sleep(FOREVER_S)

    holder = asyncio.create_task(hold())
    await has_begun.wait()
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert await locks.acquire(name)


async def test_hanging_database_cancels_holder_before_lease_ends(
    own_mongod: Mongod, own_stores: Stores, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares the time for which the cancellation was scheduled. A busy machine cancels later."""
    locks, loop = Locks(own_stores.mongo, ttl_s=SHORT_TTL_S), asyncio.get_running_loop()
    deadlines, timeout_at = list[asyncio.Timeout](), asyncio.timeout_at

    def recorded_timeout_at(when: float) -> asyncio.Timeout:
        deadlines.append(timeout_at(when))
        return deadlines[-1]

    monkeypatch.setattr(asyncio, "timeout_at", recorded_timeout_at)
    has_begun, is_cancelled = loop.time(), False
    with ExitStack() as stack, suppress(LockLost):
        async with locks.held(name):
            stack.enter_context(sigstopped(own_mongod.pid))
            try:
                await asyncio.sleep(FOREVER_S)
            finally:
                is_cancelled = True
    cancelled_at = deadlines[0].when()
    assert is_cancelled
    assert deadlines[0].expired()
    assert cancelled_at is not None
    assert cancelled_at < has_begun + SHORT_TTL_S
