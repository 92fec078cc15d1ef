"""The limiter: one document an organization, with a slot for each call and the moment of the next start.

It is read and written in the transaction that dials, reports or gives back, together with the task: slots and calls
can't differ, whoever dies or is cancelled in between. Two brokers at once obey it like one.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from storage.calls.records import CallLimits
from storage.errors import Conflict
from storage.mongo import Document
from storage.streams.changes import Batch

LIMITS = "call_limits"
DEFAULT_CONCURRENT = 1
DEFAULT_PER_SECOND = 1.0
JITTER_S = 0.1
"""How late a start may reach the telephony side without breaking a rolling second there."""

_EPOCH = datetime.fromtimestamp(0, UTC)

MAX_CONCURRENT = 1000
MIN_PER_SECOND, MAX_PER_SECOND = 0.1, 100.0


class Superseded(Conflict):
    """A broker with a greater fence works for the organization now."""


def spacing_s(per_second: float) -> float:
    """How far apart starts are: 100 ms of jitter break no rolling second, or rolling 1/rate seconds below 1.

    Of n + 1 starts in a row the first and the last are 1.1 s apart.
    """
    if per_second < 1:
        return 1 / per_second + JITTER_S
    return (1 + JITTER_S) / math.floor(per_second)


@dataclass(slots=True)
class Limiter:
    """An organization's limits as one change plans on them. Put it back when something was changed."""

    document: Document

    @classmethod
    def of(cls, batch: Batch, organization_id: str) -> "Limiter":
        """The batch's own copy; needs (LIMITS, organization_id)."""
        stored = batch.get(LIMITS, organization_id)
        document = default_limits(organization_id) if stored is None else dict(stored)
        document["slots"] = list(document["slots"])
        return cls(document)

    def put(self, batch: Batch) -> None:
        """Writes it with the batch."""
        batch.put(LIMITS, self.document)

    @property
    def has_free_slot(self) -> bool:
        """Whether one more call may be active."""
        return bool(len(self.document["slots"]) < self.document["concurrent"])

    def next_start(self, now: datetime) -> datetime:
        """When the next call may start, not before now."""
        next_at: datetime = self.document["next_at"]
        return max(now, next_at)

    def take(self, call_id: str, start_at: datetime) -> None:
        """Occupies a slot by a call that starts then."""
        self.document["slots"].append(call_id)
        self.document["last_start"] = start_at
        self._space(start_at, spacing_s(self.document["per_second"]))

    def free(self, call_id: str) -> bool:
        """Ends the call's slot; False when it had none."""
        if call_id not in self.document["slots"]:
            return False
        self.document["slots"].remove(call_id)
        return True

    def hold_off(self, until: datetime) -> None:
        """No start before then: the telephony side asked for patience."""
        self.document["next_at"] = max(self.document["next_at"], until)
        self.document["hold_until"] = max(self._hold_until, until)

    def set(self, concurrent: int, per_second: float) -> None:
        """New limits, from now on.

        No rolling second holds starts of two rates: of a fast one, a slow one and one between, the slow one may be gone
        before anything was started at it.
        """
        is_new_rate = per_second != self.document["per_second"]
        self.document |= {"concurrent": concurrent, "per_second": per_second}
        if is_new_rate and (last := self.document["last_start"]) is not None:
            self.document["next_at"] = max(last, self._hold_until)
            self._space(last, max(spacing_s(per_second), 1 + JITTER_S))

    @property
    def _hold_until(self) -> datetime:
        """Until when the telephony side asked for patience: new limits do not end that."""
        until: datetime = self.document.get("hold_until", _EPOCH)
        return until

    def lead(self, fence: int) -> None:
        """Makes the holder of this fence the organization's only broker. Raises: Superseded."""
        if self.document["fence"] > fence:
            raise Superseded("Another broker took over.")
        self.document["fence"] = fence

    def _space(self, start_at: datetime, gap_s: float) -> None:
        # Instants are stored in milliseconds: rounded up, never down, but not by what binary fractions can't say.
        gap = timedelta(milliseconds=math.ceil(round(gap_s * 1000, 6)) + 1)
        self.document["next_at"] = max(self.document["next_at"], start_at + gap)


def default_limits(organization_id: str) -> Document:
    """The limits of an organization that nobody has set any for."""
    return {
        "_id": organization_id,
        "concurrent": DEFAULT_CONCURRENT,
        "per_second": DEFAULT_PER_SECOND,
        "slots": [],
        "last_start": None,
        "next_at": _EPOCH,
        "fence": 0,
    }


def limits_record(document: Document) -> CallLimits:
    """The record of a stored limiter."""
    return CallLimits(document["_id"], document["concurrent"], float(document["per_second"]), len(document["slots"]))
