"""Posts: pages by organization, author, hashtag and parent, single posts, and their changes."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from storage.chat.roles import Moderator
from storage.errors import NotFound
from storage.feed.changes import (
    SOURCES,
    CreatePost,
    DeletePost,
    ErasePost,
    NewPost,
    PostPlan,
    PostRemoval,
    SetPostPreview,
)
from storage.feed.documents import PostDocument, PostSourceId
from storage.feed.records import Post, PostParentKind, RemovedPost, author_stream, post_record
from storage.files.link_previews import LinkPreview
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.identity.mutes import end_mutes_of_post
from storage.ids import PostKey, post_key
from storage.mongo import Document, Mongo, older_than
from storage.mongo.batch_loader import BatchLoader
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from storage.timeline import TimelinePage, TimelineRange, read_page

NO_AUTHORS: frozenset[str] = frozenset()

MAX_READ = 2000
"""Maximum number of posts of one read. A page whose posts are hidden is filled by reads that double up to this."""


class PostStore:
    """Reads posts at majority, and commits changes to the author's stream. Pages contain no deleted posts."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, max_followers: int) -> None:
        """Takes the number of followers above which an author's posts are merged on read, not pushed into feeds."""
        self._mongo = mongo
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

    async def delete(self, key: PostKey, deleter: Moderator) -> Post:
        """Deletes a post. Idempotent. Raises: NotFound, Forbidden."""
        return await self._remove(key, lambda source: DeletePost(key, source, deleter))

    async def erase(self, key: PostKey) -> Post:
        """Deletes a post as `delete` does, for an erasure of its author. Idempotent. Raises: NotFound."""
        return await self._remove(key, lambda source: ErasePost(key, source))

    async def _remove(self, key: PostKey, change: Callable[[PostSourceId | None], PostRemoval]) -> Post:
        """Commits the change, which gets the source of a repost."""
        post = await self._by_key.get(key)
        if post is None:
            raise NotFound("post", key.id)
        source = _repost_source(post.author_id, post.parent_key) if post.is_repost and post.parent_key else None
        deleted = await self._sequencer.commit(_stream(post), change(source))
        await self._mongo["post_reactions"].delete_many({"_id.o": key.organization_id, "_id.ts": key.timestamp})
        await end_mutes_of_post(self._mongo, key)
        return deleted

    async def repost(self, user_id: str, original: Post) -> Post:
        """Reposts a post, which is no repost itself. Idempotent: returns the user's existing repost."""
        parent = original.as_parent(PostParentKind.REPOST)
        source = _repost_source(user_id, original.key)["source"]
        return await self.create(NewPost(original.organization_id, user_id, "", (), (), (), source, (), parent))

    async def undo_repost(self, user_id: str, original: PostKey) -> PostKey | None:
        """Deletes the user's repost of a post. Idempotent. Returns the key of the repost, or None without one."""
        source = await self._mongo[SOURCES].find_one({"_id": _repost_source(user_id, original)})
        if source is None:
            return None
        key = PostKey(original.organization_id, source["post"])
        await self.delete(key, Moderator(user_id))
        return key

    async def reposted_among(self, organization_id: str, user_id: str, timestamps: Collection[int]) -> set[int]:
        """Returns those of the posts that the user has reposted."""
        by_id = {_repost_source(user_id, PostKey(organization_id, each))["source"]: each for each in timestamps}
        ids = [{"o": organization_id, "source": source} for source in by_id]
        sources = await self._mongo.find(SOURCES, {"_id": {"$in": ids}}, {"_id": 1})
        return {by_id[source["_id"]["source"]] for source in sources}

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

    async def find_with_tombstone(self, key: PostKey) -> Post | None:
        """Returns the post or its tombstone, or None if it does not exist."""
        return await self._by_key.get(key)

    async def find(self, key: PostKey) -> Post | None:
        """Returns the post, or None if it does not exist or was deleted."""
        post = await self._by_key.get(key)
        return None if post is None or post.deleted_at is not None else post

    async def find_many(self, keys: Collection[PostKey]) -> dict[PostKey, Post]:
        """Returns those of the posts that exist and were not deleted."""
        return {key: post for key, post in (await self._by_key.find(keys)).items() if post.deleted_at is None}

    async def get(self, key: PostKey) -> Post:
        """Returns the post. Raises: NotFound if it does not exist or was deleted."""
        post = await self.find(key)
        if post is None:
            raise NotFound("post", key.id)
        return post

    async def all_posts(
        self, organization_id: str, range_: TimelineRange, hidden: frozenset[str] = NO_AUTHORS
    ) -> TimelinePage[Post]:
        """Returns a page of all posts without replies and reposts. Leaves out posts of the authors `hidden`."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            query: Document = {"_id": _between(organization_id, low, high), "deleted_at": None}
            query["parent.kind"] = {"$nin": [PostParentKind.REPLY.value, PostParentKind.REPOST.value]}
            if hidden:
                query["author"] = {"$nin": list(hidden)}
            return await self._read(query, [("_id", 1 if ascending else -1)], limit)

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def posts_of_author(
        self, organization_id: str, author_id: str, range_: TimelineRange, hidden: frozenset[str] = NO_AUTHORS
    ) -> TimelinePage[Post]:
        """Returns a page of one author's posts. Leaves out reposts of deleted posts and of the authors `hidden`."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            found: list[Post] = []
            size = limit
            while len(found) < limit:
                query, order = _filter_and_sort([("author", author_id)], organization_id, low, high, ascending)
                posts = await self._read(query, order, size)
                found += await self.without_lost_reposts(posts, hidden)
                if len(posts) < size:
                    break
                last = posts[-1].timestamp
                low, high = (last + 1, high) if ascending else (low, last - 1)
                size = min(2 * size, MAX_READ)
            return found[:limit]

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def replies(self, key: PostKey, range_: TimelineRange, hidden: frozenset[str]) -> TimelinePage[Post]:
        """Returns a page of the replies to a post. Leaves out replies of the authors `hidden`."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            fields: list[tuple[str, str | int]] = [
                ("parent.ts", key.timestamp),
                ("parent.kind", PostParentKind.REPLY.value),
            ]
            query, order = _filter_and_sort(fields, key.organization_id, low, high, ascending)
            if hidden:
                query["author"] = {"$nin": list(hidden)}
            return await self._read(query, order, limit)

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def count_responses(
        self, organization_id: str, kind: PostParentKind, timestamps: Sequence[int], authors: frozenset[str]
    ) -> Counter[int]:
        """Returns how many replies to each post, or reposts or quotes of it, the authors have written."""
        query = {"_id.o": organization_id, "parent.ts": {"$in": list(timestamps)}, "parent.kind": kind.value}
        query["author"] = {"$in": list(authors)}  # Tombstones have no parent. The index has all that is read.
        responses: list[PostDocument] = await self._mongo.find("posts", query, {"_id": 0, "parent.ts": 1})
        return Counter(response["parent"]["ts"] for response in responses)

    async def without_lost_reposts(self, posts: Sequence[Post], hidden: frozenset[str]) -> list[Post]:
        """Returns the posts without reposts of deleted posts and of the authors `hidden`."""
        parents = {post.timestamp: post.parent for post in posts if post.is_repost and post.parent}
        if not parents:
            return list(posts)
        originals = await self.by_timestamp(posts[0].organization_id, [each.timestamp for each in parents.values()])
        return [
            post
            for post in posts
            if (parent := parents.get(post.timestamp)) is None
            or (parent.timestamp in originals and parent.author_id not in hidden)
        ]

    async def posts_with_hashtag(
        self, organization_id: str, tag: str, range_: TimelineRange, hidden: frozenset[str]
    ) -> TimelinePage[Post]:
        """Returns a page of posts with the hashtag. Leaves out posts of the authors `hidden`."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            query, order = _filter_and_sort([("tags", tag)], organization_id, low, high, ascending)
            if hidden:
                query["author"] = {"$nin": list(hidden)}
            return await self._read(query, order, limit)

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def by_timestamp(self, organization_id: str, timestamps: Sequence[int]) -> dict[int, Post]:
        """Returns those of the posts that exist and are not deleted, by timestamp, with one read per thousand posts."""
        keys = [PostKey(organization_id, timestamp) for timestamp in dict.fromkeys(timestamps)]
        posts = await self._by_key.get_many(keys)
        return {post.timestamp: post for post in posts if post.deleted_at is None}

    async def subjects_of_events(
        self, organization_id: str, events: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Post | RemovedPost]:
        """Returns the subjects of feed events by kind and timestamp: posts, or references to removed posts.

        Leaves out arrivals of posts that were deleted since, and of reposts of such posts.
        """
        keys = [PostKey(organization_id, timestamp) for _, timestamp in events]
        by_timestamp: dict[int, Post] = {
            post.timestamp: post for post in await self._by_key.get_many(list(dict.fromkeys(keys)))
        }
        existing = [post for post in by_timestamp.values() if post.deleted_at is None]
        shown = {post.timestamp for post in await self.without_lost_reposts(existing, NO_AUTHORS)}
        subjects: dict[tuple[str, int], Post | RemovedPost] = {}
        for kind, timestamp in events:
            post = by_timestamp.get(timestamp)
            if post is not None and kind == "PostRemoved":
                subjects[kind, timestamp] = RemovedPost(post.id, post.author_id, post.merged)
            elif post is not None and timestamp in shown:
                subjects[kind, timestamp] = post
        return subjects

    async def _read(self, query: Document, order: Sequence[tuple[str, int]], limit: int) -> list[Post]:
        return [post_record(document) for document in await self._mongo.find("posts", query, None, order, limit)]

    async def _load(self, keys: Sequence[PostKey]) -> dict[PostKey, Post]:
        query = {"_id": {"$in": [key.document_id for key in keys]}}
        posts = [post_record(document) for document in await self._mongo.find("posts", query)]
        return {post.key: post for post in posts}


def _stream(post: Post) -> Stream:
    return author_stream(post.organization_id, post.author_id)


def _between(organization_id: str, low: int, high: int) -> Document:
    return {"$gte": {"o": organization_id, "ts": low}, "$lte": {"o": organization_id, "ts": high}}


def _repost_source(user_id: str, original: PostKey) -> PostSourceId:
    return {"o": original.organization_id, "source": f"repost:{user_id}:{original.timestamp}"}


def _filter_and_sort(
    fields: Sequence[tuple[str, str | int]], organization_id: str, low: int, high: int, ascending: bool
) -> tuple[Document, list[tuple[str, int]]]:
    """Returns the filter and the sort order with which MongoDB uses the index of the fields."""
    query: Document = {"_id.o": organization_id, **dict(fields), "_id.ts": {"$gte": low, "$lte": high}}
    return {**query, "deleted_at": None}, [("_id.ts", 1 if ascending else -1)]
