"""Roles of the members of a community, which role may act on which, and communities without an owner who can act.

An owner who is deactivated keeps the role, but cannot act. Each erasure begins with a deactivation.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from storage.chat.documents import CommunityDocument, MembershipDocument
from storage.errors import Conflict, Forbidden
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.records import User, user_document_id, user_record
from storage.mongo import Document, Mongo, Session

USERS = "users"
COMMUNITIES = "communities"
MEMBERSHIPS = "memberships"

MAX_OWNED = 200
"""Maximum number of communities that a person may own and still create another one."""

CHECKED_AT_ONCE = 100
"""Number of communities whose owners are read at once."""


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


async def deactivated_among(
    mongo: Mongo, organization_id: str, user_ids: Iterable[str], session: Session | None = None
) -> set[str]:
    """Returns those of the users who are deactivated, or whose erasure was requested."""
    ids = [user_document_id(organization_id, user_id) for user_id in user_ids]
    query: Document = {"_id": {"$in": ids}, "deactivated_at": {"$exists": True}}
    rows: list[UserDocument] = await mongo.find(USERS, query, {"_id": 1}, session=session) if ids else []
    return {row["_id"]["id"] for row in rows}


async def active_with_role(
    mongo: Mongo, organization_id: str, community_ids: Collection[str], *roles: CommunityRole
) -> set[tuple[str, str]]:
    """Returns the active people with one of the roles, as pairs of community and user."""
    query: Document = {"community": {"$in": list(community_ids)}, "role": {"$in": [role.value for role in roles]}}
    rows: list[MembershipDocument] = await mongo.find(MEMBERSHIPS, query, {"_id": 0, "community": 1, "user": 1})
    inactive = await deactivated_among(mongo, organization_id, {row["user"] for row in rows})
    return {(row["community"], row["user"]) for row in rows if row["user"] not in inactive}


async def without_owner(mongo: Mongo, organization_id: str, community_ids: Collection[str]) -> set[str]:
    """Returns those of the communities of which no active person is an owner."""
    owned = await active_with_role(mongo, organization_id, community_ids, CommunityRole.OWNER)
    return set(community_ids) - {community_id for community_id, _ in owned}


async def list_without_owner(mongo: Mongo, organization_id: str, after: str | None, limit: int) -> list[str]:
    """Returns the ids of communities that have members, but no active owner. They follow the id `after`.

    Reads the people who are deactivated and the communities that erasures have left without an owner, but none of the
    other communities.
    """
    candidates, found = await _candidates(mongo, organization_id, after or ""), list[str]()
    for start in range(0, len(candidates), CHECKED_AT_ONCE):
        if len(found) >= limit:
            break
        found += sorted(await without_owner(mongo, organization_id, candidates[start : start + CHECKED_AT_ONCE]))
    return found[:limit]


async def _candidates(mongo: Mongo, organization_id: str, after: str) -> Sequence[str]:
    """Returns the ids of communities that may lack an active owner, in order."""
    query: Document = {"_id.org": organization_id, "deactivated_at": {"$exists": True}, "erased_at": None}
    people: list[UserDocument] = await mongo.find(USERS, query, {"_id": 1})
    owned: list[MembershipDocument] = await mongo.find(
        MEMBERSHIPS, owned_query(organization_id, [each["_id"]["id"] for each in people]), {"_id": 0, "community": 1}
    )
    marked: list[CommunityDocument] = await mongo.find(COMMUNITIES, marked_query(organization_id), {"_id": 1})
    ids = {membership["community"] for membership in owned} | {community["_id"] for community in marked}
    return sorted(id_ for id_ in ids if id_ > after)


def owned_query(organization_id: str, user_ids: Sequence[str]) -> Document:
    """Returns the filter for memberships of owners."""
    return {"org": organization_id, "user": {"$in": list(user_ids)}, "role": CommunityRole.OWNER.value}


def marked_query(organization_id: str) -> Document:
    """Returns the filter for communities that lost their last active owner by an erasure."""
    return {"org": organization_id, "owner_erased": True}


async def lock_founder(mongo: Mongo, founder: User, session: Session) -> User:
    """Locks the person's document until the commit, so that concurrent creations count each other. Returns the person.

    Raises: Forbidden for a deactivated person; Conflict for an owner of too many communities.
    """
    key, update = {"_id": user_document_id(*founder.key)}, {"$currentDate": {"founded_at": True}}
    document: UserDocument | None = await mongo.find_one_and_update(USERS, key, update, session)
    if document is not None and "deactivated_at" in document:
        raise Forbidden("Your account is deactivated.")
    query = owned_query(founder.organization_id, [founder.id])
    if len(await mongo.find(MEMBERSHIPS, query, {"_id": 1}, limit=MAX_OWNED, session=session)) >= MAX_OWNED:
        raise Conflict(
            f"You own {MAX_OWNED} communities, which is the limit. Make another member the owner of one of them first."
        )
    return founder if document is None else user_record(document)
