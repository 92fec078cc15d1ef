"""The built-in telephony simulator. Simulated calls last and end as real calls do, but no phone rings.

A call's script is derived from its id. Calls are stored in MongoDB, so that a worker can continue the calls of another
worker.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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
from storage.calls.records import CallOutcome, CallReportKind
from storage.errors import DomainError
from storage.mongo import Document, Mongo

OUTCOME_SHARES: dict[CallOutcome, int] = {
    CallOutcome.ANSWERED: 58,
    CallOutcome.NO_ANSWER: 19,
    CallOutcome.VOICEMAIL: 12,
    CallOutcome.BUSY: 5,
    CallOutcome.REJECTED: 4,
    CallOutcome.INVALID_NUMBER: 1,
    CallOutcome.NETWORK_ERROR: 1,
}
"""Each outcome's share of the calls, in percent."""

RING_MEDIAN_S, RING_SPREAD, MAX_RING_S = 8.0, 0.5, 30.0
TALK_MEDIAN_S, TALK_SPREAD, MAX_TALK_S = 45.0, 0.7, 600.0
"""Durations are log-normal, with this median and spread (sigma), up to the maximum."""

IMMEDIATE_OUTCOMES = frozenset({CallOutcome.BUSY, CallOutcome.INVALID_NUMBER, CallOutcome.NETWORK_ERROR})

ReportCall = Callable[[str, int, CallReportKind, CallOutcome | None], Awaitable[object]]

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
    """Returns the script of a seed, always the same. Over many seeds, scripts are distributed as in real campaigns."""
    rng = random.Random(seed)  # noqa: S311
    (outcome,) = rng.choices([*OUTCOME_SHARES], [*OUTCOME_SHARES.values()])
    if outcome in IMMEDIATE_OUTCOMES:
        return CallScript(rng.uniform(0.5, 3), 0, outcome)
    if outcome is CallOutcome.NO_ANSWER:
        return CallScript(MAX_RING_S, 0, outcome)
    ring_s = _duration_s(rng, RING_MEDIAN_S, RING_SPREAD, MAX_RING_S)
    talk_s = _duration_s(rng, TALK_MEDIAN_S, TALK_SPREAD, MAX_TALK_S)
    return CallScript(ring_s, 0 if outcome is CallOutcome.REJECTED else talk_s, outcome)


def _duration_s(rng: random.Random, median_s: float, spread: float, max_s: float) -> float:
    return min(median_s * float(2.718281828 ** (spread * rng.gauss(0, 1))), max_s)


class Simulator:
    """Runs calls `speed` times as fast as real time. Honours notAfter by the database's clock."""

    honours_not_after = True

    def __init__(
        self,
        mongo: Mongo,
        report: ReportCall,
        speed: float = 1.0,
        script: Callable[[str], CallScript] = realistic_script,
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
        """Returns the stored call's state. Continues the script if the worker that ran it has died."""
        pipeline: list[Document] = [{"$match": {"_id": call.id}}, {"$set": {"now": "$$NOW"}}]
        rows = await self._mongo.aggregate(SIMULATED_CALLS, pipeline)
        if not rows:
            return CallNotFound()
        elapsed_s = (rows[0]["now"] - rows[0]["at"]).total_seconds()
        script = self._script(call.id)
        if elapsed_s >= (script.ring_s + script.talk_s) / self._speed:
            return CallEnded(script.outcome)
        if call.id not in self._running:
            self._run(call.id, elapsed_s)
        return CallActive()

    async def aclose(self) -> None:
        """Stops the tasks. Their calls remain stored, and a later query returns their state."""
        for task in [*self._running.values()]:
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _run(self, call_id: str, elapsed_s: float) -> None:
        if call_id not in self._running:
            self._running[call_id] = asyncio.create_task(
                self._run_script(call_id, elapsed_s), name=f"simulated {call_id}"
            )
            self._running[call_id].add_done_callback(lambda _: self._running.pop(call_id, None))

    async def _run_script(self, call_id: str, elapsed_s: float) -> None:
        """Runs a call's script: the call rings, may be answered, and ends."""
        loop, script = asyncio.get_running_loop(), self._script(call_id)
        started_at = loop.time() - elapsed_s
        ring_s, end_s = script.ring_s / self._speed, (script.ring_s + script.talk_s) / self._speed
        try:
            if script.is_answered:
                await asyncio.sleep(max(started_at + ring_s - loop.time(), 0))
                await self._report(call_id, 1, CallReportKind.ANSWERED, None)
            # Subtracts the time that reporting took.
            await asyncio.sleep(max(started_at + end_s - loop.time(), 0))
            await self._report(call_id, 2, CallReportKind.ENDED, script.outcome)
        except DomainError as error:
            # The poll of the overdue call finds the outcome later.
            log.warning("report_lost", call_id=call_id, error=repr(error))
