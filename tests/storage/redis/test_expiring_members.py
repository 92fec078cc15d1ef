"""Members of a set expire one by one, by the clock of Redis, and sets are bounded."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from server.embedded import Valkey
from storage.ids import new_id
from storage.redis import expiring_members
from storage.redis.circuit_breaker import FAILURES
from storage.redis.connections import redis_client
from storage.redis.expiring_members import ExpiringMembers
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with redis_client(redis_url, Redis, None) as client:
        yield client


@pytest.fixture
def key() -> str:
    return f"t_members_{new_id()}"


async def test_members_expire_one_by_one(redis: Redis, key: str) -> None:
    sets = ExpiringMembers(redis)
    await sets.add(key, ["dog"], 60, 10)
    await sets.add(key, ["ann", "bob"], 0.05, 10)
    await sets.add(key, ["ann"], 30, 10)

    async def is_bob_gone() -> bool:
        return await sets.members([key]) == [["ann", "dog"]]

    await until(is_bob_gone)
    assert await sets.members_among(key, ["eve", "bob", "dog"]) == {"dog"}
    await sets.remove(key, "dog")
    assert await sets.members([key, f"{key}-other"]) == [["ann"], []]


async def test_set_is_deleted_with_its_last_member(redis: Redis, key: str) -> None:
    await ExpiringMembers(redis).add(key, ["ann"], 0.05, 10)

    async def is_deleted() -> bool:
        return not await redis.exists(key)

    await until(is_deleted)


async def test_full_set_renews_members_and_adds_none(redis: Redis, key: str) -> None:
    sets = ExpiringMembers(redis)
    await sets.add(key, ["ann", "bob", "cat"], 30, 2)
    await sets.add(key, ["ann", "dog"], 60, 2)
    assert await sets.members([key]) == [["bob", "ann"]]


async def test_many_members_and_sets_are_split(redis: Redis, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiring_members, "MAX_AT_ONCE", 2)
    sets = ExpiringMembers(redis)
    people = [f"p{number}" for number in range(5)]
    await sets.add(key, people, 60, 10)
    assert await sets.members_among(key, people) == set(people)
    assert await sets.members([f"{key}-other", key, f"{key}-other"]) == [[], people, []]


async def test_failure_is_raised_until_redis_is_back(own_valkey: Valkey, key: str) -> None:
    async with redis_client(own_valkey.url, Redis, None) as redis:
        sets = ExpiringMembers(redis)
        await own_valkey.stop()
        with pytest.raises(FAILURES):
            await sets.members([key])
        await own_valkey.start()

        async def is_back() -> bool:
            try:
                return await sets.members([key]) == [[]]
            except FAILURES:
                return False

        await until(is_back)
