"""Limits concurrent lookups: a few run, some wait up to a second, and further lookups are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage.errors import RateLimited
from storage.metrics import MAIL_LOOKUPS

MAX_RUNNING = 4
"""Maximum number of lookups that run at once in one process."""

MAX_WAITING = 64
"""Maximum number of lookups that wait in one process."""

MAX_WAIT_S = 1.0
"""How long a lookup waits at most, in seconds."""

RETRY_AFTER_MS = 1000
"""How long a refused client should wait."""


class LookupLimiter:
    """Limits the lookups of one process."""

    def __init__(
        self, max_running: int = MAX_RUNNING, max_waiting: int = MAX_WAITING, max_wait_s: float = MAX_WAIT_S
    ) -> None:
        """Lets `max_running` lookups run at once, and `max_waiting` others wait for at most `max_wait_s` seconds."""
        self._slots = asyncio.Semaphore(max_running)
        self._waiting = 0
        self._max_waiting = max_waiting
        self._max_wait_s = max_wait_s

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds a slot for one lookup. Raises: RateLimited if too many lookups are running and waiting."""
        await self._enter()
        MAIL_LOOKUPS.labels("served").inc()
        try:
            yield
        finally:
            self._slots.release()

    async def _enter(self) -> None:
        if self._slots.locked() and self._waiting >= self._max_waiting:
            raise _refusal()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._max_wait_s):
                await self._slots.acquire()
        except TimeoutError:
            raise _refusal() from None
        finally:
            self._waiting -= 1


def _refusal() -> RateLimited:
    MAIL_LOOKUPS.labels("refused").inc()
    return RateLimited("Too many lookups at once. Try again later.", RETRY_AFTER_MS)
