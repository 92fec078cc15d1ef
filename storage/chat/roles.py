"""Roles of the members of a community, and which role may act on which."""

from enum import Enum

from storage.chat.documents import MembershipDocument


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
