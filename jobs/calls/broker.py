"""One organization's broker: works through its jobs, and dials as soon as limits and windows allow it.

It waits for news and for deadlines, never by a polling interval. Cancelled at any await it leaves no slot behind that
is not asked for: a slot is committed with its call's intent, and ends with the call.
"""

import asyncio
import time

import structlog

from jobs.providers.telephony import Answer, Began, NotNow, Refused, Telephony, Unclear
from storage.calls.call_changes import Call, StartRefusal
from storage.calls.calls import CallStore, NextCall, TimedStart, WorkPlan
from storage.calls.limiter import JITTER_S
from storage.errors import Unavailable
from storage.metrics import CALL_ANSWERS, CALL_START_DELAY_S, CALLS_LATE

MAX_WAIT_S = 5.0
"""News may have been lost with Redis; looking costs three reads."""

DRAIN_S = 12.0
RETRY_S = 0.5
WINDOW_CLOSING_S = 0.05

log = structlog.get_logger(__name__)


class Broker:
    """Dials for one organization while its process holds the organization's lock."""

    def __init__(self, calls: CallStore, telephony: Telephony, organization_id: str) -> None:
        self._calls = calls
        self._telephony = telephony
        self._organization_id = organization_id
        # Where nobody else refuses what is late, there must be time left for the way there.
        self._patience_s = JITTER_S if telephony.honours_not_after else JITTER_S / 2
        self._news = asyncio.Event()
        self._stopping = False
        self._dialling: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Something changed for the organization."""
        self._news.set()

    def stop(self) -> None:
        """Starts no further call; `run` returns when those that are being handed over are."""
        self._stopping = True
        self._news.set()

    async def run(self, fence: int) -> None:
        """Until there is no work, or it is told to stop. Raises: Superseded when another broker took over."""
        try:
            await self._calls.take_over(self._organization_id, fence)
            while not self._stopping:
                self._news.clear()
                wait_s = await self._work(fence)
                if wait_s is None:
                    return
                await self._wait(wait_s)
        finally:
            await self._drain()

    async def _work(self, fence: int) -> float | None:
        """Does what may be done now; how long nothing else will be. None without work."""
        try:
            plan = await self._calls.plan_work(self._organization_id)
            if not plan.has_work:
                return None
            for job_id in plan.moved_job_ids:
                await self._calls.refresh_job_state(self._organization_id, job_id)
            if plan.calls:
                return await self._start_calls(plan, fence)
        except Unavailable as error:
            log.warning("broker_waits", organization=self._organization_id, error=repr(error))
            return RETRY_S
        if plan.moved_job_ids:
            return 0.0
        return _wait_s(plan)

    async def _start_calls(self, plan: WorkPlan, fence: int) -> float:
        """Commits the intents, which go together; each that got its slot is dialled in the background."""
        results = await asyncio.gather(*(self._start_call(call, fence) for call in plan.calls), return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException):
                raise failure
        look_at = [result.look_at for result in results if isinstance(result, TimedStart)]
        if len(look_at) == len(results):
            return min(max(look_at) - time.monotonic(), _wait_s(plan))
        # Nothing may be dialled although it seemed so: the window is about to close.
        return WINDOW_CLOSING_S if all(result is StartRefusal.GONE for result in results) else 0.0

    async def _start_call(self, next_call: NextCall, fence: int) -> TimedStart | StartRefusal:
        start = await self._calls.start(self._organization_id, next_call, fence)
        if isinstance(start, TimedStart):
            task = asyncio.create_task(self._place_call(start.call, start.moment))
            self._dialling.add(task)
            task.add_done_callback(self._dialling.discard)
        return start

    async def _place_call(self, call: Call, moment: float) -> None:
        """Hands one call over at its moment, in monotonic seconds, and records what is known of it then."""
        try:
            await asyncio.sleep(moment - time.monotonic())
            if not await self._may_still_start(call):
                await self._calls.requeue(call)
                return
            late_s = time.monotonic() - moment
            CALL_START_DELAY_S.observe(late_s)
            if late_s > self._patience_s:
                # This process was held up. A start now could break a rolling second.
                CALL_ANSWERS.labels("TooLate").inc()
                await self._calls.requeue(call)
                return
            answer = await self._telephony.start(call)
            if time.monotonic() - moment > JITTER_S and not self._telephony.honours_not_after:
                CALLS_LATE.inc()
            CALL_ANSWERS.labels(type(answer).__name__).inc()
            await self._settle(call, answer)
        except Exception as error:
            # Nobody waits for this task. The intent is stored: the call is asked for.
            log.warning("dial_open", call_id=call.id, error=repr(error))

    async def _may_still_start(self, call: Call) -> bool:
        """Pausing, cancelling and do-not-call hold for what was committed before them, too."""
        try:
            return await self._calls.may_still_start(call)
        except Exception as error:
            # It was not handed over, so it may be given back.
            log.warning("dial_given_back", call_id=call.id, error=repr(error))
            return False

    async def _settle(self, call: Call, answer: Answer) -> None:
        match answer:
            case Began(reference=str() as reference):
                await self._calls.store_reference(call.id, reference)
            case NotNow(hold_off_s=hold_off_s):
                await self._calls.requeue(call, hold_off_s)
            case Refused(reason=reason):
                await self._calls.fail(call, reason)
            case Unclear(reason=reason):
                log.warning("call_unclear", call_id=call.id, reason=reason)
                await self._calls.poll_early(call)

    async def _wait(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            return

    async def _drain(self) -> None:
        """Lets calls that are being handed over finish, so that nothing has to be asked for."""
        if self._dialling:
            await asyncio.wait(self._dialling, timeout=DRAIN_S)


def _wait_s(plan: WorkPlan) -> float:
    return MAX_WAIT_S if plan.wait_s is None else min(plan.wait_s, MAX_WAIT_S)
