"""The built-in telephony simulator: its calls last and end as real ones do, and no phone rings.

A call's script follows from its id alone. Calls are stored in MongoDB, so that any worker continues those of another.
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
    CallNotFound,
    CallStarted,
    CallState,
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
class CallScript:
    """How a call proceeds, in seconds of real time. `talk_s` is 0 when nobody answers."""

    ring_s: float
    talk_s: float
    outcome: CallOutcome

    @property
    def is_answered(self) -> bool:
        """Whether a person or a machine answers."""
        return self.outcome in (CallOutcome.ANSWERED, CallOutcome.VOICEMAIL)


def realistic_script(seed: str) -> CallScript:
    """Returns the one script of a seed. Over many seeds, scripts are distributed as in real campaigns."""
    rng = random.Random(seed)  # noqa: S311
    (outcome,) = rng.choices([*OUTCOMES], [*OUTCOMES.values()])
    if outcome in IMMEDIATE:
        return CallScript(rng.uniform(0.5, 3), 0, outcome)
    if outcome is CallOutcome.NO_ANSWER:
        return CallScript(RING_MAX_S, 0, outcome)
    ring_s, talk_s = _duration_s(rng, RING_S, RING_MAX_S), _duration_s(rng, TALK_S, TALK_MAX_S)
    return CallScript(ring_s, 0 if outcome is CallOutcome.REJECTED else talk_s, outcome)


def _duration_s(rng: random.Random, shape: tuple[float, float], most_s: float) -> float:
    median_s, spread = shape
    return min(median_s * float(2.718281828 ** (spread * rng.gauss(0, 1))), most_s)


class Simulator:
    """Runs calls `speed` times as fast as real time. Honours notAfter by the database's clock."""

    honours_not_after = True

    def __init__(
        self, mongo: Mongo, report: Report, speed: float = 1.0, script: Callable[[str], CallScript] = realistic_script
    ) -> None:
        """`report` receives each change of a call; `script` returns a call's script by callId."""
        self._mongo = mongo
        self._stored_calls: AsyncCollection[SimulatedCallDocument] = mongo[SIMULATED_CALLS]
        self._report = report
        self._speed = speed
        self._script = script
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self, call: Call) -> StartOutcome:
        """Stores the call and starts its script."""
        row: SimulatedCallDocument | None = await self._stored_calls.find_one_and_update(
            {"_id": call.id}, [{"$set": {"at": {"$ifNull": ["$at", "$$NOW"]}}}], upsert=True, return_document=True
        )
        assert row is not None
        if row["at"] > call.not_after:
            await self._stored_calls.delete_one({"_id": call.id})
            return CallDeferred()
        self._run(call.id, 0.0)
        return CallStarted()

    async def look_up(self, call: Call) -> CallState:
        """Returns the stored call's state, and continues a call that a dead worker left."""
        pipeline: list[Document] = [{"$match": {"_id": call.id}}, {"$set": {"now": "$$NOW"}}]
        rows = await self._mongo.aggregate(SIMULATED_CALLS, pipeline)
        if not rows:
            return CallNotFound()
        since_s = _seconds(rows[0]["at"], rows[0]["now"])
        script = self._script(call.id)
        if since_s >= (script.ring_s + script.talk_s) / self._speed:
            return CallEnded(script.outcome)
        if call.id not in self._running:
            self._run(call.id, since_s)
        return CallActive()

    async def aclose(self) -> None:
        """Stops the tasks. Their calls remain stored and are reported when they are queried."""
        for task in [*self._running.values()]:
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _run(self, call_id: str, since_s: float) -> None:
        if call_id not in self._running:
            self._running[call_id] = asyncio.create_task(
                self._run_script(call_id, since_s), name=f"simulated {call_id}"
            )
            self._running[call_id].add_done_callback(lambda _: self._running.pop(call_id, None))

    async def _run_script(self, call_id: str, since_s: float) -> None:
        """Runs a call's script: the call rings, may be answered, and ends."""
        loop, script = asyncio.get_running_loop(), self._script(call_id)
        started_at = loop.time() - since_s
        ring_s, end_s = script.ring_s / self._speed, (script.ring_s + script.talk_s) / self._speed
        try:
            if script.is_answered:
                await asyncio.sleep(max(started_at + ring_s - loop.time(), 0))
                await self._report(call_id, 1, CallReportEvent.ANSWERED, None)
            # Subtracts the time that reporting took.
            await asyncio.sleep(max(started_at + end_s - loop.time(), 0))
            await self._report(call_id, 2, CallReportEvent.ENDED, script.outcome)
        except DomainError as error:
            # Polling finds the outcome later.
            log.warning("report_lost", call_id=call_id, error=repr(error))


def _seconds(since: datetime, now: datetime) -> float:
    return (now - since).total_seconds()
