"""Reposts of what a home feed has already: pages leave them out (docs/semantics.md, 4)."""

import asyncio
from collections.abc import Collection, Sequence

from storage.feed.changes import FEED_ITEMS, POSTS
from storage.feed.documents import OrganizationUserId
from storage.feed.posts import MAX_READ
from storage.feed.records import Post, PostParentKind
from storage.mongo import Document, Mongo


def reposted_timestamps(posts: Sequence[Post]) -> set[int]:
    """Returns the timestamps of the posts that the reposts among the posts repeat."""
    return {post.parent.timestamp for post in posts if post.is_repost and post.parent}


async def find_showings(
    mongo: Mongo, owner: OrganizationUserId, merged_authors: Collection[str], originals: Collection[int]
) -> list[tuple[int, str]]:
    """Returns the posts of a feed that show one of the originals, as pairs of timestamp and author.

    These are the originals themselves and their reposts. They may have been deleted, or may be hidden from the reader.
    """
    organization, of = {"_id.o": owner["o"]}, {"$in": list(originals)}
    pushed = [
        {"_id": {"$in": [{**owner, "ts": each} for each in originals]}},
        {**organization, "_id.u": owner["u"], "of": of},
    ]
    reads = [mongo.find(FEED_ITEMS, {"$or": pushed}, {"author": 1}, limit=MAX_READ)]
    if merged_authors:
        is_merged: Document = {"author": {"$in": list(merged_authors)}, "merged": True}
        ids: Document = {"_id": {"$in": [{"o": owner["o"], "ts": each} for each in originals]}}
        reposts: Document = {**organization, "parent.ts": of, "parent.kind": PostParentKind.REPOST.value}
        merged = {"$or": [{**ids, **is_merged}, {**reposts, **is_merged}]}
        reads.append(mongo.find(POSTS, merged, {"author": 1}, limit=MAX_READ))
    documents = [document for found in await asyncio.gather(*reads) for document in found]
    return list({document["_id"]["ts"]: document["author"] for document in documents}.items())


def without_repeats(posts: Sequence[Post], others: Sequence[Post]) -> list[Post]:
    """Returns the posts without reposts of what earlier ones among the posts and the `others` show."""
    first: dict[int, int] = {}
    for post in [*posts, *others]:
        content = _content(post)
        first[content] = min(first.get(content, post.timestamp), post.timestamp)
    return [post for post in posts if first[_content(post)] == post.timestamp]


def _content(post: Post) -> int:
    """Returns the timestamp of the post whose content the post shows: its own, or that of the reposted post."""
    return post.parent.timestamp if post.is_repost and post.parent else post.timestamp
