"""Reads of home feeds with pushed, merged and rebuilt posts: a page is short only where the feed ends."""

import asyncio
import random
from dataclasses import replace

import pytest

import storage.feed.home
from storage.feed.changes import CreatePost
from storage.feed.follows import FollowPair
from storage.feed.home import HomeFeedState
from storage.feed.posts import NO_AUTHORS
from storage.feed.records import Post, author_stream
from storage.feed.trimming import MAX_ITEMS
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario
from tests.storage.timeline_rule import PageArguments, actual_page, expected_page

pytestmark = pytest.mark.anyio


async def create_merged_post(feed: FeedScenario, author: str, text: str = "big") -> Post:
    """Creates a post of an author with too many followers to push it."""
    merged = replace(feed.stores.posts.plan(feed.new_post(author, text)), max_followers=-1)
    return await feed.stores.sequencer.commit(author_stream(feed.organization_id, author), CreatePost(merged))


async def follow(feed: FeedScenario, *authors: str) -> None:
    """Makes Bob follow the authors."""
    for author in authors:
        await feed.stores.follows.follow(FollowPair(feed.organization_id, "bob", author))


async def push(feed: FeedScenario, *posts: Post) -> None:
    """Pushes the posts into Bob's feed."""
    for post in posts:
        await feed.stores.feeds.push(post.key, post.author_id, ["bob"])


async def read(
    feed: FeedScenario, arguments: PageArguments, blocked: frozenset[str] = NO_AUTHORS
) -> tuple[object, list[int]]:
    """Reads a page of Bob's feed. Returns its summary and its timestamps."""
    reader = await feed.stores.home.load_reader(feed.organization_id, "bob", blocked)
    page = await feed.stores.home.page(reader, arguments.range)
    return actual_page(page, [post.timestamp for post in page.items]), [post.timestamp for post in page.items]


