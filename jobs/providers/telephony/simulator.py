"""The built-in telephony simulator: calls take their time and end as real ones do, without a phone ringing.

A call's course follows from the seed and its id alone. Its ledger is in MongoDB, so that any worker continues the calls
of a dead one.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from pymongo.asynchronous.collection import AsyncCollection

from jobs.providers.telephony.protocol import (
    CallActive,
    CallDeferred,
    CallEnded,
    CallStarted,
    CallState,
    CallUnknown,
    StartOutcome,
)
from storage.calls.call_changes import Call
from storage.calls.documents import SIMULATED_CALLS, SimulatedCallDocument
from storage.calls.records import CallOutcome, CallReportEvent
from storage.errors import DomainError
from storage.mongo import Document, Mongo

OUTCOMES: dict[CallOutcome, int] = {
    CallOutcome.ANSWERED: 58,
    CallOutcome.NO_ANSWER: 19,
    CallOutcome.VOICEMAIL: 12,
    CallOutcome.BUSY: 5,
    CallOutcome.REJECTED: 4,
    CallOutcome.INVALID_NUMBER: 1,
    CallOutcome.NETWORK_ERROR: 1,
}
"""Shares in percent."""

RING_S, RING_MAX_S = (8.0, 0.5), 30.0
TALK_S, TALK_MAX_S = (45.0, 0.7), 600.0
"""Median and spread of log-normal durations, and their upper bound."""

IMMEDIATE = frozenset({CallOutcome.BUSY, CallOutcome.INVALID_NUMBER, CallOutcome.NETWORK_ERROR})

Report = Callable[[str, int, CallReportEvent, CallOutcome | None], Awaitable[object]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Script:
    """A call's course, in seconds of real time since it started. `talk_s` is 0 when nobody answers."""

    ring_s: float
    talk_s: float
    outcome: CallOutcome

    @property
    def is_answered(self) -> bool:
        """Whether a person or a machine answers."""
        return self.outcome in (CallOutcome.ANSWERED, CallOutcome.VOICEMAIL)


def realistic(seed: str) -> Script:
    """Returns a reproducible course for the seed and id; over many ids it is distributed as in real campaigns."""
    dice = random.Random(seed)  # noqa: S311
    (outcome,) = dice.choices([*OUTCOMES], [*OUTCOMES.values()])
    if outcome in IMMEDIATE:
        return Script(dice.uniform(0.5, 3), 0, outcome)
    if outcome is CallOutcome.NO_ANSWER:
        return Script(RING_MAX_S, 0, outcome)
    ring_s, talk_s = _duration_s(dice, RING_S, RING_MAX_S), _duration_s(dice, TALK_S, TALK_MAX_S)
    return Script(ring_s, 0 if outcome is CallOutcome.REJECTED else talk_s, outcome)


def _duration_s(dice: random.Random, shape: tuple[float, float], most_s: float) -> float:
    median_s, spread = shape
    return min(median_s * float(2.718281828 ** (spread * dice.gauss(0, 1))), most_s)


class Simulator:
    """Runs calls `speed` times as fast as real time. Honours notAfter by the database's clock."""

    honours_not_after = True

    def __init__(
        self, mongo: Mongo, report: Report, speed: float = 1.0, script: Callable[[str], Script] = realistic
    ) -> None:
        """`report` receives each change of a call; `script` returns a call's course by callId."""
        self._mongo = mongo
        self._ledger: AsyncCollection[SimulatedCallDocument] = mongo[SIMULATED_CALLS]
        self._report = report
        self._speed = speed
        self._script = script
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self, call: Call) -> StartOutcome:
        """Stores the call and starts its course."""
        row: SimulatedCallDocument | None = await self._ledger.find_one_and_update(
            {"_id": call.id}, [{"$set": {"at": {"$ifNull": ["$at", "$$NOW"]}}}], upsert=True, return_document=True
        )
        assert row is not None
        if row["at"] > call.not_after:
            await self._ledger.delete_one({"_id": call.id})
            return CallDeferred()
        self._run(call.id, 0.0)
        return CallStarted()

    async def look_up(self, call: Call) -> CallState:
        """Returns the call's state from the ledger, and continues a call that a dead worker left."""
        pipeline: list[Document] = [{"$match": {"_id": call.id}}, {"$set": {"now": "$$NOW"}}]
        rows = await self._mongo.aggregate(SIMULATED_CALLS, pipeline)
        if not rows:
            return CallUnknown()
        since_s = _seconds(rows[0]["at"], rows[0]["now"])
        script = self._script(call.id)
        if since_s >= (script.ring_s + script.talk_s) / self._speed:
            return CallEnded(script.outcome)
        if call.id not in self._running:
            self._run(call.id, since_s)
        return CallActive()

    async def aclose(self) -> None:
        """Stops the tasks; calls go on in the ledger and are reported when they are queried."""
        for task in [*self._running.values()]:
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _run(self, call_id: str, since_s: float) -> None:
        if call_id not in self._running:
            self._running[call_id] = asyncio.create_task(self._live(call_id, since_s), name=f"simulated {call_id}")
            self._running[call_id].add_done_callback(lambda _: self._running.pop(call_id, None))

    async def _live(self, call_id: str, since_s: float) -> None:
        """Runs a call's course: it rings, may be answered, and ends."""
        loop, script = asyncio.get_running_loop(), self._script(call_id)
        begun = loop.time() - since_s
        ring_s, end_s = script.ring_s / self._speed, (script.ring_s + script.talk_s) / self._speed
        try:
            if script.is_answered:
                await asyncio.sleep(max(begun + ring_s - loop.time(), 0))
                await self._report(call_id, 1, CallReportEvent.ANSWERED, None)
            # Subtracts the time that reporting took.
            await asyncio.sleep(max(begun + end_s - loop.time(), 0))
            await self._report(call_id, 2, CallReportEvent.ENDED, script.outcome)
        except DomainError as error:
            # A broker whose report was lost queries the call later.
            log.warning("report_lost", call_id=call_id, error=repr(error))


def _seconds(since: datetime, now: datetime) -> float:
    return (now - since).total_seconds()
