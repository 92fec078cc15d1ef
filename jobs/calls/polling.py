"""Calls that nothing is heard of are asked for, by any worker; what nobody can tell is UNKNOWN, never called twice.

A slot ends with an answer, not with time: while the telephony side does not answer, the call keeps its own.
"""

import asyncio

import structlog

from jobs.context import JobContext
from jobs.providers.telephony import Active, Ended, Found, Never, Silent, Untraceable
from storage.calls.call_store import Silence
from storage.calls.dialling import SETTLED_AFTER
from storage.calls.limiter import JITTER_S
from storage.calls.records import LAST_SEQUENCE, CallReportEvent

AT_ONCE = 200
TAKEN_AT_ONCE = 50
GIVEN_UP_AFTER_S = 600.0
LISTED_AFTER_S = 25.0
"""A call that was handed over late, and slowly, is in the service's list by then."""


log = structlog.get_logger(__name__)


async def ask_for_silent_calls(jobs: JobContext) -> int:
    """Asks for calls whose report is overdue, many at once, until none is. Returns for how many."""
    count, room = 0, asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as asking:
        while silences := await jobs.stores.calls.silences(TAKEN_AT_ONCE):
            for silence in silences:
                # A slow answer holds up one place, not all.
                await room.acquire()
                asking.create_task(_ask(jobs, silence)).add_done_callback(lambda _asked: room.release())
            count += len(silences)
    return count


async def sweep_abandoned_lists(jobs: JobContext) -> int:
    """Removes lists whose launch died. Returns how many."""
    return await jobs.stores.call_jobs.sweep()


async def _ask(jobs: JobContext, silence: Silence) -> None:
    if _may_be_on_its_way(jobs, silence):
        return
    try:
        found = await jobs.telephony.look_up(silence.call)
        await _settle(jobs, silence, found)
    except Exception as error:
        # It is asked for again.
        log.warning("asking_failed", call_id=silence.call.id, error=repr(error))


def _may_be_on_its_way(jobs: JobContext, silence: Silence) -> bool:
    """Whether a service that knows neither callId nor notAfter can't be believed yet: it is asked in a minute."""
    is_nameless = not jobs.telephony.honours_not_after and silence.call.reference is None
    return is_nameless and silence.asked_for_s < LISTED_AFTER_S


async def _settle(jobs: JobContext, silence: Silence, found: Found) -> None:
    calls, call = jobs.stores.calls, silence.call
    match found:
        case Active():
            return
        case Untraceable() if not silence.is_waiting and silence.asked_for_s <= GIVEN_UP_AFTER_S:
            # It was heard of, and may be the one that goes on.
            return
        case Untraceable() if not silence.is_waiting:
            await calls.lose(call, "The telephony side can't tell which call it is.", keeps_slot=True)
        case Ended(outcome=outcome) if outcome is not None:
            await calls.report(call.id, LAST_SEQUENCE, CallReportEvent.ENDED, outcome)
        case Ended() | Untraceable():
            await calls.lose(call, "The telephony side does not know how the call ended.", keeps_slot=False)
        case Never() if not silence.is_waiting:
            await calls.lose(call, "The telephony side forgot the call.", keeps_slot=False)
        case Never() if silence.asked_for_s > JITTER_S + SETTLED_AFTER.total_seconds():
            await calls.give_back(call)
        case Never():
            await calls.ask_early(call)
        case Silent(reason=reason) if silence.asked_for_s > GIVEN_UP_AFTER_S:
            await calls.lose(call, f"The telephony side does not answer: {reason}", keeps_slot=True)
