"""Locks between processes: rows in MongoDB that are never deleted, so that a row's fence only grows.

A lock saves work, and safety is at what it guards: every guarded write carries the holder's fence, so a holder that
slept past its lease changes nothing. Leases are counted by the database's clock.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import pymongo
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError, PyMongoError

from storage.mongo import Collection, Document, Mongo, Session

TTL_S = 15.0
GIVE_BACK_S = 2.0

EPOCH = datetime.fromtimestamp(0, UTC)


class LockLost(Exception):
    """Another process holds the lock, or may hold it by now."""


@dataclass(frozen=True, slots=True)
class Lock:
    """One holding of a lock. Later holdings have greater fences."""

    name: str
    fence: int
    unlock_key: str


class Locks:
    """Takes, renews and gives back locks."""

    def __init__(self, mongo: Mongo, ttl_s: float = TTL_S) -> None:
        """A lease lasts `ttl_s` seconds and is renewed each third of that. Who can't renew it stops after 5/6."""
        self._mongo = mongo
        self._ttl_s = ttl_s
        self._stop_s = ttl_s * 5 / 6

    @asynccontextmanager
    async def held(self, name: str, holder: str = "") -> AsyncIterator[Lock | None]:
        """The lock for as long as the block runs, renewed meanwhile; None at once when another process holds it.

        `holder` is for people who look. Raises: LockLost, before a lease ends that could not be renewed: whatever the
        block awaits is cancelled.
        """
        asked_at = asyncio.get_running_loop().time()
        lock = await self.acquire(name, holder)
        if lock is None:
            yield None
            return
        try:
            async with asyncio.timeout_at(asked_at + self._stop_s) as deadline:
                renewing = asyncio.create_task(self._keep(lock, deadline))
                try:
                    yield lock
                finally:
                    renewing.cancel()
        except TimeoutError as error:
            if deadline.expired():
                raise LockLost(name) from error
            raise
        finally:
            await asyncio.shield(self._give_back(lock))

    async def acquire(self, name: str, holder: str = "") -> Lock | None:
        """The lock for `ttl_s` seconds, with a fence greater than all before; None when another holds it."""
        key = secrets.token_hex(16)
        taken = {
            "unlock_key": key,
            "fence": {"$add": [{"$ifNull": ["$fence", 0]}, 1]},
            "expires_at": self._lease_end,
            "holder": {"$literal": holder},
        }
        is_free = {"$lte": [{"$ifNull": ["$expires_at", EPOCH]}, "$$NOW"]}
        # A pipeline that changes nothing writes nothing. An upsert may not look at the clock in its filter.
        change = [{"$replaceWith": {"$cond": [is_free, {"$mergeObjects": ["$$ROOT", taken]}, "$$ROOT"]}}]
        try:
            row: Document | None = await self._rows.find_one_and_update(
                {"_id": name}, change, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            return None  # two made the row at once, and the other one has it
        return Lock(name, row["fence"], key) if row is not None and row["unlock_key"] == key else None

    async def renew(self, lock: Lock) -> bool:
        """Begins a new lease; False when the last one ran out or another process holds the lock."""
        own = {"_id": lock.name, "unlock_key": lock.unlock_key, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        renewed = await self._rows.update_one(own, [{"$set": {"expires_at": self._lease_end}}])
        return renewed.matched_count == 1

    async def release(self, lock: Lock) -> None:
        """Lets the next one in at once; nothing when the lock was lost before."""
        own = {"_id": lock.name, "unlock_key": lock.unlock_key}
        await self._rows.update_one(own, {"$set": {"expires_at": EPOCH, "unlock_key": None}})

    async def guard(self, lock: Lock, session: Session) -> None:
        """Makes a transaction one of this holding's: it commits only if no later holding has guarded one before.

        Call it first in the transaction. Raises: LockLost.
        """
        highest = [{"$set": {"fence": {"$max": ["$fence", lock.fence]}}}]
        row = await self._mongo["fences"].find_one_and_update(
            {"_id": lock.name}, highest, upsert=True, return_document=ReturnDocument.AFTER, session=session
        )
        if row is None or row["fence"] != lock.fence:
            raise LockLost(lock.name)

    @property
    def _rows(self) -> Collection:
        return self._mongo["process_locks"]

    @property
    def _lease_end(self) -> Document:
        return {"$add": ["$$NOW", int(self._ttl_s * 1000)]}

    async def _keep(self, lock: Lock, deadline: asyncio.Timeout) -> None:
        """Renews until the lock is lost, and moves the deadline along; not while the database does not answer."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            asked_at = loop.time()
            with suppress(PyMongoError), pymongo.timeout(self._ttl_s / 3):
                is_ours = await self.renew(lock)
                if deadline.expired():
                    return
                deadline.reschedule(asked_at + self._stop_s if is_ours else loop.time())

    async def _give_back(self, lock: Lock) -> None:
        # Who can't give it back lets the lease run out.
        with suppress(PyMongoError), pymongo.timeout(GIVE_BACK_S):
            await self.release(lock)
