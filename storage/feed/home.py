"""Reads home feeds: pushed items, merged with the posts of merged authors (docs/semantics.md, 4).

Follows, blocks, mutes and deletions are checked during the read, so a stale item is never returned. A page is short
only at the end of the feed.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from storage.feed.changes import FEED_ITEMS, MERGED_AUTHORS, POSTS
from storage.feed.documents import FeedItemDocument, OrganizationUserId, PostDocument
from storage.feed.feeds import ABSENT_S
from storage.feed.follows import FOLLOWS
from storage.feed.posts import MAX_READ, PostStore
from storage.feed.records import Post, post_record
from storage.feed.repeats import find_showings, reposted_timestamps, without_repeats
from storage.feed.trimming import FEEDS, MAX_ITEMS, add_posts, cut, items_from
from storage.mongo import Document, Mongo, Session
from storage.timeline import TimelinePage, TimelineRange, read_page

SEEN_EVERY_S = 3600.0
AUTHORS_PER_READ = 200
AUTHORS_PER_LOOKUP = 1000
FEW_MERGED_AUTHORS = 200
"""If an organization has fewer merged authors, all of them are read. Otherwise the reader's followees are looked up."""

EXTRA_ITEMS = 10
"""Number of items that are read beyond the limit, since some of them may be hidden."""


class HomeFeedState(Enum):
    """State of a home feed. REBUILDING: pages may lack posts, after a long absence or after removals."""

    READY = "READY"
    REBUILDING = "REBUILDING"


@dataclass(frozen=True, slots=True)
class FeedVisit:
    """A feed when its reader visits it. From `complete_from` the feed has every post; None if that is not known."""

    state: HomeFeedState
    complete_from: int | None


@dataclass(frozen=True, slots=True)
class FeedReader:
    """The reader of a feed, the authors whose posts are hidden, and the merged authors that the reader follows."""

    organization_id: str
    id: str
    hidden: frozenset[str]
    """Users whom the reader has blocked or muted."""

    merged_followees: frozenset[str] = frozenset()

    @property
    def merged(self) -> frozenset[str]:
        """The followed merged authors whose posts are shown."""
        return self.merged_followees - self.hidden

    @property
    def owner(self) -> OrganizationUserId:
        """The `_id` of the reader's feed, which is also the first part of the `_id` of each of its items."""
        return {"o": self.organization_id, "u": self.id}


@dataclass(frozen=True, slots=True)
class _FeedSegment:
    """A segment of a range of a feed."""

    posts: Sequence[tuple[int, str]]
    """Timestamp and author of each post, in the order of the range."""

    merged: dict[int, Post]
    """The posts of merged authors, by timestamp."""

    is_last: bool
    """Whether the segment reaches the end of the range."""


