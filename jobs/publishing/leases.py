"""Keeping a lease while something takes long."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def renewed(renew: Callable[[], Awaitable[bool]], every_s: float) -> AsyncIterator[None]:
    """Renews at once and every so often meanwhile, until it is told that the lease is somebody else's."""

    async def run() -> None:
        while await renew():  # noqa: ASYNC110 - waits for time
            await asyncio.sleep(every_s)

    task = asyncio.create_task(run(), name="lease")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
