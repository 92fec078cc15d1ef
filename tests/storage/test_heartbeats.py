"""Heartbeats: what a worker does is written down, and forgotten when it ends."""

import asyncio

import pytest

from storage.heartbeats import Heartbeat, Signs, mail_tails, workers
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio


async def test_a_worker_is_seen_while_it_lives(stores: Stores) -> None:
    heartbeat = Heartbeat(stores.mongo, "host/1")
    heartbeat.swept("move_outbox", 2)
    heartbeat.swept("move_outbox", 0)
    beating = asyncio.create_task(heartbeat.beat())

    async def is_seen() -> bool:
        return bool(await workers(stores.mongo))

    await until(is_seen)
    (row,) = await workers(stores.mongo)
    assert (row["_id"], row["sweeps"]) == ("host/1", {"move_outbox": {"runs": 2, "found": 2}})
    assert row["silent_s"] < 5
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    assert not await is_seen()


async def test_a_reader_of_a_mail_log_tells_how_far_it_is_with_every_sign(stores: Stores) -> None:
    lines = iter((3, 5))
    signs = Signs(stores.mongo["mail_tails"], "host/2", lambda: {"lines": next(lines), "file": "$HOME/mail.log"})
    await signs._write()
    await signs._write()
    (row,) = await mail_tails(stores.mongo)
    assert (row["_id"], row["lines"], row["file"]) == ("host/2", 5, "$HOME/mail.log")
    assert await workers(stores.mongo) == []
