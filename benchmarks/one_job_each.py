"""Fan-out by one arq job for each follower, with arq's defaults or tuned."""

import sys
from typing import Any

from arq import run_worker
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.worker import func

from storage.ids import PostKey
from storage.mongo import Driver, connect, is_duplicate
from storage.queue import deserialize, serialize

ITEMS = "one_job_each"
AT_ONCE = 100
DEFAULTS, TUNED = "arq's defaults", "arq, tuned"

# Source: reference settings for a trigger queue: poll often, many at once, keep nothing, JSON.
TUNING: dict[str, Any] = {
    "poll_delay": 0.05,
    "max_jobs": 100,
    "queue_read_limit": 2000,
    "job_serializer": serialize,
    "job_deserializer": deserialize,
    "keep_result": 0,
    "health_check_interval": 10,
}


def queue_name(way: str) -> str:
    """Each way has a queue of its own."""
    return f"one-job-each:{'tuned' if way == TUNED else 'defaults'}"


async def pool(redis_url: str, way: str) -> ArqRedis:
    """A connection that enqueues as the worker reads."""
    tuned = {"job_serializer": serialize, "job_deserializer": deserialize} if way == TUNED else {}
    return await create_pool(RedisSettings.from_dsn(redis_url), default_queue_name=queue_name(way), **tuned)


async def insert(ctx: dict[str, Any], organization_id: str, timestamp: int, reader_id: str) -> None:
    """The same insert as the product's, of one item, at majority."""
    key = PostKey(organization_id, timestamp)
    item = {"_id": {"o": key.organization_id, "u": reader_id, "ts": key.timestamp}, "author": "ann"}
    try:
        await ctx["mongo"][ITEMS].insert_one(item)
    except Exception as error:
        if not is_duplicate(error):  # type: ignore[arg-type]
            raise


def main(mongodb_uri: str, redis_url: str, database: str, driver: Driver, way: str) -> None:
    """Works until SIGTERM."""
    import asyncio

    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

    async def startup(ctx: dict[str, Any]) -> None:
        ctx["mongo"] = connect(mongodb_uri, database, driver)

    class WorkerSettings:
        functions = (func(insert, name="insert"),)
        redis_settings = RedisSettings.from_dsn(redis_url)
        on_startup = startup

    run_worker(WorkerSettings, queue_name=queue_name(way), **(TUNING if way == TUNED else {}))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
