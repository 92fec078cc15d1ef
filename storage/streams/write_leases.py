"""Whose turn it is to commit to a stream, between processes: a short lease in Redis. A hint; safety is in MongoDB.

Two processes that post to one topic conflict in MongoDB, and the loser starts over. Once that was seen, they take
turns for a while, and who waits comes before who was just there. Without Redis they conflict again, and nothing else
changes.
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

from storage.keys import Keys
from storage.streams.log import Stream

CONTENDED_S = 5.0
LEASE_MS = 200
# How long the next turn is kept for one that waits, and no longer asks.
NEXT_MS = 30
POLL_S = 0.002
PATIENCE_S = 0.1

_SCRIPT = Path(__file__).with_name("write_lease.lua").read_text()


@dataclass(slots=True)
class WriteLease:
    """One commit. More than one try means that another process was there."""

    tries: int = 0


class WriteLeases:
    """Orders commits to contended streams. Uncontended ones cost no round trip."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._script = redis.register_script(_SCRIPT)
        self._keys = keys
        self._contended_until: dict[Stream, float] = {}

    @asynccontextmanager
    async def acquire(self, stream: Stream) -> AsyncIterator[WriteLease]:
        """Waits at most 100 ms for the turn, then goes on without it."""
        lease = WriteLease()
        token = await self._wait(stream) if self._is_contended(stream) else None
        try:
            yield lease
        finally:
            if lease.tries > 1:
                self._contended_until[stream] = time.monotonic() + CONTENDED_S
            if token is not None:
                await self._release(stream, token)

    def _is_contended(self, stream: Stream) -> bool:
        until = self._contended_until.get(stream)
        if until is None or until > time.monotonic():
            return until is not None
        del self._contended_until[stream]
        return False

    async def _wait(self, stream: Stream) -> str | None:
        keys, token = self._keys.write_lease(stream.name), secrets.token_hex(8)
        end = time.monotonic() + PATIENCE_S
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while time.monotonic() < end:
                    if await self._script(keys=keys, args=["take", token, LEASE_MS, NEXT_MS]):
                        return token
                    await asyncio.sleep(POLL_S)
        return None

    async def _release(self, stream: Stream, token: str) -> None:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._script(keys=self._keys.write_lease(stream.name), args=["release", token])
