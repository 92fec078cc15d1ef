"""Rights in communities and conversations, which every commit of a person's change checks (ADR 80).

A change of these rights is committed to another stream than a message, so the two do not conflict. A change that takes
a right away therefore waits for the commits in progress (`wait_for_commits`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from storage.chat.conversations.rules import direct_fields, load_pair_block, require_may_converse
from storage.chat.documents import MembershipDocument, MessageDocument, RestrictionDocument
from storage.chat.memberships import (
    COMMUNITIES,
    MEMBERSHIPS,
    load_memberships,
    load_owners,
    loaded_memberships,
    owner_ids,
)
from storage.chat.restrictions import (
    COMMUNITY,
    RESTRICTIONS,
    archived,
    require_not_muted,
    require_not_removed,
    restriction_id,
    stored_restriction,
)
from storage.chat.roles import CommunityRole, Moderator, may_act_on, require_power, stored_role
from storage.chat.threads.rules import governing_topic, load_parent_topic
from storage.errors import Forbidden
from storage.identity.erased_people import USERS
from storage.identity.records import user_document_id
from storage.identity.rights import HasRole, IsActive
from storage.identity.roles import Role
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, DocumentKey, Right

_MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class IsNotRemoved(Right):
    """The person is neither banned nor was just removed from the topic's community."""

    user_id: str

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the restrictions of the person and of the community."""
        community_id = batch.head["community"]
        return [(RESTRICTIONS, restriction_id(community_id, each)) for each in (self.user_id, COMMUNITY)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads for a thread the topic of its parent, and for a conversation of two whether one blocked the other."""
        await load_parent_topic(mongo, session, batch)
        await load_pair_block(mongo, session, batch)

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        require_not_removed(self.restriction(batch), batch.at)

    def restriction(self, batch: Batch) -> RestrictionDocument | None:
        """Returns the person's restriction."""
        return stored_restriction(batch, batch.head["community"], self.user_id)


@dataclass(frozen=True, slots=True)
class MayWithdraw(IsNotRemoved):
    """The person may take something back from the topic, such as a reaction, which muted people may do too."""

    def check(self, batch: Batch) -> None:
        """Raises Forbidden, also if the topic, the parent's topic of a thread, or the community is archived."""
        if governing_topic(batch).get("archived_at") is not None:
            raise Forbidden("The topic is archived. It can only be read.")
        if stored_restriction(batch, batch.head["community"], COMMUNITY) is not None:
            raise archived()
        # Not `super()`, which fails here: `dataclass(slots=True)` creates a new class.
        IsNotRemoved.check(self, batch)


@dataclass(frozen=True, slots=True)
class MayWrite(MayWithdraw):
    """The person may write to the topic.

    Not in an archived topic or community, nor banned, muted or just removed. In a conversation, the person has joined,
    and neither of two people has blocked the other.
    """

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        require_may_converse(batch, self.user_id)
        MayWithdraw.check(self, batch)
        require_not_muted(self.restriction(batch), batch.at)


