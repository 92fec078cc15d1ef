"""What reaches a reader's own stream: posts that arrived in the home feed, posts that left it.

An item is told of once when it arrives, and when it leaves, whether its arrival was told of or not: what was pushed
before anybody listened, backfilled or rebuilt was found on the page. That it left may be told again when a worker that
slept past its lease had put it back.
"""

from collections.abc import Sequence

from storage.feed.changes import FEED_ITEMS, POSTS
from storage.feed.trimming import TRIM_EVERY, trim
from storage.identity.records import stream_owner
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch
from storage.streams.outbox import OutboxRelay


class _FeedItemRelay(OutboxRelay):
    """A row whose `ref` is the timestamp of a post in the feed of the stream's owner."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """The feed's items and their posts."""
        organization_id, reader_id = stream_owner(batch.stream)
        for collection, owner in (
            (FEED_ITEMS, {"o": organization_id, "u": reader_id}),
            (POSTS, {"o": organization_id}),
        ):
            ids = [{**owner, "ts": row["ref"]} for row in rows]
            async for document in mongo[collection].find({"_id": {"$in": ids}}, session=session):
                batch.add(collection, document)

    @staticmethod
    def item(row: Document, batch: Batch) -> Document | None:
        """The item, as the rows before left it."""
        organization_id, reader_id = stream_owner(batch.stream)
        found: Document | None = batch.get(FEED_ITEMS, {"o": organization_id, "u": reader_id, "ts": row["ref"]})
        return found


class PostArrivedRelay(_FeedItemRelay):
    """Tells of an item that was not told of yet, if its post is still there.

    About once in 64 posts it trims the feed. Every post comes by here on its way into its author's own feed.
    """

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """The feed's items, which may be trimmed first, and their posts."""
        if any(row["ref"] % TRIM_EVERY == 0 for row in rows):
            organization_id, reader_id = stream_owner(batch.stream)
            await trim(mongo, {"o": organization_id, "u": reader_id}, session)
        await super().load(mongo, session, rows, batch)

    def relay(self, row: Document, batch: Batch) -> float:
        """Marks the item as told."""
        item = self.item(row, batch)
        post = item and batch.get(POSTS, {"o": item["_id"]["o"], "ts": item["_id"]["ts"]})
        if item and post and not item.get("told") and post.get("deleted_at") is None:
            batch.put(FEED_ITEMS, {**item, "told": True})
            batch.emit("PostArrived", row["ref"])
        return 0.0


class PostRemovedRelay(_FeedItemRelay):
    """Takes the item out of the feed, and tells of it."""

    def relay(self, row: Document, batch: Batch) -> float:
        """A second row for the same item finds nothing."""
        item = self.item(row, batch)
        if item is not None:
            batch.remove(FEED_ITEMS, item["_id"])
            batch.emit("PostRemoved", row["ref"])
        return 0.0
