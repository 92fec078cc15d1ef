"""Converts start times to this process's clock, and chooses how long after its commit a call should start.

A call whose commit returns more than 100 ms after the start time is requeued instead of started. While commits are
slow, start times are therefore chosen later.
"""

import math
import time
from contextlib import suppress
from datetime import timedelta

from pymongo.errors import PyMongoError

from storage.calls.call_changes import CommittedCallStart
from storage.calls.limiter import JITTER_S
from storage.mongo import Mongo
from storage.mongo.clock import DatabaseClock

MAX_LEAD_S = 1.0
LEAD_DECAY_S = 2.0
"""Time in which the lead that a slow commit causes shrinks by the factor e.

In this time, many organizations together start hundreds of calls, all of which a slow commit delays. A single list
whose calls last a minute starts only one or two.
"""


class StartTimer:
    """Measures commits and times starts. One for each process."""

    def __init__(self, mongo: Mongo) -> None:
        self._clock = DatabaseClock(mongo)
        self._slowest_s, self._slowest_at = 0.0, 0.0

    @property
    def lead(self) -> timedelta:
        """How long after its commit a call should start. Zero while commits take less than 50 ms."""
        return timedelta(seconds=min(max(self._commit_s - JITTER_S / 2, 0.0), MAX_LEAD_S))

    @property
    def _commit_s(self) -> float:
        """How long a commit may take, in seconds: the duration of the slowest recent commit, decayed since then."""
        return self._slowest_s * math.exp((self._slowest_at - time.monotonic()) / LEAD_DECAY_S)

    async def due_at(self, start: CommittedCallStart, requested_at: float) -> float:
        """Returns when the call starts, by the monotonic clock.

        The commit was requested at `requested_at`, by the same clock, and has just returned.
        """
        returned_at = time.monotonic()
        due = returned_at + start.delay_s
        with suppress(PyMongoError):
            measured = await self._clock.loop_time(start.call.start_at)
            # The measurement is wrong if the database's clock has been adjusted since the commit. The commit happened
            # between request and answer, which limits the error.
            due = min(max(measured, requested_at + start.delay_s), due)
        self._record(returned_at + start.delay_s - due, returned_at)
        return due

    def _record(self, commit_s: float, at: float) -> None:
        if commit_s > self._commit_s:
            self._slowest_s, self._slowest_at = commit_s, at
