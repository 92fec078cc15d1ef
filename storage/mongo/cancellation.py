"""Backports `asyncio.wait_for` of Python 3.12, which never swallows a cancellation.

In Python 3.11, a cancellation is lost if the awaited operation completes at the same time (python/cpython#86296).
PyMongo wraps each write to a socket in `wait_for`, so a cancelled task that loops would sometimes continue for ever.
The backport applies to the whole process, including the clients of Redis and arq.
"""

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

import pymongo.lock

Result = TypeVar("Result")


async def wait_for(awaitable: Awaitable[Result], timeout: float | None) -> Result:
    """Awaits at most `timeout` seconds, as Python 3.12 does. Raises: TimeoutError, CancelledError."""
    async with asyncio.timeout(timeout):
        return await awaitable


def backport_wait_for() -> None:
    """Replaces `asyncio.wait_for` before Python 3.12, and its copy in the PyMongo module that imports it by name."""
    if sys.version_info < (3, 12):
        asyncio.wait_for = wait_for  # type: ignore[assignment]
        pymongo.lock.wait_for = wait_for  # type: ignore[assignment, attr-defined]
