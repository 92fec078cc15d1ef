"""Waits by the database's clock never end early."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from storage.mongo.clock import DatabaseClock
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def database_now(stores: Stores) -> datetime:
    answer = await stores.mongo.database.command("hello")
    at: datetime = answer["localTime"]
    return at.replace(tzinfo=UTC)


async def test_concurrent_waits_never_return_early(shared_stores: Stores) -> None:
    clock, start = DatabaseClock(shared_stores.mongo), await database_now(shared_stores)

    async def wait(after_ms: int) -> float:
        at = start + timedelta(milliseconds=after_ms)
        await clock.wait_until(at)
        return (await database_now(shared_stores) - at).total_seconds()

    lateness_s = await asyncio.gather(*(wait(ms) for ms in (-1000, 0, 50, 120, 300, 300)))
    assert min(lateness_s) >= 0
    assert max(lateness_s[2:]) < 10


async def test_wait_for_a_past_time_returns_at_once(shared_stores: Stores) -> None:
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    await DatabaseClock(shared_stores.mongo).wait_until(datetime(2000, 1, 1, tzinfo=UTC))
    assert loop.time() - began_at < 15


async def test_now_is_never_ahead_of_the_database(shared_stores: Stores) -> None:
    clock = DatabaseClock(shared_stores.mongo)
    for _ in range(20):
        now, after = await clock.now(), await database_now(shared_stores)
        assert now <= after + timedelta(milliseconds=1), "The database's clock is exact to the millisecond."
