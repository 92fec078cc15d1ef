"""The aggregation loops of the address book: sixteen in every worker, one per partition.

A loop works while it holds its partition's lock, and releases the lock after a few seconds without events.
"""

import asyncio

import structlog
from pymongo.errors import PyMongoError

from jobs.context import JobContext
from storage.errors import Unavailable
from storage.heartbeats import process_name
from storage.locks import Lock, LockLost
from storage.mail.aggregation import BATCH
from storage.mail.ledger import PARTITIONS
from storage.stores import Stores

POLL_EVERY_S = 0.25
"""How often the partitions with waiting events are read, in seconds."""

MAX_CONCURRENT_TRANSACTIONS = 4
"""How many transactions a worker runs at once. Sixteen would slow each other down until all time out."""

LINGER_S = 5.0
"""How long a loop keeps its lock without events, in seconds."""

RETRY_S = 1.0
"""How long a loop pauses after a failure or when another worker holds the lock, in seconds."""

log = structlog.get_logger(__name__)


async def aggregate_mail(jobs: JobContext) -> None:
    """Aggregates waiting events until it is cancelled."""
    await AggregationLoops(jobs.stores).run()


class AggregationLoops:
    """The loops of one worker."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._work = [asyncio.Event() for _ in range(PARTITIONS)]
        self._batch = [BATCH] * PARTITIONS
        self._transactions = asyncio.Semaphore(MAX_CONCURRENT_TRANSACTIONS)

    async def run(self) -> None:
        """Never returns. Raises: PyMongoError when the partitions with waiting events can't be read."""
        async with asyncio.TaskGroup() as group:
            for partition in range(PARTITIONS):
                group.create_task(self._serve(partition))
            group.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            for partition in await self._stores.aggregator.pending_partitions():
                self._work[partition].set()
            await asyncio.sleep(POLL_EVERY_S)

    async def _serve(self, partition: int) -> None:
        work = self._work[partition]
        while True:
            await work.wait()
            try:
                async with self._stores.locks.held(f"mail:{partition}", process_name()) as lock:
                    if lock is not None:
                        await self._aggregate(lock, partition)
                        continue
            except (LockLost, Unavailable, PyMongoError) as error:
                log.warning(
                    "mail_aggregation_failed", partition=partition, next_batch=self._batch[partition], error=repr(error)
                )
            except Exception:
                # An error in one partition must not stop the others.
                log.exception("mail_aggregation_crashed", partition=partition, next_batch=self._batch[partition])
            # Another worker holds the lock, or the database is busy. The next poll finds events that still wait.
            work.clear()
            await asyncio.sleep(RETRY_S)

    async def _aggregate(self, lock: Lock, partition: int) -> None:
        """Aggregates until no event arrives for a while."""
        work = self._work[partition]
        while True:
            while await self._aggregate_batch(lock, partition):
                pass
            work.clear()
            try:
                async with asyncio.timeout(LINGER_S):
                    await work.wait()
            except TimeoutError:
                return

    async def _aggregate_batch(self, lock: Lock, partition: int) -> bool:
        """Aggregates a batch. Returns whether it was full. A failure halves the next batch, a success doubles it."""
        async with self._transactions:
            size = self._batch[partition]
            self._batch[partition] = max(size // 2, 1)
            aggregated = await self._stores.aggregator.aggregate(lock, partition, size)
        self._batch[partition] = min(size * 2, BATCH)
        return aggregated == size
