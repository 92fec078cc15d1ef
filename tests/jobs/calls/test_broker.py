"""Brokers against a telephony twin that counts for itself: never a call too many, never one too early, none twice."""

import asyncio
import time
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from jobs.calls.broker import MAX_WAIT_S, Broker
from jobs.calls.polling import poll_overdue_calls
from storage.calls.call_changes import Call, StartRefusal
from storage.calls.calls import NextCall, TimedStart
from storage.calls.job_changes import JobAction
from storage.calls.limiter import Superseded
from storage.calls.records import CallJob, CallJobState
from storage.stores import Stores
from tests.jobs.calls.call_centre import CallCentre, calling
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.anyio


def broker(house: CallCentre) -> Broker:
    return Broker(house.stores.calls, house.telephony, house.org)


async def run_with_wakes(house: CallCentre, made: Broker, fence: int = 1) -> None:
    """As the manager runs it."""
    listening = asyncio.create_task(house.stores.call_wake_ups.listen(lambda _org, _released: made.wake()))
    try:
        await made.run(fence)
    finally:
        listening.cancel()


async def is_over(house: CallCentre, job: CallJob) -> bool:
    return (await house.job(job)).state is CallJobState.COMPLETED


async def test_a_list_is_called_in_order_as_fast_as_limits_allow(stores: Stores) -> None:
    async with calling(stores, 3) as house:
        await house.limit(3, 20)
        job = await house.launch(20)
        await asyncio.wait_for(run_with_wakes(house, broker(house)), DEADLINE_S)
        assert await is_over(house, job)
        assert house.twin.faults == []
        assert house.twin.most_active == 3
        assert house.twin.rolling_faults(20) == []
        # By the limiter's clock: two requests may overtake each other on their way.
        tasks = await house.stores.call_jobs.tasks(job, None, 0, 100)
        assert len(tasks) == 20
        # On a busy machine a call may have been too late, and dialled again.
        begun = [task.started_at for task in tasks if task.started_at and task.call_id == f"{task.id}-1"]
        assert begun == sorted(begun)
        assert set(house.twin.dialled.values()) == {1}
        assert await house.slots() == []


async def test_a_freed_slot_is_used_at_once_not_at_the_next_poll(stores: Stores) -> None:
    async with calling(stores, 1, talk_s=(0.05, 0.05)) as house:
        await house.limit(1, 100)
        await house.launch(10)
        begun = time.monotonic()
        await asyncio.wait_for(run_with_wakes(house, broker(house)), DEADLINE_S)
        # Polling would take that long between any two of the ten calls.
        assert time.monotonic() - begun < 4 * MAX_WAIT_S


async def test_two_brokers_at_once_cancelled_again_and_again_never_call_too_many(stores: Stores) -> None:
    """Cancelled in the middle of everything, with answers and reports lost, and the limit changed meanwhile."""
    async with calling(stores, 6, lose_answers=0.1, lose_reports=0.1) as house:
        await house.limit(6, 20)
        job = await house.launch(60)
        tasks: list[asyncio.Task[None]] = []
        for fence in range(1, 13):
            tasks.append(asyncio.create_task(run_with_wakes(house, broker(house), fence)))
            await asyncio.sleep(0.15)
            if fence % 3 == 0:
                tasks[-2].cancel()
            if fence == 4:
                # Slots of lost calls are free once they were asked for.
                asking = asyncio.create_task(settle_again_and_again(house))
                await house.limit(3, 20)
                asking.cancel()
            if fence == 8:
                await house.limit(8, 20)
        last = asyncio.create_task(run_with_wakes(house, broker(house), 20))
        await until(lambda: finished(house, job))
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, last, return_exceptions=True)
        kinds = (Superseded, asyncio.CancelledError, type(None))
        assert [result for result in results if not isinstance(result, kinds)] == []
        assert house.twin.faults == []
        assert house.twin.rolling_faults(20) == []
        assert set(house.twin.dialled.values()) == {1}
        assert len(house.twin.calls) == 60
        assert await house.slots() == []


async def finished(house: CallCentre, job: CallJob) -> bool:
    """Asks for what was lost, without waiting for its time."""
    await stores_settled(house)
    return await is_over(house, job)


async def stores_settled(house: CallCentre) -> None:
    await house.ask_now()
    await poll_overdue_calls(house.jobs)


async def settle_again_and_again(house: CallCentre) -> None:
    while True:
        await stores_settled(house)
        await asyncio.sleep(0.1)


async def test_an_older_broker_stops_when_another_took_over(stores: Stores) -> None:
    async with calling(stores, 2) as house:
        await house.limit(2, 100)
        await house.launch(30)
        old = asyncio.create_task(run_with_wakes(house, broker(house), 1))
        await until(lambda: any_called(house))
        new = asyncio.create_task(run_with_wakes(house, broker(house), 2))
        with pytest.raises(Superseded):
            await asyncio.wait_for(old, DEADLINE_S)
        await asyncio.wait_for(new, DEADLINE_S)
        with pytest.raises(Superseded):
            await broker(house).run(1)
        assert house.twin.faults == []


