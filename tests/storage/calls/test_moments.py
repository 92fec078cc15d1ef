"""Moments of starts by the database's clock, however long the commit took and whatever the clocks do."""

import asyncio
import math
import time
from datetime import datetime, timedelta

import pytest

from storage.calls.dialling import Call, Dial
from storage.calls.limiter import JITTER_S
from storage.calls.moments import FORGOTTEN_S, MAX_LEAD_S, Moments
from storage.calls.records import CallKey, TaskKey
from storage.stores import Stores
from tests.jobs.calls.calling import until

pytestmark = pytest.mark.anyio


def dial(committed_at: datetime, delay_s: float) -> Dial:
    start_at = committed_at + timedelta(seconds=delay_s)
    return Dial(Call(CallKey(TaskKey("job", 2), 1), "acme", "+819012345678", "Hello", [], start_at), delay_s, gap_s=1.1)


async def test_a_start_is_due_by_the_databases_clock_not_when_the_commit_was_answered(stores: Stores) -> None:
    moments, begun = Moments(stores.mongo), time.monotonic()
    committed_at = await stores.mongo.now()
    await asyncio.sleep(0.3)
    asked = time.monotonic()
    moment = await moments.of(dial(committed_at, 0.2), begun)
    assert begun + 0.2 <= moment < asked + 0.2
    await asyncio.sleep(max(moment - time.monotonic(), 0))
    assert await stores.mongo.now() >= committed_at + timedelta(seconds=0.2), "never early"


async def test_where_commits_take_long_starts_are_chosen_later_for_some_seconds_however_many_are_quick(
    stores: Stores,
) -> None:
    moments = Moments(stores.mongo)
    assert moments.lead == timedelta()
    committed_at = await stores.mongo.now()
    await asyncio.sleep(0.3)
    await moments.of(dial(committed_at, 0.0), time.monotonic() - 0.3)
    assert moments.lead > timedelta()
    asked, before, always = time.monotonic(), moments.lead, timedelta(seconds=JITTER_S / 2)
    for _ in range(60):
        moments._take(0.001, time.monotonic())
    after = moments.lead
    assert after + always >= (before + always) * math.exp((asked - time.monotonic()) / FORGOTTEN_S)

    async def is_forgotten() -> bool:
        return moments.lead < timedelta(seconds=0.1)

    await until(is_forgotten, 10)


@pytest.mark.parametrize("off_s", [-3600, 3600])
async def test_a_clock_that_was_set_moves_no_start_out_of_its_commit(stores: Stores, off_s: float) -> None:
    moments, begun = Moments(stores.mongo), time.monotonic()
    committed_at = await stores.mongo.now() + timedelta(seconds=off_s)
    moment = await moments.of(dial(committed_at, 0.5), begun)
    assert begun + 0.5 <= moment <= time.monotonic() + 0.5
    assert moments.lead <= timedelta(seconds=MAX_LEAD_S)
