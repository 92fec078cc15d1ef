"""Finds free timestamps for scheduled posts: each is unique in its organization, and at or after the due moment.

The changes of a batch share the timestamps that they find. A search counts index keys on the server and reads no
documents. So an instant with tens of thousands of posts delays neither the batch nor the calls that share its stream.
"""

from dataclasses import dataclass, field
from datetime import datetime

from storage.mongo import Mongo, Session
from storage.publishing.documents import SCHEDULED_POSTS
from storage.streams.changes import Batch


@dataclass(slots=True)
class FreeTimestamps:
    """Timestamps that no stored post of the organization has: one for each change that schedules or moves a post."""

    free: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    """The free timestamps that changes have taken."""

    search_starts: dict[int, int] = field(default_factory=dict)
    """The timestamp at which the next search begins, by the timestamp of the requested instant."""

    async def search(self, mongo: Mongo, session: Session, organization_id: str, at: datetime) -> None:
        """Finds the first free timestamp at or after the instant that no earlier change has found."""
        start = microseconds(at)
        timestamp = await first_free(mongo, session, organization_id, self.search_starts.get(start, start))
        while timestamp in self.free:
            timestamp = await first_free(mongo, session, organization_id, timestamp + 1)
        self.free.add(timestamp)
        self.search_starts[start] = timestamp + 1

    def take(self, at: datetime) -> int:
        """Returns the first free timestamp at or after the instant. A change may take one for each of its searches."""
        timestamp = min(ts for ts in self.free - self.taken if ts >= microseconds(at))
        self.taken.add(timestamp)
        return timestamp


def free_timestamps(batch: Batch) -> FreeTimestamps:
    """Returns the free timestamps that the changes of the batch share."""
    shared: FreeTimestamps = batch.shared.setdefault(SCHEDULED_POSTS, FreeTimestamps())
    return shared


def microseconds(at: datetime) -> int:
    """Returns the instant as a timestamp."""
    return int(at.timestamp()) * 1_000_000 + at.microsecond


async def first_free(mongo: Mongo, session: Session, organization_id: str, first: int) -> int:
    """Returns the first timestamp at or after `first` that no scheduled post of the organization has.

    Skips full ranges, doubling their length each time. Then halves the first range that is not full.
    """
    length = 1
    while await _is_full(mongo, session, organization_id, first, length):
        first, length = first + length, length * 2
    while length > 1:
        length //= 2
        if await _is_full(mongo, session, organization_id, first, length):
            first += length
    return first


async def _is_full(mongo: Mongo, session: Session, organization_id: str, first: int, length: int) -> bool:
    """Returns whether posts have all timestamps of the range. Timestamps are unique, so counting posts is enough."""
    query = {"org": organization_id, "ts": {"$gte": first, "$lt": first + length}}
    return await mongo[SCHEDULED_POSTS].count_documents(query, session=session) == length