@dataclass(frozen=True, slots=True)
class HasJoined(Right):
    """The person is a member of the topic's community, or has joined the conversation."""

    user_id: str

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the membership, and for a thread the topic of its parent."""
        await load_parent_topic(mongo, session, batch)
        await load_memberships(mongo, session, batch, batch.head["community"], [self.user_id])

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        direct = direct_fields(batch)
        is_member = loaded_memberships(batch)[self.user_id] is not None
        if not (is_member if direct is None else self.user_id in direct["joined"]):
            raise Forbidden("Join the community first.")


@dataclass(frozen=True, slots=True)
class MayStartTopics(Right):
    """The person is a member of the community, and neither banned, muted nor just removed."""

    community_id: str
    user_id: str

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the person's restriction."""
        return [(RESTRICTIONS, restriction_id(self.community_id, self.user_id))]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the membership."""
        await load_memberships(mongo, session, batch, self.community_id, [self.user_id])

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        restriction = stored_restriction(batch, self.community_id, self.user_id)
        require_not_removed(restriction, batch.at)
        if loaded_memberships(batch)[self.user_id] is None:
            raise Forbidden("Join the community first.")
        require_not_muted(restriction, batch.at)


@dataclass(frozen=True, slots=True)
class MayModerate(Right):
    """The person moderates the community of the topic or of the stream, and may act on another person, if one is named.

    Allows everything in a community that does not exist: the change then raises NotFound.
    """

    moderator: Moderator
    target_id: str | None = None

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the community, for a change in its stream."""
        return [] if batch.stream.kind == "topic" else [(COMMUNITIES, batch.stream.id)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships, and the moderator's account."""
        community_id, organization_id = _community(batch)
        if organization_id is not None:
            ids = [each for each in (self.moderator.user_id, self.target_id) if each is not None]
            await load_memberships(mongo, session, batch, community_id, ids)
            await _load_user(mongo, session, batch, organization_id, self.moderator.user_id)

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        organization_id = _community(batch)[1]
        if organization_id is None:
            return
        memberships = loaded_memberships(batch)
        target = None if self.target_id is None else stored_role(memberships[self.target_id])
        require_rank(batch, organization_id, self.moderator, stored_role(memberships[self.moderator.user_id]), target)


@dataclass(frozen=True, slots=True)
class IsOwner(MayModerate):
    """The person owns the community. In a community without owners, an ADMIN has the right too."""

    act: str = ""
    """The act, for the error: "Only an owner of the community can …"."""

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the membership, the owners, and the person's account."""
        await MayModerate.load(self, mongo, session, batch)
        await load_owners(mongo, session, batch, batch.stream.id)

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        organization_id = _community(batch)[1]
        if organization_id is None:
            return
        IsActive(self.moderator.user_id, organization_id).check(batch)
        if stored_role(loaded_memberships(batch)[self.moderator.user_id]) is CommunityRole.OWNER:
            return
        if not self.moderator.is_admin or owner_ids(batch):
            raise Forbidden(f"Only an owner of the community can {self.act}.")
        HasRole(self.moderator.actor_in(organization_id), Role.ADMIN).check(batch)


@dataclass(frozen=True, slots=True)
class MayDeleteMessage(Right):
    """The person wrote the message and was not removed from the community, moderates its author, or is an ADMIN."""

    message: DocumentKey
    moderator: Moderator

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the message, and the documents of the author's rights."""
        deleter = self.moderator.user_id
        return [self.message, *IsActive(deleter).needs(batch), *IsNotRemoved(deleter).needs(batch)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships of both people and the moderator's account, if they are different people."""
        author_id = self._author_id(batch)
        if author_id != self.moderator.user_id:
            await MayModerate(self.moderator, author_id).load(mongo, session, batch)

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        author_id = self._author_id(batch)
        if author_id == self.moderator.user_id:
            IsActive(author_id).check(batch)
            IsNotRemoved(author_id).check(batch)
        elif author_id is not None:
            self._check_others(batch, author_id)

    def _check_others(self, batch: Batch, author_id: str) -> None:
        """Raises Forbidden unless the person is an ADMIN, or moderates the author."""
        IsActive(self.moderator.user_id).check(batch)
        memberships = loaded_memberships(batch)
        role, author_role = (stored_role(memberships[each]) for each in (self.moderator.user_id, author_id))
        if may_act_on(role, False, author_role):
            return
        if not self.moderator.is_admin:
            raise Forbidden("Only the author, a moderator of the author or an ADMIN can delete a message.")
        HasRole(self.moderator.actor_in(batch.head["org"]), Role.ADMIN).check(batch)

    def _author_id(self, batch: Batch) -> str | None:
        message: MessageDocument | None = batch.get(*self.message)
        return None if message is None else message["author"]


def require_rank(
    batch: Batch,
    organization_id: str,
    moderator: Moderator,
    role: CommunityRole | None,
    target: CommunityRole | None,
) -> None:
    """Raises Forbidden unless the moderator, whose account was loaded, may act on a person with the role `target`.

    An ADMIN's account is read only if the ADMIN has too low a rank in the community.
    """
    IsActive(moderator.user_id, organization_id).check(batch)
    if moderator.is_admin and not may_act_on(role, False, target):
        HasRole(moderator.actor_in(organization_id), Role.ADMIN).check(batch)
    require_power(role, moderator.is_admin, target)


async def load_members(
    mongo: Mongo, session: Session, batch: Batch, community_id: str, user_ids: Collection[str]
) -> None:
    """Reads memberships of any community, for a change that is committed neither to it nor to one of its topics."""
    query = {"community": community_id, "user": {"$in": list(user_ids)}}
    found: list[MembershipDocument] = await mongo.find(MEMBERSHIPS, query, session=session)
    members = batch.shared.setdefault(_MEMBERS, {})
    members.update({(community_id, membership["user"]): membership for membership in found})


def role_of_member(batch: Batch, community_id: str, user_id: str) -> CommunityRole | None:
    """Returns the role in a membership that `load_members` has read, or None for a person who is no member."""
    return stored_role(batch.shared[_MEMBERS].get((community_id, user_id)))


def _community(batch: Batch) -> tuple[str, str | None]:
    """Returns the ids of the community of a topic's or a community's stream, and of its organization.

    The latter is None if the community does not exist.
    """
    if batch.stream.kind == "topic":
        return batch.head["community"], batch.head["org"]
    community: Any = batch.get(COMMUNITIES, batch.stream.id)
    return batch.stream.id, None if community is None else community["org"]


async def _load_user(mongo: Mongo, session: Session, batch: Batch, organization_id: str, user_id: str) -> None:
    key = user_document_id(organization_id, user_id)
    if batch.get(USERS, key) is None:
        for document in await mongo.find(USERS, {"_id": key}, session=session, limit=1):
            batch.add_loaded(USERS, document)
