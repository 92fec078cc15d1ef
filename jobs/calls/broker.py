"""One organization's broker: starts the calls of the organization's jobs as soon as limits and windows allow.

A broker plans its work after wake-ups, at deadlines, and at least every 5 s. A broker that is cancelled at any await
leaks no slot, because a slot is committed with its call's intent and ends with the call.
"""

import asyncio
import time

import structlog

from jobs.providers.telephony import CallDeferred, CallRefused, CallStarted, StartOutcome, StartUncertain, Telephony
from storage.calls.call_changes import Call, StartRefusal
from storage.calls.calls import CallStore, NextCall, TimedStart, WorkPlan
from storage.calls.limiter import JITTER_S
from storage.errors import Unavailable
from storage.metrics import CALL_ANSWERS, CALL_START_DELAY_S, CALLS_LATE

MAX_WAIT_S = 5.0
"""The longest time between two plans. Redis may lose wake-ups, and a plan costs a few reads."""

WAIT_WITHOUT_WAKE_UPS_S = 0.5
"""The longest time between two plans while no wake-ups can arrive, so that freed slots are used soon without Redis."""

DRAIN_S = 12.0
"""How long a stopping broker waits for requests to the telephony service."""

RETRY_S = 0.5
WINDOW_CLOSING_S = 0.05
"""The pause before the jobs are planned again, when the window closes before any of the planned calls can start."""

log = structlog.get_logger(__name__)


class Broker:
    """Starts calls for one organization while its process holds the organization's lock."""

    def __init__(self, calls: CallStore, telephony: Telephony, organization_id: str) -> None:
        self._calls = calls
        self._telephony = telephony
        self._organization_id = organization_id
        # A service that ignores notAfter refuses no late call, so half of the jitter is reserved for the request.
        self._max_late_s = JITTER_S if telephony.honours_not_after else JITTER_S / 2
        self._woken = asyncio.Event()
        self._is_stopping = False
        self._call_tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Makes the broker plan again, because something changed for the organization."""
        self._woken.set()

    def stop(self) -> None:
        """Starts no further call. `run` returns when the telephony service has answered the requests in progress."""
        self._is_stopping = True
        self._woken.set()

    async def run(self, fence: int) -> None:
        """Starts calls until no work is left or `stop` is called. Raises: BrokerSuperseded by another broker."""
        try:
            await self._calls.take_over(self._organization_id, fence)
            while not self._is_stopping:
                self._woken.clear()
                wait_s = await self._do_due_work(fence)
                if wait_s is None:
                    return
                await self._wait(wait_s)
        finally:
            await self._drain()

    async def _do_due_work(self, fence: int) -> float | None:
        """Does the work that is due. Returns how many seconds to wait for more, or None when there is no work."""
        try:
            plan = await self._calls.plan_work(self._organization_id)
            if not plan.has_work:
                return None
            for job_id in plan.outdated_job_ids:
                await self._calls.refresh_job_state(self._organization_id, job_id)
            if plan.calls:
                return await self._start_calls(plan, fence)
        except Unavailable as error:
            log.warning("broker_delayed", organization=self._organization_id, error=repr(error))
            return RETRY_S
        if plan.outdated_job_ids:
            return 0.0
        return self._wait_s(plan)

    async def _start_calls(self, plan: WorkPlan, fence: int) -> float:
        """Commits the intents together, and creates a task for each call that got a slot. Returns how long to wait."""
        results = await asyncio.gather(*(self._start_call(call, fence) for call in plan.calls), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        plan_at = [result.plan_at for result in results if isinstance(result, TimedStart)]
        if len(plan_at) == len(results):
            return min(max(plan_at) - time.monotonic(), self._wait_s(plan))
        # When every number was refused although it was planned, the window is about to close.
        return WINDOW_CLOSING_S if all(result is StartRefusal.NOT_CALLABLE for result in results) else 0.0

    async def _start_call(self, next_call: NextCall, fence: int) -> TimedStart | StartRefusal:
        start = await self._calls.start(self._organization_id, next_call, fence)
        if isinstance(start, TimedStart):
            task = asyncio.create_task(self._place_call(start.call, start.due))
            self._call_tasks.add(task)
            task.add_done_callback(self._call_tasks.discard)
        return start

    async def _place_call(self, call: Call, due_s: float) -> None:
        """Sends a call to the telephony service at a time of the monotonic clock, and stores the outcome."""
        try:
            await asyncio.sleep(due_s - time.monotonic())
            if not await self._may_still_start(call):
                await self._calls.requeue(call)
                return
            late_s = time.monotonic() - due_s
            CALL_START_DELAY_S.observe(late_s)
            if late_s > self._max_late_s:
                # This process was paused. A start now could exceed the limit of starts in a rolling second.
                CALL_ANSWERS.labels("TooLate").inc()
                await self._calls.requeue(call)
                return
            outcome = await self._telephony.start(call)
            if time.monotonic() - due_s > JITTER_S and not self._telephony.honours_not_after:
                CALLS_LATE.inc()
            CALL_ANSWERS.labels(type(outcome).__name__).inc()
            await self._store_outcome(call, outcome)
        except Exception as error:
            # Nothing awaits this task. The intent is stored, so polling finds the outcome.
            log.warning("call_start_failed", call_id=call.id, error=repr(error))

    async def _may_still_start(self, call: Call) -> bool:
        """Returns False if the call was paused, cancelled or forbidden since its commit, or if the check fails."""
        try:
            return await self._calls.may_still_start(call)
        except Exception as error:
            # The telephony service has not received the call, so requeueing it is safe.
            log.warning("call_check_failed", call_id=call.id, error=repr(error))
            return False

    async def _store_outcome(self, call: Call, outcome: StartOutcome) -> None:
        match outcome:
            case CallStarted(reference=str() as reference):
                await self._calls.store_reference(call.id, reference)
            case CallDeferred(hold_off_s=hold_off_s):
                await self._calls.requeue(call, hold_off_s)
            case CallRefused(reason=reason):
                await self._calls.fail(call, reason)
            case StartUncertain(reason=reason):
                log.warning("call_start_unclear", call_id=call.id, reason=reason)
                await self._calls.schedule_early_poll(call)

    def _wait_s(self, plan: WorkPlan) -> float:
        longest_s = MAX_WAIT_S if self._calls.wake_ups.is_receiving else WAIT_WITHOUT_WAKE_UPS_S
        return longest_s if plan.wait_s is None else min(plan.wait_s, longest_s)

    async def _wait(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _drain(self) -> None:
        """Waits until the telephony service has answered all requests, so that no call has to be polled."""
        if self._call_tasks:
            await asyncio.wait(self._call_tasks, timeout=DRAIN_S)
