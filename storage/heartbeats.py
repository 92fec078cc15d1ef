"""What each process that works unattended is doing, for people who look: kept for an hour after its last sign."""

import asyncio
from collections.abc import Callable

import pymongo
from pymongo.errors import PyMongoError

from storage.metrics import own_figures
from storage.mongo import Collection, Document, Mongo

EVERY_S = 5.0


class Signs:
    """One process's row, written every five seconds."""

    def __init__(self, rows: Collection, process: str, tell: Callable[[], Document]) -> None:
        """`process` tells host and process, `tell` what it has done."""
        self._rows = rows
        self._process = process
        self._tell = tell

    async def beat(self) -> None:
        """Until it is cancelled; then the process is forgotten."""
        try:
            while True:
                await self._write()
                await asyncio.sleep(EVERY_S)
        finally:
            await asyncio.shield(self._forget())

    async def _write(self) -> None:
        told = {name: {"$literal": value} for name, value in self._tell().items()}
        try:
            await self._rows.update_one({"_id": self._process}, [{"$set": {"at": "$$NOW", **told}}], upsert=True)
        except PyMongoError:
            return  # the next one tells as much

    async def _forget(self) -> None:
        try:
            with pymongo.timeout(1):
                await self._rows.delete_one({"_id": self._process})
        except PyMongoError:
            return


class Heartbeat(Signs):
    """One worker's, with its metrics. Told of sweeps."""

    def __init__(self, mongo: Mongo, worker: str) -> None:
        """`worker` tells host and process."""
        super().__init__(mongo["workers"], worker, lambda: {"sweeps": self._sweeps, "metrics": own_figures()})
        self._sweeps: dict[str, Document] = {}

    def swept(self, name: str, found: int) -> None:
        """A sweep is over, and found so much."""
        row = self._sweeps.setdefault(name, {"runs": 0, "found": 0})
        row["runs"] += 1
        row["found"] += found


async def workers(mongo: Mongo) -> list[Document]:
    """Workers that gave a sign in the last hour: `_id`, `silent_s`, `sweeps` by name, `metrics` as text."""
    return await _silent(mongo, "workers")


async def mail_tails(mongo: Mongo) -> list[Document]:
    """Readers of mail logs that gave a sign in the last hour: `_id`, `silent_s`, and what `Tail.told` has."""
    return await _silent(mongo, "mail_tails")


async def _silent(mongo: Mongo, collection: str) -> list[Document]:
    silent_s = {"$divide": [{"$subtract": ["$$NOW", "$at"]}, 1000]}
    return await mongo.aggregate(collection, [{"$set": {"silent_s": silent_s}}, {"$sort": {"_id": 1}}])
