"""The limiter: one document for each organization, with a slot for each active call and the time of the next start.

Starting, reporting or requeuing a call changes the limiter and the task in one transaction. Slots and calls therefore
always agree, even if a process dies or is cancelled. The limits also hold while two brokers run at once.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from storage.calls.documents import LIMITS, CallLimitsDocument
from storage.calls.records import CallLimits
from storage.errors import Conflict
from storage.streams.changes import Batch

DEFAULT_CONCURRENT = 1
DEFAULT_PER_SECOND = 1.0
JITTER_S = 0.1
"""How many seconds late a start may reach the telephony service without exceeding the limit in any rolling second."""

_EPOCH = datetime.fromtimestamp(0, UTC)

MAX_CONCURRENT = 1000
MIN_PER_SECOND, MAX_PER_SECOND = 0.1, 100.0


class BrokerSuperseded(Conflict):
    """Another broker of the organization holds a greater fence."""


def spacing_s(per_second: float) -> float:
    """Returns how far apart starts must be, in seconds.

    With a rate of n per second, any n + 1 consecutive starts span at least 1.1 s. Even with 100 ms of jitter, no
    rolling second then holds more than n starts. Below one per second, any rolling 1/rate seconds hold one start.
    """
    if per_second < 1:
        return 1 / per_second + JITTER_S
    return (1 + JITTER_S) / math.floor(per_second)


@dataclass(slots=True)
class Limiter:
    """An organization's limiter during the planning of one change. Call `put` after changing it."""

    document: CallLimitsDocument

    @classmethod
    def from_batch(cls, batch: Batch, organization_id: str) -> "Limiter":
        """Returns a limiter with a copy of the stored document. The change's `needs` must name that document."""
        stored: CallLimitsDocument | None = batch.get(LIMITS, organization_id)
        document = default_limits(organization_id) if stored is None else stored.copy()
        document["slots"] = list(document["slots"])
        return cls(document)

    def put(self, batch: Batch) -> None:
        """Puts the changed document into the batch."""
        batch.put(LIMITS, self.document)

    @property
    def has_free_slot(self) -> bool:
        """Whether one more call may be active."""
        return len(self.document["slots"]) < self.document["concurrent"]

    def next_start(self, now: datetime) -> datetime:
        """Returns the earliest time for the next call, not before `now`."""
        return max(now, self.document["next_at"])

    def take_slot(self, call_id: str, start_at: datetime) -> None:
        """Reserves a slot for a call that starts at `start_at`."""
        self.document["slots"].append(call_id)
        self.document["last_start"] = start_at
        self._delay_next_start(start_at, spacing_s(self.document["per_second"]))

    def free_slot(self, call_id: str) -> bool:
        """Frees the call's slot. Returns False if it had none."""
        if call_id not in self.document["slots"]:
            return False
        self.document["slots"].remove(call_id)
        return True

    def forbid_starts(self, until: datetime) -> None:
        """Forbids starts before `until`, as the telephony service requested."""
        self.document["next_at"] = max(self.document["next_at"], until)
        self.document["hold_until"] = max(self._hold_until, until)

    def set_limits(self, concurrent: int, per_second: float) -> None:
        """Replaces the limits.

        After a change of the rate, the next start is at least a second after the last start. No rolling second then
        holds starts of two rates, even after several changes between two starts.
        """
        is_new_rate = per_second != self.document["per_second"]
        self.document |= {"concurrent": concurrent, "per_second": per_second}
        if is_new_rate and (last := self.document["last_start"]) is not None:
            self.document["next_at"] = max(last, self._hold_until)
            self._delay_next_start(last, max(spacing_s(per_second), 1 + JITTER_S))

    @property
    def _hold_until(self) -> datetime:
        """Until when the telephony service forbids starts. A change of the limits keeps this time."""
        return self.document.get("hold_until", _EPOCH)

    def check_fence(self, fence: int) -> None:
        """Makes the holder of this fence the organization's only broker. Raises: BrokerSuperseded."""
        if self.document["fence"] > fence:
            raise BrokerSuperseded("Another broker has taken over the organization's calls.")
        self.document["fence"] = fence

    def _delay_next_start(self, start_at: datetime, gap_s: float) -> None:
        # Stored instants have milliseconds, so the gap is rounded up. `round` first removes binary fraction errors.
        gap = timedelta(milliseconds=math.ceil(round(gap_s * 1000, 6)) + 1)
        self.document["next_at"] = max(self.document["next_at"], start_at + gap)


def default_limits(organization_id: str) -> CallLimitsDocument:
    """Returns the limiter of an organization whose limits were never set."""
    return {
        "_id": organization_id,
        "concurrent": DEFAULT_CONCURRENT,
        "per_second": DEFAULT_PER_SECOND,
        "slots": [],
        "last_start": None,
        "next_at": _EPOCH,
        "fence": 0,
    }


def limits_record(document: CallLimitsDocument) -> CallLimits:
    """Returns the record of a stored limiter."""
    return CallLimits(document["_id"], document["concurrent"], float(document["per_second"]), len(document["slots"]))
