"""Call jobs through takeovers, kills, SIGSTOP and a lost Redis, while the telephony twin checks the call limits."""

import asyncio
import os
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from storage.calls.records import CallJob, CallJobState
from tests.e2e.call_deployment import CallDeployment, call_deployment
from tests.e2e.call_fleet import worker_fleet
from tests.jobs.calls.call_centre import CallCentre
from tests.product import sigstopped
from tests.waiting import until

POLL_S = 0.25

pytestmark = pytest.mark.anyio

JOB_EVENTS = """subscription ($job: ID) { jobEvents(jobId: $job) {
  kind: __typename
  ... on CallJobChanged { job { state progress { completed } } }
  ... on CallTaskChanged { task { id state } }
} }"""


def assert_limits_kept(deployment: CallDeployment, per_second: int) -> None:
    """Asserts that the telephony twin recorded no violation of a limit."""
    assert deployment.twin.faults == []
    assert deployment.twin.rolling_faults(per_second) == []


async def is_job_completed(deployment: CallDeployment, job_id: str) -> bool:
    return bool((await deployment.job(job_id))["state"] == "COMPLETED")


async def test_call_limits_hold_through_takeover_and_redis_loss(
    tmp_path: Path, mongodb_uri: str, database: str
) -> None:
    async with call_deployment(tmp_path, mongodb_uri, database, 6, talk_s=(0.3, 0.9)) as deployment:
        await deployment.start_worker()
        await deployment.set_limits(6, 8)
        async with deployment.api.socket() as socket:
            await socket.subscribe(JOB_EVENTS)
            assert (await socket.next_event())["kind"] == "StreamReady"
            job_id = await deployment.launch(45)
            first_holder_pid = await deployment.wait_for_holder()
            await deployment.start_worker()
            await deployment.set_limits(3, 8)
            # On an idle machine this takes two seconds. The expiry of a lease takes ten or more.
            assert await takeover_after_sigterm_s(deployment, first_holder_pid) < 8.0
            await deployment.valkey.stop(0)
            await deployment.set_limits(8, 8)
            await deployment.valkey.start()
            await until(lambda: is_job_completed(deployment, job_id), 120, POLL_S)
            assert_limits_kept(deployment, 8)
            job = await deployment.job(job_id)
            assert {task["state"] for task in job["tasks"]} == {"COMPLETED"}
            assert set(deployment.twin.dialled.values()) == {1}
            assert len(deployment.twin.calls) == 45
            last_states: dict[str, str] = {}
            async with asyncio.timeout(20):
                while set(last_states.values()) != {"COMPLETED"} or len(last_states) < 45:
                    event = await socket.next_event()
                    if event["kind"] == "CallTaskChanged":
                        last_states[event["task"]["id"]] = event["task"]["state"]


async def test_call_limits_hold_through_combined_faults(tmp_path: Path, mongodb_uri: str, database: str) -> None:
    """Kills the holder of the lock, and stops another holder until a successor has taken over its lease."""
    async with worker_fleet(tmp_path, mongodb_uri, database, 6, talk_s=(0.2, 0.6), lose_answers=0.05) as fleet:
        centre = fleet.centre
        await centre.limit(6, 10)
        job = await centre.launch(50)
        await fleet.kill_holder()
        await centre.limit(3, 10)
        stopped_pid = await fleet.wait_for_holder()
        with sigstopped(stopped_pid):
            await fleet.wait_for_holder(except_pid=stopped_pid)
            await fleet.valkey.stop(0)
        await centre.limit(8, 10)
        await fleet.kill_holder()
        await fleet.valkey.start()
        await until(lambda: is_completed_in_centre(centre, job), 120, POLL_S)
        assert centre.twin.faults == []
        assert centre.twin.rolling_faults(10) == []
        assert set(centre.twin.dialled.values()) == {1}
        assert set((await centre.states(job)).values()) == {"COMPLETED"}
        assert await centre.slots() == []


@pytest.mark.soak
async def test_call_limits_hold_through_30_kills_on_short_leases(
    tmp_path: Path, mongodb_uri: str, database: str
) -> None:
    """Takes three minutes: brokers with leases of 1.5 s are killed and stopped, and Redis stops."""
    losses = {"lose_answers": 0.02, "lose_reports": 0.02}
    async with worker_fleet(tmp_path, mongodb_uri, database, 6, talk_s=(0.3, 1.5), **losses) as fleet:
        centre, jobs = fleet.centre, []
        for round_ in range(30):
            await centre.limit((6, 3, 8)[round_ % 3], 10)
            jobs.append(await centre.launch(25, first=25 * round_))
            await asyncio.sleep(centre.twin.rng.uniform(0.2, 1.5))
            stopped_pid = await fleet.wait_for_holder()
            if round_ % 10 == 3:
                with sigstopped(stopped_pid):
                    await fleet.wait_for_holder(except_pid=stopped_pid)
            if round_ % 10 == 5:
                await fleet.valkey.stop(0)
            await fleet.kill_holder()
            if round_ % 10 == 5:
                await fleet.valkey.start()
            print(f"{round_ + 1} kills, {len(centre.twin.calls)} calls", flush=True)
        for job in jobs:
            await until(partial(is_completed_in_centre, centre, job), 180)
        assert centre.twin.faults == []
        assert centre.twin.rolling_faults(10) == []
        assert max(centre.twin.dialled.values()) == 1
        states = Counter([state for job in jobs for state in (await centre.states(job)).values()])
        print(states, "refused because they were late:", sum(centre.twin.refusal_counts.values()))
        assert set(states) <= {"COMPLETED", "UNKNOWN"}
        assert states["COMPLETED"] <= len(centre.twin.calls)


