"""Records the events of a request in batches, and forms its answer."""

from dataclasses import dataclass, field
from typing import Any

from jobs.mail.inlets.read_events import ReadEvents
from server.http.ingest.items import BATCH
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.mail.ledger import Ledger
from storage.mail.records import RejectedDelivery


class NothingUnderstood(BadUserInput):
    """Every event of a request was rejected. `details` has the answer that the request would have had."""

    def __init__(self, answer: dict[str, Any]) -> None:
        count = len(answer["rejected"])
        super().__init__(
            "body",
            "at least one event that can be recorded",
            f"No event was recorded: {count:,} of {count:,} are rejected. extensions.rejected has the reasons.",
        )
        self.details |= answer


@dataclass(slots=True)
class Recording:
    """The recording of one request's events, and the sums of its results."""

    ledger: Ledger
    sender: User
    accepted: int = 0
    duplicates: int = 0
    ignored: int = 0
    rejected: list[RejectedDelivery] = field(default_factory=list)

    async def add(self, read: ReadEvents) -> None:
        """Records events. They are durable on return. Raises: Unavailable without address keys."""
        self.ignored += read.ignored
        self.rejected += read.rejected
        for start in range(0, len(read.events), BATCH):
            events = read.events[start : start + BATCH]
            result = await self.ledger.record(self.sender.organization_id, self.sender.id, events)
            self.accepted, self.duplicates = self.accepted + result.accepted, self.duplicates + result.duplicates
            self.rejected += [
                RejectedDelivery(read.indexes[start + each.index], each.event_id, each.message)
                for each in result.rejected
            ]

    def answer(self, *, names_ignored: bool = False) -> dict[str, Any]:
        """Returns the result in the form of RecordDeliveriesResult of the API, with `ignored` if it is wanted.

        Raises: NothingUnderstood if there were events, and all are rejected.
        """
        answer: dict[str, Any] = {"accepted": self.accepted, "duplicates": self.duplicates}
        if names_ignored:
            answer["ignored"] = self.ignored
        answer["rejected"] = [_rejected(each) for each in sorted(self.rejected, key=lambda each: each.index)]
        if self.rejected and not (self.accepted or self.duplicates or self.ignored):
            raise NothingUnderstood(answer)
        return answer


def _rejected(each: RejectedDelivery) -> dict[str, object]:
    # Answers can't have lone surrogates, which ids and names from clients may have.
    event_id, message = (text.encode("utf-8", "backslashreplace").decode() for text in (each.event_id, each.message))
    return {"index": each.index, "eventId": event_id, "message": message}
