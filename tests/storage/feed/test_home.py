"""Reading a home feed: pushed, merged and rebuilt alike, and a page is short only where the feed ends."""

import asyncio
import random
from dataclasses import replace

import pytest

from storage.feed.changes import CreatePost
from storage.feed.follows import FollowPair
from storage.feed.home import HomeFeedState
from storage.feed.posts import NO_AUTHORS
from storage.feed.records import Post, author_stream
from storage.feed.trimming import MAX_ITEMS
from storage.timeline import NOW, timeline_range
from tests.storage.feed.hall import Hall
from tests.storage.timeline_rule import Asked, as_expected, expected_page

pytestmark = pytest.mark.anyio


async def post_big(hall: Hall, author: str, text: str = "big") -> Post:
    """A post of somebody whom too many follow to push it."""
    merged = replace(hall.stores.posts.plan(hall.new(author, text)), max_followers=-1)
    return await hall.stores.sequencer.commit(author_stream(hall.organization_id, author), CreatePost(merged))


async def follow(hall: Hall, *authors: str) -> None:
    for author in authors:
        await hall.stores.follows.follow(FollowPair(hall.organization_id, "bob", author))


async def push(hall: Hall, *posts: Post) -> None:
    for post in posts:
        await hall.stores.feeds.push(post.key, post.author_id, ["bob"])


async def read(hall: Hall, asked: Asked, blocked: frozenset[str] = NO_AUTHORS) -> tuple[object, list[int]]:
    reader = await hall.stores.home.reader(hall.organization_id, "bob", blocked)
    page = await hall.stores.home.page(reader, asked.range)
    return as_expected(page, [post.timestamp for post in page.items]), [post.timestamp for post in page.items]


async def test_every_page_follows_the_timeline_rule_whatever_is_pushed_merged_or_hidden(hall: Hall) -> None:
    await hall.enter("cyd", "dan", "eve", "fay")
    await follow(hall, "ann", "cyd", "dan", "eve")
    visible: list[int] = []
    for n in range(48):
        author = ("ann", "cyd", "dan", "eve", "fay", "bob")[n % 6]
        if author in ("cyd", "eve"):
            post = await post_big(hall, author)
        else:
            post = await hall.post(author)
            await push(hall, post)
        if n % 5 == 0:
            await hall.stores.posts.delete(post.key, author, False)
        elif author not in ("dan", "eve", "fay"):
            visible.append(post.timestamp)
    blocked = frozenset({"dan", "eve"})
    draw = random.Random(7)
    near = [timestamp + step for timestamp in visible for step in (-1, 0, 1)]
    for _ in range(60):
        oldest = draw.choice([None, draw.choice(near)])
        latest = draw.choice([draw.choice(near), NOW] if oldest is None else [None, draw.choice(near), NOW])
        asked = Asked(oldest, latest, draw.randint(1, 9), draw.choice([True, False]))
        assert (await read(hall, asked, blocked))[0] == expected_page(visible, asked), asked


async def test_pages_are_never_short_while_posts_come_authors_are_blocked_and_posts_deleted(hall: Hall) -> None:
    authors = [f"author-{n}" for n in range(6)]
    await hall.enter(*authors)
    await follow(hall, *authors)
    for author in authors:
        for _ in range(12):
            await push(hall, await hall.post(author))
    done = asyncio.Event()

    async def disturb() -> None:
        draw = random.Random(3)
        while not done.is_set():
            post = await hall.post(draw.choice(authors))
            await push(hall, post)
            if draw.random() < 0.3:
                await hall.stores.posts.delete(post.key, post.author_id, False)
            if draw.random() < 0.1:
                one = draw.choice(authors)
                await hall.stores.relations.block(hall.organization_id, "bob", one)
                await hall.stores.relations.unblock(hall.organization_id, "bob", one)
                await follow(hall, one)

    disturbing = asyncio.create_task(disturb())
    try:
        for limit in (1, 3, 7) * 4:
            asked = timeline_range(latest=NOW, limit=limit)
            for _ in range(12):
                blocked = await hall.stores.relations.blocked_by(hall.organization_id, "bob")
                reader = await hall.stores.home.reader(hall.organization_id, "bob", blocked)
                page = await hall.stores.home.page(reader, asked)
                assert len(page.items) == limit or not page.has_older
                timestamps = [post.timestamp for post in page.items]
                assert timestamps == sorted(set(timestamps), reverse=True)
                if page.oldest is None or not page.has_older:
                    break
                asked = timeline_range(latest=page.oldest, limit=limit, inclusive=False)
    finally:
        done.set()
        await disturbing


async def test_an_item_that_came_late_is_not_shown(hall: Hall) -> None:
    await follow(hall, "ann")
    post, gone = await hall.post(), await hall.post()
    await push(hall, post)
    await hall.stores.posts.delete(gone.key, "ann", False)
    await push(hall, gone)
    newest = Asked(None, NOW, 10, True)
    assert (await read(hall, newest))[1] == [post.timestamp]
    await hall.stores.follows.unfollow(FollowPair(hall.organization_id, "bob", "ann"))
    await push(hall, post)
    assert (await read(hall, newest))[1] == []


async def test_a_long_absent_reader_finds_the_feed_rebuilt(hall: Hall) -> None:
    org, home = hall.organization_id, hall.stores.home
    await follow(hall, "ann")
    assert await home.record_visit(org, "bob") is HomeFeedState.READY
    posts = [await hall.post() for _ in range(5)]
    await hall.expire("feeds", "seen_at", days=31)
    assert await home.record_visit(org, "bob") is HomeFeedState.REBUILDING
    assert await home.record_visit(org, "bob") is HomeFeedState.REBUILDING
    assert (org, "bob") in await home.rebuilding(1000)
    await asyncio.gather(*(home.rebuild(org, "bob") for _ in range(3)))
    assert await home.record_visit(org, "bob") is HomeFeedState.READY
    seen = (await read(hall, Asked(None, NOW, 10, True)))[1]
    assert seen == [post.timestamp for post in reversed(posts)]


async def test_a_rebuilt_feed_keeps_the_newest_800(hall: Hall) -> None:
    posts = [
        {"_id": {"o": hall.organization_id, "ts": ts}, "author": "ann", "text": "", "merged": False}
        for ts in range(1, MAX_ITEMS + 101)
    ]
    await hall.stores.mongo["posts"].insert_many(posts)
    await follow(hall, "ann")
    await hall.stores.home.rebuild(hall.organization_id, "bob")
    kept = [row["_id"]["ts"] for row in await hall.documents("feed_items")]
    assert kept == list(range(101, MAX_ITEMS + 101))
