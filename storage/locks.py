"""Locks between processes, with leases by the database's clock and fences that only grow.

A lock only avoids duplicate work. Safety comes from the fence: each guarded write checks its holder's fence, so a
holder whose lease has ended changes nothing. Lock documents are never deleted.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NotRequired, TypedDict

import pymongo
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError, PyMongoError

from storage.mongo import Collection, Document, Mongo, Session, seconds_from_now

TTL_S = 15.0
RELEASE_TIMEOUT_S = 2.0

EPOCH = datetime.fromtimestamp(0, UTC)


class LockLost(Exception):
    """The lease ended or could not be renewed, so another process may hold the lock."""


class LockDocument(TypedDict):
    """A lock, in `process_locks`. Created at its first use and never deleted."""

    _id: str
    """Name of the lock."""

    unlock_key: str | None
    """Random key of the last holding, also when its lease has ended; None after a release."""

    fence: NotRequired[int]
    """Number of holdings so far; absent before the first one."""

    expires_at: NotRequired[datetime]
    """End of the lease, by the database's clock; the epoch after a release."""

    holder: NotRequired[str]
    """Process that acquired the lock last, for operators."""

    worker: NotRequired[str]
    """Name of the worker that acquired the lock last; empty without a name. Absent in documents of earlier releases."""


class FenceDocument(TypedDict):
    """The greatest fence that has guarded a transaction, in `fences`. Never deleted."""

    _id: str
    """Name of the lock."""

    fence: int
    """Transactions with a lower fence are refused."""


@dataclass(frozen=True, slots=True)
class Lock:
    """One holding of a lock. Each later holding has a greater fence."""

    name: str
    fence: int
    unlock_key: str


class Locks:
    """Acquires, renews and releases locks."""

    def __init__(self, mongo: Mongo, ttl_s: float = TTL_S, worker: str = "") -> None:
        """A lease lasts `ttl_s` seconds and is renewed after each third of this time.

        A holder that cannot renew its lease is cancelled after 5/6 of this time. `worker` is the name by which the
        leases of this process are released when it has died.
        """
        self._mongo = mongo
        self._worker = worker
        self._ttl_s = ttl_s
        self._cancel_after_s = ttl_s * 5 / 6

    @asynccontextmanager
    async def held(self, name: str, holder: str = "") -> AsyncIterator[Lock | None]:
        """Holds a lock while the block runs, and renews it. Yields None if another process holds it.

        `holder` is shown to operators. Raises: LockLost when the lease could not be renewed. The block is cancelled
        before the lease ends.
        """
        requested_at = asyncio.get_running_loop().time()
        lock = await self.acquire(name, holder)
        if lock is None:
            yield None
            return
        try:
            async with asyncio.timeout_at(requested_at + self._cancel_after_s) as deadline:
                renewal = asyncio.create_task(self._renew_until_lost(lock, deadline))
                try:
                    yield lock
                finally:
                    renewal.cancel()
        except TimeoutError as error:
            if deadline.expired():
                raise LockLost(name) from error
            raise
        finally:
            await asyncio.shield(self._try_release(lock))

    async def acquire(self, name: str, holder: str = "") -> Lock | None:
        """Acquires a lock for `ttl_s` seconds, or returns None if another process holds it."""
        key = secrets.token_hex(16)
        new_fields = {
            "unlock_key": key,
            "fence": {"$add": [{"$ifNull": ["$fence", 0]}, 1]},
            "expires_at": self._lease_end,
            "holder": {"$literal": holder},
            "worker": {"$literal": self._worker},
        }
        is_free = {"$lte": [{"$ifNull": ["$expires_at", EPOCH]}, "$$NOW"]}
        # The filter of an upsert cannot use $$NOW, so the pipeline decides. If nothing changes, MongoDB writes nothing.
        change = [{"$replaceWith": {"$cond": [is_free, {"$mergeObjects": ["$$ROOT", new_fields]}, "$$ROOT"]}}]
        try:
            document: LockDocument | None = await self._locks.find_one_and_update(
                {"_id": name}, change, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            return None  # Another process created the document at the same time.
        if document is None or document["unlock_key"] != key:
            return None
        return Lock(name, document["fence"], key)

    async def renew(self, lock: Lock) -> bool:
        """Extends the lease. Returns False if it has ended or another process holds the lock."""
        query = {"_id": lock.name, "unlock_key": lock.unlock_key, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        renewed = await self._locks.update_one(query, [{"$set": {"expires_at": self._lease_end}}])
        return renewed.matched_count == 1

    async def release(self, lock: Lock) -> None:
        """Ends the lease. Does nothing if the lock was lost before."""
        query = {"_id": lock.name, "unlock_key": lock.unlock_key}
        await self._locks.update_one(query, {"$set": {"expires_at": EPOCH, "unlock_key": None}})

    async def release_of(self, worker: str) -> int:
        """Ends the leases of a dead worker, and returns how many. The next holders have greater fences."""
        query = {"worker": worker, "unlock_key": {"$ne": None}}
        released = await self._locks.update_many(query, {"$set": {"expires_at": EPOCH, "unlock_key": None}})
        return released.modified_count

    async def remaining_leases_s(self, names: Sequence[str]) -> dict[str, float]:
        """Returns the remaining seconds of each lease on these locks. Free locks are left out."""
        query = {"_id": {"$in": list(names)}, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        left_ms = {"$set": {"left_ms": {"$subtract": ["$expires_at", "$$NOW"]}}}
        locks = await self._mongo.aggregate("process_locks", [{"$match": query}, left_ms]) if names else []
        return {lock["_id"]: float(lock["left_ms"]) / 1000 for lock in locks}

    async def guard(self, lock: Lock, session: Session) -> None:
        """Lets a transaction commit only if no later holding of the lock has guarded a transaction.

        Must be the transaction's first operation. Raises: LockLost.
        """
        highest = [{"$set": {"fence": {"$max": ["$fence", lock.fence]}}}]
        document: FenceDocument | None = await self._mongo["fences"].find_one_and_update(
            {"_id": lock.name}, highest, upsert=True, return_document=ReturnDocument.AFTER, session=session
        )
        if document is None or document["fence"] != lock.fence:
            raise LockLost(lock.name)

    @property
    def _locks(self) -> Collection:
        return self._mongo["process_locks"]

    @property
    def _lease_end(self) -> Document:
        return seconds_from_now(self._ttl_s)

    async def _renew_until_lost(self, lock: Lock, deadline: asyncio.Timeout) -> None:
        """Renews the lease and postpones the deadline after each renewal. Ends the deadline when the lock is lost."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            requested_at = loop.time()
            with suppress(PyMongoError), pymongo.timeout(self._ttl_s / 3):
                is_ours = await self.renew(lock)
                if deadline.expired():
                    return
                deadline.reschedule(requested_at + self._cancel_after_s if is_ours else loop.time())

    async def _try_release(self, lock: Lock) -> None:
        # If the release fails, the lease ends when its time is over.
        with suppress(PyMongoError), pymongo.timeout(RELEASE_TIMEOUT_S):
            await self.release(lock)
