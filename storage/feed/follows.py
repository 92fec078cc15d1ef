"""Follows: their documents and counts, in one group commit, and their effect on the follower's home feed.

Every follow, unfollow and block writes a `follow_changes` document in its transaction. `apply_change` deletes the
document and makes the feed match whether the follow exists, in one transaction. The last of two concurrent changes
therefore decides.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import structlog
from pymongo.errors import PyMongoError

from storage.errors import Conflict, DomainError, Forbidden
from storage.feed.changes import FEED_ITEMS, POSTS
from storage.feed.documents import OrganizationUserId
from storage.feed.trimming import FEEDS, MAX_ITEMS, add_posts, items_from, trim
from storage.identity.documents import FollowDocumentId
from storage.identity.records import user_stream
from storage.identity.rights import IsActive, IsNotErased
from storage.mongo import Document, Mongo, Session, older_than
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, Change, DocumentKey, Right
from storage.streams.sequencer import Sequencer

FOLLOWS = "follows"
FOLLOW_CHANGES = "follow_changes"
USERS = "users"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FollowPair:
    """A follower and a followee, whether or not a follow exists."""

    organization_id: str
    follower_id: str
    followee_id: str

    @property
    def document_id(self) -> FollowDocumentId:
        """The `_id` of the pair's follow and of its change."""
        return {"o": self.organization_id, "f": self.follower_id, "e": self.followee_id}

    @property
    def feed_id(self) -> OrganizationUserId:
        """The `_id` of the follower's feed."""
        return {"o": self.organization_id, "u": self.follower_id}

    def user_document_id(self, user_id: str) -> Document:
        """Returns the `_id` of the follower or followee in `users`."""
        return {"org": self.organization_id, "id": user_id}


@dataclass(slots=True)
class _FollowChange(Change[bool]):
    """Base of a pair's changes. They use the followee's stream, so that many new followers share a commit."""

    usual_events: ClassVar[int] = 0
    pair: FollowPair

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the follow, its change, the follower's feed and both users."""
        pair, feed = self.pair, self.pair.feed_id
        users = [(USERS, pair.user_document_id(id_)) for id_ in (pair.follower_id, pair.followee_id)]
        return [(FOLLOWS, pair.document_id), (FOLLOW_CHANGES, pair.document_id), (FEEDS, feed), *users]

    def change_counts(self, batch: Batch, step: int) -> None:
        """Adds `step` to the counts of both users, and writes the change that `apply_change` applies to the feed."""
        for user_id, name in ((self.pair.follower_id, "following"), (self.pair.followee_id, "followers")):
            user = batch.get(USERS, self.pair.user_document_id(user_id))
            if user is not None:
                batch.put(USERS, {**user, name: user[name] + step})
        batch.put(FOLLOW_CHANGES, {"_id": self.pair.document_id, "at": batch.at})


