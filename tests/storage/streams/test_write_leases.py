"""Write leases order commits while Redis is available. Without Redis they neither delay nor block commits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from server.embedded import Valkey
from storage.redis.keys import RedisKeys
from storage.streams.log import Stream
from storage.streams.write_leases import LEASE_MS, MAX_WAIT_S, WriteLeases
from tests.storage.faults import sigstopped

pytestmark = pytest.mark.anyio

STREAM = Stream("topic", "t")
KEYS = RedisKeys("test")
LEASE_KEY, _ = KEYS.write_lease(STREAM.name)


STEP_DEADLINE_S = 20.0
"""Limit for one step of a test. A busy machine needs less time, and the extended leases below last longer."""


@pytest.fixture
def long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extends write leases so that none expires on a busy machine."""
    monkeypatch.setattr("storage.streams.write_leases.LEASE_MS", 60_000)
    monkeypatch.setattr("storage.streams.write_leases.CONTENDED_S", 60.0)


@pytest.fixture
def long_leases_and_waits(long_leases: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extends write leases, and the time that a waiter waits and keeps its place in the queue."""
    monkeypatch.setattr("storage.streams.write_leases.MAX_WAIT_S", 60.0)
    monkeypatch.setattr("storage.streams.write_leases.NEXT_MS", 60_000)


@asynccontextmanager
async def contended_leases(url: str) -> AsyncIterator[WriteLeases]:
    """Opens the write leases of a process that competed with another process for the stream."""
    async with Redis.from_url(url) as redis:
        leases = WriteLeases(redis, KEYS)
        async with leases.acquire(STREAM) as tries:
            # A second try tells the write leases that another process committed to the stream during the first try.
            tries.count = 2
        yield leases


async def acquisition_s(leases: WriteLeases, stream: Stream = STREAM) -> float:
    """Acquires and releases a lease. Returns how long the acquisition took."""
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    async with leases.acquire(stream):
        return loop.time() - began_at


async def test_uncontended_stream_does_not_use_redis(own_valkey: Valkey) -> None:
    async with Redis.from_url(own_valkey.url) as redis:
        leases = WriteLeases(redis, KEYS)
        for _ in range(3):
            async with leases.acquire(STREAM) as tries:
                tries.count = 1
        assert "cmdstat_set" not in await redis.info("commandstats")


@pytest.mark.usefixtures("long_leases_and_waits")
async def test_contending_processes_alternate(own_valkey: Valkey) -> None:
    holders, max_holders = 0, 0

    async def commit(leases: WriteLeases) -> None:
        nonlocal holders, max_holders
        for _ in range(10):
            async with leases.acquire(STREAM) as tries:
                tries.count = 1
                holders += 1
                max_holders = max(max_holders, holders)
                await asyncio.sleep(0.002)
                holders -= 1

    async with contended_leases(own_valkey.url) as one, contended_leases(own_valkey.url) as other:
        await asyncio.gather(commit(one), commit(other))
    assert max_holders == 1


@pytest.mark.usefixtures("long_leases_and_waits")
async def test_waiting_process_precedes_last_holder(own_valkey: Valkey) -> None:
    order: list[str] = []

    async def commit(name: str, leases: WriteLeases) -> None:
        for _ in range(20):
            async with leases.acquire(STREAM):
                order.append(name)
                await asyncio.sleep(0.01)

    async with contended_leases(own_valkey.url) as one, contended_leases(own_valkey.url) as other:
        await asyncio.gather(commit("one", one), commit("other", other))
    assert len(order) == 40
    repetition_count = sum(before == after for before, after in pairwise(order))
    assert repetition_count <= 4, order


@pytest.mark.usefixtures("long_leases")
async def test_departed_waiter_does_not_delay_others(own_valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.streams.write_leases.MAX_WAIT_S", 60.0)
    async with contended_leases(own_valkey.url) as one, contended_leases(own_valkey.url) as other:
        async with one.acquire(STREAM):
            waiter = asyncio.create_task(acquisition_s(other))
            await asyncio.sleep(0.02)
            waiter.cancel()
        assert await acquisition_s(one) < STEP_DEADLINE_S


@pytest.mark.usefixtures("long_leases_and_waits")
async def test_write_lease_does_not_delay_other_streams(own_valkey: Valkey) -> None:
    async with contended_leases(own_valkey.url) as leases, leases.acquire(STREAM):
        assert await acquisition_s(leases, Stream("topic", "u")) < STEP_DEADLINE_S


@pytest.mark.usefixtures("long_leases")
async def test_long_lease_is_waited_for_briefly(own_valkey: Valkey) -> None:
    async with contended_leases(own_valkey.url) as one, contended_leases(own_valkey.url) as other, one.acquire(STREAM):
        assert MAX_WAIT_S * 0.9 <= await acquisition_s(other) < STEP_DEADLINE_S


@pytest.mark.usefixtures("long_leases_and_waits")
async def test_lease_of_dead_process_expires(own_valkey: Valkey) -> None:
    async with contended_leases(own_valkey.url) as leases, Redis.from_url(own_valkey.url) as redis:
        await redis.set(LEASE_KEY, "dead", px=LEASE_MS)
        async with leases.acquire(STREAM):
            assert await redis.get(LEASE_KEY) not in (None, b"dead")


@pytest.mark.usefixtures("long_leases_and_waits")
async def test_release_leaves_lease_of_another_process(own_valkey: Valkey) -> None:
    async with contended_leases(own_valkey.url) as leases, Redis.from_url(own_valkey.url) as redis:
        async with leases.acquire(STREAM):
            assert 0 < await redis.pttl(LEASE_KEY) <= 60_000
        assert await redis.get(LEASE_KEY) is None
        async with leases.acquire(STREAM):
            await redis.set(LEASE_KEY, "another")
        assert await redis.get(LEASE_KEY) == b"another"


@pytest.mark.parametrize("fault", ["dead", "hanging"])
async def test_write_leases_without_redis_are_skipped(own_valkey: Valkey, fault: str) -> None:
    async with contended_leases(own_valkey.url) as leases:
        if fault == "dead":
            own_valkey.kill()
            await own_valkey.wait()
            assert await acquisition_s(leases) < STEP_DEADLINE_S
        else:
            with sigstopped(own_valkey.pid):
                assert await acquisition_s(leases) < STEP_DEADLINE_S


async def test_failed_commit_releases_its_lease(own_valkey: Valkey) -> None:
    async with contended_leases(own_valkey.url) as leases, Redis.from_url(own_valkey.url) as redis:
        with pytest.raises(ZeroDivisionError):
            async with leases.acquire(STREAM):
                raise ZeroDivisionError
        assert await redis.get(LEASE_KEY) is None
