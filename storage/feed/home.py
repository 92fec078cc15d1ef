"""Reads home feeds: pushed items, merged with the posts of authors too big to push (docs/semantics.md, 4).

Who is followed, blocked, and what was deleted is looked at while reading, so an item that came late or stayed too long
is never shown, and a page is short only where the feed ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from storage.feed.changes import FEED_ITEMS, MERGED_AUTHORS, POSTS
from storage.feed.feeds import ABSENT_S, FeedStore
from storage.feed.follows import FEEDS, FOLLOWS
from storage.feed.posts import PostStore
from storage.feed.records import Post, post_record
from storage.feed.trimming import MAX_ITEMS
from storage.mongo import Document, Mongo
from storage.streams.log import Position
from storage.timeline import Page, Range, read_page

SEEN_EVERY_S = 3600.0
AUTHORS_AT_ONCE = 200
EXTRA = 10
"""How many more than asked for are looked at, since some may be hidden."""


class HomeFeedState(Enum):
    """REBUILDING: the feed of a long-absent reader is being rebuilt; what is there so far is shown."""

    READY = "READY"
    REBUILDING = "REBUILDING"


@dataclass(frozen=True, slots=True)
class FeedReader:
    """Whose feed is read, whom they blocked, and the big authors whom they follow.

    With each big author comes where their stream stood when their posts were no longer pushed.
    """

    organization_id: str
    id: str
    blocked: frozenset[str]
    merged: Mapping[str, Position] = field(default_factory=dict)

    @property
    def owner(self) -> Document:
        """The beginning of their items' _id, and their feed's whole."""
        return {"o": self.organization_id, "u": self.id}


@dataclass(frozen=True, slots=True)
class _FeedSegment:
    """One look along a feed: what was found in order, and whether nothing lies behind it."""

    posts: Sequence[tuple[int, str]]
    merged: dict[int, Post]
    is_all: bool


class HomeStore:
    """Reads home feeds, and rebuilds those of readers who were away."""

    def __init__(self, mongo: Mongo, posts: PostStore, feeds: FeedStore) -> None:
        self._mongo = mongo
        self._posts = posts
        self._feeds = feeds

    async def enter(self, organization_id: str, reader_id: str) -> HomeFeedState:
        """Remembers that the reader is here. One who was away for 30 days finds the feed REBUILDING."""
        id_ = {"o": organization_id, "u": reader_id}
        age = {"age_ms": {"$subtract": ["$$NOW", "$seen_at"]}, "rebuilding": 1}
        feed = await self._mongo[FEEDS].find_one({"_id": id_}, age)
        if feed is None or feed["age_ms"] > SEEN_EVERY_S * 1000:
            away = feed is not None and feed["age_ms"] > ABSENT_S * 1000
            fields = {"seen_at": "$$NOW", **({"rebuilding": True} if away else {})}
            await self._mongo[FEEDS].update_one({"_id": id_}, [{"$set": fields}], upsert=True)
            feed = {"rebuilding": away or (feed is not None and feed.get("rebuilding", False))}
        return HomeFeedState.REBUILDING if feed.get("rebuilding") else HomeFeedState.READY

    async def reader(self, organization_id: str, reader_id: str, blocked: frozenset[str]) -> FeedReader:
        """The reader as of now."""
        between = {"$gte": {"o": organization_id, "u": ""}, "$lt": {"o": organization_id, "u": "\U0010ffff"}}
        cursor = self._mongo[MERGED_AUTHORS].find({"_id": between})
        begun = {row["_id"]["u"]: Position(row["epoch"], row["n"]) for row in await cursor.to_list(None)}
        followed = await self._followed(organization_id, reader_id, begun) if begun else set()
        return FeedReader(organization_id, reader_id, blocked, {each: begun[each] for each in followed - blocked})

    async def page(self, reader: FeedReader, asked: Range) -> Page[Post]:
        """The reader's feed in the order of the range."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Post]:
            found: list[Post] = []
            while len(found) < limit and low <= high:
                part = await self._look(reader, low, high, ascending, limit - len(found) + EXTRA)
                found += await self.visible(reader, part.posts, part.merged)
                if part.is_all:
                    break
                last = part.posts[-1][0]
                low, high = (last + 1, high) if ascending else (low, last - 1)
            return found[:limit]

        return await read_page(asked, fetch, lambda post: post.timestamp)

    async def visible(
        self, reader: FeedReader, posts: Sequence[tuple[int, str]], known: dict[int, Post] | None = None
    ) -> list[Post]:
        """Those of the posts, by timestamp and author, that are there and that the reader may see in the home feed."""
        found = dict(known or {})
        missing = [timestamp for timestamp, _ in posts if timestamp not in found]
        found |= await self._posts.by_timestamp(reader.organization_id, missing) if missing else {}
        authors = {author for _, author in posts} - {reader.id, *reader.blocked, *reader.merged}
        shown = await self._followed(reader.organization_id, reader.id, authors) if authors else set()
        shown |= {reader.id, *reader.merged}
        return [
            found[timestamp]
            for timestamp, author in posts
            if author in shown and timestamp in found and found[timestamp].author_id == author
        ]

    async def rebuild(self, organization_id: str, reader_id: str) -> None:
        """Fills the feed of a reader who was away with the newest posts of all whom they follow. Safe to repeat.

        What could not be inserted leaves it REBUILDING, and the next sweep tries again.
        """
        cursor = self._mongo[FOLLOWS].find({"org": organization_id, "follower": reader_id}, {"followee": 1})
        authors = [reader_id, *[row["followee"] for row in await cursor.to_list(None)]]
        newest: list[Document] = []
        for start in range(0, len(authors), AUTHORS_AT_ONCE):
            newest += await self._newest(organization_id, authors[start : start + AUTHORS_AT_ONCE])
            newest = sorted(newest, key=lambda row: -row["_id"]["ts"])[:MAX_ITEMS]
        owner = {"o": organization_id, "u": reader_id}
        items = [{"_id": {**owner, "ts": row["_id"]["ts"]}, "author": row["author"]} for row in newest]
        failed = await self._feeds.insert(items)
        await self._feeds.trim(organization_id, reader_id)
        if not failed:
            await self._mongo[FEEDS].update_one({"_id": owner}, {"$unset": {"rebuilding": 1}})

    async def rebuilding(self, limit: int) -> list[tuple[str, str]]:
        """Readers whose feed is to be rebuilt: organization and id."""
        cursor = self._mongo[FEEDS].find({"rebuilding": True}, {"_id": 1}).limit(limit)
        return [(row["_id"]["o"], row["_id"]["u"]) for row in await cursor.to_list(None)]

    async def _look(self, reader: FeedReader, low: int, high: int, ascending: bool, size: int) -> _FeedSegment:
        """The next pushed and merged posts of a range, in its order, at most `size`."""
        order = 1 if ascending else -1
        between = {"$gte": {**reader.owner, "ts": low}, "$lte": {**reader.owner, "ts": high}}
        cursor = self._mongo[FEED_ITEMS].find({"_id": between}, {"author": 1}).sort("_id", order).limit(size)
        pushed = [(row["_id"]["ts"], row["author"]) for row in await cursor.to_list(size)]
        merged = await self._merged(reader, low, high, order, size) if reader.merged else {}
        both = {**dict(pushed), **{post.timestamp: post.author_id for post in merged.values()}}
        posts = sorted(both.items(), reverse=not ascending)[:size]
        return _FeedSegment(posts, merged, len(pushed) < size and len(merged) < size and len(both) <= size)

    async def _merged(self, reader: FeedReader, low: int, high: int, order: int, size: int) -> dict[int, Post]:
        wanted: Document = {"_id.o": reader.organization_id, "author": {"$in": list(reader.merged)}, "merged": True}
        wanted |= {"_id.ts": {"$gte": low, "$lte": high}, "deleted_at": None}
        cursor = self._mongo[POSTS].find(wanted).sort("_id.ts", order).limit(size)
        posts = [post_record(document) for document in await cursor.to_list(size)]
        return {post.timestamp: post for post in posts}

    async def _followed(self, organization_id: str, reader_id: str, authors: Iterable[str]) -> set[str]:
        wanted = {"org": organization_id, "follower": reader_id, "followee": {"$in": list(authors)}}
        cursor = self._mongo[FOLLOWS].find(wanted, {"_id": 0, "followee": 1})
        return {row["followee"] for row in await cursor.to_list(None)}

    async def _newest(self, organization_id: str, authors: Sequence[str]) -> list[Document]:
        wanted = {"_id.o": organization_id, "author": {"$in": authors}, "merged": False, "deleted_at": None}
        cursor = self._mongo[POSTS].find(wanted, {"author": 1}).sort("_id.ts", -1).limit(MAX_ITEMS)
        return list(await cursor.to_list(MAX_ITEMS))