async def any_called(house: CallCentre) -> bool:
    return bool(house.twin.calls)


async def test_pausing_holds_at_once_and_resuming_goes_on(stores: Stores) -> None:
    async with calling(stores, 2, talk_s=(0.05, 0.1)) as house:
        await house.limit(2, 50)
        job = await house.launch(12)
        running = asyncio.create_task(run_with_wakes(house, broker(house)))
        await until(lambda: any_called(house))
        await house.stores.call_jobs.act(house.org, job.id, JobAction.PAUSE)
        # What has a slot may still be on its way.
        begun = {*await house.slots(), *house.twin.calls}
        await asyncio.wait_for(running, DEADLINE_S)
        assert begun >= house.twin.calls.keys(), "Nothing begins in a paused job."
        await house.stores.call_jobs.act(house.org, job.id, JobAction.RESUME)
        await asyncio.wait_for(run_with_wakes(house, broker(house)), DEADLINE_S)
        assert set(house.twin.dialled.values()) == {1}
        assert len(house.twin.calls) == 12


class _Far(Broker):
    """Its calls' moments come when they are told to."""

    committed: asyncio.Event
    due: asyncio.Event

    async def _place_call(self, call: Call, moment: float) -> None:
        self.committed.set()
        await self.due.wait()
        await super()._place_call(call, time.monotonic())


@pytest.mark.parametrize(
    ("action", "state"), [(JobAction.PAUSE, "QUEUED"), (JobAction.CANCEL, "CANCELLED"), (None, "SKIPPED")]
)
async def test_what_is_stopped_between_commit_and_moment_is_not_dialled(
    stores: Stores, action: JobAction | None, state: str
) -> None:
    async with calling(stores, 1) as house:
        await house.limit(1, 100)
        job = await house.launch(1)
        made = _Far(stores.calls, house.telephony, house.org)
        made.committed, made.due = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(run_with_wakes(house, made))
        await asyncio.wait_for(made.committed.wait(), DEADLINE_S)
        if action is None:
            await stores.do_not_call.add(house.org, ["+819010000000"])
        else:
            await stores.call_jobs.act(house.org, job.id, action)
        made.due.set()
        await asyncio.wait_for(running, DEADLINE_S)
        assert house.twin.dialled == {}
        assert await house.states(job) == {"+819010000000": state}
        assert await house.slots() == []


async def test_a_number_that_must_not_be_called_is_looked_at_before_each_dial(stores: Stores) -> None:
    async with calling(stores, 1) as house:
        await house.limit(1, 100)
        job = await house.launch(4)
        await house.stores.do_not_call.add(house.org, ["+819010000002"])
        await asyncio.wait_for(run_with_wakes(house, broker(house)), DEADLINE_S)
        states = await house.states(job)
        assert states["+819010000002"] == "SKIPPED"
        assert "+819010000002" not in house.twin.dialled
        assert len(house.twin.calls) == 3


async def test_what_was_not_answered_is_tried_again_while_attempts_are_left(stores: Stores) -> None:
    async with calling(stores, 2, outcome="NO_ANSWER", talk_s=(0.01, 0.02)) as house:
        await house.limit(2, 100)
        job = await house.launch(3, max_attempts=3, retry_delay_s=0)
        await asyncio.wait_for(run_with_wakes(house, broker(house)), DEADLINE_S)
        assert set(house.twin.dialled.values()) == {3}
        assert set((await house.states(job)).values()) == {"FAILED"}
        progress = (await house.job(job)).progress
        assert [(count.outcome.value, count.count) for count in progress.outcomes] == [("NO_ANSWER", 9)]


async def test_a_late_call_is_refused_and_its_number_called_later(stores: Stores) -> None:
    """The commit's answer was on its way for too long: nothing is sent, and nothing is lost."""
    async with calling(stores, 1) as house:
        await house.limit(1, 100)
        job = await house.launch(2)
        house.twin.hold = asyncio.Event()
        running = asyncio.create_task(run_with_wakes(house, broker(house)))
        await asyncio.wait_for(house.twin.held.wait(), DEADLINE_S)
        await asyncio.sleep(0.5)
        house.twin.hold.set()
        await asyncio.wait_for(running, DEADLINE_S)
        assert sum(house.twin.refused.values()) >= 1
        assert set(house.twin.dialled.values()) == {1}
        tasks = await house.stores.call_jobs.tasks(await house.job(job), None, 0, 10)
        assert [task.attempts for task in tasks] == [1, 1]


