"""Home feeds show a post once: as itself, or by the earliest of its reposts in the feed."""

import asyncio
import random
from dataclasses import replace

import pytest

import storage.feed.home
from storage.chat.roles import Moderator
from storage.feed.changes import CreatePost
from storage.feed.follows import FollowPair
from storage.feed.records import Post, PostParent, PostParentKind, author_stream
from storage.mongo import Driver
from storage.stores import open_stores
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario, load_reader

pytestmark = pytest.mark.anyio

AUTHORS = ("cyd", "dan", "eve")


@pytest.fixture(autouse=True)
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a read of one post find the other reposts only in the rest of the feed."""
    monkeypatch.setattr(storage.feed.home, "EXTRA_ITEMS", 0)


async def follow(feed: FeedScenario, *authors: str) -> None:
    """Makes Bob follow the authors."""
    for author in authors:
        await feed.stores.follows.follow(FollowPair(feed.organization_id, "bob", author))


async def repost(feed: FeedScenario, author: str, original: Post) -> Post:
    """Reposts a post, and pushes the repost into Bob's feed."""
    post = await feed.stores.posts.repost(author, original)
    await feed.stores.feeds.push(post, ["bob"])
    return post


async def create_merged(feed: FeedScenario, author: str, parent: PostParent | None = None) -> Post:
    """Creates a post, or a repost, of an author with too many followers to push it."""
    new = feed.new_post(author, "" if parent else "big", parent=parent)
    plan = replace(feed.stores.posts.plan(new), max_followers=-1)
    return await feed.stores.sequencer.commit(author_stream(feed.organization_id, author), CreatePost(plan))


async def read(feed: FeedScenario) -> list[int]:
    """Returns the timestamps of Bob's whole feed, oldest first, which must be the same in pages of any size."""
    timestamps = await read_by_pages(feed, 50)
    assert timestamps == await read_by_pages(feed, 1)
    return timestamps


async def read_by_pages(feed: FeedScenario, limit: int) -> list[int]:
    """Returns the timestamps of Bob's whole feed, oldest first."""
    blocked = await feed.stores.relations.blocked_users_of(feed.organization_id, "bob")
    reader = await load_reader(feed.stores.home, feed.organization_id, "bob", blocked)
    timestamps: list[int] = []
    range_ = timeline_range(latest=NOW, limit=limit)
    while True:
        page = await feed.stores.home.page(reader, range_)
        timestamps += [post.timestamp for post in page.items]
        assert len(page.items) == limit or not page.has_older
        if not page.has_older:
            return timestamps[::-1]
        range_ = timeline_range(latest=page.oldest, limit=limit, inclusive=False)


async def test_first_repost_shows_until_it_is_gone(feed: FeedScenario) -> None:
    await feed.sign_in(*AUTHORS, "fay")
    await follow(feed, *AUTHORS)
    original = await feed.post("ann")
    first, second, third = [await repost(feed, author, original) for author in AUTHORS]
    assert await read(feed) == [first.timestamp]
    await feed.stores.posts.undo_repost("cyd", original.key)
    assert await read(feed) == [second.timestamp]
    own = await feed.stores.posts.repost("bob", original)
    assert await read(feed) == [second.timestamp]
    await feed.stores.relations.block(feed.organization_id, "bob", "dan")
    assert await read(feed) == [third.timestamp]
    await feed.stores.follows.unfollow(FollowPair(feed.organization_id, "bob", "eve"))
    assert await read(feed) == [own.timestamp]
    await follow(feed, "fay")
    between = [(await feed.post("bob")).timestamp for _ in range(4)]
    await repost(feed, "fay", original)
    assert await read(feed) == [own.timestamp, *between]


async def test_repost_of_a_post_in_the_feed_does_not_show(feed: FeedScenario) -> None:
    await feed.sign_in("cyd")
    await follow(feed, "ann", "cyd")
    original = await feed.post("ann")
    await feed.stores.feeds.push(original, ["bob"])
    reposted = await repost(feed, "cyd", original)
    await repost(feed, "bob", original)
    assert await read(feed) == [original.timestamp]
    own = await feed.post("bob")
    await repost(feed, "cyd", own)
    assert await read(feed) == [original.timestamp, own.timestamp]
    await feed.stores.follows.unfollow(FollowPair(feed.organization_id, "bob", "ann"))
    assert await read(feed) == [reposted.timestamp, own.timestamp]
    await feed.stores.posts.delete(original.key, Moderator("ann"))
    assert await read(feed) == [own.timestamp]


