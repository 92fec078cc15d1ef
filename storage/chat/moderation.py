"""Owners and moderators of communities: roles, removals, bans and mutes, and the lists that moderators see."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from bson import MaxKey
from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.community_changes import AddMember, DecideJoinRequest, RequestToJoin, SetArchived, UpdateCommunity
from storage.chat.documents import BanDocument, JoinRequestDocument, MembershipDocument, RestrictionDocument
from storage.chat.memberships import JOIN_REQUESTS, MEMBERSHIPS, community_stream
from storage.chat.moderation_changes import (
    BanMember,
    KickMember,
    MuteMember,
    SetCommunityRole,
    UnbanMember,
)
from storage.chat.records import Community, CommunityBan, CommunityMember, CommunityVisibility, JoinRequest
from storage.chat.restrictions import RESTRICTIONS, is_banned, mark_removed, muted_at, restriction_id, wait_for_commits
from storage.chat.roles import CommunityRole, Moderator, require_power, stored_role
from storage.identity.erased_people import check_not_erased
from storage.identity.records import User
from storage.ids import UserKey
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.mongo.clock import DatabaseClock
from storage.streams.changes import Change, Result
from storage.streams.sequencer import Sequencer

_Pair = tuple[str, str]
"""Community id and user id."""


class ModerationStore:
    """Reads roles and restrictions, and commits acts of moderators. The commit itself checks the moderator's right."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, clock: DatabaseClock) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._clock = clock
        self._memberships: AsyncCollection[MembershipDocument] = mongo[MEMBERSHIPS]
        self._by_pair: BatchLoader[_Pair, MembershipDocument] = BatchLoader(self._load_memberships)
        self._restrictions: BatchLoader[_Pair, RestrictionDocument] = BatchLoader(self._load_restrictions)

    async def role(self, community_id: str, user_id: str) -> CommunityRole | None:
        """Returns the person's role in the community, or None for a person who is not a member."""
        return stored_role(await self._by_pair.get((community_id, user_id)))

    async def roles(self, members: Collection[_Pair]) -> dict[_Pair, CommunityRole]:
        """Returns the roles of those pairs of community and person that are memberships."""
        memberships = await self._by_pair.find(members)
        return {pair: _member(membership).role for pair, membership in memberships.items()}

    async def member(self, community_id: str, user_id: str) -> CommunityMember | None:
        """Returns the member, or None."""
        membership = await self._by_pair.get((community_id, user_id))
        return None if membership is None else _member(membership)

    async def members(
        self, community_id: str, role: CommunityRole | None, after_handle: str | None, limit: int
    ) -> list[CommunityMember]:
        """Returns members, ordered by handle: those after `after_handle`, or from the first if it is None.

        `role` selects the members with one role; None selects all.
        """
        query: Document = {"community": community_id}
        if role is not None:
            query["role"] = None if role is CommunityRole.MEMBER else role.value
        if after_handle is not None:
            query["handle"] = {"$gt": after_handle}
        return [_member(each) for each in await self._mongo.find(MEMBERSHIPS, query, None, [("handle", 1)], limit)]

    async def muted_until(self, community_id: str, user_id: str) -> datetime | None:
        """Returns when the person's mute ends, or None for a person who is not muted."""
        return muted_at(await self._restrictions.get((community_id, user_id)), await self._clock.now())

    async def bans(self, community_id: str, after_user_id: str | None, limit: int) -> list[CommunityBan]:
        """Returns the bans in force, by user id: those after `after_user_id`, or from the first if it is None."""
        low = restriction_id(community_id, after_user_id or "")
        query: Document = {
            "_id": {"$gt": low, "$lt": {"c": community_id, "u": MaxKey()}},
            "ban": {"$exists": True},
            "$expr": {"$gt": [{"$ifNull": ["$ban.until", {"$add": ["$$NOW", 1]}]}, "$$NOW"]},
        }
        found: list[RestrictionDocument] = await self._mongo.find(RESTRICTIONS, query, None, [("_id", 1)], limit)
        return [_ban(community_id, each["_id"]["u"], each["ban"]) for each in found]

    async def ban(self, community_id: str, user_id: str) -> CommunityBan | None:
        """Returns the person's ban that is in force, or None."""
        restriction = await self._restrictions.get((community_id, user_id))
        if restriction is None or not is_banned(restriction, await self._clock.now()):
            return None
        return _ban(community_id, user_id, restriction["ban"])

    async def set_role(self, community: Community, moderator: Moderator, user_id: str, role: CommunityRole) -> None:
        """Sets a member's role. After the return, no act commits for which the role is too low. Idempotent.

        Raises: NotFound for an erased person; Forbidden, BadUserInput, Conflict for the last owner.
        """
        await self._check_not_erased(community, user_id)
        await self._commit(community, SetCommunityRole(community.id, user_id, moderator, role))
        if role is not CommunityRole.OWNER:
            await wait_for_commits(self._mongo, community.id)

    async def kick(self, community: Community, moderator: Moderator, user_id: str) -> None:
        """Removes a member. Idempotent. After the return, no write of the person commits.

        Raises: NotFound for an erased person; Forbidden; Unavailable if the database is too slow.
        """
        await self._check_not_erased(community, user_id)
        await self._require_power(community, moderator, user_id)
        if await self._by_pair.get((community.id, user_id)) is not None:
            await self._block_writes(community, user_id)
            await self._commit(community, KickMember(community.id, user_id, moderator))

    async def ban_member(
        self, community: Community, moderator: Moderator, user_id: str, until: datetime | None, reason: str
    ) -> CommunityBan:
        """Bans and removes a person. After the return, no write of the person commits.

        Raises: NotFound for an erased person; Forbidden; BadUserInput for an end in the past; Unavailable if the
        database is too slow.
        """
        await self._check_not_erased(community, user_id)
        await self._require_power(community, moderator, user_id)
        await self._block_writes(community, user_id)
        change = BanMember(community.id, user_id, moderator, reason, until)
        return _ban(community.id, user_id, await self._commit(community, change))

    async def unban(self, community: Community, moderator: Moderator, user_id: str) -> None:
        """Ends a ban. Idempotent. Raises: Forbidden."""
        await self._commit(community, UnbanMember(community.id, user_id, moderator))

    async def mute(self, community: Community, moderator: Moderator, user_id: str, until: datetime | None) -> None:
        """Mutes a person until an instant; None ends the mute. After the return, no write of a muted person commits.

        Idempotent. Raises: NotFound for an erased person; Forbidden, BadUserInput.
        """
        await self._check_not_erased(community, user_id)
        await self._commit(community, MuteMember(community.id, user_id, moderator, until))
        if until is not None:
            await wait_for_commits(self._mongo, community.id)

    async def add_member(self, community: Community, moderator: Moderator, user: User) -> None:
        """Makes a person a member. Idempotent.

        Raises: NotFound for an erased person; Forbidden, also for a person who is banned or has blocked the moderator.
        """
        await self._commit(community, AddMember(community.id, user.id, moderator, user))

    async def update_community(
        self,
        community: Community,
        moderator: Moderator,
        name: str | None,
        description: str | None,
        visibility: CommunityVisibility | None,
    ) -> None:
        """Replaces the values that are not None. Raises: Forbidden for people who are not owners."""
        change = UpdateCommunity(community.id, moderator.user_id, moderator, name, description, visibility)
        await self._commit(community, change)

    async def set_archived(self, community: Community, moderator: Moderator, is_archived: bool) -> None:
        """Archives or unarchives a community. After an archiving, no write to its topics commits. Raises: Forbidden."""
        await self._commit(community, SetArchived(community.id, moderator.user_id, moderator, is_archived))
        if is_archived:
            await wait_for_commits(self._mongo, community.id)

    async def request_to_join(self, community: Community, user: User, message: str) -> None:
        """Asks to join a LISTED community, or joins a PUBLIC one. Idempotent.

        Raises: NotFound, Forbidden for a banned person, RateLimited.
        """
        await self._commit(community, RequestToJoin(community.id, user.id, user, message))

    async def join_requests(self, community_id: str, after_user_id: str | None, limit: int) -> list[JoinRequest]:
        """Returns the requests that wait, by user id: those after `after_user_id`, or from the first if it is None."""
        low = restriction_id(community_id, after_user_id or "")
        query: Document = {"_id": {"$gt": low, "$lt": {"c": community_id, "u": MaxKey()}}}
        found: list[JoinRequestDocument] = await self._mongo.find(JOIN_REQUESTS, query, None, [("_id", 1)], limit)
        return [_join_request(each) for each in found]

    async def decide_join_request(
        self, community: Community, moderator: Moderator, user: User, is_approved: bool
    ) -> None:
        """Adds the person as a member, or refuses. Idempotent. Raises: Forbidden; Conflict without a request."""
        change = DecideJoinRequest(community.id, user.id, moderator, user if is_approved else None)
        await self._commit(community, change)

    async def _check_not_erased(self, community: Community, user_id: str) -> None:
        """Raises NotFound for a person whose erasure was requested, about whom nothing may be stored any more."""
        await check_not_erased(self._mongo, UserKey(community.organization_id, user_id))

    async def _require_power(self, community: Community, moderator: Moderator, user_id: str) -> None:
        """Raises Forbidden if the moderator may not act on the person. Call it before `_block_writes`."""
        actor, target = [await self.role(community.id, each) for each in (moderator.user_id, user_id)]
        require_power(actor, moderator.is_admin, target)

    async def _block_writes(self, community: Community, user_id: str) -> None:
        """Marks the person as removed, so that writes are refused. Waits for writes that may not have read the mark."""
        await mark_removed(self._mongo, community.id, user_id)
        await wait_for_commits(self._mongo, community.id)

    async def _commit(self, community: Community, change: Change[Result]) -> Result:
        return await self._sequencer.commit(community_stream(community.id), change)

    async def _load_memberships(self, pairs: Sequence[_Pair]) -> dict[_Pair, MembershipDocument]:
        users: defaultdict[str, list[str]] = defaultdict(list)
        for community, user in pairs:
            users[community].append(user)
        queries = [{"community": community, "user": {"$in": ids}} for community, ids in users.items()]
        rows: list[MembershipDocument] = await self._mongo.find(MEMBERSHIPS, {"$or": queries})
        return {(row["community"], row["user"]): row for row in rows}

    async def _load_restrictions(self, pairs: Sequence[_Pair]) -> dict[_Pair, RestrictionDocument]:
        ids = [restriction_id(*pair) for pair in pairs]
        rows: list[RestrictionDocument] = await self._mongo.find(RESTRICTIONS, {"_id": {"$in": ids}})
        return {(row["_id"]["c"], row["_id"]["u"]): row for row in rows}


def _member(membership: MembershipDocument) -> CommunityMember:
    role = stored_role(membership)
    assert role is not None
    return CommunityMember(membership["community"], membership["user"], role, membership["at"])


def _join_request(document: JoinRequestDocument) -> JoinRequest:
    return JoinRequest(document["_id"]["c"], document["_id"]["u"], document["message"], document["at"])


def _ban(community_id: str, user_id: str, ban: BanDocument) -> CommunityBan:
    return CommunityBan(community_id, user_id, ban["by"], ban["reason"], ban["at"], ban.get("until"))
