"""Times committed starts on this process's clock, and decides how long after its commit a call should start.

A start that is known here more than 100 ms late is requeued. Where commits are slow, start times are therefore chosen
later. That costs a little time but no starts.
"""

import math
import time
from contextlib import suppress
from datetime import timedelta

from pymongo.errors import PyMongoError

from storage.calls.call_changes import CallStart
from storage.calls.limiter import JITTER_S
from storage.mongo import Mongo
from storage.mongo.clock import DatabaseClock

MAX_LEAD_S = 1.0
LEAD_DECAY_S = 2.0
"""The lead that a slow commit causes shrinks by the factor e in this time.

That covers hundreds of starts where many organizations call, and one or two of a list whose calls last a minute.
"""


class StartTimer:
    """One for each process."""

    def __init__(self, mongo: Mongo) -> None:
        self._clock = DatabaseClock(mongo)
        self._slowest_s, self._slowest_at = 0.0, 0.0

    @property
    def lead(self) -> timedelta:
        """How long after its commit a call should start. Zero where commits take less than 50 ms."""
        return timedelta(seconds=min(max(self._commit_s - JITTER_S / 2, 0.0), MAX_LEAD_S))

    @property
    def _commit_s(self) -> float:
        """How long a commit may take: the slowest recent one, decayed since."""
        return self._slowest_s * math.exp((self._slowest_at - time.monotonic()) / LEAD_DECAY_S)

    async def due_at(self, start: CallStart, requested: float) -> float:
        """Returns when the call starts, by the monotonic clock.

        The commit was requested at `requested` and has just returned.
        """
        answered = time.monotonic()
        due = answered + start.delay_s
        with suppress(PyMongoError):
            by_database = await self._clock.loop_time(start.call.start_at)
            # The database's clock may have been set since it was read. The commit lies between request and answer.
            due = min(max(by_database, requested + start.delay_s), due)
        self._record(answered + start.delay_s - due, answered)
        return due

    def _record(self, commit_s: float, at: float) -> None:
        if commit_s > self._commit_s:
            self._slowest_s, self._slowest_at = commit_s, at
