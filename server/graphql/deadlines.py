"""The deadline of an execution (docs/limits.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage.errors import Unavailable

EXECUTION_TIMEOUT_S = 10.0
LARGE_BODY_TIMEOUT_S = 60.0
"""Timeout of operations that may send large lists, which take longer to check and store."""


@asynccontextmanager
async def deadline(timeout_s: float) -> AsyncIterator[None]:
    """Cancels the block after `timeout_s` seconds, and then raises Unavailable."""
    try:
        async with asyncio.timeout(timeout_s) as timeout:
            yield
    except TimeoutError:
        if not timeout.expired():
            raise
        message = f"The operation was stopped after {timeout_s:g} s. The change of a mutation may have taken effect."
        raise Unavailable(message) from None
