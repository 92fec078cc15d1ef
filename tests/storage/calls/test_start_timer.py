"""Due times of starts by the database's clock, however long the commit took and whatever the clocks do."""

import asyncio
import math
import time
from datetime import datetime, timedelta

import pytest

from storage.calls.call_changes import Call, CallStart
from storage.calls.limiter import JITTER_S
from storage.calls.records import CallKey, TaskKey
from storage.calls.start_timer import LEAD_DECAY_S, MAX_LEAD_S, StartTimer
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio


def dial(committed_at: datetime, delay_s: float) -> CallStart:
    start_at = committed_at + timedelta(seconds=delay_s)
    return CallStart(
        Call(CallKey(TaskKey("job", 2), 1), "acme", "+819012345678", "Hello", [], start_at), delay_s, gap_s=1.1
    )


async def test_a_start_is_due_by_the_databases_clock_not_when_the_commit_was_answered(stores: Stores) -> None:
    timer, begun = StartTimer(stores.mongo), time.monotonic()
    committed_at = await stores.mongo.now()
    await asyncio.sleep(0.3)
    asked = time.monotonic()
    moment = await timer.due_at(dial(committed_at, 0.2), begun)
    assert begun + 0.2 <= moment < asked + 0.2
    await asyncio.sleep(max(moment - time.monotonic(), 0))
    assert await stores.mongo.now() >= committed_at + timedelta(seconds=0.2), "never early"


async def test_where_commits_take_long_starts_are_chosen_later_for_some_seconds_however_many_are_quick(
    stores: Stores,
) -> None:
    timer = StartTimer(stores.mongo)
    assert timer.lead == timedelta()
    committed_at = await stores.mongo.now()
    await asyncio.sleep(0.3)
    await timer.due_at(dial(committed_at, 0.0), time.monotonic() - 0.3)
    assert timer.lead > timedelta()
    asked, before, always = time.monotonic(), timer.lead, timedelta(seconds=JITTER_S / 2)
    for _ in range(60):
        timer._record(0.001, time.monotonic())
    after = timer.lead
    assert after + always >= (before + always) * math.exp((asked - time.monotonic()) / LEAD_DECAY_S)

    async def is_forgotten() -> bool:
        return timer.lead < timedelta(seconds=0.1)

    await until(is_forgotten, 10)


@pytest.mark.parametrize("off_s", [-3600, 3600])
async def test_a_clock_that_was_set_moves_no_start_out_of_its_commit(stores: Stores, off_s: float) -> None:
    timer, begun = StartTimer(stores.mongo), time.monotonic()
    committed_at = await stores.mongo.now() + timedelta(seconds=off_s)
    moment = await timer.due_at(dial(committed_at, 0.5), begun)
    assert begun + 0.5 <= moment <= time.monotonic() + 0.5
    assert timer.lead <= timedelta(seconds=MAX_LEAD_S)
