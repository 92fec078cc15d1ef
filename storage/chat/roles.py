"""Roles of the members of a community, and which role may act on which."""

from dataclasses import dataclass
from enum import Enum

from storage.chat.documents import MembershipDocument
from storage.errors import Forbidden
from storage.identity.audit import Actor


class CommunityRole(Enum):
    """A member's role in one community. It says nothing about the roles of the member's tokens."""

    OWNER = "OWNER"
    MODERATOR = "MODERATOR"
    MEMBER = "MEMBER"

    @property
    def rank(self) -> int:
        """The order of the roles. A person may act on people of a lower rank only."""
        return _RANKS[self]


_RANKS = {CommunityRole.MEMBER: 0, CommunityRole.MODERATOR: 1, CommunityRole.OWNER: 2}


def stored_role(membership: MembershipDocument | None) -> CommunityRole | None:
    """Returns the role in a stored membership, or None without a membership."""
    return None if membership is None else CommunityRole(membership.get("role", "MEMBER"))


def may_act_on(actor: CommunityRole | None, is_admin: bool, target: CommunityRole | None) -> bool:
    """Returns whether a person may moderate another person.

    An ADMIN of the organization counts as a moderator. Moderators cannot act on moderators and owners, and owners
    cannot act on owners. A person without a role in the community counts as a member.
    """
    rank = max(0 if actor is None else actor.rank, CommunityRole.MODERATOR.rank if is_admin else 0)
    return rank > (0 if target is None else target.rank)


@dataclass(frozen=True, slots=True)
class Moderator:
    """The person who acts. `is_admin` says whether the request is an ADMIN's, who counts as a moderator."""

    user_id: str
    is_admin: bool = False
    actor: Actor | None = None
    """The person and the client of the request, for the audit log; None for an act without a request."""

    def actor_in(self, organization_id: str) -> Actor:
        """Returns the actor for the audit log of an organization."""
        return self.actor or Actor(organization_id, self.user_id)


def require_power(actor: CommunityRole | None, is_admin: bool, target: CommunityRole | None) -> None:
    """Raises Forbidden unless a person with the role `actor` may moderate a person with the role `target`."""
    if may_act_on(actor, is_admin, target):
        return
    if not (is_admin or (actor is not None and actor.rank)):
        raise Forbidden("Only moderators and owners of the community can do this.")
    if actor is CommunityRole.OWNER:
        raise Forbidden("The person is an owner of the community. Change the person's role first.")
    raise Forbidden("Moderators cannot act on other moderators or on owners of the community.")