@pytest.mark.parametrize("few_merged_authors", [storage.feed.home.FEW_MERGED_AUTHORS, 1])
async def test_home_pages_follow_timeline_rule(
    feed: FeedScenario, few_merged_authors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader's merged authors are found among all merged authors if these are few, and else among the followees."""
    monkeypatch.setattr(storage.feed.home, "FEW_MERGED_AUTHORS", few_merged_authors)
    await feed.sign_in("cyd", "dan", "eve", "fay")
    await follow(feed, "ann", "cyd", "dan", "eve")
    visible: list[int] = []
    for n in range(48):
        author = ("ann", "cyd", "dan", "eve", "fay", "bob")[n % 6]
        if author in ("cyd", "eve"):
            post = await create_merged_post(feed, author)
        else:
            post = await feed.post(author)
            await push(feed, post)
        if n % 5 == 0:
            await feed.stores.posts.delete(post.key, author, False)
        elif author not in ("dan", "eve", "fay"):
            visible.append(post.timestamp)
    blocked = frozenset({"dan", "eve"})
    rng = random.Random(7)
    near = [timestamp + step for timestamp in visible for step in (-1, 0, 1)]
    for _ in range(60):
        oldest = rng.choice([None, rng.choice(near)])
        latest = rng.choice([rng.choice(near), NOW] if oldest is None else [None, rng.choice(near), NOW])
        arguments = PageArguments(oldest, latest, rng.randint(1, 9), rng.choice([True, False]))
        assert (await read(feed, arguments, blocked))[0] == expected_page(visible, arguments), arguments


async def test_home_pages_are_never_short_during_changes(feed: FeedScenario) -> None:
    authors = [f"author-{n}" for n in range(6)]
    await feed.sign_in(*authors)
    await follow(feed, *authors)
    for author in authors:
        for _ in range(12):
            await push(feed, await feed.post(author))
    has_finished = asyncio.Event()

    async def change_feed() -> None:
        rng = random.Random(3)
        while not has_finished.is_set():
            post = await feed.post(rng.choice(authors))
            await push(feed, post)
            if rng.random() < 0.3:
                await feed.stores.posts.delete(post.key, post.author_id, False)
            if rng.random() < 0.1:
                author = rng.choice(authors)
                await feed.stores.relations.block(feed.organization_id, "bob", author)
                await feed.stores.relations.unblock(feed.organization_id, "bob", author)
                await follow(feed, author)

    changing = asyncio.create_task(change_feed())
    try:
        for limit in (1, 3, 7) * 4:
            page_range = timeline_range(latest=NOW, limit=limit)
            for _ in range(12):
                blocked = await feed.stores.relations.blocked_users_of(feed.organization_id, "bob")
                reader = await feed.stores.home.load_reader(feed.organization_id, "bob", blocked)
                page = await feed.stores.home.page(reader, page_range)
                assert len(page.items) == limit or not page.has_older
                timestamps = [post.timestamp for post in page.items]
                assert timestamps == sorted(set(timestamps), reverse=True)
                if page.oldest is None or not page.has_older:
                    break
                page_range = timeline_range(latest=page.oldest, limit=limit, inclusive=False)
    finally:
        has_finished.set()
        await changing


async def test_late_item_after_unfollow_is_hidden(feed: FeedScenario) -> None:
    await follow(feed, "ann")
    post, deleted = await feed.post(), await feed.post()
    await push(feed, post)
    await feed.stores.posts.delete(deleted.key, "ann", False)
    await push(feed, deleted)
    newest = PageArguments(None, NOW, 10, True)
    assert (await read(feed, newest))[1] == [post.timestamp]
    await feed.stores.follows.unfollow(FollowPair(feed.organization_id, "bob", "ann"))
    await push(feed, post)
    assert (await read(feed, newest))[1] == []


async def test_feed_of_absent_reader_is_rebuilt(feed: FeedScenario) -> None:
    org, home = feed.organization_id, feed.stores.home
    await follow(feed, "ann")
    assert await home.record_read(org, "bob") is HomeFeedState.READY
    posts = [await feed.post() for _ in range(5)]
    await feed.backdate("feeds", "seen_at", days=31)
    assert await home.record_read(org, "bob") is HomeFeedState.REBUILDING
    assert await home.record_read(org, "bob") is HomeFeedState.REBUILDING
    assert (org, "bob") in await home.readers_to_rebuild(1000)
    await asyncio.gather(*(home.rebuild(org, "bob") for _ in range(3)))
    assert await home.record_read(org, "bob") is HomeFeedState.READY
    timestamps = (await read(feed, PageArguments(None, NOW, 10, True)))[1]
    assert timestamps == [post.timestamp for post in reversed(posts)]


async def test_rebuilt_feed_holds_newest_800(feed: FeedScenario) -> None:
    posts = [
        {"_id": {"o": feed.organization_id, "ts": ts}, "author": "ann", "text": "", "merged": False}
        for ts in range(1, MAX_ITEMS + 101)
    ]
    await feed.stores.mongo["posts"].insert_many(posts)
    await follow(feed, "ann")
    await feed.stores.home.rebuild(feed.organization_id, "bob")
    timestamps = [item["_id"]["ts"] for item in await feed.documents("feed_items")]
    assert timestamps == list(range(101, MAX_ITEMS + 101))


async def test_home_feed_ignores_equal_users_of_another_organization(feed: FeedScenario) -> None:
    """In the other organization Bob follows Cyd, and Ann's posts are merged too."""
    other = FeedScenario(feed.stores)
    for each in (feed, other):
        await each.sign_in("ann", "bob", "cyd")
    await follow(feed, "ann")
    await follow(other, "ann", "cyd")
    merged = await create_merged_post(feed, "ann")
    await create_merged_post(other, "ann", "of the other organization")
    not_followed = await feed.post("cyd")
    await push(feed, not_followed)
    _, timestamps = await read(feed, PageArguments(None, NOW, 50, True))
    assert timestamps == [merged.timestamp]
    await feed.stores.mongo["feed_items"].delete_many({"_id.o": feed.organization_id})
    await feed.stores.home.rebuild(feed.organization_id, "bob")
    assert await feed.documents("feed_items") == []
