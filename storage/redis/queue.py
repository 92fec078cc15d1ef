"""The job queue of arq, which wakes workers. A job is only a hint: sweepers find the work of lost jobs.

Jobs are serialized as JSON. With pickle, arq's default, anyone with write access to Redis could run code.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import structlog
from arq.connections import ArqRedis
from redis.exceptions import RedisError

from storage.redis.connections import redis_client
from storage.redis.keys import RedisKeys

PREVIEWS = "previews"
PUBLISHING = "publishing"
FAN_OUT = "fan_out"
FILES = "files"
QUEUES = (PREVIEWS, PUBLISHING, FAN_OUT, FILES)
ANSWER_TIMEOUT_S = 2.0
EXPIRES_MS = 7 * 86_400_000

log = structlog.get_logger(__name__)


def serialize(job: dict[str, Any]) -> bytes:
    """Returns a job as JSON."""
    return orjson.dumps(job)


def deserialize(payload: bytes) -> dict[str, Any]:
    """Returns the job in a payload. Raises: ValueError for everything but a JSON object, such as a pickle."""
    job = orjson.loads(payload)
    if not isinstance(job, dict):
        raise ValueError("The payload of a job must be a JSON object.")
    return job


@asynccontextmanager
async def arq_client(redis_url: str) -> AsyncIterator[ArqRedis]:
    """Yields arq's client, whose commands fail after 2 s without an answer, and closes it."""
    async with redis_client(redis_url, ArqRedis, ANSWER_TIMEOUT_S) as client:
        client.job_serializer, client.job_deserializer = serialize, deserialize
        yield client


class JobQueue:
    """Enqueues jobs by name. A failure is logged and not raised, since it costs latency only."""

    def __init__(self, arq: ArqRedis, keys: RedisKeys) -> None:
        self._arq = arq
        self._keys = keys

    async def enqueue(self, queue: str, job: str, *ids: str | int) -> None:
        """Queues the job with its ids as arguments, unless the same job with the same ids is queued already."""
        joined_ids = ":".join(map(str, ids))
        with suppress(RedisError, OSError, TimeoutError):
            await self._arq.enqueue_job(
                job,
                *ids,
                _queue_name=self._keys.queue(queue),
                _job_id=self._keys.queue(f"{job}:{joined_ids}"),
                _expires=EXPIRES_MS,
            )
            return
        log.warning("enqueue_failed", job=job, ids=ids)
