"""Acts of owners and moderators on one person of a community, committed to the community's stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.chat.documents import BanDocument
from storage.chat.memberships import (
    MEMBERSHIPS,
    MembershipChange,
    load_owners,
    loaded_memberships,
    owner_ids,
    require_other_owner,
)
from storage.chat.restrictions import REMOVED_FOR, iso, put_restriction
from storage.chat.roles import CommunityRole, may_act_on, stored_role
from storage.errors import BadUserInput, Forbidden, Unavailable
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, Result

MIN_MARK_LEFT = timedelta(seconds=20)
"""Minimum time for which a person's mark as removed must still last, to outlast the commit of at most 10 s."""


@dataclass(frozen=True, slots=True)
class Moderator:
    """The person who acts. `is_admin` says whether the person is an ADMIN, who counts as a moderator."""

    user_id: str
    is_admin: bool = False
    actor: Actor | None = None
    """The person and the client of the request, for the audit log; None for an act without a request."""


@dataclass(slots=True)
class ModerationChange(MembershipChange[Result]):
    """Base of one moderator's act on one person."""

    moderator: Moderator

    @property
    def member_ids(self) -> Sequence[str]:
        """The person and the moderator."""
        return (self.user_id, self.moderator.user_id)

    def audit(self, batch: Batch, action: AuditAction, **details: str) -> None:
        """Puts the entry of the audit log about this act on the person."""
        self.audit_target(batch, action, TargetKind.USER, self.user_id, **details, community=self.community_id)

    def audit_target(self, batch: Batch, action: AuditAction, kind: TargetKind, target: str, **details: str) -> None:
        """Puts the entry of the audit log about this act on any object."""
        actor = self.moderator.actor or Actor(self.copy_community(batch)["org"], self.moderator.user_id)
        put_entry(batch, actor, action, kind, target, **details)

    def check_right(self, batch: Batch) -> None:
        """Raises: NotFound for a missing community; Forbidden if the moderator may not act on the person."""
        self.copy_community(batch)
        memberships = loaded_memberships(batch)
        require_power(
            stored_role(memberships[self.moderator.user_id]),
            self.moderator.is_admin,
            stored_role(memberships[self.user_id]),
        )


@dataclass(slots=True)
class OwnerChange(ModerationChange[Result]):
    """Base of acts that only owners may do."""

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships and the owners."""
        # Not `super()`, which fails here: `dataclass(slots=True)` creates a new class.
        await MembershipChange.load(self, mongo, session, batch)
        await load_owners(mongo, session, batch, self.community_id)


@dataclass(slots=True)
class SetCommunityRole(OwnerChange[CommunityRole]):
    """Sets a member's role. Owners may set every role, also their own while another owner remains."""

    role: CommunityRole

    def plan(self, batch: Batch) -> CommunityRole:
        """Puts the membership with the role. Raises: NotFound, Forbidden, BadUserInput, Conflict for the last owner."""
        self.copy_community(batch)
        require_owner(batch, self.moderator, "change roles")
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
        self.check_right(batch)
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
        self.check_right(batch)
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
        self.check_right(batch)
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
        self.check_right(batch)
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


def require_power(actor: CommunityRole | None, is_admin: bool, target: CommunityRole | None) -> None:
    """Raises Forbidden unless a person with the role `actor` may moderate a person with the role `target`."""
    if may_act_on(actor, is_admin, target):
        return
    if not (is_admin or (actor is not None and actor.rank)):
        raise Forbidden("Only moderators and owners of the community can do this.")
    if actor is CommunityRole.OWNER:
        raise Forbidden("The person is an owner of the community. Change the person's role first.")
    raise Forbidden("Moderators cannot act on other moderators or on owners of the community.")


def require_moderator(batch: Batch, moderator: Moderator) -> None:
    """Raises Forbidden for people who are neither moderators nor owners nor ADMINs."""
    require_power(stored_role(loaded_memberships(batch)[moderator.user_id]), moderator.is_admin, None)


def require_future(field: str, at: datetime | None, batch: Batch) -> None:
    """Raises BadUserInput for an instant that is not after the batch's time."""
    if at is not None and at <= batch.at:
        raise BadUserInput(field, "an instant in the future")


def _instant_text(until: datetime | None) -> str:
    return "" if until is None else iso(until)


def require_owner(batch: Batch, moderator: Moderator, act: str) -> None:
    """Raises Forbidden for people who are not owners. An ADMIN may act in a community without owners."""
    role = stored_role(loaded_memberships(batch)[moderator.user_id])
    if role is not CommunityRole.OWNER and not (moderator.is_admin and not owner_ids(batch)):
        raise Forbidden(f"Only an owner of the community can {act}.")


def _require_marked(removed_until: datetime | None, batch: Batch) -> None:
    """Raises Unavailable unless all writes of the person are refused until this batch is committed."""
    if removed_until is None or removed_until < batch.at + MIN_MARK_LEFT:
        raise Unavailable("The database is busy. Try again.")
