"""When committed starts are due on this process's clock, and how far behind its commit a start must lie.

A start that is known here more than 100 ms after its moment is given back. So where commits take long, moments are
chosen later: that costs a little time, and no start.
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
"""A commit that took long counts e times less every two seconds: for hundreds of starts where many organizations call,
and for one or two of a list whose calls last a minute."""


class StartTimer:
    """One for each process."""

    def __init__(self, mongo: Mongo) -> None:
        self._clock = DatabaseClock(mongo)
        self._took_s, self._took_at = 0.0, 0.0

    @property
    def lead(self) -> timedelta:
        """How long after its commit a start should be: nothing where commits take less than 50 ms."""
        return timedelta(seconds=min(max(self._takes_s - JITTER_S / 2, 0.0), MAX_LEAD_S))

    @property
    def _takes_s(self) -> float:
        return self._took_s * math.exp((self._took_at - time.monotonic()) / LEAD_DECAY_S)

    async def due_at(self, dial: CallStart, begun: float) -> float:
        """The start's moment by the monotonic clock, of a commit that was asked for at `begun` and just answered."""
        answered = time.monotonic()
        moment = answered + dial.delay_s
        with suppress(PyMongoError):
            due = await self._clock.moment(dial.call.start_at)
            # The database's clock may have been set since it was read. When this was committed lies between the two.
            moment = min(max(due, begun + dial.delay_s), moment)
        self._take(answered + dial.delay_s - moment, answered)
        return moment

    def _take(self, took_s: float, at: float) -> None:
        if took_s > self._takes_s:
            self._took_s, self._took_at = took_s, at
