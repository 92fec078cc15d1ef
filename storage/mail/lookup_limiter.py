"""How many lookups run at once: some run, some wait a moment, the rest is told to come back. Nothing piles up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage.errors import RateLimited
from storage.metrics import MAIL_LOOKUPS

RUNNING = 4
WAITING = 64
PATIENCE_S = 1.0
RETRY_AFTER_MS = 1000


class LookupLimiter:
    """One process's."""

    def __init__(self, running: int = RUNNING, waiting: int = WAITING, patience_s: float = PATIENCE_S) -> None:
        """At most `running` at once and `waiting` more, each for at most `patience_s` seconds."""
        self._free = asyncio.Semaphore(running)
        self._waiting = 0
        self._max_waiting = waiting
        self._patience_s = patience_s

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One lookup. Raises: RateLimited when too many are there already."""
        await self._enter()
        MAIL_LOOKUPS.labels("served").inc()
        try:
            yield
        finally:
            self._free.release()

    async def _enter(self) -> None:
        if self._free.locked() and self._waiting >= self._max_waiting:
            raise _refused()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            raise _refused() from None
        finally:
            self._waiting -= 1


def _refused() -> RateLimited:
    MAIL_LOOKUPS.labels("refused").inc()
    return RateLimited("Too many lookups at once; come back in a moment.", RETRY_AFTER_MS)
