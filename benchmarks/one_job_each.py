"""Worker of a fan-out with one arq job for each follower, with arq's default settings or tuned ones."""

import sys
from typing import Any

from arq import run_worker
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.worker import func

from storage.ids import PostKey
from storage.mongo import Driver, connect, is_duplicate
from storage.redis.queue import deserialize, serialize

ITEMS_COLLECTION = "one_job_each"
ENQUEUED_AT_ONCE = 100
DEFAULTS, TUNED = "arq's defaults", "arq, tuned"

# Frequent polls, many jobs at once, no stored results, and JSON instead of pickle.
TUNING: dict[str, Any] = {
    "poll_delay": 0.05,
    "max_jobs": 100,
    "queue_read_limit": 2000,
    "job_serializer": serialize,
    "job_deserializer": deserialize,
    "keep_result": 0,
    "health_check_interval": 10,
}


def queue_name(variant: str) -> str:
    """Returns the name of a variant's queue."""
    return f"one-job-each:{'tuned' if variant == TUNED else 'defaults'}"


async def connect_queue(redis_url: str, variant: str) -> ArqRedis:
    """Returns a connection that enqueues jobs for the variant's worker."""
    tuned = {"job_serializer": serialize, "job_deserializer": deserialize} if variant == TUNED else {}
    return await create_pool(RedisSettings.from_dsn(redis_url), default_queue_name=queue_name(variant), **tuned)


async def insert(ctx: dict[str, Any], organization_id: str, timestamp: int, reader_id: str) -> None:
    """Inserts one item of a reader's feed into `ITEMS_COLLECTION`, with majority write concern as the product does."""
    key = PostKey(organization_id, timestamp)
    item = {"_id": {"o": key.organization_id, "u": reader_id, "ts": key.timestamp}, "author": "ann"}
    try:
        await ctx["mongo"][ITEMS_COLLECTION].insert_one(item)
    except Exception as error:
        if not is_duplicate(error):  # type: ignore[arg-type]
            raise


def main(mongodb_uri: str, redis_url: str, database: str, driver: Driver, variant: str) -> None:
    """Runs jobs until SIGTERM."""
    import asyncio

    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

    async def startup(ctx: dict[str, Any]) -> None:
        ctx["mongo"] = connect(mongodb_uri, database, driver)

    class WorkerSettings:
        functions = (func(insert, name="insert"),)
        redis_settings = RedisSettings.from_dsn(redis_url)
        on_startup = startup

    run_worker(WorkerSettings, queue_name=queue_name(variant), **(TUNING if variant == TUNED else {}))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
