"""Limits concurrent lookups: a few run, some wait up to a second, and the rest are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage.errors import RateLimited
from storage.metrics import MAIL_LOOKUPS

RUNNING = 4
"""Lookups that run at once, in a process."""

WAITING = 64
"""Lookups that wait, in a process."""

PATIENCE_S = 1.0
"""How long a lookup waits, in seconds."""

RETRY_AFTER_MS = 1000
"""How long a refused client should wait."""


class LookupLimiter:
    """Limits the lookups of one process."""

    def __init__(self, running: int = RUNNING, waiting: int = WAITING, patience_s: float = PATIENCE_S) -> None:
        """Lets `running` lookups run at once and `waiting` more wait for at most `patience_s` seconds."""
        self._free = asyncio.Semaphore(running)
        self._waiting = 0
        self._max_waiting = waiting
        self._patience_s = patience_s

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds a slot for one lookup. Raises: RateLimited when too many lookups run and wait already."""
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
    return RateLimited("Too many lookups at once. Try again later.", RETRY_AFTER_MS)
