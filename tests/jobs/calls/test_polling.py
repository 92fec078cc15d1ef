"""What is believed of an answer to a question: whose slot ends, who is called again, and who never is."""

import asyncio
from dataclasses import dataclass, field

import pytest

from jobs.calls.broker import Broker
from jobs.calls.polling import UNKNOWN_AFTER_S, poll_overdue_calls
from jobs.providers.telephony import Active, Answer, Ended, Found, Never, Silent, Unclear, Untraceable
from storage.calls.call_changes import Call
from storage.calls.calls import NextCall, TimedStart
from storage.calls.records import CallOutcome, CallReportEvent, TaskKey
from storage.stores import Stores
from tests.jobs.calls.call_centre import CallCentre, calling
from tests.jobs.contexts import job_context
from tests.jobs.providers.telephony.test_twilio import twilio
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.anyio

AHEAD, LATER, TOO_LONG = -60.0, 6.0, UNKNOWN_AFTER_S + 1


@dataclass
class Saying:
    """A telephony side that answers every question so."""

    found: Found
    honours_not_after = True

    async def start(self, call: Call) -> Answer:
        return Unclear("nobody asks for calls here")

    async def look_up(self, call: Call) -> Found:
        return self.found

    async def aclose(self) -> None:
        return


async def started(house: CallCentre, age_s: float) -> str:
    """The id of the one call of a new list, whose answer was lost so long ago."""
    job = await house.launch(1)
    task = TaskKey(job.id, 2)
    while not isinstance(
        start := await house.stores.calls.start(house.org, NextCall(task, "+819010000000"), 1), TimedStart
    ):
        await asyncio.sleep(0.01)
    earlier = {"$subtract": ["$call.start_at", int(age_s * 1000)]}
    tasks = house.stores.mongo["call_tasks"]
    await tasks.update_one({"_id": task.document_id}, [{"$set": {"call.start_at": earlier}}])
    return start.call.id


async def after_asking(house: CallCentre, found: Found) -> tuple[str, bool, int]:
    """Its number's state, whether a slot is taken, and how many attempts were counted."""
    await house.ask_now()
    jobs = job_context(house.stores, telephony=Saying(found))
    assert await poll_overdue_calls(jobs) == 1
    assert await poll_overdue_calls(jobs) == 0, "once was enough for now"
    task = await house.stores.mongo["call_tasks"].find_one({"org": house.org})
    assert task is not None
    return task["state"], bool(await house.slots()), task["attempts"]


@pytest.mark.parametrize(
    ("found", "age_s", "after"),
    [
        (Active(), LATER, ("DIALLING", True, 1)),
        (Ended(CallOutcome.ANSWERED), LATER, ("COMPLETED", False, 1)),
        (Ended(None), LATER, ("UNKNOWN", False, 1)),
        (Untraceable(), LATER, ("UNKNOWN", False, 1)),
        # "Never heard of it" may be said of a call that is still on its way.
        (Never(), AHEAD, ("DIALLING", True, 1)),
        (Never(), LATER, ("QUEUED", False, 0)),
        (Silent("no answer"), LATER, ("DIALLING", True, 1)),
        # Time alone ends no slot.
        (Silent("no answer"), TOO_LONG, ("UNKNOWN", True, 1)),
    ],
)
async def test_a_call_that_nothing_was_heard_of(
    stores: Stores, found: Found, age_s: float, after: tuple[str, bool, int]
) -> None:
    async with calling(stores, 1) as house:
        await started(house, age_s)
        assert await after_asking(house, found) == after


async def test_who_answered_is_never_called_again_although_the_telephony_side_forgot(stores: Stores) -> None:
    async with calling(stores, 1) as house:
        call_id = await started(house, LATER)
        await house.stores.calls.report(call_id, 1, CallReportEvent.ANSWERED, None)
        assert await after_asking(house, Never()) == ("UNKNOWN", False, 1)


@dataclass
class Slow(Saying):
    """Answers each question once so many are open at a time."""

    wanted: int = 1
    asked: list[str] = field(default_factory=list)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def look_up(self, call: Call) -> Found:
        self.asked.append(call.id)
        if len(self.asked) >= self.wanted:
            self.enough.set()
        await self.enough.wait()
        return self.found


