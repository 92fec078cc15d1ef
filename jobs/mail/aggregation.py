"""The folders of the address book: sixteen loops in every worker, each at work while it holds its partition's lock.

A partition is folded by whichever worker gets the lock first, until nothing waits there for a while.
"""

import asyncio

import structlog
from pymongo.errors import PyMongoError

from jobs.calls.broker_pool import process_name
from jobs.context import JobContext
from storage.errors import Unavailable
from storage.locks import Lock, LockLost
from storage.mail.aggregation import BATCH
from storage.mail.ledger import PARTITIONS
from storage.stores import Stores

LOOK_EVERY_S = 0.25
"""How long an event waits at most before a folder that is idle takes it up."""

AT_ONCE = 4
"""So many transactions of one worker: sixteen would each take sixteen times as long, and run out of time together."""

LINGER_S = 5.0
RETRY_S = 1.0

log = structlog.get_logger(__name__)


async def aggregate_mail(jobs: JobContext) -> None:
    """Folds what waits, for ever."""
    await AggregationLoops(jobs.stores).run()


class AggregationLoops:
    """One worker's."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._work = [asyncio.Event() for _ in range(PARTITIONS)]
        self._batch = [BATCH] * PARTITIONS
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Never returns. Raises: PyMongoError when it can't be told where something waits."""
        async with asyncio.TaskGroup() as group:
            for partition in range(PARTITIONS):
                group.create_task(self._serve(partition))
            group.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            for partition in await self._stores.aggregator.pending_partitions():
                self._work[partition].set()
            await asyncio.sleep(LOOK_EVERY_S)

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
                log.warning("fold_failed", partition=partition, next_batch=self._batch[partition], error=repr(error))
            except Exception:
                # Whatever one partition stumbles over, the others are folded.
                log.exception("fold_broken", partition=partition, next_batch=self._batch[partition])
            # Another worker has it, or the database is busy: the next look tells whether something still waits.
            work.clear()
            await asyncio.sleep(RETRY_S)

    async def _aggregate(self, lock: Lock, partition: int) -> None:
        """Folds until nothing came for a while."""
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
        """Folds a batch; whether it was full. After a failure the next one is half as big, then they double again."""
        async with self._turns:
            size = self._batch[partition]
            self._batch[partition] = max(size // 2, 1)
            folded = await self._stores.aggregator.aggregate(lock, partition, size)
        self._batch[partition] = min(size * 2, BATCH)
        return folded == size
