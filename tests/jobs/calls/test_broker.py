"""Brokers against a telephony twin that counts active calls, start times and calls of each number itself."""

import asyncio
import gc
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import jobs.calls.broker
from jobs.calls.broker import MAX_WAIT_S, Broker
from jobs.calls.polling import poll_overdue_calls
from storage.calls.call_changes import Call, StartRefusal
from storage.calls.calls import NextCall, TimedStart
from storage.calls.job_changes import JobAction
from storage.calls.limiter import BrokerSuperseded
from storage.calls.records import CallJob, CallJobState
from storage.stores import Stores
from tests.cancellation import CancelledAwait
from tests.jobs.calls.call_centre import CallCentre, call_centre
from tests.unclosed_sockets import may_leave_sockets
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.anyio


def new_broker(centre: CallCentre) -> Broker:
    return Broker(centre.stores.calls, centre.telephony, centre.org)


async def run_with_wake_ups(centre: CallCentre, broker: Broker, fence: int = 1) -> None:
    """Runs a broker as the broker pool does."""
    listening = asyncio.create_task(centre.stores.call_wake_ups.listen(lambda _org, _released: broker.wake()))
    try:
        await broker.run(fence)
    finally:
        listening.cancel()


async def is_completed(centre: CallCentre, job: CallJob) -> bool:
    return (await centre.job(job)).state is CallJobState.COMPLETED


async def test_list_is_called_in_order_within_limits(stores: Stores) -> None:
    async with call_centre(stores, 3) as centre:
        await centre.limit(3, 8)
        job = await centre.launch(20)
        await asyncio.wait_for(run_with_wake_ups(centre, new_broker(centre)), DEADLINE_S)
        assert await is_completed(centre, job)
        assert centre.twin.faults == []
        assert centre.twin.max_active == 3
        assert centre.twin.rolling_faults(8) == []
        # Start times show the order. Requests may overtake each other on their way to the twin.
        tasks = await centre.stores.call_jobs.tasks(job, None, 0, 100)
        assert len(tasks) == 20
        # On a busy machine, a call that is too late is requeued. Requeued calls are left out.
        start_times = [task.started_at for task in tasks if task.started_at and task.call_id == f"{task.id}-1"]
        assert start_times == sorted(start_times)
        assert set(centre.twin.dialled.values()) == {1}
        assert await centre.slots() == []


async def test_freed_slot_is_used_at_once(stores: Stores) -> None:
    async with call_centre(stores, 1, talk_s=(0.05, 0.05)) as centre:
        await centre.limit(1, 100)
        await centre.launch(10)
        started_at = time.monotonic()
        await asyncio.wait_for(run_with_wake_ups(centre, new_broker(centre)), DEADLINE_S)
        # With polling, each of the ten calls would wait for MAX_WAIT_S.
        assert time.monotonic() - started_at < 4 * MAX_WAIT_S


async def test_freed_slots_are_used_without_wake_ups(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.calls.broker, "MAX_WAIT_S", 10 * DEADLINE_S)
    async with call_centre(stores, 1, talk_s=(0.05, 0.05)) as centre:
        await centre.limit(1, 100)
        await centre.launch(5)
        await asyncio.wait_for(new_broker(centre).run(1), DEADLINE_S)


async def test_concurrent_cancelled_brokers_keep_limits(stores: Stores) -> None:
    """Brokers overlap and are cancelled, answers and reports are lost, and limits change."""
    async with call_centre(stores, 6, lose_answers=0.1, lose_reports=0.1) as centre:
        await centre.limit(6, 20)
        job = await centre.launch(60)
        tasks: list[asyncio.Task[None]] = []
        for fence in range(1, 13):
            tasks.append(asyncio.create_task(run_with_wake_ups(centre, new_broker(centre), fence)))
            await asyncio.sleep(0.15)
            if fence % 3 == 0:
                tasks[-2].cancel()
            if fence == 4:
                # Slots of calls whose reports were lost are freed by polling.
                polling = asyncio.create_task(poll_repeatedly(centre))
                await centre.limit(3, 20)
                polling.cancel()
            if fence == 8:
                await centre.limit(8, 20)
        last = asyncio.create_task(run_with_wake_ups(centre, new_broker(centre), 20))
        await until(lambda: is_completed_after_polling(centre, job), interval_s=0.2)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, last, return_exceptions=True)
        kinds = (BrokerSuperseded, asyncio.CancelledError, type(None))
        assert [result for result in results if not isinstance(result, kinds)] == []
        assert centre.twin.faults == []
        assert centre.twin.rolling_faults(20) == []
        assert set(centre.twin.dialled.values()) == {1}
        assert len(centre.twin.calls) == 60
        assert await centre.slots() == []


