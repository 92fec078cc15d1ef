"""Who follows whom: rows and counts in one group commit, and what a follow does to the follower's home feed.

Every follow, unfollow and block leaves a `follow_changes` row in its transaction. `settle` brings the feed in line with
the follow as it is then, and takes the row away, in one transaction; so two that race end as the last one says.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import structlog
from pymongo.errors import PyMongoError

from storage.errors import Conflict, DomainError, Forbidden
from storage.feed.changes import FEED_ITEMS, POSTS
from storage.feed.trimming import MAX_ITEMS, trim
from storage.identity.records import user_stream
from storage.mongo import Document, Mongo, Session, older_than
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, Change, Need
from storage.streams.sequencer import Sequencer

FOLLOWS = "follows"
FOLLOW_CHANGES = "follow_changes"
FEEDS = "feeds"
USERS = "users"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FollowPair:
    """Somebody, and whom they follow or not."""

    organization_id: str
    follower_id: str
    followee_id: str

    @property
    def document_id(self) -> Document:
        """The _id of its follow and of its change."""
        return {"o": self.organization_id, "f": self.follower_id, "e": self.followee_id}

    def user_id(self, user_id: str) -> Document:
        """The _id of one of the two in `users`."""
        return {"org": self.organization_id, "id": user_id}


@dataclass(slots=True)
class _FollowChange(Change[bool]):
    """A change of one pair, in the followee's own stream, so that a thousand new followers share their commits."""

    events: ClassVar[int] = 0
    pair: FollowPair

    def needs(self) -> Sequence[Need]:
        """The follow, its change, and both users."""
        pair, feed = self.pair, {"o": self.pair.organization_id, "u": self.pair.follower_id}
        users = [(USERS, pair.user_id(id_)) for id_ in (pair.follower_id, pair.followee_id)]
        return [(FOLLOWS, pair.document_id), (FOLLOW_CHANGES, pair.document_id), (FEEDS, feed), *users]

    def count(self, batch: Batch, step: int) -> None:
        """Moves both counts, and leaves the change that the feed follows later."""
        for user_id, name in ((self.pair.follower_id, "following"), (self.pair.followee_id, "followers")):
            user = batch.get(USERS, self.pair.user_id(user_id))
            if user is not None:
                batch.put(USERS, {**user, name: user[name] + step})
        batch.put(FOLLOW_CHANGES, {"_id": self.pair.document_id, "at": batch.at})


@dataclass(slots=True)
class Follow(_FollowChange):
    """Follows; twice is once. The result is whether it is new."""

    _blocked: str | None = field(default=None, init=False)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Whether one blocked the other. A block that comes meanwhile writes the pair's change too, and conflicts."""
        both = [self.pair.follower_id, self.pair.followee_id]
        wanted = [{"user": one, "blocked": other} for one, other in (both, both[::-1])]
        row = await mongo["blocks"].find_one({"org": self.pair.organization_id, "$or": wanted}, session=session)
        self._blocked = None if row is None else row["user"]

    def plan(self, batch: Batch) -> bool:
        """Raises: Forbidden when the other blocked the follower, Conflict when the follower did."""
        pair = self.pair
        if self._blocked == pair.followee_id:
            raise Forbidden("This user can't be followed.")
        if self._blocked is not None:
            raise Conflict("You blocked this user.")
        if batch.get(FOLLOWS, pair.document_id) is not None:
            return False
        row = {"org": pair.organization_id, "follower": pair.follower_id, "followee": pair.followee_id}
        batch.put(FOLLOWS, {"_id": pair.document_id, **row, "at": batch.at})
        feed = {"o": pair.organization_id, "u": pair.follower_id}
        if batch.get(FEEDS, feed) is None:
            batch.put(FEEDS, {"_id": feed, "seen_at": batch.at})
        self.count(batch, +1)
        notify(batch, pair.organization_id, pair.followee_id, NotificationKind.FOLLOW, pair.follower_id)
        return True


