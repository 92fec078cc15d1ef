"""Heartbeats: what a worker does is written down, and forgotten when it ends."""

import asyncio

import pytest

from storage.heartbeats import Heartbeat, workers
from storage.stores import Stores
from tests.jobs.calling import until

pytestmark = pytest.mark.anyio


async def test_a_worker_is_seen_while_it_lives(stores: Stores) -> None:
    heartbeat = Heartbeat(stores.mongo, "host/1")
    heartbeat.swept("move_outbox", 2)
    heartbeat.swept("move_outbox", 0)
    beating = asyncio.create_task(heartbeat.beat())

    async def is_seen() -> bool:
        return bool(await workers(stores.mongo))

    await until(is_seen, 5)
    (row,) = await workers(stores.mongo)
    assert (row["_id"], row["sweeps"]) == ("host/1", {"move_outbox": {"runs": 2, "found": 2}})
    assert row["silent_s"] < 5
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    assert not await is_seen()
