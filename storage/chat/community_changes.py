"""Changes of a community itself and of requests to join it, committed to the community's stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from storage.chat.documents import CommunityDocument, JoinRequestDocument, RestrictionDocument
from storage.chat.memberships import (
    COMMUNITIES,
    JOIN_REQUESTS,
    NewMemberChange,
    loaded_memberships,
    removals_stream,
    require_not_archived,
    stored_visibility,
)
from storage.chat.moderation_changes import ModerationChange, OwnerChange
from storage.chat.records import CommunityVisibility
from storage.chat.restrictions import COMMUNITY, RESTRICTIONS, require_not_banned, restriction_id
from storage.chat.rights import MayModerate
from storage.errors import Conflict, Forbidden, NotFound, RateLimited
from storage.identity.audit import AuditAction, TargetKind
from storage.identity.erased_people import require_not_erased, user_key
from storage.identity.records import User
from storage.mongo import Mongo, Session
from storage.mongo.text_index.names import fold_for_comparison
from storage.streams.changes import Batch, DocumentKey, Right
from storage.streams.log import Stream

MAX_JOIN_REQUESTS = 1000
"""Maximum number of requests to join one community that wait for a decision. Further requests are refused."""

RETRY_AFTER_MS = 3_600_000


@dataclass(slots=True)
class UpdateCommunity(OwnerChange[None]):
    """Replaces the name, the description or the visibility. None keeps a value. Idempotent. Emits CommunityChanged."""

    act: ClassVar[str] = "change it"
    name: str | None
    description: str | None
    visibility: CommunityVisibility | None

    def plan(self, batch: Batch) -> None:
        """Puts the community. Raises: NotFound; Forbidden for people who are not owners."""
        before, community = self.copy_community(batch), self.copy_community(batch)
        if self.name is not None:
            community["name"], community["sort"] = self.name, fold_for_comparison(self.name)
        if self.description is not None:
            community["description"] = self.description
        if self.visibility is not None and self.visibility is not stored_visibility(community):
            community["visibility"] = self.visibility.value
            self._recheck_subscribers(batch, community)
            batch.add_outbox_row(Stream("reports", community["org"]), "CommunityVisibility", self.community_id)
        if community != before:
            batch.put(COMMUNITIES, community)
            batch.emit("CommunityChanged", self.community_id)
            self._audit_changes(batch, before, community)

    def _recheck_subscribers(self, batch: Batch, community: CommunityDocument) -> None:
        """Makes processes end the subscriptions of people who may not see the topics any more, as after a departure."""
        community["departures"] = community.get("departures", 0) + 1
        batch.add_outbox_row(removals_stream(self.community_id), "MemberRemoved", None)

    def _audit_changes(self, batch: Batch, before: CommunityDocument, after: CommunityDocument) -> None:
        """Puts the entry of the audit log.

        Every ADMIN reads the log, but not every ADMIN may see a private community. So the entry says that the name or
        the description changed, without the texts.
        """
        details: dict[str, str] = {}
        if before["name"] != after["name"]:
            details["name"] = "changed"
        if before["description"] != after["description"]:
            details["description"] = "changed"
        if stored_visibility(before) is not stored_visibility(after):
            details["visibility"] = stored_visibility(after).value
        action, kind = AuditAction.COMMUNITY_CHANGED, TargetKind.COMMUNITY
        self.audit_target(batch, action, kind, self.community_id, **details)


@dataclass(slots=True)
class SetArchived(OwnerChange[None]):
    """Archives or unarchives a community. Idempotent. Emits CommunityChanged."""

    act: ClassVar[str] = "archive it"
    is_archived: bool

    def needs(self) -> Sequence[DocumentKey]:
        """Returns what every change of a membership needs, and the community's own restriction."""
        restriction = (RESTRICTIONS, restriction_id(self.community_id, COMMUNITY))
        return [*OwnerChange.needs(self), restriction]

    def plan(self, batch: Batch) -> None:
        """Puts the community, and the restriction that every write to its topics reads. Raises: NotFound, Forbidden."""
        community = self.copy_community(batch)
        if self.is_archived == ("archived_at" in community):
            return
        restriction: RestrictionDocument = {"_id": restriction_id(self.community_id, COMMUNITY), "archived": True}
        if self.is_archived:
            community["archived_at"] = batch.at
            batch.put(RESTRICTIONS, restriction)
        else:
            del community["archived_at"]
            batch.remove(RESTRICTIONS, restriction["_id"])
        batch.put(COMMUNITIES, community)
        batch.emit("CommunityChanged", self.community_id)
        action = AuditAction.COMMUNITY_ARCHIVED if self.is_archived else AuditAction.COMMUNITY_UNARCHIVED
        self.audit_target(batch, action, TargetKind.COMMUNITY, self.community_id)


