"""Heartbeats: a process's state is stored while it runs, and removed when it ends."""

import asyncio

import pytest

from storage.heartbeats import Heartbeat, WorkerHeartbeat, recent_mail_tails, recent_workers
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio


async def test_worker_is_listed_while_it_runs(stores: Stores) -> None:
    heartbeat = WorkerHeartbeat(stores.mongo, "host/1")
    heartbeat.add_sweep("relay_outbox", 2)
    heartbeat.add_sweep("relay_outbox", 0)
    running = asyncio.create_task(heartbeat.run())

    async def is_listed() -> bool:
        return bool(await recent_workers(stores.mongo))

    await until(is_listed)
    (worker,) = await recent_workers(stores.mongo)
    assert (worker["_id"], worker["sweeps"]) == ("host/1", {"relay_outbox": {"runs": 2, "found": 2}})
    assert worker["silent_s"] < 5
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not await is_listed()


async def test_mail_tail_stores_its_newest_state_literally(stores: Stores) -> None:
    lines = iter((3, 5))
    heartbeat = Heartbeat(
        stores.mongo["mail_tails"], "host/2", lambda: {"lines": next(lines), "file": "$HOME/mail.log"}
    )
    await heartbeat._write()
    await heartbeat._write()
    (tail,) = await recent_mail_tails(stores.mongo)
    assert (tail["_id"], tail["lines"], tail["file"]) == ("host/2", 5, "$HOME/mail.log")
    assert await recent_workers(stores.mongo) == []
