"""Joining and leaving a community: changes that the sequencer commits to the community's stream.

The number of members changes in the same commit. Joins that arrive together share a commit, so a burst of joins does
not conflict on the community's document.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from bson import ObjectId

from storage.chat.documents import CommunityDocument, MembershipDocument
from storage.errors import NotFound
from storage.identity.records import User
from storage.identity.users import search_terms
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, Change, DocumentKey
from storage.streams.log import Stream

COMMUNITIES = "communities"
MEMBERSHIPS = "memberships"


def community_stream(community_id: str) -> Stream:
    """Returns the stream of a community's events."""
    return Stream("community", community_id)


def new_membership(community_id: str, user: User, at: datetime) -> MembershipDocument:
    """Returns the document of a user who joins."""
    return {
        "_id": ObjectId(),
        "org": user.organization_id,
        "community": community_id,
        "user": user.id,
        "handle": user.handle,
        "search": search_terms(user.handle, user.name),
        "at": at,
    }


@dataclass(slots=True)
class _MembershipChange(Change[None]):
    """Base of changes of one user's membership. They emit no events."""

    usual_events: ClassVar[int] = 0

    community_id: str
    user_id: str

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the community."""
        return [(COMMUNITIES, self.community_id)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the user's membership, once for all members of the batch."""
        memberships = _memberships(batch)
        if self.user_id in memberships:
            return
        query = {"community": self.community_id, "user": self.user_id}
        membership: MembershipDocument | None = await mongo[MEMBERSHIPS].find_one(query, session=session)
        memberships[self.user_id] = membership
        if membership is not None:
            batch.add_loaded(MEMBERSHIPS, membership)

    def copy_community(self, batch: Batch) -> CommunityDocument:
        """Returns a copy of the community, to be changed and put back. Raises: NotFound."""
        community: CommunityDocument | None = batch.get(COMMUNITIES, self.community_id)
        if community is None:
            raise NotFound("community", self.community_id)
        return community.copy()


@dataclass(slots=True)
class JoinCommunity(_MembershipChange):
    """Makes the user a member. Idempotent."""

    user: User
    """The user with the id `user_id`."""

    def plan(self, batch: Batch) -> None:
        """Puts the membership and counts it, unless it exists. Raises: NotFound."""
        community, memberships = self.copy_community(batch), _memberships(batch)
        if memberships[self.user_id] is not None:
            return
        memberships[self.user_id] = membership = new_membership(self.community_id, self.user, batch.at)
        community["members"] += 1
        batch.put(MEMBERSHIPS, membership)
        batch.put(COMMUNITIES, community)


@dataclass(slots=True)
class LeaveCommunity(_MembershipChange):
    """Ends the membership. Idempotent."""

    def plan(self, batch: Batch) -> None:
        """Removes the membership if it exists, and counts the departure. Raises: NotFound."""
        community, memberships = self.copy_community(batch), _memberships(batch)
        membership = memberships[self.user_id]
        if membership is None:
            return
        memberships[self.user_id] = None
        community["members"] -= 1
        community["departures"] = community.get("departures", 0) + 1
        batch.remove(MEMBERSHIPS, membership["_id"])
        batch.put(COMMUNITIES, community)


def _memberships(batch: Batch) -> dict[str, MembershipDocument | None]:
    """Returns the memberships of the batch's users, as earlier members of the batch left them."""
    shared: dict[str, MembershipDocument | None] = batch.shared.setdefault(MEMBERSHIPS, {})
    return shared
