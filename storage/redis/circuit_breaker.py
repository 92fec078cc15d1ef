"""Stops sending commands for a moment to a Redis that does not answer, so that it holds up few callers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

ANSWER_TIMEOUT_S = 1.0
RETRY_AFTER_S = 1.0
"""How long no command is sent after a failure."""

FAILURES = (RedisError, OSError, TimeoutError)

Answer = TypeVar("Answer")


class CircuitBreaker:
    """Runs commands while Redis answers them in time."""

    def __init__(self) -> None:
        self._unavailable_until = 0.0

    async def run(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        """Returns the answer of a command. Raises: one of FAILURES, also a moment after one."""
        if time.monotonic() < self._unavailable_until:
            raise RedisConnectionError("Redis did not answer a moment ago.")
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await send()
        except FAILURES:
            self._unavailable_until = time.monotonic() + RETRY_AFTER_S
            raise