async def is_completed_after_polling(centre: CallCentre, job: CallJob) -> bool:
    """Polls all open calls now. Returns whether the job is completed."""
    await poll_now(centre)
    return await is_completed(centre, job)


async def poll_now(centre: CallCentre) -> None:
    await centre.make_calls_overdue()
    await poll_overdue_calls(centre.jobs)


async def poll_repeatedly(centre: CallCentre) -> None:
    while True:
        await poll_now(centre)
        await asyncio.sleep(0.1)


async def test_older_broker_stops_after_takeover(stores: Stores) -> None:
    async with call_centre(stores, 2) as centre:
        await centre.limit(2, 100)
        await centre.launch(12)
        old_run = asyncio.create_task(run_with_wake_ups(centre, new_broker(centre), 1))
        await until(lambda: has_calls(centre))
        new_run = asyncio.create_task(run_with_wake_ups(centre, new_broker(centre), 2))
        with pytest.raises(BrokerSuperseded):
            await asyncio.wait_for(old_run, DEADLINE_S)
        await asyncio.wait_for(new_run, DEADLINE_S)
        with pytest.raises(BrokerSuperseded):
            await new_broker(centre).run(1)
        assert centre.twin.faults == []


async def has_calls(centre: CallCentre) -> bool:
    return bool(centre.twin.calls)


async def test_pause_stops_at_once_and_resume_continues(stores: Stores) -> None:
    async with call_centre(stores, 2, talk_s=(0.05, 0.1)) as centre:
        await centre.limit(2, 50)
        job = await centre.launch(12)
        running = asyncio.create_task(run_with_wake_ups(centre, new_broker(centre)))
        await until(lambda: has_calls(centre))
        await centre.stores.call_jobs.act(centre.org, job.id, JobAction.PAUSE)
        # Calls with a slot may still be on their way to the twin.
        started_calls = {*await centre.slots(), *centre.twin.calls}
        await asyncio.wait_for(running, DEADLINE_S)
        assert started_calls >= centre.twin.calls.keys(), "A call of a paused job began."
        await centre.stores.call_jobs.act(centre.org, job.id, JobAction.RESUME)
        await asyncio.wait_for(run_with_wake_ups(centre, new_broker(centre)), DEADLINE_S)
        assert set(centre.twin.dialled.values()) == {1}
        assert len(centre.twin.calls) == 12


class _HeldBroker(Broker):
    """A broker that holds committed calls until `may_place` is set."""

    has_committed: asyncio.Event
    may_place: asyncio.Event

    async def _place_call(self, call: Call, due_s: float) -> None:
        self.has_committed.set()
        await self.may_place.wait()
        await super()._place_call(call, time.monotonic())


@pytest.mark.parametrize(
    ("action", "state"), [(JobAction.PAUSE, "QUEUED"), (JobAction.CANCEL, "CANCELLED"), (None, "SKIPPED")]
)
async def test_call_stopped_after_its_commit_is_not_placed(
    stores: Stores, action: JobAction | None, state: str
) -> None:
    async with call_centre(stores, 1) as centre:
        await centre.limit(1, 100)
        job = await centre.launch(1)
        broker = _HeldBroker(stores.calls, centre.telephony, centre.org)
        broker.has_committed, broker.may_place = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(run_with_wake_ups(centre, broker))
        await asyncio.wait_for(broker.has_committed.wait(), DEADLINE_S)
        if action is None:
            await stores.do_not_call.add(centre.org, ["+819010000000"])
        else:
            await stores.call_jobs.act(centre.org, job.id, action)
        broker.may_place.set()
        await asyncio.wait_for(running, DEADLINE_S)
        assert centre.twin.dialled == {}
        assert await centre.states(job) == {"+819010000000": state}
        assert await centre.slots() == []


