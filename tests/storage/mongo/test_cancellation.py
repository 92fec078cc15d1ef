"""The backport of `asyncio.wait_for` loses no cancellation, and keeps the behaviour of timeouts."""

import asyncio

import pytest

import storage.mongo  # noqa: F401 - installs the backport

pytestmark = pytest.mark.anyio


async def test_wait_for_cancelled_on_completion_is_cancelled() -> None:
    """The operation completes in the same iteration of the loop in which the task is cancelled."""
    completed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(asyncio.wait_for(completed, 60))
    await asyncio.sleep(0)
    completed.set_result(None)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


async def test_wait_for_past_timeout_raises_timeout_error() -> None:
    pending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pending, 0.01)
    assert pending.cancelled()


async def test_wait_for_without_timeout_returns_result() -> None:
    assert await asyncio.wait_for(asyncio.sleep(0, "done"), None) == "done"
