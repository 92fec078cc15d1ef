"""Reconciliation of overdue calls by polling: when a slot is freed, and when a number may be called again."""

import asyncio
from dataclasses import dataclass, field

import pytest

from jobs.calls.broker import Broker
from jobs.calls.polling import UNKNOWN_AFTER_S, poll_overdue_calls
from jobs.providers.telephony import (
    CallActive,
    CallEnded,
    CallNotFound,
    CallState,
    CallUntraceable,
    QueryFailed,
    StartOutcome,
    StartUncertain,
)
from storage.calls.call_changes import Call
from storage.calls.calls import NextCall, TimedStart
from storage.calls.records import CallOutcome, CallReportKind, TaskKey
from storage.stores import Stores
from tests.jobs.calls.call_centre import CallCentre, call_centre
from tests.jobs.contexts import job_context
from tests.jobs.providers.telephony.test_twilio import twilio
from tests.jobs.providers.telephony.twilio_twin import TwilioTwin
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.anyio

BEFORE_START_S, AFTER_START_S, PAST_UNKNOWN_S = -60.0, 6.0, UNKNOWN_AFTER_S + 1
"""Ages of a call: before its start, shortly after it, and so old that the call becomes UNKNOWN without an answer."""


@dataclass
class FixedAnswerTelephony:
    """A telephony service that gives every poll the same answer."""

    answer: CallState
    honours_not_after = True

    async def start(self, call: Call) -> StartOutcome:
        return StartUncertain("This service starts no calls.")

    async def look_up(self, call: Call) -> CallState:
        return self.answer

    async def aclose(self) -> None:
        return


async def start_call(centre: CallCentre, age_s: float) -> str:
    """Starts the only call of a new list, and sets its start time to `age_s` ago. Returns the call's id."""
    job = await centre.launch(1)
    task = TaskKey(job.id, 2)
    while not isinstance(
        start := await centre.stores.calls.start(centre.org, NextCall(task, "+819010000000"), 1), TimedStart
    ):
        await asyncio.sleep(0.01)
    earlier = {"$subtract": ["$call.start_at", int(age_s * 1000)]}
    tasks = centre.stores.mongo["call_tasks"]
    await tasks.update_one({"_id": task.document_id}, [{"$set": {"call.start_at": earlier}}])
    return start.call.id


async def poll_once(centre: CallCentre, answer: CallState) -> tuple[str, bool, int]:
    """Polls once. Returns the number's state, whether a slot is taken, and the attempts."""
    await centre.make_calls_overdue()
    jobs = job_context(centre.stores, telephony=FixedAnswerTelephony(answer))
    assert await poll_overdue_calls(jobs) == 1
    assert await poll_overdue_calls(jobs) == 0, "A call was polled twice."
    task = await centre.stores.mongo["call_tasks"].find_one({"org": centre.org})
    assert task is not None
    return task["state"], bool(await centre.slots()), task["attempts"]


@pytest.mark.parametrize(
    ("answer", "age_s", "expected"),
    [
        (CallActive(), AFTER_START_S, ("DIALLING", True, 1)),
        (CallEnded(CallOutcome.ANSWERED), AFTER_START_S, ("COMPLETED", False, 1)),
        (CallEnded(None), AFTER_START_S, ("UNKNOWN", False, 1)),
        (CallUntraceable(), AFTER_START_S, ("UNKNOWN", False, 1)),
        # The service does not know a call before its start.
        (CallNotFound(), BEFORE_START_S, ("DIALLING", True, 1)),
        (CallNotFound(), AFTER_START_S, ("QUEUED", False, 0)),
        (QueryFailed("no answer"), AFTER_START_S, ("DIALLING", True, 1)),
        # Time alone frees no slot.
        (QueryFailed("no answer"), PAST_UNKNOWN_S, ("UNKNOWN", True, 1)),
    ],
)
async def test_unreported_call_is_reconciled_by_the_answer(
    stores: Stores, answer: CallState, age_s: float, expected: tuple[str, bool, int]
) -> None:
    async with call_centre(stores, 1) as centre:
        await start_call(centre, age_s)
        assert await poll_once(centre, answer) == expected


async def test_answered_call_that_service_lost_is_unknown(stores: Stores) -> None:
    async with call_centre(stores, 1) as centre:
        call_id = await start_call(centre, AFTER_START_S)
        await centre.stores.calls.report(call_id, 1, CallReportKind.ANSWERED, None)
        assert await poll_once(centre, CallNotFound()) == ("UNKNOWN", False, 1)


@dataclass
class HeldAnswerTelephony(FixedAnswerTelephony):
    """A telephony service that answers only after `needed_polls` polls have arrived."""

    needed_polls: int = 1
    polled_call_ids: list[str] = field(default_factory=list)
    have_all_arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def look_up(self, call: Call) -> CallState:
        self.polled_call_ids.append(call.id)
        if len(self.polled_call_ids) >= self.needed_polls:
            self.have_all_arrived.set()
        await self.have_all_arrived.wait()
        return self.answer


