"""The size limit of home feeds: the newest 800 items stay. Items are pushed, backfilled or the reader's own posts.

A feed is trimmed about once in 64 added items, so a feed that grows post by post holds 800 to about 900 items.
"""

from storage.feed.changes import FEED_ITEMS
from storage.feed.documents import FeedItemDocument, OrganizationUserId
from storage.mongo import Mongo, Session

MAX_ITEMS = 800
TRIM_EVERY = 64
MAX_REMOVED = 1000
"""Maximum number of items that one call removes, which keeps its transaction short."""


async def trim(mongo: Mongo, owner: OrganizationUserId, session: Session | None = None) -> None:
    """Keeps the newest 800 items. Removes at most 1,000 of the older items, the oldest first.

    `owner` is the first part of the items' `_id`.
    """
    items, low = mongo[FEED_ITEMS], {**owner, "ts": 0}
    in_feed = {"_id": {"$gte": low, "$lt": {**owner, "ts": 2**62}}}
    newest = items.find(in_feed, {"_id": 1}, session=session).sort("_id", -1).skip(MAX_ITEMS).limit(1)
    for newest_removed in await newest.to_list(1):
        oldest = items.find({"_id": {"$gte": low, "$lte": newest_removed["_id"]}}, {"_id": 1}, session=session)
        rows: list[FeedItemDocument] = await oldest.sort("_id", 1).limit(MAX_REMOVED).to_list(MAX_REMOVED)
        if rows:
            await items.delete_many({"_id": {"$gte": low, "$lte": rows[-1]["_id"]}}, session=session)