async def test_repost_of_a_hidden_reply_shows(feed: FeedScenario) -> None:
    """The feed has an item of the reply, which the reader does not see: the replied person is not followed."""
    await feed.sign_in("cyd", "dan")
    await follow(feed, "ann", "cyd")
    question = await feed.post("dan")
    reply = await feed.post("ann", parent=question.as_parent(PostParentKind.REPLY))
    await feed.stores.feeds.push(reply, ["bob"])
    reposted = await repost(feed, "cyd", reply)
    assert await read(feed) == [reposted.timestamp]
    await follow(feed, "dan")
    assert await read(feed) == [question.timestamp, reply.timestamp]


async def test_posts_and_reposts_that_are_merged_count(feed: FeedScenario) -> None:
    await feed.sign_in(*AUTHORS)
    await follow(feed, *AUTHORS)
    original = await create_merged(feed, "ann")
    parent = original.as_parent(PostParentKind.REPOST)
    first = await create_merged(feed, "cyd", parent)
    await repost(feed, "dan", original)
    await create_merged(feed, "eve", parent)
    assert await read(feed) == [first.timestamp]
    await follow(feed, "ann")
    assert await read(feed) == [original.timestamp]


async def test_repost_of_a_post_that_left_the_feed_shows(feed: FeedScenario) -> None:
    """Ann's post was pushed and trimmed, before so many people followed her that newer posts are merged."""
    await feed.sign_in("cyd")
    await follow(feed, "ann", "cyd")
    original = await feed.post("ann")
    newer = await create_merged(feed, "ann")
    reposted = await repost(feed, "cyd", original)
    assert await read(feed) == [newer.timestamp, reposted.timestamp]


async def test_backfilled_and_rebuilt_reposts_show_once(feed: FeedScenario) -> None:
    await feed.sign_in(*AUTHORS)
    original = await feed.post("ann")
    first = await feed.stores.posts.repost("cyd", original)
    between = [(await feed.post("dan")).timestamp for _ in range(4)]
    for author in ("dan", "eve"):
        await feed.stores.posts.repost(author, original)
    await follow(feed, *AUTHORS)
    assert await read(feed) == [first.timestamp, *between]
    await feed.stores.mongo["feed_items"].delete_many({"_id.u": "bob"})
    await feed.stores.home.rebuild(feed.organization_id, "bob")
    assert await read(feed) == [first.timestamp, *between]


async def test_pages_of_many_reposts_are_full_and_repeat_nothing(feed: FeedScenario) -> None:
    await feed.sign_in(*AUTHORS)
    await follow(feed, *AUTHORS)
    rng = random.Random(5)
    originals = [await feed.post("ann") for _ in range(12)]
    first: dict[int, int] = {}
    for author, original in rng.sample([(author, each) for author in AUTHORS for each in originals], 36):
        post = await repost(feed, author, original)
        first.setdefault(original.timestamp, post.timestamp)
    for limit in (1, 3, 7, 50):
        assert await read_by_pages(feed, limit) == sorted(first.values())


async def test_concurrent_reposts_show_once(
    feed: FeedScenario, mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    """Ten people repost at once, in two processes. However often Bob reads meanwhile, no page has the post twice."""
    people = [f"author-{n}" for n in range(10)]
    await feed.sign_in(*people)
    await follow(feed, *people)
    original = await feed.post("ann")
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver) as stores:
        scenarios = [feed, feed.with_stores(stores)]
        reposting = asyncio.gather(*(repost(scenarios[n % 2], each, original) for n, each in enumerate(people)))
        while not reposting.done():
            assert len(await read_by_pages(feed, 50)) <= 1
            await asyncio.sleep(0)
        reposts = await reposting
    assert await read(feed) == [min(post.timestamp for post in reposts)]