async def test_do_not_call_number_is_skipped(stores: Stores) -> None:
    async with call_centre(stores, 1) as centre:
        await centre.limit(1, 100)
        job = await centre.launch(4)
        await centre.stores.do_not_call.add(centre.org, ["+819010000002"])
        await asyncio.wait_for(run_with_wake_ups(centre, new_broker(centre)), DEADLINE_S)
        states = await centre.states(job)
        assert states["+819010000002"] == "SKIPPED"
        assert "+819010000002" not in centre.twin.dialled
        assert len(centre.twin.calls) == 3


async def test_number_reported_do_not_call_is_not_called_again(stores: Stores) -> None:
    """Two calls to number 0 are reported together. Number 1 is on the list before its call is reported."""
    async with call_centre(stores, 3, talk_s=(600, 600)) as centre:
        await centre.limit(3, 100)
        jobs = [await centre.launch(2), await centre.launch(1)]
        running = asyncio.create_task(run_with_wake_ups(centre, new_broker(centre)))
        await until(lambda: _has_called(centre, 3))
        await stores.do_not_call.add(centre.org, ["+819010000001"])
        await asyncio.gather(*(centre.report(call_id, 1, "ENDED", "DO_NOT_CALL") for call_id in centre.twin.calls))
        await asyncio.wait_for(running, DEADLINE_S)
        assert [set((await centre.states(job)).values()) for job in jobs] == [{"SKIPPED"}, {"SKIPPED"}]
        numbers = [f"+81901000000{last}" for last in range(3)]
        assert await stores.do_not_call.listed_numbers(centre.org, numbers) == frozenset(numbers[:2])
        later_job = await centre.launch(2)
        await asyncio.wait_for(run_with_wake_ups(centre, new_broker(centre)), DEADLINE_S)
        assert set((await centre.states(later_job)).values()) == {"SKIPPED"}
        assert len(centre.twin.calls) == 3


async def _has_called(centre: CallCentre, calls: int) -> bool:
    return len(centre.twin.calls) == calls


async def test_unanswered_number_is_retried_up_to_max_attempts(stores: Stores) -> None:
    async with call_centre(stores, 2, outcome="NO_ANSWER", talk_s=(0.01, 0.02)) as centre:
        await centre.limit(2, 100)
        job = await centre.launch(3, max_attempts=3, retry_delay_s=0)
        await asyncio.wait_for(run_with_wake_ups(centre, new_broker(centre)), DEADLINE_S)
        assert set(centre.twin.dialled.values()) == {3}
        assert set((await centre.states(job)).values()) == {"FAILED"}
        progress = (await centre.job(job)).progress
        assert [(count.outcome.value, count.count) for count in progress.outcomes] == [("NO_ANSWER", 9)]


async def test_call_refused_as_late_is_requeued(stores: Stores) -> None:
    """The twin holds the request for too long and refuses it."""
    async with call_centre(stores, 1) as centre:
        await centre.limit(1, 100)
        job = await centre.launch(2)
        centre.twin.hold = asyncio.Event()
        running = asyncio.create_task(run_with_wake_ups(centre, new_broker(centre)))
        await asyncio.wait_for(centre.twin.has_held.wait(), DEADLINE_S)
        await asyncio.sleep(0.5)
        centre.twin.hold.set()
        await asyncio.wait_for(running, DEADLINE_S)
        assert sum(centre.twin.refusal_counts.values()) >= 1
        assert set(centre.twin.dialled.values()) == {1}
        tasks = await centre.stores.call_jobs.tasks(await centre.job(job), None, 0, 10)
        assert [task.attempts for task in tasks] == [1, 1]


class _PausedProcessBroker(Broker):
    """A broker whose process is paused for a second before it hands over the first call."""

    dials = 0

    async def _place_call(self, call: Call, due_s: float) -> None:
        self.dials += 1
        await super()._place_call(call, due_s - 1.0 if self.dials == 1 else due_s)


