"""The aggregation loops of the address book: sixteen in every worker, one per partition.

A loop aggregates while it holds its partition's lock. It releases the lock after a few seconds without events.
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
"""How many transactions a worker runs at once. Sixteen concurrent transactions could all time out under load."""

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
        self._has_events = [asyncio.Event() for _ in range(PARTITIONS)]
        self._batch_size = [BATCH] * PARTITIONS
        self._transactions = asyncio.Semaphore(MAX_CONCURRENT_TRANSACTIONS)

    async def run(self) -> None:
        """Runs until it is cancelled. Raises: PyMongoError if the partitions with waiting events cannot be read."""
        async with asyncio.TaskGroup() as group:
            for partition in range(PARTITIONS):
                group.create_task(self._run_partition(partition))
            group.create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            for partition in await self._stores.aggregator.pending_partitions():
                self._has_events[partition].set()
            await asyncio.sleep(POLL_EVERY_S)

    async def _run_partition(self, partition: int) -> None:
        has_events = self._has_events[partition]
        while True:
            await has_events.wait()
            try:
                async with self._stores.locks.held(f"mail:{partition}", process_name()) as lock:
                    if lock is not None:
                        await self._aggregate_until_idle(lock, partition)
                        continue
            except (LockLost, Unavailable, PyMongoError) as error:
                log.warning(
                    "mail_aggregation_failed",
                    partition=partition,
                    next_batch=self._batch_size[partition],
                    error=repr(error),
                )
            except Exception:
                # An error in one partition must not stop the others.
                log.exception("mail_aggregation_crashed", partition=partition, next_batch=self._batch_size[partition])
            # Another worker holds the lock, or the aggregation failed. The next poll finds the events that still wait.
            has_events.clear()
            await asyncio.sleep(RETRY_S)

    async def _aggregate_until_idle(self, lock: Lock, partition: int) -> None:
        """Aggregates until no event has arrived for 5 s."""
        has_events = self._has_events[partition]
        while True:
            while await self._try_batch(lock, partition):
                pass
            has_events.clear()
            try:
                async with asyncio.timeout(LINGER_S):
                    await has_events.wait()
            except TimeoutError:
                return

    async def _try_batch(self, lock: Lock, partition: int) -> bool:
        """Aggregates a batch. Returns whether it was full. A failure halves the next batch, a success doubles it."""
        async with self._transactions:
            size = self._batch_size[partition]
            self._batch_size[partition] = max(size // 2, 1)
            aggregated = await self._stores.aggregator.aggregate_batch(lock, partition, size)
        self._batch_size[partition] = min(size * 2, BATCH)
        return aggregated == size
