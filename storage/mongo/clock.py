"""Reads the database's clock, and waits for instants by this clock.

A write that must not be early has to compare with $$NOW in the database as well.
"""

import asyncio
from datetime import UTC, datetime

from storage.mongo import Mongo

CACHED_S = 30.0
"""How many seconds a measured difference of the clocks is used. Clocks drift less than a millisecond in this time."""

SAMPLES = 3
"""Number of measurements, of which the smallest is used."""


class DatabaseClock:
    """Converts instants of the database's clock to this process's clock: never too early, at most a round trip late."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._offset_s: float | None = None
        self._measured_at = 0.0
        self._measurement_lock = asyncio.Lock()

    async def wait_until(self, at: datetime) -> None:
        """Waits until the instant by the database's clock."""
        loop = asyncio.get_running_loop()
        while (left_s := await self._offset() + at.timestamp() - loop.time()) > 0:  # noqa: ASYNC110 - waits for time
            # For a long wait, wakes up before the instant to measure the clock again.
            await asyncio.sleep(left_s if left_s < CACHED_S else left_s - CACHED_S / 2)

    async def now(self) -> datetime:
        """Returns the time by the database's clock: never ahead of it, at most a round trip behind."""
        offset_s = await self._offset()
        return datetime.fromtimestamp(asyncio.get_running_loop().time() - offset_s, UTC)

    async def loop_time(self, at: datetime) -> float:
        """Returns the instant in seconds of the event loop's clock."""
        return await self._offset() + at.timestamp()

    async def _offset(self) -> float:
        """Returns the event loop's time minus the database's time, in seconds.

        Each measurement is too great by the time that its answer takes, so the smallest is the most exact.
        """
        loop = asyncio.get_running_loop()
        async with self._measurement_lock:
            if self._offset_s is None or loop.time() - self._measured_at > CACHED_S:
                self._offset_s = min([await self._measure() for _ in range(SAMPLES)])
                self._measured_at = loop.time()
            return self._offset_s

    async def _measure(self) -> float:
        now = await self._mongo.now()
        return asyncio.get_running_loop().time() - now.timestamp()
