"""The size limit of home feeds: the newest 800 items stay. Items are pushed, backfilled or the reader's own posts.

A feed is trimmed about once in 64 added items, so a feed that grows post by post holds 800 to about 900 items. From the
timestamp `complete_from` of its document a feed has every post. Only a feed that was full lacks posts before.
"""

from collections.abc import Sequence

from storage.feed.changes import FEED_ITEMS, feed_item, reposted_timestamp
from storage.feed.documents import FeedItemDocument, OrganizationUserId, PostDocument
from storage.mongo import Document, Mongo, Session

FEEDS = "feeds"
MAX_ITEMS = 800
TRIM_EVERY = 64
MAX_REMOVED = 1000
"""Maximum number of items that one call removes, which keeps its transaction short."""


async def trim(mongo: Mongo, owner: OrganizationUserId, session: Session | None = None) -> None:
    """Keeps the newest 800 items. Removes at most 1,000 of the older items, the oldest first.

    `owner` is the first part of the items' `_id`. A feed of 800 items is recorded as complete from the oldest of them.
    """
    items = mongo[FEED_ITEMS].find({"_id": items_from(owner, 0)}, {"_id": 1}, session=session)
    newest = items.sort("_id", -1).skip(MAX_ITEMS - 1).limit(1)
    for oldest_kept in await newest.to_list(1):
        await cut(mongo, owner, oldest_kept["_id"]["ts"], session)


async def cut(mongo: Mongo, owner: OrganizationUserId, low: int, session: Session | None = None) -> None:
    """Records that the feed has every post from the timestamp `low`. Removes at most 1,000 items before, oldest first.

    An author who never read the feed has no document yet.
    """
    # Recorded before the removal, so that a crash in between loses no record.
    fields = {"complete_from": {"$max": ["$complete_from", low]}, "seen_at": {"$ifNull": ["$seen_at", "$$NOW"]}}
    await mongo[FEEDS].update_one({"_id": owner}, [{"$set": fields}], upsert=True, session=session)
    items, below = mongo[FEED_ITEMS], {"$gte": {**owner, "ts": 0}, "$lt": {**owner, "ts": low}}
    oldest = items.find({"_id": below}, {"_id": 1}, session=session).sort("_id", 1).limit(MAX_REMOVED)
    rows: list[FeedItemDocument] = await oldest.to_list(MAX_REMOVED)
    if rows:
        await items.delete_many({"_id": {**below, "$lte": rows[-1]["_id"]}}, session=session)


async def add_posts(mongo: Mongo, owner: OrganizationUserId, posts: Sequence[PostDocument], session: Session) -> None:
    """Inserts items for the posts that the feed lacks."""
    items = mongo[FEED_ITEMS]
    added: dict[int, FeedItemDocument] = {
        post["_id"]["ts"]: feed_item(owner, post["_id"]["ts"], post["author"], reposted_timestamp(post))
        for post in posts
    }
    ids = [item["_id"] for item in added.values()]
    for existing in await items.find({"_id": {"$in": ids}}, {"_id": 1}, session=session).to_list(None):
        del added[existing["_id"]["ts"]]
    if added:
        await items.insert_many(list(added.values()), session=session)


def items_from(owner: OrganizationUserId, low: int) -> Document:
    """Returns the range of the `_id` of the feed's items from the timestamp `low`."""
    return {"$gte": {**owner, "ts": low}, "$lt": {**owner, "ts": 2**62}}
