"""Lookups are refused at once if too many wait, and later if they wait too long. Admitted lookups are served."""

import asyncio

import pytest

from storage.errors import RateLimited
from storage.mail.lookup_limiter import LookupLimiter

pytestmark = pytest.mark.anyio


async def test_lookups_beyond_limits_are_refused_at_once() -> None:
    limiter, resume, running, max_running = (
        LookupLimiter(max_running=2, max_waiting=3, max_wait_s=60),
        asyncio.Event(),
        0,
        0,
    )

    async def look_up() -> None:
        nonlocal running, max_running
        async with limiter.slot():
            running += 1
            max_running = max(max_running, running)
            await resume.wait()
            running -= 1

    tasks = [asyncio.create_task(look_up()) for _ in range(20)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    resume.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    refusals = [each for each in results if isinstance(each, RateLimited)]
    assert (len(refusals), max_running) == (15, 2)
    assert refusals[0].extensions == {"code": "RATE_LIMITED", "retryAfterMs": 1000}


async def test_lookup_waiting_too_long_is_refused_and_frees_slot() -> None:
    limiter = LookupLimiter(max_running=1, max_waiting=1, max_wait_s=0.05)
    async with limiter.slot():
        with pytest.raises(RateLimited):
            async with limiter.slot():
                pass
    async with limiter.slot():
        pass


async def test_cancelled_waiting_lookup_takes_no_slot() -> None:
    limiter = LookupLimiter(max_running=1, max_waiting=1)
    async with limiter.slot():
        waiter = asyncio.create_task(limiter.slot().__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    async with limiter.slot():
        pass
