"""Sweepers for calls: every worker polls overdue calls and removes the lists of unfinished launches.

A call whose outcome cannot be found becomes UNKNOWN and is never repeated. Time alone never frees a slot: a call keeps
its slot while the telephony service does not respond.
"""

import asyncio

import structlog

from jobs.context import JobContext
from jobs.providers.telephony import (
    CallActive,
    CallEnded,
    CallNotFound,
    CallState,
    CallUntraceable,
    QueryFailed,
    Telephony,
)
from storage.calls.call_changes import NOT_FOUND_TRUSTED_AFTER
from storage.calls.calls import OverdueCall
from storage.calls.limiter import JITTER_S
from storage.calls.records import POLLED_SEQUENCE, CallReportKind

MAX_CONCURRENT_POLLS = 200
CLAIM_SIZE = 50
UNKNOWN_AFTER_S = 600.0
"""The age at which a call becomes UNKNOWN if the service does not respond, or cannot identify an answered call."""

LISTED_AFTER_S = 25.0
"""The age from which the service lists a call, even if the request to start the call was late and slow."""

log = structlog.get_logger(__name__)


async def poll_overdue_calls(jobs: JobContext) -> int:
    """Claims calls whose report is overdue until none is left, and polls them concurrently. Returns how many."""
    if jobs.telephony is None:
        return 0
    count, permits = 0, asyncio.Semaphore(MAX_CONCURRENT_POLLS)
    async with asyncio.TaskGroup() as polls:
        while overdue := await jobs.stores.calls.claim_overdue_calls(CLAIM_SIZE):
            for call in overdue:
                # A slow response occupies one permit only, so the other polls continue.
                await permits.acquire()
                polls.create_task(_poll(jobs, jobs.telephony, call)).add_done_callback(lambda _: permits.release())
            count += len(overdue)
    return count


async def sweep_abandoned_lists(jobs: JobContext) -> int:
    """Removes the call lists of all launches that did not finish. Returns how many."""
    removed = 0
    while removed_now := await jobs.stores.call_jobs.sweep():
        removed += removed_now
    return removed


async def _poll(jobs: JobContext, telephony: Telephony, overdue: OverdueCall) -> None:
    if _may_be_unlisted(telephony, overdue):
        return
    try:
        state = await telephony.look_up(overdue.call)
        await _store_outcome(jobs, overdue, state)
    except Exception as error:
        # The call is polled again in a minute.
        log.warning("call_poll_failed", call_id=overdue.call.id, error=repr(error))


def _may_be_unlisted(telephony: Telephony, overdue: OverdueCall) -> bool:
    """Returns whether the call can only be searched for in the service's list, and may not be listed yet."""
    # A service that honours notAfter also finds calls by callId. Others need their own identifier of the call.
    is_found_by_id = telephony.honours_not_after or overdue.call.reference is not None
    return not is_found_by_id and overdue.age_s < LISTED_AFTER_S


async def _store_outcome(jobs: JobContext, overdue: OverdueCall, state: CallState) -> None:
    """Stores the outcome that follows from the call's state. Without an outcome, the call is polled again later."""
    calls, call = jobs.stores.calls, overdue.call
    match state:
        case CallActive():
            return
        case CallUntraceable() if overdue.has_report and overdue.age_s <= UNKNOWN_AFTER_S:
            # A report said that the call was answered, so the service may still identify the call later.
            return
        case CallUntraceable() if overdue.has_report:
            await calls.mark_unknown(call, "The telephony service cannot identify the call.", keeps_slot=True)
        case CallEnded(outcome=outcome) if outcome is not None:
            await calls.report(call.id, POLLED_SEQUENCE, CallReportKind.ENDED, outcome)
        case CallEnded() | CallUntraceable():
            await calls.mark_unknown(call, "The telephony service does not know how the call ended.", keeps_slot=False)
        case CallNotFound() if overdue.has_report:
            await calls.mark_unknown(call, "The telephony service has lost the call.", keeps_slot=False)
        case CallNotFound() if overdue.age_s > JITTER_S + NOT_FOUND_TRUSTED_AFTER.total_seconds():
            await calls.requeue(call)
        case CallNotFound():
            await calls.schedule_early_poll(call)
        case QueryFailed(reason=reason) if overdue.age_s > UNKNOWN_AFTER_S:
            await calls.mark_unknown(call, f"The telephony service does not answer: {reason}", keeps_slot=True)
