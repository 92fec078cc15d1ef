"""Finds free timestamps for scheduled posts: each is unique in its organization, and at or after the due moment.

The members of a batch share what they find. A search counts index keys on the server and reads no documents, so a
moment with tens of thousands of posts delays neither the batch nor the calls that share its stream.
"""

from dataclasses import dataclass, field
from datetime import datetime

from storage.mongo import Mongo, Session
from storage.publishing.documents import SCHEDULED_POSTS
from storage.streams.changes import Batch


@dataclass(slots=True)
class FreeTimestamps:
    """Timestamps that no stored post of the organization has: one for each member of the batch that needs one."""

    found: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    """Those that the batch has given out."""

    next: dict[int, int] = field(default_factory=dict)
    """Where the search for a further timestamp begins, by the instant for which it is wanted."""

    async def search(self, mongo: Mongo, session: Session, organization_id: str, at: datetime) -> None:
        """Finds the first free timestamp at or after the instant that no earlier member has found."""
        wanted = microseconds(at)
        free = await first_free(mongo, session, organization_id, self.next.get(wanted, wanted))
        while free in self.found:
            free = await first_free(mongo, session, organization_id, free + 1)
        self.found.add(free)
        self.next[wanted] = free + 1

    def take(self, at: datetime) -> int:
        """Gives out the first timestamp at or after the instant. Each member that has searched may take one."""
        free = min(ts for ts in self.found - self.taken if ts >= microseconds(at))
        self.taken.add(free)
        return free


def free_timestamps(batch: Batch) -> FreeTimestamps:
    """Returns the free timestamps that the members of the batch share."""
    shared: FreeTimestamps = batch.shared.setdefault(SCHEDULED_POSTS, FreeTimestamps())
    return shared


def microseconds(at: datetime) -> int:
    """Returns the instant as a timestamp."""
    return int(at.timestamp()) * 1_000_000 + at.microsecond


async def first_free(mongo: Mongo, session: Session, organization_id: str, first: int) -> int:
    """Returns the first timestamp at or after `first` that no scheduled post of the organization has.

    Skips ranges that are full, each twice as long as the one before, and then halves the range that is not full.
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
    """Returns whether every timestamp of the range is taken. They are unique, so counting them is enough."""
    taken = {"org": organization_id, "ts": {"$gte": first, "$lt": first + length}}
    return await mongo[SCHEDULED_POSTS].count_documents(taken, session=session) == length