@dataclass(slots=True)
class Unfollow(_FollowChange):
    """Follows no more; without a follow nothing changes."""

    def plan(self, batch: Batch) -> bool:
        """Whether there was one."""
        if batch.get(FOLLOWS, self.pair.document_id) is None:
            return False
        batch.remove(FOLLOWS, self.pair.document_id)
        self.count(batch, -1)
        return True


class FollowStore:
    """Changes follows, and lets home feeds follow them."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._items = mongo[FEED_ITEMS]

    async def follow(self, pair: FollowPair) -> None:
        """Follows, and backfills the follower's feed. Raises: Forbidden, Conflict."""
        stream = user_stream(pair.organization_id, pair.followee_id)
        if await self._sequencer.commit(stream, Follow(pair)):
            await self.try_to_settle(pair)

    async def unfollow(self, pair: FollowPair) -> None:
        """Ends the follow, and removes what it brought."""
        stream = user_stream(pair.organization_id, pair.followee_id)
        if await self._sequencer.commit(stream, Unfollow(pair)):
            await self.try_to_settle(pair)

    async def try_to_settle(self, pair: FollowPair) -> None:
        """The follow is done, whatever comes of this: what fails now is tried by a later sweep, after all others."""
        try:
            await self.settle(pair)
        except (PyMongoError, DomainError) as error:
            log.warning("follow_unsettled", error=repr(error))
            with suppress(PyMongoError):
                later = [{"$set": {"at": "$$NOW"}}]
                await self._mongo[FOLLOW_CHANGES].update_one({"_id": pair.document_id}, later)

    async def settle(self, pair: FollowPair) -> None:
        """Brings the follower's feed in line with the follow, if it is not yet. Safe to repeat and to race."""

        async def work(session: Session) -> None:
            changes = self._mongo[FOLLOW_CHANGES]
            if (await changes.delete_one({"_id": pair.document_id}, session=session)).deleted_count == 0:
                return
            if await self._mongo[FOLLOWS].find_one({"_id": pair.document_id}, {"_id": 1}, session=session):
                await self._backfill(pair, session)
            else:
                await self._items.delete_many({**_items_of(pair), "author": pair.followee_id}, session=session)

        await self._mongo.transact(work)

    async def unsettled(self, for_s: float, limit: int) -> list[FollowPair]:
        """Pairs whose change has waited longer than that, the longest first."""
        cursor = self._mongo[FOLLOW_CHANGES].find(older_than("at", for_s), {"_id": 1}).sort("at", 1).limit(limit)
        return [FollowPair(row["_id"]["o"], row["_id"]["f"], row["_id"]["e"]) for row in await cursor.to_list(None)]

    async def _backfill(self, pair: FollowPair, session: Session) -> None:
        """The followee's newest posts; those that are merged on read need none."""
        wanted = {"_id.o": pair.organization_id, "author": pair.followee_id, "merged": False, "deleted_at": None}
        newest = self._mongo[POSTS].find(wanted, {"_id": 1}, session=session).sort("_id.ts", -1).limit(MAX_ITEMS)
        owner = {"o": pair.organization_id, "u": pair.follower_id}
        ids = [{**owner, "ts": row["_id"]["ts"]} for row in await newest.to_list(None)]
        there = self._items.find({"_id": {"$in": ids}}, {"_id": 1}, session=session)
        known = {row["_id"]["ts"] for row in await there.to_list(None)}
        items = [{"_id": id_, "author": pair.followee_id} for id_ in ids if id_["ts"] not in known]
        if items:
            await self._items.insert_many(items, session=session)
            await trim(self._mongo, owner, session)


def _items_of(pair: FollowPair) -> Document:
    owner = {"o": pair.organization_id, "u": pair.follower_id}
    return {"_id": {"$gte": {**owner, "ts": 0}, "$lt": {**owner, "ts": 2**62}}}
