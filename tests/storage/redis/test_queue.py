"""The job queue: jobs are JSON, a job in the queue is not added again, and enqueuing works without Redis."""

import asyncio
import pickle

import pytest
from arq.connections import ArqRedis

from server.embedded import Valkey
from storage.redis.keys import RedisKeys
from storage.redis.queue import PREVIEWS, deserialize, serialize
from storage.stores import Stores
from tests.storage.faults import sigstopped
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


class MaliciousObject:
    """An object whose pickle runs code when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("The pickle was loaded.",)


def test_deserialize_returns_the_serialized_job() -> None:
    job = {"f": "chat.preview_link", "a": ["topic", 1639720395000002], "k": {}, "t": 1}
    assert deserialize(serialize(job)) == job


@pytest.mark.parametrize("payload", [pickle.dumps(MaliciousObject()), pickle.dumps({}), b"", b"[1]", b"5", b"null"])
def test_payload_other_than_a_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        deserialize(payload)


async def queued_jobs(url: str, keys: RedisKeys) -> list[str]:
    async with ArqRedis.from_url(url) as redis:
        return [job.decode() for job in await redis.zrange(keys.queue(PREVIEWS), 0, -1)]


async def test_job_with_the_same_ids_is_queued_once_at_a_time(shared_stores: Stores, redis_url: str) -> None:
    queue = shared_stores.queue
    await asyncio.gather(*(queue.enqueue(PREVIEWS, "chat.preview_link", "t", 1) for _ in range(5)))
    await queue.enqueue(PREVIEWS, "chat.preview_link", "t", 2)
    assert len(await queued_jobs(redis_url, shared_stores.keys)) == 2


@pytest.mark.parametrize("fault", ["dead", "hanging"])
async def test_enqueue_without_redis_neither_raises_nor_hangs(
    own_valkey: Valkey, open_process: OpenStores, fault: str
) -> None:
    async with open_process(own_valkey.url) as stores, asyncio.timeout(30):
        if fault == "dead":
            own_valkey.kill()
            await own_valkey.wait()
            await stores.queue.enqueue(PREVIEWS, "chat.preview_link", "t", 1)
        else:
            with sigstopped(own_valkey.pid):
                await stores.queue.enqueue(PREVIEWS, "chat.preview_link", "t", 1)


def test_queues_of_two_databases_have_different_names() -> None:
    assert RedisKeys("a").queue(PREVIEWS) != RedisKeys("b").queue(PREVIEWS)
