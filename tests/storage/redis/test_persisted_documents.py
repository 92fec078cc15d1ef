"""Texts by their hash in Redis: kept for some days after their last use, and bounded in number."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from server.embedded import Valkey
from storage.ids import new_id
from storage.redis.connections import redis_client
from storage.redis.keys import RedisKeys
from storage.redis.persisted_documents import LIFE_S, PersistedDocuments

pytestmark = pytest.mark.anyio


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with redis_client(redis_url, Redis, None) as client:
        yield client


@pytest.fixture
def keys() -> RedisKeys:
    return RedisKeys(f"t_documents_{new_id()}")


async def test_saved_text_is_found_until_it_expires(redis: Redis, keys: RedisKeys) -> None:
    documents = PersistedDocuments(redis, keys)
    assert await documents.find("a") is None
    await documents.save("a", "{ 狼 }")
    assert await documents.find("a") == "{ 狼 }"
    await redis.expire(keys.persisted_document("a"), 10)
    assert await documents.find("a") == "{ 狼 }"
    assert LIFE_S - 60 < await redis.ttl(keys.persisted_document("a")) <= LIFE_S
    assert LIFE_S - 60 < await redis.ttl(keys.persisted_documents()) <= LIFE_S
    assert await PersistedDocuments(redis, RedisKeys(f"{keys.prefix}_other")).find("a") is None


async def test_texts_that_were_not_used_for_longest_are_removed(redis: Redis, keys: RedisKeys) -> None:
    documents = PersistedDocuments(redis, keys, max_documents=2)
    for name in ("a", "b"):
        await documents.save(name, f"text of {name}")
    assert await documents.find("a") is not None
    await documents.save("c", "text of c")
    assert [await documents.find(name) for name in ("a", "b", "c")] == ["text of a", None, "text of c"]
    assert await redis.exists(keys.persisted_document("b")) == 0
    assert await redis.zcard(keys.persisted_documents()) == 2


async def test_lookup_of_a_missing_text_stores_nothing(redis: Redis, keys: RedisKeys) -> None:
    await PersistedDocuments(redis, keys).find("a")
    assert await redis.exists(keys.persisted_documents()) == 0


async def test_without_redis_nothing_is_found_or_saved(own_valkey: Valkey, keys: RedisKeys) -> None:
    async with redis_client(own_valkey.url, Redis, None) as redis:
        documents = PersistedDocuments(redis, keys)
        await own_valkey.stop()
        assert await documents.find("a") is None
        await documents.save("a", "{ b }")
