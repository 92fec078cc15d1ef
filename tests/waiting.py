"""Waiting for a condition that other tasks or processes bring about. A condition may be a coroutine function."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

DEADLINE_S = 150.0
"""How long a busy machine may take to reach a state. A healthy machine takes a fraction of a second."""

Result = TypeVar("Result")


async def until(condition: Callable[[], object], deadline_s: float = DEADLINE_S, interval_s: float = 0.02) -> None:
    """Returns once the condition is true. Raises: AssertionError at the deadline."""
    is_true = await poll_until_true(condition, deadline_s, interval_s)
    assert is_true, f"The condition was not true within {deadline_s} s."


@overload
async def poll_until_true(
    check: Callable[[], Awaitable[Result]], deadline_s: float = DEADLINE_S, interval_s: float = 0.01
) -> Result: ...


@overload
async def poll_until_true(
    check: Callable[[], Result], deadline_s: float = DEADLINE_S, interval_s: float = 0.01
) -> Result: ...


async def poll_until_true(
    check: Callable[[], object], deadline_s: float = DEADLINE_S, interval_s: float = 0.01
) -> object:
    """Calls `check` until its result is true or the deadline has passed. Returns the last result."""
    ends_at = time.monotonic() + deadline_s
    while not (result := await _result(check)) and time.monotonic() < ends_at:
        await asyncio.sleep(interval_s)
    return result


async def _result(check: Callable[[], object]) -> object:
    result = check()
    return await result if inspect.isawaitable(result) else result
