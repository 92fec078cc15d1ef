"""What each worker process is doing, for people who look: kept for an hour after its last sign."""

import asyncio

import pymongo
from pymongo.errors import PyMongoError

from storage.mongo import Document, Mongo

EVERY_S = 5.0


class Heartbeat:
    """One worker's. Told of sweeps, and written every five seconds."""

    def __init__(self, mongo: Mongo, worker: str) -> None:
        """`worker` tells host and process."""
        self._rows = mongo["workers"]
        self._worker = worker
        self._sweeps: dict[str, Document] = {}

    def swept(self, name: str, found: int) -> None:
        """A sweep is over, and found so much."""
        row = self._sweeps.setdefault(name, {"runs": 0, "found": 0})
        row["runs"] += 1
        row["found"] += found

    async def beat(self) -> None:
        """Until it is cancelled; then the worker is forgotten."""
        try:
            while True:
                await self._write()
                await asyncio.sleep(EVERY_S)
        finally:
            await asyncio.shield(self._forget())

    async def _write(self) -> None:
        change = [{"$set": {"at": "$$NOW", "sweeps": {"$literal": self._sweeps}}}]
        try:
            await self._rows.update_one({"_id": self._worker}, change, upsert=True)
        except PyMongoError:
            return  # the next one tells as much

    async def _forget(self) -> None:
        try:
            with pymongo.timeout(1):
                await self._rows.delete_one({"_id": self._worker})
        except PyMongoError:
            return


async def workers(mongo: Mongo) -> list[Document]:
    """Workers that gave a sign in the last hour: `_id`, `silent_s`, `sweeps` by name."""
    silent_s = {"$divide": [{"$subtract": ["$$NOW", "$at"]}, 1000]}
    return await mongo.aggregate("workers", [{"$set": {"silent_s": silent_s}}, {"$sort": {"_id": 1}}])
