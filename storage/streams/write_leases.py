"""Write leases: short leases in Redis that order the commits of several processes to one stream.

Two processes that write to one stream conflict in MongoDB, and one of them starts over. For five seconds, the process
that started over uses leases for this stream. A released lease goes to a waiting process, not back to its last holder.
Leases are a hint: without Redis, transactions conflict more often, but stay correct.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

from storage.redis.keys import RedisKeys
from storage.streams.log import Stream

CONTENDED_S = 5.0
"""How many seconds a stream counts as contended after a conflict."""

LEASE_MS = 200
NEXT_MS = 30
"""How long the next lease is reserved for a waiting process after its last poll."""

POLL_S = 0.002
MAX_WAIT_S = 0.1
"""How long a process waits for a lease before it commits without a lease."""

_SCRIPT = Path(__file__).with_name("write_lease.lua").read_text()


@dataclass(slots=True)
class CommitTries:
    """Counts how often the transaction of one commit was started, with or without a lease."""

    count: int = 0
    """How many times it was started. More than once is taken as a conflict with another process."""


class WriteLeases:
    """Orders commits to contended streams. For other streams, Redis is not used."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._script = redis.register_script(_SCRIPT)
        self._keys = keys
        self._contended_until: dict[Stream, float] = {}

    @asynccontextmanager
    async def acquire(self, stream: Stream) -> AsyncIterator[CommitTries]:
        """Waits at most 100 ms for the lease, then continues without it."""
        tries = CommitTries()
        token = await self._poll(stream) if self._is_contended(stream) else None
        try:
            yield tries
        finally:
            if tries.count > 1:
                self._contended_until[stream] = time.monotonic() + CONTENDED_S
            if token is not None:
                await self._release(stream, token)

    def _is_contended(self, stream: Stream) -> bool:
        contended_until = self._contended_until.get(stream)
        if contended_until is None or contended_until > time.monotonic():
            return contended_until is not None
        del self._contended_until[stream]
        return False

    async def _poll(self, stream: Stream) -> str | None:
        """Asks for the lease repeatedly. Returns the holder's token, or None if the wait was too long."""
        keys, token = self._keys.write_lease(stream.name), secrets.token_hex(8)
        ends_at = time.monotonic() + MAX_WAIT_S
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(MAX_WAIT_S):
                while time.monotonic() < ends_at:
                    if await self._script(keys=keys, args=["take", token, LEASE_MS, NEXT_MS]):
                        return token
                    await asyncio.sleep(POLL_S)
        return None

    async def _release(self, stream: Stream, token: str) -> None:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(MAX_WAIT_S):
                await self._script(keys=self._keys.write_lease(stream.name), args=["release", token])
