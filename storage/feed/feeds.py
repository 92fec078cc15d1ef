"""Pushes posts into many home feeds, removes posts, and trims feeds. A post in a feed is an item, stored as a document.

Events are added only for readers who subscribed lately (storage/feed/subscribers.py). Items are inserted before the
subscribers are looked up, so a reader who subscribes afterwards finds the items on the page.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pymongo.errors import BulkWriteError

from storage.feed.changes import FEED_ITEMS, feed_item
from storage.feed.documents import FeedItemDocument, FeedItemId, OrganizationUserId
from storage.feed.follows import FOLLOWS
from storage.feed.records import Post, home_stream
from storage.feed.subscribers import HomeSubscribers
from storage.feed.trimming import FEEDS, TRIM_EVERY, trim
from storage.ids import PostKey
from storage.metrics import FEED_ITEMS_PUSHED
from storage.mongo import DUPLICATE_KEY, Mongo, older_than
from storage.streams.log import Stream
from storage.streams.outbox import Outbox, add_rows_to_streams

CHUNK_SIZE = 500
ABSENT_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class FollowerChunk:
    """The next followers of an author, by id. `after` is the last id. `is_last` says that no more followers exist."""

    follower_ids: Sequence[str]
    after: str
    is_last: bool


class FeedItemStore:
    """Inserts and removes items in the feeds of many readers."""

    def __init__(
        self, mongo: Mongo, outbox: Outbox, subscribers: HomeSubscribers, chunk_size: int = CHUNK_SIZE
    ) -> None:
        """Takes the number of followers that are processed at once as `chunk_size`."""
        self._mongo = mongo
        self._subscribers = subscribers
        self._chunk_size = chunk_size
        self._outbox = outbox
        self._items = mongo[FEED_ITEMS]

    async def followers(self, organization_id: str, author_id: str, after: str) -> FollowerChunk:
        """Returns the next chunk of followers, whose ids come after `after`."""
        query = {"org": organization_id, "followee": author_id, "follower": {"$gt": after}}
        cursor = self._mongo[FOLLOWS].find(query, {"_id": 0, "follower": 1}).sort("follower", 1).limit(self._chunk_size)
        ids = [row["follower"] for row in await cursor.to_list(self._chunk_size)]
        return FollowerChunk(ids, ids[-1] if ids else after, len(ids) < self._chunk_size)

    async def without_absent(self, organization_id: str, reader_ids: Sequence[str]) -> list[str]:
        """Returns the readers who read their feed in the last 30 days, or have no feed yet."""
        ids = [{"o": organization_id, "u": reader_id} for reader_id in reader_ids]
        cursor = self._mongo[FEEDS].find({"_id": {"$in": ids}, **older_than("seen_at", ABSENT_S)}, {"_id": 1})
        absent = {row["_id"]["u"] for row in await cursor.to_list(None)}
        return [each for each in reader_ids if each not in absent] if absent else list(reader_ids)

    async def push(self, post: Post, reader_ids: Sequence[str]) -> set[str]:
        """Inserts the post into these feeds, unless it is there already. Returns the readers whose insert failed."""
        key, original = post.key, post.parent.timestamp if post.is_repost and post.parent else None
        owners: list[OrganizationUserId] = [{"o": key.organization_id, "u": each} for each in reader_ids]
        items = [feed_item(owner, key.timestamp, post.author_id, original) for owner in owners]
        failed = {reader_ids[index] for index in await self.insert(items)}
        delivered = [each for each in reader_ids if each not in failed] if failed else reader_ids
        FEED_ITEMS_PUSHED.labels("delivered").inc(len(delivered))
        FEED_ITEMS_PUSHED.labels("failed").inc(len(failed))
        to_trim = _readers_to_trim(key, delivered)
        await asyncio.gather(
            self._emit_arrivals(key, delivered), *(self.trim(key.organization_id, each) for each in to_trim)
        )
        return failed

    async def _emit_arrivals(self, key: PostKey, reader_ids: Sequence[str]) -> None:
        await self._emit(key, "PostArrived", await self._subscribers.among(key.organization_id, reader_ids))

    async def remove(self, key: PostKey, reader_ids: Sequence[str]) -> None:
        """Removes the post from these feeds: at once, or for subscribed readers together with the event."""
        subscribed = await self._subscribers.among(key.organization_id, reader_ids)
        others = set(reader_ids) - set(subscribed)
        await self._items.delete_many({"_id": {"$in": [_item_id(key, each) for each in others]}})
        await self._emit(key, "PostRemoved", subscribed)

    async def trim(self, organization_id: str, reader_id: str) -> None:
        """Trims a feed to its newest 800 items."""
        await trim(self._mongo, {"o": organization_id, "u": reader_id})

    async def insert(self, items: Sequence[FeedItemDocument]) -> set[int]:
        """Inserts items in any order; existing items stay. Returns the indexes of the items that failed."""
        try:
            if items:
                await self._items.insert_many(items, ordered=False)
        except BulkWriteError as error:
            if error.details.get("writeConcernErrors"):
                raise
            errors = error.details.get("writeErrors", ())
            return {each["index"] for each in errors if each["code"] != DUPLICATE_KEY}
        return set()

    async def _emit(self, key: PostKey, kind: str, reader_ids: Sequence[str]) -> None:
        streams: list[Stream] = [home_stream(key.organization_id, each) for each in reader_ids]
        await add_rows_to_streams(self._mongo, [(stream, kind, key.timestamp) for stream in streams])
        for stream in streams:
            self._outbox.nudge(stream.name)


def _item_id(key: PostKey, reader_id: str) -> FeedItemId:
    return {"o": key.organization_id, "u": reader_id, "ts": key.timestamp}


def _readers_to_trim(key: PostKey, reader_ids: Sequence[str]) -> Sequence[str]:
    """Returns the readers whose feed is trimmed with this post: each about once in 64 posts."""
    return reader_ids[key.timestamp % TRIM_EVERY :: TRIM_EVERY]
