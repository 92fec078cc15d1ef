"""Outbox relays of posts that arrived in home feeds and posts that left them.

The arrival of an item is emitted at most once. Items that were backfilled, rebuilt, or pushed before the first
subscription have no arrival event: readers find them on the first page. A removal is always emitted. It is emitted
twice if a worker whose lease had expired inserted the item again.
"""

from collections.abc import Sequence

from storage.feed.changes import FEED_ITEMS, POSTS
from storage.feed.trimming import TRIM_EVERY, trim
from storage.identity.records import stream_owner
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.outbox import EventRelay, OutboxRelay


class _FeedItemRelay(OutboxRelay):
    """Base of relays whose rows refer to a post in the home feed of the stream's owner, by its timestamp."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the feed's items and their posts."""
        organization_id, reader_id = stream_owner(batch.stream)
        for collection, owner in (
            (FEED_ITEMS, {"o": organization_id, "u": reader_id}),
            (POSTS, {"o": organization_id}),
        ):
            ids = [{**owner, "ts": row["ref"]} for row in rows]
            async for document in mongo[collection].find({"_id": {"$in": ids}}, session=session):
                batch.add_loaded(collection, document)

    @staticmethod
    def item(row: OutboxDocument, batch: Batch) -> Document | None:
        """Returns the row's item as earlier rows of the batch left it; None if the item does not exist."""
        organization_id, reader_id = stream_owner(batch.stream)
        item: Document | None = batch.get(FEED_ITEMS, {"o": organization_id, "u": reader_id, "ts": row["ref"]})
        return item


class PostArrivedRelay(_FeedItemRelay):
    """Emits the arrival of an item, unless it was emitted before or the post was deleted.

    Also trims the feed about once in 64 posts: each post has a row for its author's own feed.
    """

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the feed's items and their posts, after trimming the feed if that is due."""
        if any(row["ref"] % TRIM_EVERY == 0 for row in rows):
            organization_id, reader_id = stream_owner(batch.stream)
            await trim(mongo, {"o": organization_id, "u": reader_id}, session)
        await super().load(mongo, session, rows, batch)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits the event and marks the item."""
        item = self.item(row, batch)
        post = item and batch.get(POSTS, {"o": item["_id"]["o"], "ts": item["_id"]["ts"]})
        if item and post and not item.get("told") and post.get("deleted_at") is None:
            batch.put(FEED_ITEMS, {**item, "told": True})
            batch.emit("PostArrived", row["ref"])
        return 0.0


class PostRemovedRelay(_FeedItemRelay):
    """Removes the item from the feed and emits its removal."""

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Removes the item and emits the event, unless an earlier row of the batch did."""
        item = self.item(row, batch)
        if item is not None:
            batch.remove(FEED_ITEMS, item["_id"])
            batch.emit("PostRemoved", row["ref"])
        return 0.0


class MergedPostArrivedRelay(EventRelay):
    """Emits the arrival of a merged post in the organization's stream of merged posts."""

    event_kind = "PostArrived"


class MergedPostRemovedRelay(EventRelay):
    """Emits the removal of a merged post in the organization's stream of merged posts."""

    event_kind = "PostRemoved"
