"""How long a home feed may be: its newest 800 items stay, whether a push, a follow or own posts brought them.

Whoever puts items in trims now and then, so a feed that only grows by single posts holds 800 to about 900.
"""

from storage.feed.changes import FEED_ITEMS
from storage.mongo import Document, Mongo, Session

MAX_ITEMS = 800
TRIM_EVERY = 64
AT_ONCE = 1000
"""How many items are taken away at most, so that no transaction that trims is a long one."""


async def trim(mongo: Mongo, owner: Document, session: Session | None = None) -> None:
    """Takes the oldest away until 800 are left, at most 1,000 at once. `owner` is how the items' _id begins."""
    items, low = mongo[FEED_ITEMS], {**owner, "ts": 0}
    every = {"_id": {"$gte": low, "$lt": {**owner, "ts": 2**62}}}
    newest = items.find(every, {"_id": 1}, session=session).sort("_id", -1).skip(MAX_ITEMS).limit(1)
    for gone in await newest.to_list(1):
        oldest = items.find({"_id": {"$gte": low, "$lte": gone["_id"]}}, {"_id": 1}, session=session)
        rows = await oldest.sort("_id", 1).limit(AT_ONCE).to_list(AT_ONCE)
        if rows:
            await items.delete_many({"_id": {"$gte": low, "$lte": rows[-1]["_id"]}}, session=session)
