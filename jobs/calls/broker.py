"""One organization's broker: works through its jobs, and dials as soon as limits and windows allow it.

It waits for news and for deadlines, never by a polling interval. Cancelled at any await it leaves no slot behind that
is not asked for: a slot is committed with its call's intent, and ends with the call.
"""

import asyncio
import time

import structlog

from jobs.providers.telephony import Answer, Began, NotNow, Refused, Telephony, Unclear
from storage.calls.call_store import CallStore, NextCall, Outlook, Start
from storage.calls.dialling import Call, Withheld
from storage.calls.limiter import JITTER_S
from storage.errors import Unavailable
from storage.metrics import CALL_ANSWERS, CALL_START_DELAY_S, CALLS_LATE

LOOK_AGAIN_S = 5.0
"""News may have been lost with Redis; looking costs three reads."""

DRAIN_S = 12.0
RETRY_S = 0.5
CLOSING_S = 0.05

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
                wait_s = await self._turn(fence)
                if wait_s is None:
                    return
                await self._wait(wait_s)
        finally:
            await self._drain()

    async def _turn(self, fence: int) -> float | None:
        """Does what may be done now; how long nothing else will be. None without work."""
        try:
            outlook = await self._calls.outlook(self._organization_id)
            if not outlook.has_work:
                return None
            for job_id in outlook.moved_job_ids:
                await self._calls.follow_clock(self._organization_id, job_id)
            if outlook.calls:
                return await self._start(outlook, fence)
        except Unavailable as error:
            log.warning("broker_waits", organization=self._organization_id, error=repr(error))
            return RETRY_S
        if outlook.moved_job_ids:
            return 0.0
        return _wait_s(outlook)

    async def _start(self, outlook: Outlook, fence: int) -> float:
        """Commits the intents, which go together; each that got its slot is dialled in the background."""
        results = await asyncio.gather(*(self._begin(call, fence) for call in outlook.calls), return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException):
                raise failure
        look_at = [result.look_at for result in results if isinstance(result, Start)]
        if len(look_at) == len(results):
            return min(max(look_at) - time.monotonic(), _wait_s(outlook))
        # Nothing may be dialled although it seemed so: the window is about to close.
        return CLOSING_S if all(result is Withheld.GONE for result in results) else 0.0

    async def _begin(self, next_call: NextCall, fence: int) -> Start | Withheld:
        start = await self._calls.start(self._organization_id, next_call, fence)
        if isinstance(start, Start):
            task = asyncio.create_task(self._dial(start.call, start.moment))
            self._dialling.add(task)
            task.add_done_callback(self._dialling.discard)
        return start

    async def _dial(self, call: Call, moment: float) -> None:
        """Hands one call over at its moment, in monotonic seconds, and records what is known of it then."""
        try:
            await asyncio.sleep(moment - time.monotonic())
            if not await self._may_dial(call):
                await self._calls.give_back(call)
                return
            late_s = time.monotonic() - moment
            CALL_START_DELAY_S.observe(late_s)
            if late_s > self._patience_s:
                # This process was held up. A start now could break a rolling second.
                CALL_ANSWERS.labels("TooLate").inc()
                await self._calls.give_back(call)
                return
            answer = await self._telephony.start(call)
            if time.monotonic() - moment > JITTER_S and not self._telephony.honours_not_after:
                CALLS_LATE.inc()
            CALL_ANSWERS.labels(type(answer).__name__).inc()
            await self._settle(call, answer)
        except Exception as error:
            # Nobody waits for this task. The intent is stored: the call is asked for.
            log.warning("dial_open", call_id=call.id, error=repr(error))

    async def _may_dial(self, call: Call) -> bool:
        """Pausing, cancelling and do-not-call hold for what was committed before them, too."""
        try:
            return await self._calls.may_dial(call)
        except Exception as error:
            # It was not handed over, so it may be given back.
            log.warning("dial_given_back", call_id=call.id, error=repr(error))
            return False

    async def _settle(self, call: Call, answer: Answer) -> None:
        match answer:
            case Began(reference=str() as reference):
                await self._calls.refer(call.id, reference)
            case NotNow(hold_off_s=hold_off_s):
                await self._calls.give_back(call, hold_off_s)
            case Refused(reason=reason):
                await self._calls.fail(call, reason)
            case Unclear(reason=reason):
                log.warning("call_unclear", call_id=call.id, reason=reason)
                await self._calls.ask_early(call)

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


def _wait_s(outlook: Outlook) -> float:
    return LOOK_AGAIN_S if outlook.wait_s is None else min(outlook.wait_s, LOOK_AGAIN_S)
