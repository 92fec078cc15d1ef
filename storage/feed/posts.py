"""Posts: pages by organization, author and hashtag, single posts, and their changes."""

from collections.abc import Sequence

from storage.errors import NotFound
from storage.feed.changes import CreatePost, DeletePost, NewPost, PostPlan, SetPostPreview
from storage.feed.records import Post, RemovedPost, author_stream, post_record
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.ids import PostKey, post_key
from storage.link_previews import LinkPreview
from storage.mongo import Document, Mongo, older_than
from storage.mongo.batch_loader import BatchLoader
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from storage.timeline import Page, Range, read_page

NO_AUTHORS: frozenset[str] = frozenset()


class PostStore:
    """Reads posts at majority, and commits changes to the author's stream. Pages contain no deleted posts."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, max_followers: int) -> None:
        """Posts of authors with more than `max_followers` are merged on read instead of pushed into feeds."""
        self._posts = mongo["posts"]
        self._sequencer = sequencer
        self._max_followers = max_followers
        self._by_key: BatchLoader[PostKey, Post] = BatchLoader(self._load)

    def plan(self, new: NewPost) -> PostPlan:
        """Returns the plan with which another area's change puts the post into a batch of its author's stream."""
        return PostPlan(new, self._max_followers)

    async def create(self, new: NewPost, key: IdempotencyKey | None = None) -> Post:
        """Creates a post. On return it is durable and in the author's own feed. A repeated key returns the same post.

        Raises: Conflict for a key reused with other arguments; NotFound if the post was deleted since; Unavailable
        if the outcome is unknown.
        """
        try:
            stream = author_stream(new.organization_id, new.author_id)
            return await self._sequencer.commit(stream, CreatePost(self.plan(new), key))
        except DuplicateRequest as duplicate:
            return await self.get(post_key(new.organization_id, duplicate.result_id))

    async def delete(self, key: PostKey, deleter_id: str, may_delete_any: bool) -> Post:
        """Deletes a post. Idempotent. Raises: NotFound, Forbidden."""
        post = await self._by_key.get(key)
        if post is None:
            raise NotFound("post", key.id)
        return await self._sequencer.commit(_stream(post), DeletePost(key, deleter_id, may_delete_any))

    async def set_preview(self, key: PostKey, url: str, preview: LinkPreview | None) -> None:
        """Stores the link preview of a post. Does nothing if the post does not exist."""
        post = await self.find(key)
        if post is not None:
            await self._sequencer.commit(_stream(post), SetPostPreview(key, url, preview))

    async def awaiting_preview(self, for_s: float, limit: int) -> list[PostKey]:
        """Returns posts that have waited longer than `for_s` seconds for their preview, the oldest first."""
        # The condition on existence makes MongoDB use the partial index.
        query = {"preview_due": {"$exists": True}, **older_than("preview_due", for_s)}
        cursor = self._posts.find(query, {"_id": 1}).sort("preview_due", 1).limit(limit)
        return [PostKey(post["_id"]["o"], post["_id"]["ts"]) for post in await cursor.to_list(None)]

    async def find(self, key: PostKey) -> Post | None:
        """Returns the post, or None if it does not exist or was deleted."""
        post = await self._by_key.get(key)
        return None if post is None or post.deleted_at is not None else post

    async def get(self, key: PostKey) -> Post:
        """Returns the post. Raises: NotFound if it does not exist or was deleted."""
        post = await self.find(key)
        if post is None:
            raise NotFound("post", key.id)
        return post

    async def all_posts(self, organization_id: str, range_: Range, blocked: frozenset[str] = NO_AUTHORS) -> Page[Post]:
        """Returns a page of all posts. Posts of blocked authors are left out."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            query: Document = {"_id": _between(organization_id, low, high), "deleted_at": None}
            if blocked:
                query["author"] = {"$nin": list(blocked)}
            return await self._read(query, [("_id", 1 if ascending else -1)], limit)

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def posts_of_author(self, organization_id: str, author_id: str, range_: Range) -> Page[Post]:
        """Returns a page of one author's posts."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            return await self._read(
                *_filter_and_sort([("author", author_id)], organization_id, low, high, ascending), limit
            )

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def posts_with_hashtag(
        self, organization_id: str, tag: str, range_: Range, blocked: frozenset[str]
    ) -> Page[Post]:
        """Returns a page of posts with the hashtag. Posts of blocked authors are left out."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            query, order = _filter_and_sort([("tags", tag)], organization_id, low, high, ascending)
            if blocked:
                query["author"] = {"$nin": list(blocked)}
            return await self._read(query, order, limit)

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def by_timestamp(self, organization_id: str, timestamps: Sequence[int]) -> dict[int, Post]:
        """Returns the posts that exist, by timestamp, with one read per thousand posts."""
        keys = [PostKey(organization_id, timestamp) for timestamp in dict.fromkeys(timestamps)]
        posts = await self._by_key.get_many(keys)
        return {post.timestamp: post for post in posts if post.deleted_at is None}

    async def subjects_of_events(
        self, organization_id: str, events: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Post | RemovedPost]:
        """Returns the subjects of feed events by kind and timestamp: posts, or references to removed posts."""
        keys = [PostKey(organization_id, timestamp) for _, timestamp in events]
        by_timestamp: dict[int, Post] = {
            post.timestamp: post for post in await self._by_key.get_many(list(dict.fromkeys(keys)))
        }
        subjects: dict[tuple[str, int], Post | RemovedPost] = {}
        for kind, timestamp in events:
            post = by_timestamp.get(timestamp)
            if post is not None and kind == "PostRemoved":
                subjects[kind, timestamp] = RemovedPost(post.id, post.author_id, post.merged)
            elif post is not None and post.deleted_at is None:
                subjects[kind, timestamp] = post
        return subjects

    async def _read(self, query: Document, order: Sequence[tuple[str, int]], limit: int) -> list[Post]:
        cursor = self._posts.find(query).sort(list(order)).limit(limit)
        return [post_record(document) for document in await cursor.to_list(limit)]

    async def _load(self, keys: Sequence[PostKey]) -> dict[PostKey, Post]:
        cursor = self._posts.find({"_id": {"$in": [key.document_id for key in keys]}})
        posts = [post_record(document) for document in await cursor.to_list(None)]
        return {post.key: post for post in posts}


def _stream(post: Post) -> Stream:
    return author_stream(post.organization_id, post.author_id)


def _between(organization_id: str, low: int, high: int) -> Document:
    return {"$gte": {"o": organization_id, "ts": low}, "$lte": {"o": organization_id, "ts": high}}


def _filter_and_sort(
    fields: Sequence[tuple[str, str]], organization_id: str, low: int, high: int, ascending: bool
) -> tuple[Document, list[tuple[str, int]]]:
    """Returns the filter and the sort order with which MongoDB uses the index of the fields."""
    query: Document = {"_id.o": organization_id, **dict(fields), "_id.ts": {"$gte": low, "$lte": high}}
    return {**query, "deleted_at": None}, [("_id.ts", 1 if ascending else -1)]
