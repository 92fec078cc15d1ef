"""The texts of documents that clients request by a hash: automatic persisted queries.

Redis holds a bounded number of texts, and forgets those first that were not used for the longest time. A client sends a
text again that is missing.
"""

import time

import structlog
from redis.asyncio import Redis

from storage.redis.circuit_breaker import FAILURES, CircuitBreaker
from storage.redis.keys import RedisKeys

LIFE_S = 7 * 86_400
"""How long a text is kept after its last use."""

MAX_DOCUMENTS = 1_000
"""Maximum number of texts. A text has at most 102,400 bytes (`DocumentLimits`)."""

log = structlog.get_logger(__name__)


class PersistedDocuments:
    """Finds and saves texts by the hexadecimal SHA-256 of their UTF-8 bytes. Callers verify the hash."""

    def __init__(self, redis: Redis, keys: RedisKeys, max_documents: int = MAX_DOCUMENTS) -> None:
        self._redis, self._keys, self._max_documents = redis, keys, max_documents
        self._breaker = CircuitBreaker()

    async def find(self, sha256: str) -> str | None:
        """Returns the text, and notes its use; None if it is missing, or if Redis does not answer."""
        try:
            commands = self._redis.pipeline()
            commands.getex(self._keys.persisted_document(sha256), ex=LIFE_S)
            commands.zadd(self._keys.persisted_documents(), {sha256: time.time()}, xx=True)
            text, _ = await self._breaker.run(commands.execute)
        except FAILURES:
            return None
        return None if text is None else text.decode()

    async def save(self, sha256: str, text: str) -> None:
        """Saves a text, and removes those beyond the maximum. Saves nothing if Redis does not answer."""
        try:
            commands = self._redis.pipeline()
            commands.set(self._keys.persisted_document(sha256), text, ex=LIFE_S)
            commands.zadd(self._keys.persisted_documents(), {sha256: time.time()})
            commands.expire(self._keys.persisted_documents(), LIFE_S)
            commands.zcard(self._keys.persisted_documents())
            *_, count = await self._breaker.run(commands.execute)
            if count > self._max_documents:
                await self._remove_oldest(count - self._max_documents)
        except FAILURES as error:
            log.warning("persisted_document_not_saved", error=repr(error))

    async def _remove_oldest(self, count: int) -> None:
        oldest = await self._breaker.run(lambda: self._redis.zpopmin(self._keys.persisted_documents(), count))
        names = [self._keys.persisted_document(sha256.decode()) for sha256, _ in oldest]
        if names:
            await self._breaker.run(lambda: self._redis.delete(*names))
