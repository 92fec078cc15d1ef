"""Calls that nothing is heard of are asked for, by any worker; what nobody can tell is UNKNOWN, never called twice.

A slot ends with an answer, not with time: while the telephony side does not answer, the call keeps its own.
"""

import asyncio

import structlog

from jobs.context import JobContext
from jobs.providers.telephony import Active, Ended, Found, Never, Silent, Untraceable
from storage.calls.call_changes import NOT_FOUND_TRUSTED_AFTER
from storage.calls.calls import OverdueCall
from storage.calls.limiter import JITTER_S
from storage.calls.records import LAST_SEQUENCE, CallReportEvent

AT_ONCE = 200
CLAIM_SIZE = 50
UNKNOWN_AFTER_S = 600.0
LISTED_AFTER_S = 25.0
"""A call that was handed over late, and slowly, is in the service's list by then."""


log = structlog.get_logger(__name__)


async def poll_overdue_calls(jobs: JobContext) -> int:
    """Asks for calls whose report is overdue, many at once, until none is. Returns for how many."""
    count, room = 0, asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as asking:
        while overdue := await jobs.stores.calls.take_overdue_calls(CLAIM_SIZE):
            for silence in overdue:
                # A slow answer holds up one place, not all.
                await room.acquire()
                asking.create_task(_ask(jobs, silence)).add_done_callback(lambda _asked: room.release())
            count += len(overdue)
    return count


async def sweep_abandoned_lists(jobs: JobContext) -> int:
    """Removes lists whose launch died. Returns how many."""
    return await jobs.stores.call_jobs.sweep()


async def _ask(jobs: JobContext, silence: OverdueCall) -> None:
    if _may_be_on_its_way(jobs, silence):
        return
    try:
        found = await jobs.telephony.look_up(silence.call)
        await _settle(jobs, silence, found)
    except Exception as error:
        # It is asked for again.
        log.warning("asking_failed", call_id=silence.call.id, error=repr(error))


def _may_be_on_its_way(jobs: JobContext, silence: OverdueCall) -> bool:
    """Whether a service that knows neither callId nor notAfter can't be believed yet: it is asked in a minute."""
    is_nameless = not jobs.telephony.honours_not_after and silence.call.reference is None
    return is_nameless and silence.asked_for_s < LISTED_AFTER_S


async def _settle(jobs: JobContext, silence: OverdueCall, found: Found) -> None:
    calls, call = jobs.stores.calls, silence.call
    match found:
        case Active():
            return
        case Untraceable() if not silence.is_waiting and silence.asked_for_s <= UNKNOWN_AFTER_S:
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
        case Never() if silence.asked_for_s > JITTER_S + NOT_FOUND_TRUSTED_AFTER.total_seconds():
            await calls.requeue(call)
        case Never():
            await calls.poll_early(call)
        case Silent(reason=reason) if silence.asked_for_s > UNKNOWN_AFTER_S:
            await calls.lose(call, f"The telephony side does not answer: {reason}", keeps_slot=True)