@dataclass(slots=True)
class Follow(_FollowChange):
    """Creates a follow, unless it exists. The result says whether the follow is new."""

    _blocker_id: str | None = field(default=None, init=False)

    def rights(self) -> Sequence[Right]:
        """Returns that the follower's account is active, and that the followee is not being erased."""
        pair = self.pair
        return IsActive(pair.follower_id, pair.organization_id), IsNotErased(pair.followee_id, pair.organization_id)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads whether one user blocked the other.

        A concurrent block writes the same `follow_changes` document, so one of the two transactions is repeated.
        """
        both = [self.pair.follower_id, self.pair.followee_id]
        query = [{"user": one, "blocked": other} for one, other in (both, both[::-1])]
        block = await mongo["blocks"].find_one({"org": self.pair.organization_id, "$or": query}, session=session)
        self._blocker_id = None if block is None else block["user"]

    def plan(self, batch: Batch) -> bool:
        """Creates the follow.

        Raises: Forbidden if the followee blocked the follower, Conflict if the follower blocked the followee.
        """
        pair = self.pair
        if self._blocker_id == pair.followee_id:
            raise Forbidden("You cannot follow this user.")
        if self._blocker_id is not None:
            raise Conflict("You blocked this user; unblock them before you follow them.")
        if batch.get(FOLLOWS, pair.document_id) is not None:
            return False
        fields = {"org": pair.organization_id, "follower": pair.follower_id, "followee": pair.followee_id}
        batch.put(FOLLOWS, {"_id": pair.document_id, **fields, "at": batch.at})
        if batch.get(FEEDS, pair.feed_id) is None:
            batch.put(FEEDS, {"_id": pair.feed_id, "seen_at": batch.at, "complete_from": 0})
        self.change_counts(batch, +1)
        notify(batch, pair.organization_id, pair.followee_id, NotificationKind.FOLLOW, pair.follower_id)
        return True


@dataclass(slots=True)
class Unfollow(_FollowChange):
    """Deletes a follow, if it exists. The result says whether it existed."""

    def rights(self) -> Sequence[Right]:
        """Returns no right: everybody may end a follow."""
        return ()

    def plan(self, batch: Batch) -> bool:
        """Deletes the follow."""
        if batch.get(FOLLOWS, self.pair.document_id) is None:
            return False
        batch.remove(FOLLOWS, self.pair.document_id)
        self.change_counts(batch, -1)
        return True


class FollowStore:
    """Changes follows, and applies them to home feeds."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._items = mongo[FEED_ITEMS]

    async def follow(self, pair: FollowPair) -> None:
        """Creates the follow and backfills the follower's feed. Raises: Forbidden, Conflict."""
        stream = user_stream(pair.organization_id, pair.followee_id)
        if await self._sequencer.commit(stream, Follow(pair)):
            await self.try_to_apply_change(pair)

    async def unfollow(self, pair: FollowPair) -> None:
        """Deletes the follow, and removes the followee's posts from the follower's feed."""
        stream = user_stream(pair.organization_id, pair.followee_id)
        if await self._sequencer.commit(stream, Unfollow(pair)):
            await self.try_to_apply_change(pair)

    async def try_to_apply_change(self, pair: FollowPair) -> None:
        """Applies the pair's change. A failure is logged, and a later sweep tries again after the other pairs."""
        try:
            await self.apply_change(pair)
        except (PyMongoError, DomainError) as error:
            log.warning("follow_change_not_applied", error=repr(error))
            with suppress(PyMongoError):
                postponement = [{"$set": {"at": "$$NOW"}}]
                await self._mongo[FOLLOW_CHANGES].update_one({"_id": pair.document_id}, postponement)

    async def apply_change(self, pair: FollowPair) -> None:
        """Makes the follower's feed match the follow, if a change is pending. Idempotent; calls may be concurrent."""

        async def work(session: Session) -> None:
            changes = self._mongo[FOLLOW_CHANGES]
            if (await changes.delete_one({"_id": pair.document_id}, session=session)).deleted_count == 0:
                return
            if await self._mongo[FOLLOWS].find_one({"_id": pair.document_id}, {"_id": 1}, session=session):
                await self._backfill(pair, session)
            else:
                await self._remove_items(pair, session)

        await self._mongo.transact(work)

    async def pending_changes(self, for_s: float, limit: int) -> list[FollowPair]:
        """Returns pairs whose change has been pending for at least `for_s` seconds, the oldest first."""
        cursor = self._mongo[FOLLOW_CHANGES].find(older_than("at", for_s), {"_id": 1}).sort("at", 1).limit(limit)
        return [FollowPair(each["_id"]["o"], each["_id"]["f"], each["_id"]["e"]) for each in await cursor.to_list(None)]

    async def _backfill(self, pair: FollowPair, session: Session) -> None:
        """Inserts items for the followee's newest posts. Posts that are merged on read need no item."""
        query = {"_id.o": pair.organization_id, "author": pair.followee_id, "merged": False, "deleted_at": None}
        newest = (
            self._mongo[POSTS]
            .find(query, {"author": 1, "parent": 1}, session=session)
            .sort("_id.ts", -1)
            .limit(MAX_ITEMS)
        )
        await add_posts(self._mongo, pair.feed_id, await newest.to_list(None), session)
        await trim(self._mongo, pair.feed_id, session)

    async def _remove_items(self, pair: FollowPair, session: Session) -> None:
        """Removes the followee's items. A feed that lost more than half of its size limit is then rebuilt.

        Other feeds are rebuilt when their reader reaches their end.
        """
        in_feed = {"_id": items_from(pair.feed_id, 0)}
        removed = await self._items.delete_many({**in_feed, "author": pair.followee_id}, session=session)
        if removed.deleted_count > MAX_ITEMS // 2:
            is_incomplete = {"_id": pair.feed_id, "complete_from": {"$ne": 0}}
            await self._mongo[FEEDS].update_one(is_incomplete, {"$set": {"rebuilding": True}}, session=session)
