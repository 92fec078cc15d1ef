"""Every collection and Redis key of a product in use has a documented lifetime, and Redis keys expire in time."""

import asyncio
import re
from collections.abc import Iterator

import pytest
from pymongo import MongoClient
from redis import Redis

from tests.client import client
from tests.e2e.chat_topic import create_chat_topic, post
from tests.e2e.conftest import DeployedProduct
from tests.retention import collection_retentions, redis_retentions
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

DATABASE = "noroshi"
LIFETIMES = [
    (re.compile(re.sub("<[^>]+>", ".+", name)), row.seconds) for row in redis_retentions() for name in row.names
]
UNKNOWN = (None, 0.0)


def live_keys(redis: "Redis") -> Iterator[tuple[str, float | None]]:
    """Yields the keys with their remaining seconds, or None for a key that does not expire."""
    for key in redis.scan_iter(count=1000):
        left_ms = int(redis.pttl(key))
        if left_ms != -2:  # -2 means that the key has expired meanwhile.
            yield key.decode(), None if left_ms == -1 else left_ms / 1000


def lifetime(key: str) -> tuple[re.Pattern[str] | None, float | None]:
    """Returns the most specific pattern that the key matches, with the documented seconds."""
    matching = [row for row in LIFETIMES if row[0].fullmatch(key)]
    return max(matching, key=lambda row: len(row[0].pattern), default=UNKNOWN)


def outlives(left_s: float | None, kept_s: float | None) -> bool:
    return kept_s is not None and (left_s is None or left_s > kept_s)


async def test_collections_and_redis_keys_are_documented(product: DeployedProduct) -> None:
    redis = Redis(port=product.processes.database_port("valkey"))
    keys_by_pattern: dict[str, str] = {}
    async with client(product.url, product.token("ann", "retention")) as ann:
        chat = await create_chat_topic(ann)

        def check_live_keys() -> None:
            for key, left_s in live_keys(redis):
                pattern, kept_s = lifetime(key)
                assert pattern is not None, f"{key} has no row in docs/semantics.md."
                assert not outlives(left_s, kept_s), f"{key} has {left_s} s left."
                keys_by_pattern[pattern.pattern] = key

        async def key_of_running_job_was_seen() -> bool:
            # Each post queues a job for the preview of its link. The key of a running job exists only until it ends.
            posts = asyncio.gather(*(post(chat, ann, "See http://127.0.0.1:9/ for more.") for _ in range(10)))
            while not posts.done():
                check_live_keys()
                await asyncio.sleep(0.001)
            await posts
            return "arq:in-progress:.+" in keys_by_pattern

        assert await poll_until_true(key_of_running_job_was_seen), keys_by_pattern
    with MongoClient(port=product.processes.database_port("mongod"), directConnection=True) as mongo:
        collections = set(mongo[DATABASE].list_collection_names())
    assert collections == {name for row in collection_retentions() for name in row.names}
