"""The database's clock as seen from here: for waiting until a moment, never for deciding whether it has come."""

import asyncio
from datetime import UTC, datetime

from storage.mongo import Mongo

KEPT_S = 30.0
"""Two clocks drift apart by less than a millisecond meanwhile."""

SAMPLES = 3


class DatabaseClock:
    """Waits for moments of the database's clock: never too short, and too long by a round trip at most."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._ahead_s: float | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    async def wait_until(self, at: datetime) -> None:
        """Returns when the moment has come."""
        loop = asyncio.get_running_loop()
        while (left_s := await self._ahead() + at.timestamp() - loop.time()) > 0:  # noqa: ASYNC110 - waits for time
            # Shortly before, the clock is read again.
            await asyncio.sleep(left_s if left_s < KEPT_S else left_s - KEPT_S / 2)

    async def loop_time(self, at: datetime) -> float:
        """When the moment comes or came, in seconds of the loop's clock: never too early, too late by a round trip."""
        return await self._ahead() + at.timestamp()

    async def _ahead(self) -> float:
        """The loop's time minus the database's: what was read fastest of a few, which is the most exact."""
        loop = asyncio.get_running_loop()
        async with self._reading:
            if self._ahead_s is None or loop.time() - self._read_at > KEPT_S:
                self._ahead_s = min([await self._read() for _ in range(SAMPLES)])
                self._read_at = loop.time()
            return self._ahead_s

    async def _read(self) -> float:
        answer = await self._mongo.database.command("hello")
        at: datetime = answer["localTime"]
        return asyncio.get_running_loop().time() - at.replace(tzinfo=UTC).timestamp()
