"""Joining and leaving a community: changes that the sequencer commits to the community's stream.

The number of members changes in the same commit. Joins that arrive together share a commit, so a burst of joins does
not cause conflicts on the community's document.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from bson import ObjectId

from storage.chat.documents import CommunityDocument, MembershipDocument, RestrictionDocument
from storage.chat.records import CommunityVisibility
from storage.chat.restrictions import RESTRICTIONS, archived, put_restriction, require_not_banned, restriction_id
from storage.chat.roles import CommunityRole, deactivated_among, stored_role
from storage.errors import Conflict, Forbidden, NotFound
from storage.identity.documents import UserDocument
from storage.identity.erased_people import require_not_erased, user_key
from storage.identity.records import User, user_record
from storage.identity.rights import IsActive
from storage.mongo import Mongo, Session
from storage.mongo.text_index.names import search_terms
from storage.notifications import notify_new_member
from storage.streams.changes import Batch, Change, DocumentKey, Result, Right, SystemChange
from storage.streams.log import Stream

COMMUNITIES = "communities"
MEMBERSHIPS = "memberships"
JOIN_REQUESTS = "join_requests"
_OWNERS = "owners"
_INACTIVE_OWNERS = "inactive owners"


def community_stream(community_id: str) -> Stream:
    """Returns the stream of a community's events."""
    return Stream("community", community_id)


def removals_stream(community_id: str) -> Stream:
    """Returns the stream of people who lost the membership. Processes read it to end subscriptions; clients can't."""
    return Stream("removals", community_id)


def require_not_archived(community: CommunityDocument) -> None:
    """Raises Forbidden for an archived community."""
    if "archived_at" in community:
        raise archived()


def stored_visibility(community: CommunityDocument) -> CommunityVisibility:
    """Returns the visibility of a stored community."""
    return CommunityVisibility(community.get("visibility", "PUBLIC"))


def new_membership(
    community_id: str, user: User, at: datetime, role: CommunityRole = CommunityRole.MEMBER
) -> MembershipDocument:
    """Returns the document of a user who joins."""
    membership: MembershipDocument = {
        "_id": ObjectId(),
        "org": user.organization_id,
        "community": community_id,
        "user": user.id,
        "handle": user.handle,
        "search": search_terms(user.handle, user.name),
        "at": at,
    }
    if role is not CommunityRole.MEMBER:
        membership["role"] = role.value
    return membership


def stored_user(batch: Batch, user: User) -> User:
    """Returns the user as the batch has loaded it. `user` may be older, with an earlier handle."""
    stored: UserDocument | None = batch.get(*user_key(user.key))
    return user if stored is None else user_record(stored)