@dataclass(slots=True)
class RequestToJoin(NewMemberChange):
    """Asks the moderators of a LISTED community for membership. A later request replaces the earlier one.

    In a PUBLIC community the person joins at once. Changes nothing for a member.
    """

    message: str

    def plan(self, batch: Batch) -> None:
        """Puts the request, or the membership.

        Raises: NotFound for a PRIVATE community and for an erased person; Forbidden for a banned person and in an
        archived community; RateLimited if too many requests wait.
        """
        community, id_ = self.copy_community(batch), restriction_id(self.community_id, self.user_id)
        if loaded_memberships(batch)[self.user_id] is not None:
            return
        visibility = stored_visibility(community)
        if visibility is CommunityVisibility.PRIVATE:
            raise NotFound("community", self.community_id)
        if visibility is CommunityVisibility.PUBLIC:
            self.add_membership(batch, self.user)
            return
        require_not_erased(batch, self.user.key)
        require_not_banned(self.copy_restriction(batch), batch.at)
        require_not_archived(community)
        if batch.get(JOIN_REQUESTS, id_) is None:
            self._count_request(batch, community)
        request: JoinRequestDocument = {"_id": id_, "message": self.message, "at": batch.at}
        batch.put(JOIN_REQUESTS, request)

    def _count_request(self, batch: Batch, community: CommunityDocument) -> None:
        waiting = community.get("requests", 0)
        if waiting >= MAX_JOIN_REQUESTS:
            raise RateLimited("Too many requests wait for the moderators of this community.", RETRY_AFTER_MS)
        community["requests"] = waiting + 1
        batch.put(COMMUNITIES, community)


@dataclass(slots=True)
class DecideJoinRequest(ModerationChange[None]):
    """Decides a request to join. `user` is the person, or None to refuse. Idempotent."""

    user: User | None

    def needs(self) -> Sequence[DocumentKey]:
        """Returns what every change of a membership needs, and the person who is to be added."""
        return [*ModerationChange.needs(self), *(() if self.user is None else (user_key(self.user.key),))]

    def rights(self) -> Sequence[Right]:
        """Returns the right to moderate the community."""
        return (MayModerate(self.moderator),)

    def plan(self, batch: Batch) -> None:
        """Adds the membership, or only removes the request.

        Raises: NotFound, also if an erased person is to be added; Forbidden for people who are not moderators; Conflict
        if a person who has no request is to be added.
        """
        if loaded_memberships(batch)[self.user_id] is not None:
            return
        had_request = self.remove_request(batch)
        if self.user is not None:
            if not had_request:
                raise Conflict("The person has not asked to join, or withdrew the request.")
            self.add_membership_for(batch, self.user, self.moderator.user_id)
            self.audit(batch, AuditAction.COMMUNITY_MEMBER_ADDED)
        elif had_request:
            self.audit(batch, AuditAction.COMMUNITY_JOIN_REFUSED)


@dataclass(slots=True)
class AddMember(ModerationChange[None]):
    """Makes a person a member, in a community of any visibility. Idempotent."""

    user: User
    _has_blocked_moderator: bool = field(default=False, init=False)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns what every change of a membership needs, and the person."""
        return [*ModerationChange.needs(self), user_key(self.user.key)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships, and whether the person has blocked the moderator."""
        # Not `super()`, which fails here: `dataclass(slots=True)` creates a new class.
        await ModerationChange.load(self, mongo, session, batch)
        block = {"org": self.user.organization_id, "user": self.user_id, "blocked": self.moderator.user_id}
        self._has_blocked_moderator = await mongo["blocks"].find_one(block, session=session) is not None

    def rights(self) -> Sequence[Right]:
        """Returns the right to moderate the community."""
        return (MayModerate(self.moderator),)

    def plan(self, batch: Batch) -> None:
        """Adds the membership unless it exists.

        Raises: NotFound, also for an erased person; Forbidden, also for a banned person, for a person who has blocked
        the moderator, and in an archived community.
        """
        if loaded_memberships(batch)[self.user_id] is not None:
            return
        if self._has_blocked_moderator:
            raise Forbidden("You cannot add this person. Send the person an invitation link instead.")
        self.add_membership_for(batch, self.user, self.moderator.user_id)
        self.audit(batch, AuditAction.COMMUNITY_MEMBER_ADDED)