async def test_overdue_calls_are_polled_concurrently_and_once(stores: Stores) -> None:
    numbers = 120
    async with call_centre(stores, numbers) as centre:
        job = await centre.launch(numbers)
        overdue_fields = {"state": "DIALLING", "call": {"n": 1, "seq": -1, "over": False}, "dials": 1, "attempts": 1}
        times = {"call.start_at": {"$subtract": ["$$NOW", 60_000]}, "poll_at": {"$subtract": ["$$NOW", 1000]}}
        await stores.mongo["call_tasks"].update_many({"_id.j": job.id}, [{"$set": overdue_fields}, {"$set": times}])
        held_telephony = HeldAnswerTelephony(CallActive(), needed_polls=numbers)
        jobs = job_context(centre.stores, telephony=held_telephony)
        async with asyncio.timeout(DEADLINE_S):
            counts = await asyncio.gather(*(poll_overdue_calls(jobs) for _ in range(2)))
        assert sum(counts) == len(held_telephony.polled_call_ids) == len(set(held_telephony.polled_call_ids)) == numbers


@pytest.mark.parametrize("answer", [CallUntraceable(), CallEnded(None)])
async def test_answered_call_keeps_its_slot_only_if_untraceable(stores: Stores, answer: CallState) -> None:
    async with call_centre(stores, 1) as centre:
        call_id = await start_call(centre, AFTER_START_S)
        await centre.stores.calls.report(call_id, 1, CallReportKind.ANSWERED, None)
        expected = ("IN_CALL", True, 1) if isinstance(answer, CallUntraceable) else ("UNKNOWN", False, 1)
        assert await poll_once(centre, answer) == expected


async def test_call_not_yet_in_list_keeps_its_slot(stores: Stores) -> None:
    """Without callIds, only the service's list of calls can be searched. It may lack a call that just started."""
    async with call_centre(stores, 1) as centre:
        await start_call(centre, AFTER_START_S)
        await centre.make_calls_overdue()
        telephony = FixedAnswerTelephony(CallUntraceable())
        telephony.honours_not_after = False
        await poll_overdue_calls(job_context(centre.stores, telephony=telephony))
        assert await centre.slots() != []
        assert await poll_once(centre, CallUntraceable()) == ("UNKNOWN", False, 1)


async def test_retried_call_at_twilio_keeps_its_slot(stores: Stores) -> None:
    """The number was busy before. Its second call is in progress at Twilio."""
    async with call_centre(stores, 1) as centre, twilio() as (twin, telephony):
        await centre.limit(1, 100)
        job = await centre.launch(1, max_attempts=2, retry_delay_s=0)
        broker = Broker(centre.stores.calls, telephony, centre.org)
        dialling = asyncio.create_task(broker.run(1))
        await until(lambda: is_sid_stored(centre, twin, 0))
        # The ids are read from the slots: a delayed broker requeues a call, and the next call has another number.
        (first,) = await centre.slots()
        twin.set_status(next(iter(twin.calls)), "busy")
        await centre.stores.calls.report(first, 3, CallReportKind.ENDED, CallOutcome.BUSY)
        broker.wake()
        await until(lambda: is_sid_stored(centre, twin, 1))
        (second,) = await centre.slots()
        twin.set_status(list(twin.calls)[1], "in-progress")
        await centre.stores.calls.report(second, 2, CallReportKind.ANSWERED, None)
        for _ in range(2):
            await centre.make_calls_overdue()
            await poll_overdue_calls(job_context(centre.stores, telephony=telephony))
            assert await centre.slots() == [second]
        twin.set_status(list(twin.calls)[1], "completed")
        await centre.make_calls_overdue()
        await poll_overdue_calls(job_context(centre.stores, telephony=telephony))
        assert await centre.slots() == []
        assert list((await centre.states(job)).values()) == ["COMPLETED"]
        broker.stop()
        await dialling


async def is_sid_stored(centre: CallCentre, twin: TwilioTwin, index: int) -> bool:
    """Returns whether the SID of the twin's call at that index is stored with its task."""
    sids = list(twin.calls)[index : index + 1]
    return await centre.stores.mongo["call_tasks"].find_one({"call.reference": {"$in": sids}}) is not None


async def test_late_report_finishes_an_unknown_call(stores: Stores) -> None:
    async with call_centre(stores, 1) as centre:
        call_id = await start_call(centre, PAST_UNKNOWN_S)
        assert await poll_once(centre, QueryFailed("no answer")) == ("UNKNOWN", True, 1)
        task = await centre.stores.calls.report(call_id, 7, CallReportKind.ENDED, CallOutcome.VOICEMAIL)
        assert task.state.value == "COMPLETED"
        assert await centre.slots() == []