@dataclass(slots=True)
class MembershipChange(Change[Result]):
    """Base of changes of one person's membership. They emit no events in the community's stream."""

    usual_events: ClassVar[int] = 0

    community_id: str
    user_id: str

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the community, and the person's restriction and request to join."""
        id_ = restriction_id(self.community_id, self.user_id)
        return [(COMMUNITIES, self.community_id), (RESTRICTIONS, id_), (JOIN_REQUESTS, id_)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the membership, and the owners if the person is one of them."""
        await load_memberships(mongo, session, batch, self.community_id, [self.user_id])
        if stored_role(loaded_memberships(batch)[self.user_id]) is CommunityRole.OWNER:
            await load_owners(mongo, session, batch, self.community_id)

    def copy_community(self, batch: Batch) -> CommunityDocument:
        """Returns a copy of the community, to be changed and put back. Raises: NotFound."""
        community: CommunityDocument | None = batch.get(COMMUNITIES, self.community_id)
        if community is None:
            raise NotFound("community", self.community_id)
        return community.copy()

    def copy_restriction(self, batch: Batch) -> RestrictionDocument:
        """Returns a copy of the person's restriction, or an empty one."""
        id_ = restriction_id(self.community_id, self.user_id)
        restriction: RestrictionDocument | None = batch.get(RESTRICTIONS, id_)
        return {"_id": id_} if restriction is None else restriction.copy()

    def add_membership(self, batch: Batch, user: User) -> MembershipDocument:
        """Puts the membership of the person and counts it, and removes the request to join. Returns the membership.

        Raises: NotFound, also for an erased person; Forbidden for a banned person and in an archived community.
        """
        require_not_erased(batch, user.key)
        restriction = self.copy_restriction(batch)
        require_not_banned(restriction, batch.at)
        require_not_archived(self.copy_community(batch))
        self.remove_request(batch)
        community = self.copy_community(batch)
        role = CommunityRole.MEMBER if community["members"] else CommunityRole.OWNER
        membership = new_membership(self.community_id, stored_user(batch, user), batch.at, role)
        loaded_memberships(batch)[self.user_id] = membership
        community["members"] += 1
        batch.put(MEMBERSHIPS, membership)
        batch.put(COMMUNITIES, community)
        if restriction.pop("removed_until", None) is not None:
            put_restriction(batch, restriction)
        return membership

    def add_membership_for(self, batch: Batch, user: User, actor_id: str | None) -> None:
        """Makes the person a member, and notifies the person. `actor_id` is None after an accepted invitation.

        Raises: NotFound; Forbidden for a banned person and in an archived community.
        """
        membership = self.add_membership(batch, user)
        notify_new_member(batch, user.organization_id, user.id, actor_id, self.community_id, str(membership["_id"]))

    def remove_request(self, batch: Batch) -> bool:
        """Removes the person's request to join if there is one. Returns whether there was one."""
        id_ = restriction_id(self.community_id, self.user_id)
        if batch.get(JOIN_REQUESTS, id_) is None:
            return False
        community = self.copy_community(batch)
        community["requests"] = community.get("requests", 1) - 1
        batch.put(COMMUNITIES, community)
        batch.remove(JOIN_REQUESTS, id_)
        return True

    def remove_membership(self, batch: Batch, may_be_last_owner: bool = False) -> bool:
        """Removes the membership if it exists, and counts the departure. Returns whether it existed.

        Raises: NotFound; Conflict for the last owner, unless `may_be_last_owner`.
        """
        community, memberships = self.copy_community(batch), loaded_memberships(batch)
        membership = memberships[self.user_id]
        if membership is None:
            return False
        if not may_be_last_owner:
            require_other_owner(batch, membership)
        memberships[self.user_id] = None
        community["members"] -= 1
        if stored_role(membership) is CommunityRole.OWNER and community["members"] and not owner_ids(batch):
            community["owner_erased"] = True
        community["departures"] = community.get("departures", 0) + 1
        batch.remove(MEMBERSHIPS, membership["_id"])
        batch.put(COMMUNITIES, community)
        batch.add_outbox_row(removals_stream(self.community_id), "MemberRemoved", self.user_id)
        return True


@dataclass(slots=True)
class NewMemberChange(MembershipChange[None]):
    """Base of changes by which a person becomes a member or asks for it."""

    user: User
    """The user with the id `user_id`."""

    def rights(self) -> Sequence[Right]:
        """Returns that the person's account is active."""
        return (IsActive(self.user_id, self.user.organization_id),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns what every change of a membership needs, and the person."""
        return [*MembershipChange.needs(self), user_key(self.user.key)]


@dataclass(slots=True)
class JoinCommunity(NewMemberChange):
    """Makes the user a member. Idempotent. The first member of a community without members becomes its owner."""

    def plan(self, batch: Batch) -> None:
        """Adds the membership, unless it exists.

        Raises: NotFound; Forbidden for a banned person, in an archived community, and in a community that people join
        by a request.
        """
        community = self.copy_community(batch)
        if loaded_memberships(batch)[self.user_id] is not None:
            return
        visibility = stored_visibility(community)
        if visibility is CommunityVisibility.PRIVATE:
            raise NotFound("community", self.community_id)
        require_not_banned(self.copy_restriction(batch), batch.at)
        if visibility is CommunityVisibility.LISTED:
            raise Forbidden("A moderator decides who joins this community. Use requestToJoin.")
        self.add_membership(batch, self.user)


@dataclass(slots=True)
class JoinByInvitation(NewMemberChange):
    """Makes the user a member of a community of any visibility, after an invitation was accepted. Idempotent."""

    def plan(self, batch: Batch) -> None:
        """Adds the membership, unless it exists.

        Raises: NotFound for an erased person; Forbidden for a banned person and in an archived community.
        """
        if loaded_memberships(batch)[self.user_id] is None:
            self.add_membership_for(batch, self.user, None)


@dataclass(slots=True)
class LeaveCommunity(MembershipChange[None]):
    """Ends the membership, or withdraws the request to join. Idempotent."""

    def rights(self) -> Sequence[Right]:
        """Returns no right: everybody may leave."""
        return ()

    def plan(self, batch: Batch) -> None:
        """Removes the membership or the request, if there is one. Raises: NotFound; Conflict for the last owner."""
        if not self.remove_membership(batch):
            self.remove_request(batch)


@dataclass(slots=True)
class RemoveErasedMember(MembershipChange[None], SystemChange[None]):
    """Ends the membership of an erased person, or the request to join. A community may be left without owners."""

    def plan(self, batch: Batch) -> None:
        """Removes the membership or the request, if there is one. Raises: NotFound."""
        if not self.remove_membership(batch, may_be_last_owner=True):
            self.remove_request(batch)


def loaded_memberships(batch: Batch) -> dict[str, MembershipDocument | None]:
    """Returns the memberships of the batch's users, as earlier changes of the batch left them."""
    shared: dict[str, MembershipDocument | None] = batch.shared.setdefault(MEMBERSHIPS, {})
    return shared


async def load_memberships(
    mongo: Mongo, session: Session, batch: Batch, community_id: str, user_ids: Collection[str]
) -> None:
    """Reads memberships of the batch's community, each once for all changes of the batch."""
    memberships = loaded_memberships(batch)
    for user_id in user_ids:
        if user_id in memberships:
            continue
        query = {"community": community_id, "user": user_id}
        membership: MembershipDocument | None = await mongo[MEMBERSHIPS].find_one(query, session=session)
        memberships[user_id] = membership
        if membership is not None:
            batch.add_loaded(MEMBERSHIPS, membership)


async def load_owners(mongo: Mongo, session: Session, batch: Batch, community_id: str) -> None:
    """Reads who owns the community and is not deactivated, once for all changes of the batch."""
    if _OWNERS not in batch.shared:
        query = {"community": community_id, "role": CommunityRole.OWNER.value}
        owners: list[MembershipDocument] = await mongo.find(MEMBERSHIPS, query, {"org": 1, "user": 1}, session=session)
        ids = {owner["user"] for owner in owners}
        inactive = await deactivated_among(mongo, owners[0]["org"], ids, session) if owners else set[str]()
        batch.shared[_OWNERS], batch.shared[_INACTIVE_OWNERS] = ids - inactive, inactive


def owner_ids(batch: Batch) -> set[str]:
    """Returns the active owners as earlier changes of the batch left them. They must have been loaded."""
    owners: set[str] = set(batch.shared[_OWNERS])
    for user_id, membership in loaded_memberships(batch).items():
        if stored_role(membership) is CommunityRole.OWNER:
            owners.add(user_id)
        else:
            owners.discard(user_id)
    return owners.difference(batch.shared[_INACTIVE_OWNERS])


def require_other_owner(batch: Batch, membership: MembershipDocument) -> None:
    """Raises Conflict if the member is an owner of the community, and nobody else is an active owner."""
    if stored_role(membership) is CommunityRole.OWNER and not owner_ids(batch) - {membership["user"]}:
        raise Conflict("A community keeps at least one owner. Make another member an owner first.")
