"""How the product reaches its workers: by job name and ids, through arq. A hint only; sweepers find what it loses.

The serializer is JSON: arq's default, pickle, would let whoever can write to Redis run code.
"""

from contextlib import suppress
from typing import Any

import orjson
import structlog
from arq.connections import ArqRedis, RedisSettings
from redis.exceptions import RedisError

from storage.keys import Keys

PREVIEWS = "previews"
FAN_OUT = "fan_out"
QUEUES = (PREVIEWS, FAN_OUT)
EXPIRES_MS = 7 * 86_400_000

log = structlog.get_logger(__name__)


def serialize(job: dict[str, Any]) -> bytes:
    """A job as JSON."""
    return orjson.dumps(job)


def deserialize(payload: bytes) -> dict[str, Any]:
    """Raises: ValueError for what is no JSON object, pickles above all."""
    job = orjson.loads(payload)
    if not isinstance(job, dict):
        raise ValueError("not a job")
    return job


def redis_settings(url: str) -> RedisSettings:
    """arq's settings for a Redis address."""
    return RedisSettings.from_dsn(url)


class JobQueue:
    """Enqueues by name. Failing to is not an error: it costs latency only."""

    def __init__(self, arq: ArqRedis, keys: Keys) -> None:
        self._arq = arq
        self._keys = keys

    async def enqueue(self, queue: str, job: str, *ids: str | int) -> None:
        """Wakes a worker for the job. The same job with the same ids is queued once at a time."""
        name = ":".join(map(str, ids))
        with suppress(RedisError, OSError, TimeoutError):
            await self._arq.enqueue_job(
                job,
                *ids,
                _queue_name=self._keys.queue(queue),
                _job_id=self._keys.queue(f"{job}:{name}"),
                _expires=EXPIRES_MS,
            )
            return
        log.warning("enqueue_failed", job=job, ids=ids)
