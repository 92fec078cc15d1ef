"""Polls the telephony service for overdue calls, in any worker. A call without a known outcome becomes UNKNOWN.

A slot ends with an answer, never by time alone: while the service does not answer, a call keeps its slot. An unclear
call is never repeated.
"""

import asyncio

import structlog

from jobs.context import JobContext
from jobs.providers.telephony import CallActive, CallEnded, CallState, CallUnknown, CallUntraceable, ServiceSilent
from storage.calls.call_changes import NOT_FOUND_TRUSTED_AFTER
from storage.calls.calls import OverdueCall
from storage.calls.limiter import JITTER_S
from storage.calls.records import LAST_SEQUENCE, CallReportEvent

MAX_CONCURRENT_POLLS = 200
CLAIM_SIZE = 50
UNKNOWN_AFTER_S = 600.0
LISTED_AFTER_S = 25.0
"""After this time the service's list of calls is trusted to contain a call that was handed over late and slowly."""


log = structlog.get_logger(__name__)


async def poll_overdue_calls(jobs: JobContext) -> int:
    """Polls calls whose report is overdue, many at once, until none is left. Returns how many were polled."""
    count, places = 0, asyncio.Semaphore(MAX_CONCURRENT_POLLS)
    async with asyncio.TaskGroup() as polls:
        while overdue := await jobs.stores.calls.take_overdue_calls(CLAIM_SIZE):
            for call in overdue:
                # A slow answer occupies one place and does not delay the others.
                await places.acquire()
                polls.create_task(_poll(jobs, call)).add_done_callback(lambda _: places.release())
            count += len(overdue)
    return count


async def sweep_abandoned_lists(jobs: JobContext) -> int:
    """Removes lists whose launch died. Returns how many."""
    return await jobs.stores.call_jobs.sweep()


async def _poll(jobs: JobContext, overdue: OverdueCall) -> None:
    if _may_be_unlisted(jobs, overdue):
        return
    try:
        found = await jobs.telephony.look_up(overdue.call)
        await _settle(jobs, overdue, found)
    except Exception as error:
        # The call is polled again in a minute.
        log.warning("call_poll_failed", call_id=overdue.call.id, error=repr(error))


def _may_be_unlisted(jobs: JobContext, overdue: OverdueCall) -> bool:
    """Whether the service can only search its list, and the call may not be listed yet."""
    needs_search = not jobs.telephony.honours_not_after and overdue.call.reference is None
    return needs_search and overdue.age_s < LISTED_AFTER_S


async def _settle(jobs: JobContext, overdue: OverdueCall, found: CallState) -> None:
    calls, call = jobs.stores.calls, overdue.call
    match found:
        case CallActive():
            return
        case CallUntraceable() if not overdue.is_unreported and overdue.age_s <= UNKNOWN_AFTER_S:
            # A report showed that the call was answered. The service may fail to identify it only for a while.
            return
        case CallUntraceable() if not overdue.is_unreported:
            await calls.mark_unknown(call, "The telephony service cannot identify the call.", keeps_slot=True)
        case CallEnded(outcome=outcome) if outcome is not None:
            await calls.report(call.id, LAST_SEQUENCE, CallReportEvent.ENDED, outcome)
        case CallEnded() | CallUntraceable():
            await calls.mark_unknown(call, "The telephony service does not know how the call ended.", keeps_slot=False)
        case CallUnknown() if not overdue.is_unreported:
            await calls.mark_unknown(call, "The telephony service has lost the call.", keeps_slot=False)
        case CallUnknown() if overdue.age_s > JITTER_S + NOT_FOUND_TRUSTED_AFTER.total_seconds():
            await calls.requeue(call)
        case CallUnknown():
            await calls.poll_early(call)
        case ServiceSilent(reason=reason) if overdue.age_s > UNKNOWN_AFTER_S:
            await calls.mark_unknown(call, f"The telephony service does not answer: {reason}", keeps_slot=True)
