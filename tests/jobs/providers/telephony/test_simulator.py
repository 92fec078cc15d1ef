"""The simulator: calls are realistic and repeatable, and continue in another worker if their worker dies."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from jobs.providers.telephony import CallActive, CallDeferred, CallEnded, CallNotFound, CallStarted
from jobs.providers.telephony.simulator import OUTCOME_SHARES, CallScript, Simulator, realistic_script
from storage.calls.call_changes import Call
from storage.calls.records import CallKey, CallOutcome, CallReportKind, TaskKey
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio

ReportedCalls = list[tuple[str, int, CallReportKind, CallOutcome | None]]


async def call(stores: Stores, row: int = 2, lateness_s: float = 0.0) -> Call:
    now = await stores.mongo.now()
    key = CallKey(TaskKey("job", row), 1)
    return Call(key, "acme", "+819012345678", "Hello", [], now - timedelta(seconds=lateness_s) + timedelta(seconds=5))


def simulator(
    stores: Stores, reports: ReportedCalls, script: CallScript | None = None, speed: float = 100.0
) -> Simulator:
    async def report(call_id: str, sequence: int, kind: CallReportKind, outcome: CallOutcome | None) -> None:
        reports.append((call_id, sequence, kind, outcome))

    return Simulator(stores.mongo, report, speed, realistic_script if script is None else lambda _id: script)


def test_outcomes_are_distributed_and_follow_from_seed() -> None:
    scripts = [realistic_script(f"call-{n}") for n in range(5000)]
    assert scripts == [realistic_script(f"call-{n}") for n in range(5000)]
    counts = Counter(script.outcome for script in scripts)
    for outcome, percent in OUTCOME_SHARES.items():
        assert abs(counts[outcome] / 50 - percent) < 3
    talks = sorted(script.talk_s for script in scripts if script.outcome is CallOutcome.ANSWERED)
    assert 30 < talks[len(talks) // 2] < 60
    assert talks[-1] <= 600


async def test_simulated_call_rings_is_answered_and_ends(stores: Stores) -> None:
    reports: ReportedCalls = []
    service = simulator(stores, reports, CallScript(50, 150, CallOutcome.ANSWERED))
    assert await service.look_up(await call(stores)) == CallNotFound()
    assert await service.start(await call(stores)) == CallStarted()
    assert await service.look_up(await call(stores)) == CallActive()
    await until(lambda: has_reports(reports, 2))
    assert [kind.value for _, _, kind, _ in reports] == ["ANSWERED", "ENDED"]
    assert await service.look_up(await call(stores)) == CallEnded(CallOutcome.ANSWERED)
    await service.aclose()


async def has_reports(reports: ReportedCalls, count: int) -> bool:
    return len(reports) >= count


async def test_late_call_is_not_placed(stores: Stores) -> None:
    service = simulator(stores, [])
    assert await service.start(await call(stores, lateness_s=10)) == CallDeferred()
    assert await service.look_up(await call(stores)) == CallNotFound()
    await service.aclose()


async def test_calls_of_dead_worker_continue_in_polling_worker(stores: Stores) -> None:
    reports: ReportedCalls = []
    dead_worker = simulator(stores, [], CallScript(100, 200, CallOutcome.VOICEMAIL))
    await dead_worker.start(await call(stores))
    await dead_worker.aclose()
    live_worker = simulator(stores, reports, CallScript(100, 200, CallOutcome.VOICEMAIL))
    assert await live_worker.look_up(await call(stores)) == CallActive()
    await until(lambda: has_reports(reports, 2))
    assert reports[-1][3] is CallOutcome.VOICEMAIL
    await asyncio.sleep(0)
    await live_worker.aclose()
