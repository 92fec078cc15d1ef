"""A worker's aggregation loops: all partitions are aggregated, few of them at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from jobs.mail.aggregation import MAX_CONCURRENT_TRANSACTIONS, AggregationLoops
from storage.errors import Unavailable
from storage.ids import new_id
from storage.locks import Lock
from storage.mail.aggregation import Aggregator
from storage.mail.ledger import PARTITIONS, partition
from storage.stores import Stores
from tests.storage.mail.events import ok
from tests.storage.mail.scenario import MailScenario
from tests.waiting import until

pytestmark = pytest.mark.anyio


@dataclass
class CountingAggregator:
    """An aggregator that records how many of its batches ran at once."""

    aggregator: Aggregator
    running: int = 0
    max_running: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.aggregator, name)

    async def aggregate_batch(self, lock: Lock, partition: int, limit: int) -> int:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            return await self.aggregator.aggregate_batch(lock, partition, limit)
        finally:
            self.running -= 1


@dataclass
class SlowAggregator(CountingAggregator):
    """An aggregator whose batches of more than 300 events time out."""

    tried_limits: list[int] = field(default_factory=list)

    async def aggregate_batch(self, lock: Lock, partition: int, limit: int) -> int:
        self.tried_limits.append(limit)
        if limit > 300:
            raise Unavailable("The database is busy.")
        return await super().aggregate_batch(lock, partition, limit)


@asynccontextmanager
async def running_loops(stores: Stores) -> AsyncIterator[None]:
    task = asyncio.create_task(AggregationLoops(stores).run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_failed_batch_is_halved_until_it_succeeds(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.mail.aggregation.RETRY_S", 0.01)
    mail, slow = MailScenario(stores, new_id()), SlowAggregator(stores.aggregator)
    await mail.record(*(ok(f"a{number}@one.example") for number in range(400)))
    async with running_loops(replace(stores, aggregator=slow)):
        await until(lambda: _is_drained(stores), 30)
    assert slow.tried_limits[:3] == [1000, 500, 250]
    assert (await mail.domain_standing("one.example")).success == 400


async def test_broken_partition_stops_no_other(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.mail.aggregation.RETRY_S", 0.01)
    mail, broken_partition = MailScenario(stores, new_id()), partition("broken.example")
    await mail.record(ok("ann@broken.example"))
    await stores.mongo["mail_ledger"].update_one({"domain": "broken.example"}, {"$unset": {"outcome": ""}})
    with capture_logs() as logs:
        async with running_loops(stores):
            await until(lambda: _is_logged(logs, "mail_aggregation_crashed"), 30)
            others = [
                f"d{number}.example" for number in range(60) if partition(f"d{number}.example") != broken_partition
            ]
            await mail.record(*(ok(f"a@{domain}") for domain in others))
            await until(lambda: _is_only_pending(stores, broken_partition), 30)
    assert (await mail.domain_standing(others[0])).success == 1


async def _is_drained(stores: Stores) -> bool:
    return not await stores.aggregator.pending_partitions()


async def _is_only_pending(stores: Stores, broken_partition: int) -> bool:
    return await stores.aggregator.pending_partitions() == [broken_partition]


async def _is_logged(logs: list[Any], event: str) -> bool:
    return any(each["event"] == event for each in logs)


async def test_all_partitions_are_aggregated_few_concurrently(stores: Stores) -> None:
    mail = MailScenario(stores, new_id())
    domains = [f"d{number}.example" for number in range(100)]
    assert {partition(each) for each in domains} == set(range(PARTITIONS))
    await mail.record(*(ok(f"a{number}@{domain}") for number in range(10) for domain in domains))
    counting = CountingAggregator(stores.aggregator)
    async with running_loops(replace(stores, aggregator=counting)):
        await until(lambda: _is_drained(stores), 30)
    assert counting.max_running <= MAX_CONCURRENT_TRANSACTIONS
    assert (await mail.domain_standing("d7.example")).success == 10