async def test_late_call_of_paused_process_is_not_sent(stores: Stores) -> None:
    """The broker itself must drop the call, because a service that ignores notAfter would place the call."""
    async with call_centre(stores, 1) as centre:
        await centre.limit(1, 100)
        job = await centre.launch(1)
        broker = _PausedProcessBroker(stores.calls, centre.telephony, centre.org)
        await asyncio.wait_for(run_with_wake_ups(centre, broker), DEADLINE_S)
        assert f"{job.id}-2-1" not in [*centre.twin.calls, *centre.twin.refusal_counts]
        assert set(centre.twin.dialled.values()) == {1}
        (task,) = await centre.stores.call_jobs.tasks(await centre.job(job), None, 0, 10)
        assert (task.state.value, task.attempts) == ("COMPLETED", 1)


class _CancelledBroker(Broker):
    """A broker that is cancelled at await `await_number` of `method`, in the first call of this method."""

    method, await_number, awaits = "run", -1, 0
    running_task: asyncio.Task[None] | None = None

    async def run(self, fence: int) -> None:
        self.running_task = asyncio.current_task()
        await self._run_with_cancellation("run", super().run(fence))

    async def _start_call(self, next_call: NextCall, fence: int) -> TimedStart | StartRefusal:
        result: TimedStart | StartRefusal = await self._run_with_cancellation(
            "_start_call", super()._start_call(next_call, fence)
        )
        return result

    async def _place_call(self, call: Call, due_s: float) -> None:
        await self._run_with_cancellation("_place_call", super()._place_call(call, due_s))

    async def _run_with_cancellation(self, name: str, work: Any) -> Any:
        if name != self.method or self.awaits:
            return await work
        work_with_cancel = CancelledAwait(work, self.await_number)
        try:
            return await work_with_cancel
        except asyncio.CancelledError:
            assert self.running_task is not None
            self.running_task.cancel()
            raise
        finally:
            self.awaits = work_with_cancel.awaits


ORGANIZATIONS = 3
"""Number of brokers at a time. More brokers delay each other's calls, which are then requeued again and again."""


@may_leave_sockets
@pytest.mark.parametrize("method", ["run", "_start_call", "_place_call"])
async def test_broker_cancelled_at_any_await_leaks_no_slot(stores: Stores, method: str) -> None:
    """Cancels at await 1, then 2 and so on, for three organizations at a time, until a run has no further await."""
    brokers: dict[str, Broker] = {}
    async with call_centre(stores, ORGANIZATIONS, talk_s=(0.0, 0.01)) as centre:
        listening = asyncio.create_task(stores.call_wake_ups.listen(lambda org, _released: brokers[org].wake()))
        polling = asyncio.create_task(poll_overdue_repeatedly(centre))
        await_number = 1
        while all(
            await asyncio.gather(
                *(finishes_after_cancel_at(centre, brokers, method, await_number + n) for n in range(ORGANIZATIONS))
            )
        ):
            await_number += ORGANIZATIONS
        for task in (listening, polling):
            task.cancel()
        assert centre.twin.faults == []
    gc.collect()


async def poll_overdue_repeatedly(centre: CallCentre) -> None:
    while True:
        await poll_overdue_calls(centre.jobs)
        await asyncio.sleep(0.2)


async def finishes_after_cancel_at(
    centre: CallCentre, brokers: dict[str, Broker], method: str, await_number: int
) -> bool:
    """Returns whether the await existed. Asserts that the next broker finishes the list and calls no number again."""
    own_centre = replace(centre, org=f"{centre.org} {await_number}")
    broker = brokers[own_centre.org] = _CancelledBroker(own_centre.stores.calls, own_centre.telephony, own_centre.org)
    broker.method, broker.await_number = method, await_number
    await own_centre.stores.call_jobs.set_limits(own_centre.org, 1, 100)
    job = await own_centre.launch(1)
    with suppress(asyncio.CancelledError):
        # The broker cancels the task that runs it, so it needs its own. From Python 3.12 on, wait_for creates no task.
        await asyncio.wait_for(asyncio.create_task(broker.run(1)), DEADLINE_S)
    brokers[own_centre.org] = new_broker(own_centre)
    await asyncio.wait_for(brokers[own_centre.org].run(2), DEADLINE_S)
    assert await is_completed(own_centre, job)
    assert await own_centre.slots() == [], f"The broker was cancelled at await {await_number} of {method}"
    dialled = Counter(call.number for call in own_centre.twin.calls.values() if call.id.startswith(job.id))
    assert dialled == {"+819010000000": 1}, f"The broker was cancelled at await {await_number} of {method}"
    return broker.awaits >= await_number
