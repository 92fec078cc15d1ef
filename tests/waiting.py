"""Waiting for a condition that other tasks or processes bring about."""

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE_S = 150.0


async def until(condition: Callable[[], Awaitable[object]], deadline_s: float = DEADLINE_S) -> None:
    """Returns once the condition is true. Raises: AssertionError at the deadline."""
    ends_at = time.monotonic() + deadline_s
    while not await condition():
        assert time.monotonic() < ends_at, f"The condition was not true within {deadline_s} s."
        await asyncio.sleep(0.02)
