"""Posts: pages of an organization, an author and a hashtag, single ones, and the ways to change them."""

from collections.abc import Sequence

from storage.batch_loader import BatchLoader
from storage.errors import NotFound
from storage.feed.changes import CreatePost, DeletePost, NewPost, PostPlan, SetPostPreview
from storage.feed.records import Post, RemovedPost, author_stream, post_record
from storage.idempotency import AlreadyDone, IdempotencyKey
from storage.link_previews import LinkPreview
from storage.mongo import Document, Mongo, older_than
from storage.references import PostKey, post_key
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from storage.timeline import Page, Range, read_page

NOBODY: frozenset[str] = frozenset()


class PostStore:
    """Reads at majority; writes in batches of the author's stream. Deleted posts are on no page."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, max_followers: int) -> None:
        """`max_followers`: posts of authors with more are not pushed into feeds but merged on read."""
        self._posts = mongo["posts"]
        self._sequencer = sequencer
        self._max_followers = max_followers
        self._by_key: BatchLoader[PostKey, Post] = BatchLoader(self._load)

    def plan(self, new: NewPost) -> PostPlan:
        """How the post is put into a batch of `author_stream(organization, author)`, by a change of another area."""
        return PostPlan(new, self._max_followers)

    async def create(self, new: NewPost, key: IdempotencyKey | None = None) -> Post:
        """Posts; when it returns it is durable, and in its author's own feed. Repeated, it gives what it made.

        Raises: Conflict for a key reused with other arguments; NotFound when what it made was deleted; Unavailable when
        the outcome is open.
        """
        try:
            stream = author_stream(new.organization_id, new.author_id)
            return await self._sequencer.commit(stream, CreatePost(self.plan(new), key))
        except AlreadyDone as done:
            return await self.get(post_key(new.organization_id, done.id))

    async def delete(self, key: PostKey, deleter_id: str, may_delete_any: bool) -> Post:
        """Leaves a tombstone; twice is once. Raises: NotFound, Forbidden."""
        found = await self._by_key.get(key)
        if found is None:
            raise NotFound("post", key.id)
        return await self._sequencer.commit(_stream(found), DeletePost(key, deleter_id, may_delete_any))

    async def set_preview(self, key: PostKey, url: str, preview: LinkPreview | None) -> None:
        """Keeps what the link's page says of itself; nothing when the post is gone."""
        found = await self.find(key)
        if found is not None:
            await self._sequencer.commit(_stream(found), SetPostPreview(key, url, preview))

    async def awaiting_preview(self, for_s: float, limit: int) -> list[PostKey]:
        """Posts that have waited longer than that for their preview, the longest first."""
        # The first condition lets the partial index answer.
        wanted = {"preview_due": {"$exists": True}, **older_than("preview_due", for_s)}
        cursor = self._posts.find(wanted, {"_id": 1}).sort("preview_due", 1).limit(limit)
        return [PostKey(row["_id"]["o"], row["_id"]["ts"]) for row in await cursor.to_list(None)]

    async def find(self, key: PostKey) -> Post | None:
        """The post; None where there is none, or none any more."""
        found = await self._by_key.get(key)
        return None if found is None or found.deleted_at is not None else found

    async def get(self, key: PostKey) -> Post:
        """The post. Raises: NotFound."""
        found = await self.find(key)
        if found is None:
            raise NotFound("post", key.id)
        return found

    async def of_organization(self, organization_id: str, asked: Range, blocked: frozenset[str] = NOBODY) -> Page[Post]:
        """Everybody's posts, without those of the blocked."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            wanted: Document = {"_id": _between(organization_id, low, high), "deleted_at": None}
            if blocked:
                wanted["author"] = {"$nin": list(blocked)}
            return await self._read(wanted, [("_id", 1 if ascending else -1)], limit)

        return await read_page(asked, fetch, lambda post: post.timestamp)

    async def of_author(self, organization_id: str, author_id: str, asked: Range) -> Page[Post]:
        """One author's posts."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            return await self._read(*_along([("author", author_id)], organization_id, low, high, ascending), limit)

        return await read_page(asked, fetch, lambda post: post.timestamp)

    async def of_hashtag(self, organization_id: str, tag: str, asked: Range, blocked: frozenset[str]) -> Page[Post]:
        """Posts with the hashtag, without those of the blocked."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            wanted, order = _along([("tags", tag)], organization_id, low, high, ascending)
            if blocked:
                wanted["author"] = {"$nin": list(blocked)}
            return await self._read(wanted, order, limit)

        return await read_page(asked, fetch, lambda post: post.timestamp)

    async def by_timestamp(self, organization_id: str, timestamps: Sequence[int]) -> dict[int, Post]:
        """Those of the organization's posts that are still there, by timestamp; one read for every thousand."""
        keys = [PostKey(organization_id, timestamp) for timestamp in dict.fromkeys(timestamps)]
        found = await self._by_key.get_many(keys)
        return {post.timestamp: post for post in found if post.deleted_at is None}

    async def changes_of_events(
        self, organization_id: str, kinds: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Post | RemovedPost]:
        """What events of feeds speak of, by kind and timestamp: a post, or what left."""
        keys = [PostKey(organization_id, timestamp) for _, timestamp in kinds]
        by_timestamp: dict[int, Post] = {
            post.timestamp: post for post in await self._by_key.get_many(list(dict.fromkeys(keys)))
        }
        found: dict[tuple[str, int], Post | RemovedPost] = {}
        for kind, timestamp in kinds:
            post = by_timestamp.get(timestamp)
            if post is not None and kind == "PostRemoved":
                found[kind, timestamp] = RemovedPost(post.id, post.author_id, post.merged)
            elif post is not None and post.deleted_at is None:
                found[kind, timestamp] = post
        return found

    async def _read(self, wanted: Document, order: Sequence[tuple[str, int]], limit: int) -> list[Post]:
        cursor = self._posts.find(wanted).sort(list(order)).limit(limit)
        return [post_record(document) for document in await cursor.to_list(limit)]

    async def _load(self, keys: Sequence[PostKey]) -> dict[PostKey, Post]:
        cursor = self._posts.find({"_id": {"$in": [key.document_id for key in keys]}})
        posts = [post_record(document) for document in await cursor.to_list(None)]
        return {post.key: post for post in posts}


def _stream(post: Post) -> Stream:
    return author_stream(post.organization_id, post.author_id)


def _between(organization_id: str, low: int, high: int) -> Document:
    return {"$gte": {"o": organization_id, "ts": low}, "$lte": {"o": organization_id, "ts": high}}


def _along(
    what: Sequence[tuple[str, str]], organization_id: str, low: int, high: int, ascending: bool
) -> tuple[Document, list[tuple[str, int]]]:
    """Filter and order that walk the index of what is looked for."""
    wanted: Document = {"_id.o": organization_id, **dict(what), "_id.ts": {"$gte": low, "$lte": high}}
    return {**wanted, "deleted_at": None}, [("_id.ts", 1 if ascending else -1)]
