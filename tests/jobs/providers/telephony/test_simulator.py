"""The simulator: realistic, repeatable, scaled in time, and continued after the death of a worker."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from jobs.providers.telephony import CallActive, CallDeferred, CallEnded, CallStarted, CallUnknown
from jobs.providers.telephony.simulator import OUTCOMES, Script, Simulator, realistic
from storage.calls.call_changes import Call
from storage.calls.records import CallKey, CallOutcome, CallReportEvent, TaskKey
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio

Reports = list[tuple[str, int, CallReportEvent, CallOutcome | None]]


async def call(stores: Stores, row: int = 2, late_s: float = 0.0) -> Call:
    now = await stores.call_jobs.now()
    key = CallKey(TaskKey("job", row), 1)
    return Call(key, "acme", "+819012345678", "Hello", [], now - timedelta(seconds=late_s) + timedelta(seconds=5))


def simulator(stores: Stores, reports: Reports, script: Script | None = None, speed: float = 100.0) -> Simulator:
    async def report(call_id: str, sequence: int, event: CallReportEvent, outcome: CallOutcome | None) -> None:
        reports.append((call_id, sequence, event, outcome))

    return Simulator(stores.mongo, report, speed, realistic if script is None else lambda _id: script)


def test_outcomes_are_distributed_and_follow_from_seed() -> None:
    scripts = [realistic(f"call-{n}") for n in range(5000)]
    assert scripts == [realistic(f"call-{n}") for n in range(5000)]
    counts = Counter(script.outcome for script in scripts)
    for outcome, percent in OUTCOMES.items():
        assert abs(counts[outcome] / 50 - percent) < 3
    talks = sorted(script.talk_s for script in scripts if script.outcome is CallOutcome.ANSWERED)
    assert 30 < talks[len(talks) // 2] < 60
    assert talks[-1] <= 600


async def test_simulated_call_rings_is_answered_and_ends(stores: Stores) -> None:
    reports: Reports = []
    made = simulator(stores, reports, Script(50, 150, CallOutcome.ANSWERED))
    assert await made.look_up(await call(stores)) == CallUnknown()
    assert await made.start(await call(stores)) == CallStarted()
    assert await made.look_up(await call(stores)) == CallActive()
    await until(lambda: has_reports(reports, 2))
    assert [event.value for _, _, event, _ in reports] == ["ANSWERED", "ENDED"]
    assert await made.look_up(await call(stores)) == CallEnded(CallOutcome.ANSWERED)
    await made.aclose()


async def has_reports(reports: Reports, count: int) -> bool:
    return len(reports) >= count


async def test_late_call_is_not_placed(stores: Stores) -> None:
    made = simulator(stores, [])
    assert await made.start(await call(stores, late_s=10)) == CallDeferred()
    assert await made.look_up(await call(stores)) == CallUnknown()
    await made.aclose()


async def test_calls_of_dead_worker_continue_in_polling_worker(stores: Stores) -> None:
    reports: Reports = []
    died = simulator(stores, [], Script(100, 200, CallOutcome.VOICEMAIL))
    await died.start(await call(stores))
    await died.aclose()
    alive = simulator(stores, reports, Script(100, 200, CallOutcome.VOICEMAIL))
    assert await alive.look_up(await call(stores)) == CallActive()
    await until(lambda: has_reports(reports, 2))
    assert reports[-1][3] is CallOutcome.VOICEMAIL
    await asyncio.sleep(0)
    await alive.aclose()