async def test_many_silent_calls_are_asked_for_at_once_and_each_by_one_worker(stores: Stores) -> None:
    numbers = 120
    async with calling(stores, numbers) as house:
        job = await house.launch(numbers)
        silent = {"state": "DIALLING", "call": {"n": 1, "seq": -1, "over": False}, "dials": 1, "attempts": 1}
        early = {"call.start_at": {"$subtract": ["$$NOW", 60_000]}, "ask_at": {"$subtract": ["$$NOW", 1000]}}
        await stores.mongo["call_tasks"].update_many({"_id.j": job.id}, [{"$set": silent}, {"$set": early}])
        slow = Slow(Active(), wanted=numbers)
        jobs = job_context(house.stores, telephony=slow)
        async with asyncio.timeout(DEADLINE_S):
            counts = await asyncio.gather(*(poll_overdue_calls(jobs) for _ in range(2)))
        assert sum(counts) == len(slow.asked) == len(set(slow.asked)) == numbers


@pytest.mark.parametrize("found", [Untraceable(), Ended(None)])
async def test_who_talks_keeps_the_slot_while_nobody_can_tell_which_call_it_is(stores: Stores, found: Found) -> None:
    async with calling(stores, 1) as house:
        call_id = await started(house, LATER)
        await house.stores.calls.report(call_id, 1, CallReportEvent.ANSWERED, None)
        expected = ("IN_CALL", True, 1) if isinstance(found, Untraceable) else ("UNKNOWN", False, 1)
        assert await after_asking(house, found) == expected


async def test_a_call_that_is_not_in_the_list_yet_keeps_its_slot(stores: Stores) -> None:
    """Where the service knows no callId it may be on its way there still."""
    async with calling(stores, 1) as house:
        await started(house, LATER)
        await house.ask_now()
        listing = Saying(Untraceable())
        listing.honours_not_after = False
        await poll_overdue_calls(job_context(house.stores, telephony=listing))
        assert await house.slots() != []
        assert await after_asking(house, Untraceable()) == ("UNKNOWN", False, 1)


async def test_somebody_who_talks_to_twilio_keeps_the_slot_although_the_number_was_busy_before(stores: Stores) -> None:
    async with calling(stores, 1) as house, twilio() as (twin, telephony):
        await house.limit(1, 100)
        job = await house.launch(1, max_attempts=2, retry_delay_s=0)
        broker = Broker(house.stores.calls, telephony, house.org)
        dialling = asyncio.create_task(broker.run(1))
        await until(lambda: are_known(house, 1))
        (first,) = twin.calls
        twin.goes_on(first, "busy")
        await house.stores.calls.report(f"{job.id}-2-1", 3, CallReportEvent.ENDED, CallOutcome.BUSY)
        broker.wake()
        await until(lambda: are_known(house, 2))
        second = list(twin.calls)[1]
        twin.goes_on(second, "in-progress")
        await house.stores.calls.report(f"{job.id}-2-2", 2, CallReportEvent.ANSWERED, None)
        for _ in range(2):
            await house.ask_now()
            await poll_overdue_calls(job_context(house.stores, telephony=telephony))
            assert await house.slots() == [f"{job.id}-2-2"]
        twin.goes_on(second, "completed")
        await house.ask_now()
        await poll_overdue_calls(job_context(house.stores, telephony=telephony))
        assert await house.slots() == []
        assert list((await house.states(job)).values()) == ["COMPLETED"]
        broker.stop()
        await dialling


async def are_known(house: CallCentre, number: int) -> bool:
    """Whether Twilio's name of the number's latest call is stored."""
    wanted = {"org": house.org, "call.n": number, "call.reference": {"$exists": True}}
    return await house.stores.mongo["call_tasks"].find_one(wanted) is not None


async def test_a_late_report_settles_what_was_given_up(stores: Stores) -> None:
    async with calling(stores, 1) as house:
        call_id = await started(house, TOO_LONG)
        assert await after_asking(house, Silent("no answer")) == ("UNKNOWN", True, 1)
        task = await house.stores.calls.report(call_id, 7, CallReportEvent.ENDED, CallOutcome.VOICEMAIL)
        assert task.state.value == "COMPLETED"
        assert await house.slots() == []
