"""Overload is refused at once, and what is let in is served."""

import asyncio

import pytest

from storage.errors import RateLimited
from storage.mail.lookup_limiter import LookupLimiter

pytestmark = pytest.mark.anyio


async def test_some_run_some_wait_and_the_rest_is_refused_at_once() -> None:
    limiter, go_on, running, most = LookupLimiter(running=2, waiting=3, patience_s=60), asyncio.Event(), 0, 0

    async def look_up() -> None:
        nonlocal running, most
        async with limiter.slot():
            running += 1
            most = max(most, running)
            await go_on.wait()
            running -= 1

    tasks = [asyncio.create_task(look_up()) for _ in range(20)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    refused = [each for each in results if isinstance(each, RateLimited)]
    assert (len(refused), most) == (15, 2)
    assert refused[0].extensions == {"code": "RATE_LIMITED", "retryAfterMs": 1000}


async def test_who_waited_too_long_is_refused_and_the_place_is_free_for_others() -> None:
    limiter = LookupLimiter(running=1, waiting=1, patience_s=0.05)
    async with limiter.slot():
        with pytest.raises(RateLimited):
            async with limiter.slot():
                pass
    async with limiter.slot():
        pass


async def test_who_is_cancelled_while_waiting_takes_no_place() -> None:
    limiter = LookupLimiter(running=1, waiting=1)
    async with limiter.slot():
        waiter = asyncio.create_task(limiter.slot().__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    async with limiter.slot():
        pass