async def is_completed_in_centre(centre: CallCentre, job: CallJob) -> bool:
    return (await centre.job(job)).state is CallJobState.COMPLETED


async def takeover_after_sigterm_s(deployment: CallDeployment, pid: int) -> float:
    """Sends SIGTERM. Returns the seconds until another process holds the lock."""
    began_s = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    await deployment.wait_for_holder(except_pid=pid, deadline_s=10)
    return time.monotonic() - began_s


@pytest.mark.soak
async def test_call_limits_hold_through_30_kills_on_real_leases(
    tmp_path: Path, mongodb_uri: str, database: str
) -> None:
    """Takes nine minutes: after each kill a lease of 15 s expires."""
    async with call_deployment(
        tmp_path, mongodb_uri, database, 6, talk_s=(0.3, 1.5), lose_answers=0.02, lose_reports=0.02
    ) as deployment:
        await deployment.start_worker()
        await deployment.start_worker()
        jobs, takeovers_s = [], []
        for round_ in range(30):
            await deployment.set_limits((6, 3, 8)[round_ % 3], 5)
            jobs.append(await deployment.launch(25, first=25 * round_))
            pid = await deployment.wait_for_holder(deadline_s=40)
            await asyncio.sleep(deployment.twin.rng.uniform(0.5, 2.5))
            if round_ % 15 == 3:
                with sigstopped(pid):
                    await deployment.wait_for_holder(except_pid=pid, deadline_s=40)
                pid = await deployment.wait_for_holder(deadline_s=40)
            if round_ % 15 == 5:
                await deployment.valkey.stop(0)
                await asyncio.sleep(2)
                await deployment.valkey.start()
            takeovers_s.append(await takeover_after_kill_s(deployment, pid))
        for job_id in jobs:
            await until(partial(is_job_completed, deployment, job_id), 300)
        assert_limits_kept(deployment, 5)
        print(f"{len(deployment.twin.calls)} calls, takeover {min(takeovers_s):.1f} to {max(takeovers_s):.1f} s")
        assert max(takeovers_s) <= 17.0
        assert max(deployment.twin.dialled.values()) == 1
        tasks = [task for job_id in jobs for task in (await deployment.job(job_id))["tasks"]]
        assert {task["state"] for task in tasks} <= {"COMPLETED", "UNKNOWN"}
        print(f"{sum(task['state'] == 'UNKNOWN' for task in tasks)} of {len(tasks)} unknown")


async def takeover_after_kill_s(deployment: CallDeployment, pid: int) -> float:
    """Sends SIGKILL and starts one more worker. Returns the seconds until another process holds the lock."""
    began_s = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    await deployment.start_worker()
    await deployment.wait_for_holder(except_pid=pid, deadline_s=40)
    return time.monotonic() - began_s


@pytest.mark.soak
async def test_takeover_of_20_organizations_is_in_time(tmp_path: Path, mongodb_uri: str, database: str) -> None:
    async with call_deployment(tmp_path, mongodb_uri, database, 100, talk_s=(1.0, 2.0)) as deployment:
        orgs = [f"org-{number}" for number in range(20)]
        for org in orgs:
            await deployment.for_organization(org).launch(300)
        first = await deployment.start_worker()
        assert {await deployment.for_organization(org).wait_for_holder() for org in orgs} == {first.process.pid}
        second = await deployment.start_worker()
        after_sigterm_s = await takeover_times_s(deployment, orgs, first.process.pid, signal.SIGTERM)
        third = await deployment.start_worker()
        after_kill_s = await takeover_times_s(deployment, orgs, second.process.pid, signal.SIGKILL)
        assert {await deployment.for_organization(org).wait_for_holder() for org in orgs} == {third.process.pid}
        print(
            f"SIGTERM: {max(after_sigterm_s):.2f} s at most; kill -9: {min(after_kill_s):.2f}–{max(after_kill_s):.2f} s"
        )
        assert max(after_sigterm_s) <= 2.0
        assert max(after_kill_s) <= 17.0


async def takeover_times_s(
    deployment: CallDeployment, orgs: list[str], pid: int, signal_number: signal.Signals
) -> list[float]:
    """Sends the signal. Returns for each organization the seconds until another process holds its lock."""
    began_s = time.monotonic()
    os.kill(pid, signal_number)

    async def takeover_s(org: str) -> float:
        await deployment.for_organization(org).wait_for_holder(except_pid=pid, deadline_s=40)
        return time.monotonic() - began_s

    return list(await asyncio.gather(*map(takeover_s, orgs)))
