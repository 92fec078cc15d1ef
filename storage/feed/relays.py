"""Outbox relays of posts that arrived in home feeds or left them, and of replies, reposts and quotes.

The arrival of an item is emitted at most once. Items that were backfilled, rebuilt, or pushed before the first
subscription have no arrival event: readers find them on the first page. The removal of such an item is emitted too. A
removal is emitted twice if a worker whose lease had expired inserted the item again.
"""

from collections.abc import Sequence

from storage.feed.changes import FEED_ITEMS, POSTS, is_local
from storage.feed.documents import PostDocument
from storage.feed.records import PostParentKind, list_streams
from storage.feed.subscribers import ListSubscribers
from storage.feed.trimming import TRIM_EVERY, trim
from storage.identity.records import stream_owner
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.log import Stream
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

    The arrival in the author's own feed is also relayed to the local feed and to hashtags that are subscribed to. This
    commit comes after that of the post: a person who subscribes later finds the post on a page.

    Also trims the feed about once in 64 posts. An author's own posts arrive without a push, which would trim the feed.
    """

    def __init__(self) -> None:
        self._subscribed: set[Stream] = set()

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the feed's items, their posts and subscribed lists, after trimming the feed if that is due."""
        if any(row["ref"] % TRIM_EVERY == 0 for row in rows):
            organization_id, reader_id = stream_owner(batch.stream)
            await trim(mongo, {"o": organization_id, "u": reader_id}, session)
        await super().load(mongo, session, rows, batch)
        posts = [post for row in rows if (post := self._own_post(row, batch)) is not None]
        streams = [stream for post in posts for stream in _list_streams(post)]
        self._subscribed = await ListSubscribers(mongo).among(streams, session)

    @staticmethod
    def _own_post(row: OutboxDocument, batch: Batch) -> PostDocument | None:
        """Returns the row's post if it is the feed owner's own."""
        organization_id, reader_id = stream_owner(batch.stream)
        post: PostDocument | None = batch.get(POSTS, {"o": organization_id, "ts": row["ref"]})
        return post if post is not None and post["author"] == reader_id else None

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits the event and marks the item."""
        item = self.item(row, batch)
        post = item and batch.get(POSTS, {"o": item["_id"]["o"], "ts": item["_id"]["ts"]})
        if item and post and not item.get("emitted") and post.get("deleted_at") is None:
            batch.put(FEED_ITEMS, {**item, "emitted": True})
            batch.emit("PostArrived", row["ref"])
            if (own := self._own_post(row, batch)) is not None:
                for stream in self._subscribed.intersection(_list_streams(own)):
                    batch.add_outbox_row(stream, "ListedPostArrived", row["ref"])
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


class _ListRelay(OutboxRelay):
    """Base of relays that add a row to each subscribed list among those that a row names."""

    def __init__(self) -> None:
        self._subscribed: set[Stream] = set()

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads which lists are subscribed to."""
        streams = [stream for row in rows for stream in self._streams(row, batch)]
        self._subscribed = await ListSubscribers(mongo).among(streams, session)

    def add_rows(self, row: OutboxDocument, batch: Batch, kind: str) -> float:
        """Adds a row of the kind to each subscribed list."""
        for stream in self._subscribed.intersection(self._streams(row, batch)):
            batch.add_outbox_row(stream, kind, row["ref"]["ts"])
        return 0.0

    @staticmethod
    def _streams(row: OutboxDocument, batch: Batch) -> list[Stream]:
        organization_id, _ = stream_owner(batch.stream)
        tags = [tag for tag in row["ref"]["tags"].split("#") if tag]
        return list_streams(organization_id, tags, row["ref"]["local"])


class PostListedRelay(_ListRelay):
    """Relays a post to the lists of hashtags that an edit added."""

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Adds the rows."""
        return self.add_rows(row, batch, "ListedPostArrived")


class PostUnlistedRelay(_ListRelay):
    """Relays the removal of a deleted post, or of a hashtag by an edit, to the lists that had the post."""

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Adds the rows."""
        return self.add_rows(row, batch, "ListedPostRemoved")


def _list_streams(post: PostDocument) -> list[Stream]:
    return list_streams(post["_id"]["o"], post.get("tags", ()), is_local(post))


class ListedPostArrivedRelay(EventRelay):
    """Emits the arrival of a post in the stream of the local feed or of a hashtag."""

    event_kind = "PostArrived"


class ListedPostRemovedRelay(EventRelay):
    """Emits the removal of a post in the stream of the local feed or of a hashtag."""

    event_kind = "PostRemoved"


class PostResponseRelay(OutboxRelay):
    """Changes a post's number of replies, reposts or quotes by one. Each row is counted once.

    Deleted posts have no numbers.
    """

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the posts."""
        organization_id, _ = stream_owner(batch.stream)
        ids = [{"o": organization_id, "ts": timestamp} for timestamp in {row["ref"]["ts"] for row in rows}]
        async for post in mongo[POSTS].find({"_id": {"$in": ids}}, session=session):
            batch.add_loaded(POSTS, post)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Changes the number, unless the post was deleted."""
        organization_id, _ = stream_owner(batch.stream)
        ref = row["ref"]
        post: PostDocument | None = batch.get(POSTS, {"o": organization_id, "ts": ref["ts"]})
        if post is not None and post.get("deleted_at") is None:
            match PostParentKind(ref["kind"]):
                case PostParentKind.REPLY:
                    post = {**post, "replies": post.get("replies", 0) + ref["step"]}
                case PostParentKind.REPOST:
                    post = {**post, "reposts": post.get("reposts", 0) + ref["step"]}
                case PostParentKind.QUOTE:
                    post = {**post, "quotes": post.get("quotes", 0) + ref["step"]}
            batch.put(POSTS, post)
        return 0.0


class MergedPostArrivedRelay(EventRelay):
    """Emits the arrival of a merged post in the organization's stream of merged posts."""

    event_kind = "PostArrived"


class MergedPostRemovedRelay(EventRelay):
    """Emits the removal of a merged post in the organization's stream of merged posts."""

    event_kind = "PostRemoved"
