"""Sweepers of event streams."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.streams import prune_events
from storage.stores import Stores
from storage.streams.log import PRUNE_BATCH
from tests.jobs.contexts import job_context

pytestmark = pytest.mark.anyio


async def test_all_expired_events_are_pruned_by_one_worker(stores: Stores) -> None:
    jobs, events = job_context(stores), stores.mongo["events"]
    at = datetime.now(UTC) - timedelta(hours=25)
    count = PRUNE_BATCH + 5
    await stores.mongo["streams"].insert_one({"_id": "user:o/u", "n": count, "epoch": "e"})
    expired = [{"_id": {"s": "user:o/u", "n": n + 1}, "kind": "Notify", "ref": n, "at": at} for n in range(count)]
    await events.insert_many(expired)
    async with stores.locks.held("prune_events") as lock:
        assert lock is not None
        assert await prune_events(jobs) == 0
    assert await events.count_documents({}) == count
    assert await prune_events(jobs) >= count
    assert await events.count_documents({}) == 0
