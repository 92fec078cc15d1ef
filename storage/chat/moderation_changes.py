"""Acts of owners and moderators on one person of a community, committed to the community's stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from storage.chat.documents import BanDocument
from storage.chat.memberships import (
    MEMBERSHIPS,
    MembershipChange,
    loaded_memberships,
    require_other_owner,
)
from storage.chat.restrictions import REMOVED_FOR, iso, put_restriction
from storage.chat.rights import IsOwner, MayModerate
from storage.chat.roles import CommunityRole, Moderator, stored_role
from storage.errors import BadUserInput, Unavailable
from storage.identity.audit import AuditAction, TargetKind, put_entry
from storage.streams.changes import Batch, Result, Right

MIN_MARK_LEFT = timedelta(seconds=20)
"""Minimum time for which a person's mark as removed must still last, to outlast the commit of at most 10 s."""


@dataclass(slots=True)
class ModerationChange(MembershipChange[Result]):
    """Base of one moderator's act on one person."""

    moderator: Moderator

    def audit(self, batch: Batch, action: AuditAction, **details: str) -> None:
        """Puts the entry of the audit log about this act on the person."""
        self.audit_target(batch, action, TargetKind.USER, self.user_id, **details, community=self.community_id)

    def audit_target(self, batch: Batch, action: AuditAction, kind: TargetKind, target: str, **details: str) -> None:
        """Puts the entry of the audit log about this act on any object."""
        actor = self.moderator.actor_in(self.copy_community(batch)["org"])
        put_entry(batch, actor, action, kind, target, **details)

    def rights(self) -> Sequence[Right]:
        """Returns the right to moderate the person."""
        return (MayModerate(self.moderator, self.user_id),)


@dataclass(slots=True)
class OwnerChange(ModerationChange[Result]):
    """Base of acts that only owners may do."""

    act: ClassVar[str]
    """The act, for the error: "Only an owner of the community can …"."""

    def rights(self) -> Sequence[Right]:
        """Returns the right of owners."""
        return (IsOwner(self.moderator, act=self.act),)


@dataclass(slots=True)
class SetCommunityRole(OwnerChange[CommunityRole]):
    """Sets a member's role. Owners may set every role, also their own while another owner remains."""

    act: ClassVar[str] = "change roles"
    role: CommunityRole

    def plan(self, batch: Batch) -> CommunityRole:
        """Puts the membership with the role. Raises: NotFound, Forbidden, BadUserInput, Conflict for the last owner."""
        self.copy_community(batch)
        memberships = loaded_memberships(batch)
        membership = memberships[self.user_id]
        if membership is None:
            raise BadUserInput("userId", "the id of a member of the community")
        if stored_role(membership) is self.role:
            return self.role
        require_other_owner(batch, membership)
        memberships[self.user_id] = changed_membership = membership.copy()
        changed_membership.pop("role", None)
        if self.role is not CommunityRole.MEMBER:
            changed_membership["role"] = self.role.value
        batch.put(MEMBERSHIPS, changed_membership)
        self.audit(batch, AuditAction.COMMUNITY_ROLE_SET, role=self.role.value)
        return self.role


@dataclass(slots=True)
class KickMember(ModerationChange[bool]):
    """Removes a member, who may join again. The result is whether the person was a member. Idempotent."""

    def plan(self, batch: Batch) -> bool:
        """Removes the membership. Raises: NotFound, Forbidden; Unavailable if the person's mark has nearly expired."""
        restriction = self.copy_restriction(batch)
        _require_marked(restriction.get("removed_until"), batch)
        if not self.remove_membership(batch):
            return False
        restriction["removed_until"] = batch.at + REMOVED_FOR
        put_restriction(batch, restriction)
        self.audit(batch, AuditAction.COMMUNITY_MEMBER_KICKED)
        return True


@dataclass(slots=True)
class BanMember(ModerationChange[BanDocument]):
    """Bans a person until an instant or for good, and removes the membership. A second ban replaces the first."""

    reason: str
    until: datetime | None

    def plan(self, batch: Batch) -> BanDocument:
        """Puts the ban. Raises: NotFound, Forbidden, BadUserInput; Unavailable if the mark has nearly expired."""
        require_future("until", self.until, batch)
        restriction = self.copy_restriction(batch)
        _require_marked(restriction.get("removed_until"), batch)
        self.remove_membership(batch)
        self.remove_request(batch)
        ban: BanDocument = {"by": self.moderator.user_id, "reason": self.reason, "at": batch.at}
        if self.until is not None:
            ban["until"] = self.until
        restriction["ban"] = ban
        restriction["removed_until"] = batch.at + REMOVED_FOR
        put_restriction(batch, restriction)
        self.audit(batch, AuditAction.COMMUNITY_MEMBER_BANNED, reason=self.reason, until=_instant_text(self.until))
        return ban


@dataclass(slots=True)
class UnbanMember(ModerationChange[None]):
    """Ends a ban. Idempotent. The person is not made a member."""

    def plan(self, batch: Batch) -> None:
        """Removes the ban if there is one. Raises: NotFound, Forbidden."""
        restriction = self.copy_restriction(batch)
        if restriction.pop("ban", None) is not None:
            put_restriction(batch, restriction)
            self.audit(batch, AuditAction.COMMUNITY_MEMBER_UNBANNED)


@dataclass(slots=True)
class MuteMember(ModerationChange[None]):
    """Mutes a person until an instant, also if the person leaves and joins again. None ends the mute. Idempotent."""

    until: datetime | None

    def plan(self, batch: Batch) -> None:
        """Puts the end of the mute. Raises: NotFound, Forbidden, BadUserInput."""
        require_future("until", self.until, batch)
        restriction = self.copy_restriction(batch)
        if self.until is not None:
            if loaded_memberships(batch)[self.user_id] is None:
                raise BadUserInput("userId", "the id of a member of the community")
            if restriction.get("muted_until") == self.until:
                return
            restriction["muted_until"] = self.until
            self.audit(batch, AuditAction.COMMUNITY_MEMBER_MUTED, until=_instant_text(self.until))
        elif restriction.pop("muted_until", None) is None:
            return
        else:
            self.audit(batch, AuditAction.COMMUNITY_MEMBER_UNMUTED)
        put_restriction(batch, restriction)


def require_future(field: str, at: datetime | None, batch: Batch) -> None:
    """Raises BadUserInput for an instant that is not after the batch's time."""
    if at is not None and at <= batch.at:
        raise BadUserInput(field, "an instant in the future")


def _instant_text(until: datetime | None) -> str:
    return "" if until is None else iso(until)


def _require_marked(removed_until: datetime | None, batch: Batch) -> None:
    """Raises Unavailable unless all writes of the person are refused until this batch is committed."""
    if removed_until is None or removed_until < batch.at + MIN_MARK_LEFT:
        raise Unavailable("The database is busy. Try again.")
