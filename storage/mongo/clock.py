"""Waits by the database's clock. A write that must not come too early still compares with $$NOW in the database."""

import asyncio
from datetime import UTC, datetime

from storage.mongo import Mongo

CACHED_S = 30.0
"""How long a measured difference of the clocks is used. Clocks drift by less than a millisecond in that time."""

SAMPLES = 3


class DatabaseClock:
    """Waits for instants of the database's clock: never too short, and at most a round trip too long."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._offset_s: float | None = None
        self._measured_at = 0.0
        self._measuring = asyncio.Lock()

    async def wait_until(self, at: datetime) -> None:
        """Waits until the instant."""
        loop = asyncio.get_running_loop()
        while (left_s := await self._offset() + at.timestamp() - loop.time()) > 0:  # noqa: ASYNC110 - waits for time
            # For a long wait, wakes up before the instant to measure the clock again.
            await asyncio.sleep(left_s if left_s < CACHED_S else left_s - CACHED_S / 2)

    async def loop_time(self, at: datetime) -> float:
        """Returns the instant in seconds of the event loop's clock: never too early, at most a round trip too late."""
        return await self._offset() + at.timestamp()

    async def _offset(self) -> float:
        """Returns the loop's time minus the database's, by the fastest and most exact of a few measurements."""
        loop = asyncio.get_running_loop()
        async with self._measuring:
            if self._offset_s is None or loop.time() - self._measured_at > CACHED_S:
                self._offset_s = min([await self._measure() for _ in range(SAMPLES)])
                self._measured_at = loop.time()
            return self._offset_s

    async def _measure(self) -> float:
        answer = await self._mongo.database.command("hello")
        at: datetime = answer["localTime"]
        return asyncio.get_running_loop().time() - at.replace(tzinfo=UTC).timestamp()
