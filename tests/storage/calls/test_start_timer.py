"""Due times of call starts when commits are slow, and when the database's clock is adjusted."""

import asyncio
import math
import time
from datetime import datetime, timedelta

import pytest

from storage.calls.call_changes import Call, CommittedCallStart
from storage.calls.limiter import JITTER_S
from storage.calls.records import CallKey, TaskKey
from storage.calls.start_timer import LEAD_DECAY_S, MAX_LEAD_S, StartTimer
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio


def call_start(committed_at: datetime, delay_s: float) -> CommittedCallStart:
    start_at = committed_at + timedelta(seconds=delay_s)
    return CommittedCallStart(
        Call(CallKey(TaskKey("job", 2), 1), "acme", "+819012345678", "Hello", [], start_at), delay_s, gap_s=1.1
    )


async def test_start_is_due_by_database_clock_despite_late_answer(stores: Stores) -> None:
    timer, requested_at = StartTimer(stores.mongo), time.monotonic()
    committed_at = await stores.mongo.now()
    await asyncio.sleep(0.3)
    measured_at = time.monotonic()
    due = await timer.due_at(call_start(committed_at, 0.2), requested_at)
    assert requested_at + 0.2 <= due < measured_at + 0.2
    await asyncio.sleep(max(due - time.monotonic(), 0))
    assert await stores.mongo.now() >= committed_at + timedelta(seconds=0.2), "The call was due early."


async def test_slow_commit_raises_lead_until_it_decays(stores: Stores) -> None:
    timer = StartTimer(stores.mongo)
    assert timer.lead == timedelta()
    committed_at = await stores.mongo.now()
    await asyncio.sleep(0.3)
    await timer.due_at(call_start(committed_at, 0.0), time.monotonic() - 0.3)
    assert timer.lead > timedelta()
    # The lead is the remembered duration of the slowest commit, minus `ignored`. The remembered duration decays.
    measured_at, lead_before, ignored = time.monotonic(), timer.lead, timedelta(seconds=JITTER_S / 2)
    for _ in range(60):
        timer._record(0.001, time.monotonic())
    lead_after = timer.lead
    assert lead_after + ignored >= (lead_before + ignored) * math.exp((measured_at - time.monotonic()) / LEAD_DECAY_S)

    async def has_decayed() -> bool:
        return timer.lead < timedelta(seconds=0.1)

    await until(has_decayed, 10)


@pytest.mark.parametrize("clock_offset_s", [-3600, 3600])
async def test_adjusted_clock_moves_due_time_by_commit_time_at_most(stores: Stores, clock_offset_s: float) -> None:
    timer, requested_at = StartTimer(stores.mongo), time.monotonic()
    committed_at = await stores.mongo.now() + timedelta(seconds=clock_offset_s)
    due = await timer.due_at(call_start(committed_at, 0.5), requested_at)
    assert requested_at + 0.5 <= due <= time.monotonic() + 0.5
    assert timer.lead <= timedelta(seconds=MAX_LEAD_S)
