"""Blocks and follows between users of one organization."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.documents import BlockDocument, FollowDocument, FollowDocumentId
from storage.identity.erased_people import check_not_erased
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.mongo.batch_loader import BatchLoader
from storage.mongo.distinct import distinct_values

FEW_BLOCKERS = 100
"""If a user has at most this many blockers, all of them are read, because a query for some blockers costs more."""

USERS_PER_QUERY = 1000

_COVERED_FIELDS = {"_id": 0, "org": 1, "user": 1, "blocked": 1}
"""The fields of both indexes of blocks, so that MongoDB reads no documents."""


class RelationStore:
    """Reads and changes blocks. Also reads follows, and ends follows between users when one blocks the other."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._blocks: AsyncCollection[BlockDocument] = mongo["blocks"]
        self._follows: AsyncCollection[FollowDocument] = mongo["follows"]
        self._blocked_users: BatchLoader[tuple[str, str], frozenset[str]] = BatchLoader(self._load_blocked_users)
        self._few_blockers: BatchLoader[tuple[str, str], frozenset[str]] = BatchLoader(self._load_few_blockers)
        self._following: BatchLoader[tuple[str, str, str], bool] = BatchLoader(self._load_following)

    async def blocked_users_of(self, organization_id: str, user_id: str) -> frozenset[str]:
        """Returns the ids of all users that the user blocked."""
        return await self._blocked_users.get((organization_id, user_id)) or frozenset()

    async def users_with_blocks(self, organization_id: str, user_ids: Collection[str]) -> frozenset[str]:
        """Returns those of the users who blocked anybody. One query holds all ids: pass at most 1000 users."""
        query = {"org": organization_id, "user": {"$in": list(user_ids)}}
        return frozenset(await distinct_values(self._mongo, "blocks", "user", query))

    async def blockers_among(self, organization_id: str, user_id: str, others: Collection[str]) -> frozenset[str]:
        """Returns those of the others who blocked the user.

        Reads about 100 blockers of the user at most. If the user has more, looks only for the others.
        """
        if not others:
            return frozenset()
        blockers = await self._few_blockers.get((organization_id, user_id))
        if blockers is not None:
            return blockers.intersection(others)
        ids = list(others)
        chunks = [ids[start : start + USERS_PER_QUERY] for start in range(0, len(ids), USERS_PER_QUERY)]
        blockers_by_chunk = await asyncio.gather(
            *(self._find_blockers(organization_id, user_id, chunk) for chunk in chunks)
        )
        return frozenset().union(*blockers_by_chunk)

    async def follows(self, organization_id: str, follower: str, followee: str) -> bool:
        """Returns whether the follower follows the followee."""
        return await self._following.get((organization_id, follower, followee)) is not None

    async def followed_among(self, organization_id: str, follower: str, others: Collection[str]) -> set[str]:
        """Returns those of the others whom the follower follows. One query holds all ids: pass at most 1000 users."""
        query = {"org": organization_id, "follower": follower, "followee": {"$in": list(others)}}
        follows: list[FollowDocument] = await self._mongo.find("follows", query, {"_id": 0, "followee": 1})
        return {each["followee"] for each in follows}

    async def block(self, organization_id: str, user_id: str, blocked_id: str) -> None:
        """Blocks a user and ends follows in both directions, in one transaction. Idempotent.

        Raises: NotFound for an erased user.
        """
        block = {"org": organization_id, "user": user_id, "blocked": blocked_id}

        async def work(session: Session) -> None:
            await check_not_erased(self._mongo, UserKey(organization_id, blocked_id), session)
            await self._blocks.update_one(
                block, {"$setOnInsert": {"at": datetime.now(UTC)}}, upsert=True, session=session
            )
            await self._end_follow(organization_id, user_id, blocked_id, session)
            await self._end_follow(organization_id, blocked_id, user_id, session)

        await self._mongo.transact(work)

    async def unblock(self, organization_id: str, user_id: str, blocked_id: str) -> None:
        """Ends a block. Idempotent."""
        await self._blocks.delete_one({"org": organization_id, "user": user_id, "blocked": blocked_id})

    async def _end_follow(self, organization_id: str, follower: str, followee: str, session: Session) -> None:
        follow = {"org": organization_id, "follower": follower, "followee": followee}
        deleted = await self._follows.delete_one(follow, session=session)
        # This document is written even if there is no follow to delete. A concurrent transaction that adds the follow
        # writes the same document. The two therefore conflict, and MongoDB repeats one of them.
        pair: FollowDocumentId = {"o": organization_id, "f": follower, "e": followee}
        await self._mongo["follow_changes"].update_one(
            {"_id": pair}, [{"$set": {"at": "$$NOW"}}], upsert=True, session=session
        )
        if deleted.deleted_count:
            users = self._mongo["users"]
            follower_id = user_document_id(organization_id, follower)
            followee_id = user_document_id(organization_id, followee)
            await users.update_one({"_id": follower_id}, {"$inc": {"following": -1}}, session=session)
            await users.update_one({"_id": followee_id}, {"$inc": {"followers": -1}}, session=session)

    async def _load_blocked_users(self, users: Sequence[tuple[str, str]]) -> dict[tuple[str, str], frozenset[str]]:
        blocked_by_user: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        query = [{"org": organization, "user": user} for organization, user in users]
        blocks: list[BlockDocument] = await self._mongo.find("blocks", {"$or": query}, _COVERED_FIELDS)
        for block in blocks:
            blocked_by_user[block["org"], block["user"]].add(block["blocked"])
        return {user: frozenset(blocked) for user, blocked in blocked_by_user.items()}

    async def _load_few_blockers(self, users: Sequence[tuple[str, str]]) -> dict[tuple[str, str], frozenset[str]]:
        """Returns all blockers of each user. Returns an empty dict if they have more than 100 blockers on average."""
        blockers_by_user: dict[tuple[str, str], set[str]] = {user: set() for user in users}
        query = [{"org": organization, "blocked": user} for organization, user in users]
        limit = FEW_BLOCKERS * len(users) + 1
        blocks: list[BlockDocument] = await self._mongo.find("blocks", {"$or": query}, _COVERED_FIELDS, limit=limit)
        if len(blocks) == limit:
            return {}
        for block in blocks:
            blockers_by_user[block["org"], block["blocked"]].add(block["user"])
        return {user: frozenset(blockers) for user, blockers in blockers_by_user.items()}

    async def _find_blockers(self, organization_id: str, user_id: str, others: Sequence[str]) -> set[str]:
        query = {"org": organization_id, "blocked": user_id, "user": {"$in": others}}
        blocks: list[BlockDocument] = await self._mongo.find("blocks", query, _COVERED_FIELDS)
        return {block["user"] for block in blocks}

    async def _load_following(self, pairs: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], bool]:
        followers_by_followee: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for organization, follower, followee in pairs:
            followers_by_followee[organization, followee].append(follower)
        # An event is checked for many followers of its author at once. A branch of `$or` for each pair would be slower.
        queries = [
            {"org": organization, "followee": followee, "follower": {"$in": followers}}
            for (organization, followee), followers in followers_by_followee.items()
        ]
        fields = {"_id": 0, "org": 1, "follower": 1, "followee": 1}
        follows: list[FollowDocument] = await self._mongo.find("follows", {"$or": queries}, fields)
        return {(each["org"], each["follower"], each["followee"]): True for each in follows}