class _HeldUp(Broker):
    """Its process stood still for a second before it could hand over the first call."""

    dials = 0

    async def _place_call(self, call: Call, moment: float) -> None:
        self.dials += 1
        await super()._place_call(call, moment - 1.0 if self.dials == 1 else moment)


async def test_what_a_process_that_was_held_up_would_send_too_late_is_not_sent_at_all(stores: Stores) -> None:
    """A service that knows no notAfter would make the call."""
    async with calling(stores, 1) as house:
        await house.limit(1, 100)
        job = await house.launch(1)
        made = _HeldUp(stores.calls, house.telephony, house.org)
        await asyncio.wait_for(run_with_wakes(house, made), DEADLINE_S)
        assert f"{job.id}-2-1" not in [*house.twin.calls, *house.twin.refused]
        assert set(house.twin.dialled.values()) == {1}
        (task,) = await house.stores.call_jobs.tasks(await house.job(job), None, 0, 10)
        assert (task.state.value, task.attempts) == ("COMPLETED", 1)


class _Interrupted:
    """Runs a coroutine and throws CancelledError into it at its n-th await that really waits."""

    def __init__(self, work: Any, at: int) -> None:
        self.work, self.at, self.awaits = work, at, 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self.work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited = inner.throw(error) if error is not None else inner.send(value)
            except StopIteration as stop:
                return stop.value
            self.awaits += 1
            value, error = None, None
            if self.awaits == self.at:
                # What it waited for goes on, as it does when a task is cancelled while a driver works.
                error = asyncio.CancelledError()
                if hasattr(waited, "_asyncio_future_blocking"):
                    waited._asyncio_future_blocking = False
                continue
            try:
                value = yield waited
            except BaseException as thrown:
                error = thrown


class _Cancelled(Broker):
    """Cancelled at the n-th await of `run`, of the first `_start_call` or of the first `_place_call`."""

    where, at, awaits = "run", -1, 0
    life: asyncio.Task[None] | None = None

    async def run(self, fence: int) -> None:
        self.life = asyncio.current_task()
        await self._interrupted("run", super().run(fence))

    async def _start_call(self, next_call: NextCall, fence: int) -> TimedStart | StartRefusal:
        result: TimedStart | StartRefusal = await self._interrupted(
            "_start_call", super()._start_call(next_call, fence)
        )
        return result

    async def _place_call(self, call: Call, moment: float) -> None:
        await self._interrupted("_place_call", super()._place_call(call, moment))

    async def _interrupted(self, name: str, work: Any) -> Any:
        if name != self.where or self.awaits:
            return await work
        made = _Interrupted(work, self.at)
        try:
            return await made
        except asyncio.CancelledError:
            assert self.life is not None
            self.life.cancel()
            raise
        finally:
            self.awaits = made.awaits


AT_ONCE = 12


@pytest.mark.parametrize("where", ["run", "_start_call", "_place_call"])
async def test_cancelled_at_any_await_a_broker_leaks_no_slot(stores: Stores, where: str) -> None:
    """At each await there is, a dozen organizations at once, until a run has none left to be cancelled at."""
    brokers: dict[str, Broker] = {}
    async with calling(stores, AT_ONCE, talk_s=(0.0, 0.01)) as house:
        listening = asyncio.create_task(stores.call_wake_ups.listen(lambda org, _released: brokers[org].wake()))
        asking = asyncio.create_task(ask_again_and_again(house))
        at = 1
        while all(await asyncio.gather(*(cancelled_at(house, brokers, where, at + n) for n in range(AT_ONCE)))):
            at += AT_ONCE
        for task in (listening, asking):
            task.cancel()
        assert house.twin.faults == []


async def ask_again_and_again(house: CallCentre) -> None:
    while True:
        await poll_overdue_calls(house.jobs)
        await asyncio.sleep(0.2)


async def cancelled_at(house: CallCentre, brokers: dict[str, Broker], where: str, at: int) -> bool:
    """Whether there was such an await. The next broker finishes the list, and calls no number again."""
    ours = replace(house, org=f"{house.org} {at}")
    one = brokers[ours.org] = _Cancelled(ours.stores.calls, ours.telephony, ours.org)
    one.where, one.at = where, at
    await ours.stores.call_jobs.set_limits(ours.org, 1, 100)
    job = await ours.launch(2)
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(one.run(1), DEADLINE_S)
    brokers[ours.org] = broker(ours)
    await asyncio.wait_for(brokers[ours.org].run(2), DEADLINE_S)
    assert await is_over(ours, job)
    assert await ours.slots() == [], f"cancelled at await {at} of {where}"
    dialled = Counter(call.number for call in ours.twin.calls.values() if call.id.startswith(job.id))
    assert dialled == {"+819010000000": 1, "+819010000001": 1}, f"cancelled at await {at} of {where}"
    return one.awaits >= at
