"""The deadline of an execution (docs/limits.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage.errors import Unavailable

EXECUTION_S = 10.0
LARGE_BODY_EXECUTION_S = 60.0
"""For operations that may send large lists, which take longer to check and store."""


@asynccontextmanager
async def deadline(after_s: float) -> AsyncIterator[None]:
    """Cancels the block after that many seconds. Raises: Unavailable then."""
    try:
        async with asyncio.timeout(after_s) as timeout:
            yield
    except TimeoutError:
        if not timeout.expired():
            raise
        message = f"The operation was stopped after {after_s:g} s. A change that it made may have taken effect."
        raise Unavailable(message) from None