class HomeFeedStore:
    """Reads home feeds, and rebuilds feeds that lack posts."""

    def __init__(self, mongo: Mongo, posts: PostStore) -> None:
        self._mongo = mongo
        self._posts = posts

    async def record_read(self, organization_id: str, reader_id: str) -> HomeFeedState:
        """Records a visit. Returns the state of the feed."""
        return (await self.record_visit(organization_id, reader_id)).state

    async def record_visit(self, organization_id: str, reader_id: str) -> FeedVisit:
        """Stores, at most once an hour, that the reader reads the feed now.

        After an absence of 30 days, the feed becomes REBUILDING.
        """
        id_ = {"o": organization_id, "u": reader_id}
        age = {"age_ms": {"$subtract": ["$$NOW", "$seen_at"]}, "rebuilding": 1, "complete_from": 1}
        feeds = await self._mongo.find(FEEDS, {"_id": id_}, age, limit=1)
        feed = feeds[0] if feeds else None
        is_rebuilding = feed is not None and feed.get("rebuilding", False)
        if feed is None or feed["age_ms"] > SEEN_EVERY_S * 1000:
            was_absent = feed is not None and feed["age_ms"] > ABSENT_S * 1000
            is_rebuilding = is_rebuilding or was_absent
            fields: Document = {"seen_at": "$$NOW", **({"rebuilding": True} if was_absent else {})}
            if feed is None:
                fields["complete_from"] = {"$ifNull": ["$complete_from", 0]}
            await self._mongo[FEEDS].update_one({"_id": id_}, [{"$set": fields}], upsert=True)
        state = HomeFeedState.REBUILDING if is_rebuilding else HomeFeedState.READY
        return FeedVisit(state, 0 if feed is None else feed.get("complete_from"))

    async def begin_refill(self, reader: FeedReader, page: TimelinePage[Post], visit: FeedVisit) -> bool:
        """Makes a feed REBUILDING if the page shows where posts are missing. Returns whether it did.

        Posts are missing at the end of a feed that was full once, and has fewer than 800 items since posts were removed
        from it. Removals themselves check nothing, since one removal may concern many feeds.
        """
        low = visit.complete_from or 0
        shows_end = not page.has_older or (page.oldest is not None and page.oldest < low)
        if visit.complete_from == 0 or not shows_end or await self._count_shown(reader, low) >= MAX_ITEMS:
            return False
        unchanged = {"_id": reader.owner, "complete_from": visit.complete_from}
        return (await self._mongo[FEEDS].update_one(unchanged, {"$set": {"rebuilding": True}})).matched_count > 0

    async def _count_shown(self, reader: FeedReader, low: int) -> int:
        """Returns the number of items from `low` whose posts exist and belong in the feed."""
        items: list[FeedItemDocument] = await self._mongo.find(
            FEED_ITEMS, {"_id": items_from(reader.owner, low)}, {"_id": 1}, limit=AUTHORS_PER_LOOKUP
        )
        ids = [{"o": reader.organization_id, "ts": item["_id"]["ts"]} for item in items]
        posts: list[PostDocument] = await self._mongo.find(
            POSTS, {"_id": {"$in": ids}, "deleted_at": None}, {"_id": 0, "author": 1}
        )
        authors = {post["author"] for post in posts}
        shown = {reader.id, *await self._followed_among(reader.organization_id, reader.id, authors)}
        return sum(post["author"] in shown for post in posts)

    async def merged_followees(self, organization_id: str, reader_id: str) -> frozenset[str]:
        """Returns the merged authors whom the reader follows now."""
        between = {"$gte": {"o": organization_id, "u": ""}, "$lt": {"o": organization_id, "u": "\U0010ffff"}}
        documents = await self._mongo.find(MERGED_AUTHORS, {"_id": between}, {"_id": 1}, limit=FEW_MERGED_AUTHORS)
        merged = [document["_id"]["u"] for document in documents]
        if len(merged) < FEW_MERGED_AUTHORS:
            return frozenset(await self._followed_among(organization_id, reader_id, merged)) if merged else frozenset()
        return frozenset(await self._followees_among_merged(organization_id, reader_id))

    async def _followees_among_merged(self, organization_id: str, reader_id: str) -> set[str]:
        query = {"org": organization_id, "follower": reader_id}
        follows = await self._mongo.find(FOLLOWS, query, {"_id": 0, "followee": 1})
        ids = [{"o": organization_id, "u": follow["followee"]} for follow in follows]
        chunks = [ids[start : start + AUTHORS_PER_LOOKUP] for start in range(0, len(ids), AUTHORS_PER_LOOKUP)]
        finds = [self._mongo.find(MERGED_AUTHORS, {"_id": {"$in": chunk}}, {"_id": 1}) for chunk in chunks]
        return {author["_id"]["u"] for authors in await asyncio.gather(*finds) for author in authors}

    async def page(self, reader: FeedReader, range_: TimelineRange) -> TimelinePage[Post]:
        """Returns a page of the reader's feed, in the order of the range."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            posts: list[Post] = []
            size = limit + EXTRA_ITEMS
            while len(posts) < limit and low <= high:
                segment = await self._read_segment(reader, low, high, ascending, size)
                posts += await self.visible_posts(reader, segment.posts, segment.merged)
                if segment.is_last:
                    break
                last = segment.posts[-1][0]
                low, high = (last + 1, high) if ascending else (low, last - 1)
                size = min(2 * size, MAX_READ)
            return posts[:limit]

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def visible_posts(
        self, reader: FeedReader, posts: Sequence[tuple[int, str]], loaded: dict[int, Post] | None = None
    ) -> list[Post]:
        """Returns the existing posts that a page shows: no reposts of what the feed has already.

        `posts` are pairs of timestamp and author. `loaded` are posts that were read before, by timestamp.
        """
        found = await self._belonging(reader, posts, loaded)
        originals = reposted_timestamps(found)
        if not originals:
            return found
        shown, showings = await asyncio.gather(
            self._posts.without_lost_reposts(found, reader.hidden),
            find_showings(self._mongo, reader.owner, reader.merged, originals),
        )
        known = {post.timestamp for post in found}
        others = [each for each in showings if each[0] not in known]
        return without_repeats(shown, await self._belonging(reader, others) if others else [])

    async def _belonging(
        self, reader: FeedReader, posts: Sequence[tuple[int, str]], loaded: dict[int, Post] | None = None
    ) -> list[Post]:
        """Returns the existing posts that belong in the feed: no replies to people whom the reader doesn't follow."""
        by_timestamp = dict(loaded or {})
        missing = [timestamp for timestamp, _ in posts if timestamp not in by_timestamp]
        authors = {author for _, author in posts}
        read, visible = await asyncio.gather(
            self._posts.by_timestamp(reader.organization_id, missing), self._visible_among(reader, authors)
        )
        by_timestamp |= read
        parents = {post.parent.author_id for post in by_timestamp.values() if post.is_reply and post.parent}
        visible |= await self._visible_among(reader, parents - authors)
        found = [
            by_timestamp[timestamp]
            for timestamp, author in posts
            if author in visible and timestamp in by_timestamp and by_timestamp[timestamp].author_id == author
        ]
        return [post for post in found if not post.is_reply or post.author_id == reader.id or _parent_in(post, visible)]

    async def _visible_among(self, reader: FeedReader, authors: set[str]) -> set[str]:
        """Returns the authors whom the reader follows and has not hidden, the reader and the merged authors."""
        known = {reader.id, *reader.merged}
        others = authors - known - reader.hidden
        return known | (await self._followed_among(reader.organization_id, reader.id, others) if others else set())

    async def rebuild(self, organization_id: str, reader_id: str) -> None:
        """Fills a feed with the newest posts of the reader and all followees, in one transaction. Idempotent.

        Items of users whom the reader does not follow any more are removed. After a failure the feed stays REBUILDING,
        and the next sweep tries again.
        """
        owner: OrganizationUserId = {"o": organization_id, "u": reader_id}

        async def work(session: Session) -> None:
            # The first write, so that a concurrent trim of the feed waits, or repeats this transaction.
            rebuilt: Document = {"$set": {"complete_from": 0}, "$unset": {"rebuilding": 1}}
            await self._mongo[FEEDS].update_one({"_id": owner}, rebuilt, session=session)
            query = {"org": organization_id, "follower": reader_id}
            follows = self._mongo[FOLLOWS].find(query, {"followee": 1}, session=session)
            authors = [reader_id, *[follow["followee"] for follow in await follows.to_list(None)]]
            ended = {"_id": items_from(owner, 0), "author": {"$nin": authors}}
            await self._mongo[FEED_ITEMS].delete_many(ended, session=session)
            newest = await self._newest_posts(owner, authors, session)
            await add_posts(self._mongo, owner, newest, session)
            if len(newest) == MAX_ITEMS:
                await cut(self._mongo, owner, newest[-1]["_id"]["ts"], session)

        await self._mongo.transact(work)

    async def readers_to_rebuild(self, limit: int) -> list[tuple[str, str]]:
        """Returns the readers whose feed is to be rebuilt, as pairs of organization id and reader id."""
        cursor = self._mongo[FEEDS].find({"rebuilding": True}, {"_id": 1}).limit(limit)
        return [(feed["_id"]["o"], feed["_id"]["u"]) for feed in await cursor.to_list(None)]

    async def _read_segment(self, reader: FeedReader, low: int, high: int, ascending: bool, size: int) -> _FeedSegment:
        """Returns the next pushed and merged posts of a range, in the order of the range, at most `size`."""
        order = 1 if ascending else -1
        between = {"$gte": {**reader.owner, "ts": low}, "$lte": {**reader.owner, "ts": high}}
        items = await self._mongo.find(FEED_ITEMS, {"_id": between}, {"author": 1}, [("_id", order)], size)
        pushed = [(item["_id"]["ts"], item["author"]) for item in items]
        merged = await self._read_merged(reader, low, high, order, size) if reader.merged else {}
        authors_by_timestamp = {**dict(pushed), **{post.timestamp: post.author_id for post in merged.values()}}
        posts = sorted(authors_by_timestamp.items(), reverse=not ascending)[:size]
        return _FeedSegment(
            posts, merged, len(pushed) < size and len(merged) < size and len(authors_by_timestamp) <= size
        )

    async def _read_merged(self, reader: FeedReader, low: int, high: int, order: int, size: int) -> dict[int, Post]:
        query: Document = {"_id.o": reader.organization_id, "author": {"$in": list(reader.merged)}, "merged": True}
        query |= {"_id.ts": {"$gte": low, "$lte": high}, "deleted_at": None}
        cursor = self._mongo[POSTS].find(query).sort("_id.ts", order).limit(size)
        posts = [post_record(document) for document in await cursor.to_list(size)]
        return {post.timestamp: post for post in posts}

    async def _followed_among(self, organization_id: str, reader_id: str, authors: Iterable[str]) -> set[str]:
        query = {"org": organization_id, "follower": reader_id, "followee": {"$in": list(authors)}}
        follows = await self._mongo.find(FOLLOWS, query, {"_id": 0, "followee": 1})
        return {follow["followee"] for follow in follows}

    async def _newest_posts(
        self, owner: OrganizationUserId, authors: Sequence[str], session: Session
    ) -> list[PostDocument]:
        """Returns the newest posts that need an item: pushed posts, and all posts of the feed's owner."""
        newest: list[PostDocument] = []
        needs_item: Document = {"deleted_at": None, "$or": [{"merged": False}, {"author": owner["u"]}]}
        for start in range(0, len(authors), AUTHORS_PER_READ):
            chunk = {"_id.o": owner["o"], "author": {"$in": authors[start : start + AUTHORS_PER_READ]}}
            cursor = self._mongo[POSTS].find({**chunk, **needs_item}, {"author": 1, "parent": 1}, session=session)
            newest += await cursor.sort("_id.ts", -1).limit(MAX_ITEMS).to_list(MAX_ITEMS)
            newest = sorted(newest, key=lambda post: -post["_id"]["ts"])[:MAX_ITEMS]
        return newest


def _parent_in(post: Post, authors: set[str]) -> bool:
    """Returns whether the author of the post's parent is among the authors."""
    return post.parent is not None and post.parent.author_id in authors
