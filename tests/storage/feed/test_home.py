"""Reads of home feeds with pushed, merged and rebuilt posts: a page is short only where the feed ends."""

import asyncio
import random
from dataclasses import replace

import pytest

import storage.feed.home
from storage.chat.roles import Moderator
from storage.feed.changes import CreatePost
from storage.feed.follows import FollowPair
from storage.feed.home import HomeFeedState
from storage.feed.posts import NO_AUTHORS
from storage.feed.records import Post, author_stream
from storage.feed.trimming import MAX_ITEMS
from storage.ids import PostKey
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario, load_reader
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
        await feed.stores.feeds.push(post, ["bob"])


async def read(
    feed: FeedScenario, arguments: PageArguments, blocked: frozenset[str] = NO_AUTHORS
) -> tuple[object, list[int]]:
    """Reads a page of Bob's feed. Returns its summary and its timestamps."""
    reader = await load_reader(feed.stores.home, feed.organization_id, "bob", blocked)
    page = await feed.stores.home.page(reader, arguments.range)
    return actual_page(page, [post.timestamp for post in page.items]), [post.timestamp for post in page.items]


@pytest.mark.parametrize("few_merged_authors", [storage.feed.home.FEW_MERGED_AUTHORS, 1])
async def test_home_pages_follow_timeline_rule(
    feed: FeedScenario, few_merged_authors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader's merged authors are found among all merged authors if these are few, and else among the followees."""
    monkeypatch.setattr(storage.feed.home, "FEW_MERGED_AUTHORS", few_merged_authors)
    monkeypatch.setattr(storage.feed.home, "EXTRA_ITEMS", 0)
    await feed.sign_in("cyd", "dan", "eve", "fay")
    await follow(feed, "ann", "cyd", "dan", "eve")
    visible: list[int] = []
    for n in range(24):
        author = ("ann", "cyd", "dan", "eve", "fay", "bob")[n % 6]
        if author in ("cyd", "eve"):
            post = await create_merged_post(feed, author)
        else:
            post = await feed.post(author)
            await push(feed, post)
        if n % 5 == 0:
            await feed.stores.posts.delete(post.key, Moderator(author))
        elif author not in ("dan", "eve", "fay"):
            visible.append(post.timestamp)
    blocked = frozenset({"dan", "eve"})
    rng = random.Random(7)
    near = [timestamp + step for timestamp in visible for step in (-1, 0, 1)]
    for _ in range(40):
        oldest = rng.choice([None, rng.choice(near)])
        latest = rng.choice([rng.choice(near), NOW] if oldest is None else [None, rng.choice(near), NOW])
        arguments = PageArguments(oldest, latest, rng.randint(1, 9), rng.choice([True, False]))
        assert (await read(feed, arguments, blocked))[0] == expected_page(visible, arguments), arguments


async def test_home_pages_are_never_short_during_changes(feed: FeedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with too few posts is the last, so a reader who pages to the end would miss the oldest posts."""
    monkeypatch.setattr(storage.feed.home, "EXTRA_ITEMS", 0)
    authors = [f"author-{n}" for n in range(6)]
    await feed.sign_in(*authors)
    await follow(feed, *authors)
    oldest = [await feed.post(authors[0]) for _ in range(4)]
    await push(feed, *oldest)
    for author in authors[1:] * 4:
        await push(feed, await feed.post(author))
    has_finished = asyncio.Event()
    changing = asyncio.create_task(change_feed(feed, authors[1:], has_finished))
    try:
        for limit in (1, 3, 7):
            timestamps = await read_to_the_end(feed, limit)
            assert timestamps == sorted(set(timestamps), reverse=True)
            assert timestamps[-4:] == [post.timestamp for post in reversed(oldest)]
    finally:
        has_finished.set()
        await changing


async def change_feed(feed: FeedScenario, authors: list[str], has_finished: asyncio.Event) -> None:
    """Posts, deletes, blocks and unblocks until the event is set."""
    rng = random.Random(3)
    while not has_finished.is_set():
        post = await feed.post(rng.choice(authors))
        await push(feed, post)
        if rng.random() < 0.3:
            await feed.stores.posts.delete(post.key, Moderator(post.author_id))
        if rng.random() < 0.1:
            author = rng.choice(authors)
            await feed.stores.relations.block(feed.organization_id, "bob", author)
            await feed.stores.relations.unblock(feed.organization_id, "bob", author)
            await follow(feed, author)
        await asyncio.sleep(0.01)


async def read_to_the_end(feed: FeedScenario, limit: int) -> list[int]:
    """Returns the timestamps of all pages of Bob's feed. Asserts that only the last has fewer posts than the limit."""
    timestamps: list[int] = []
    page_range = timeline_range(latest=NOW, limit=limit)
    while True:
        blocked = await feed.stores.relations.blocked_users_of(feed.organization_id, "bob")
        reader = await load_reader(feed.stores.home, feed.organization_id, "bob", blocked)
        page = await feed.stores.home.page(reader, page_range)
        timestamps += [post.timestamp for post in page.items]
        assert len(page.items) == limit or not page.has_older
        if page.oldest is None or not page.has_older:
            return timestamps
        page_range = timeline_range(latest=page.oldest, limit=limit, inclusive=False)


async def test_late_item_after_unfollow_is_hidden(feed: FeedScenario) -> None:
    await follow(feed, "ann")
    post, deleted = await feed.post(), await feed.post()
    await push(feed, post)
    await feed.stores.posts.delete(deleted.key, Moderator("ann"))
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


async def add_posts(feed: FeedScenario, author: str, timestamps: range) -> None:
    """Stores posts without pushing them."""
    fields = {"author": author, "text": "", "merged": False}
    await feed.stores.mongo["posts"].insert_many(
        {"_id": {"o": feed.organization_id, "ts": ts}, **fields} for ts in timestamps
    )


async def read_until_ready(feed: FeedScenario, limit: int = 999) -> tuple[list[int], int]:
    """Reads Bob's feed, and rebuilds it as often as a read asks for it. Returns the timestamps and the rebuilds."""
    home, org = feed.stores.home, feed.organization_id
    for rebuilds in range(5):
        visit = await home.record_visit(org, "bob")
        reader = await load_reader(home, org, "bob", NO_AUTHORS)
        page = await home.page(reader, timeline_range(latest=NOW, limit=limit))
        if visit.state is HomeFeedState.READY and not await home.begin_refill(reader, page, visit):
            return [post.timestamp for post in page.items], rebuilds
        await home.rebuild(org, "bob")
    raise AssertionError("The feed is rebuilt at every read.")


@pytest.mark.parametrize("removal", ["unfollow", "block"])
async def test_feed_emptied_by_removal_shows_older_posts(feed: FeedScenario, removal: str) -> None:
    await feed.sign_in("cyd")
    await add_posts(feed, "cyd", range(1, 21))
    await add_posts(feed, "ann", range(101, 101 + MAX_ITEMS + 150))
    await follow(feed, "cyd", "ann")
    assert len(await feed.documents("feed_items")) == MAX_ITEMS
    pair = FollowPair(feed.organization_id, "bob", "ann")
    if removal == "unfollow":
        await feed.stores.follows.unfollow(pair)
    else:
        await feed.stores.relations.block(feed.organization_id, "bob", "ann")
        await feed.stores.follows.apply_change(pair)
    assert (feed.organization_id, "bob") in await feed.stores.home.readers_to_rebuild(1000)
    assert await read_until_ready(feed) == (list(range(20, 0, -1)), 1)


async def test_feed_short_of_few_posts_refills_at_its_end_only(feed: FeedScenario) -> None:
    await feed.sign_in("cyd")
    await add_posts(feed, "ann", range(1, MAX_ITEMS + 101))
    await add_posts(feed, "cyd", range(MAX_ITEMS + 101, MAX_ITEMS + 121))
    await follow(feed, "cyd", "ann")
    await feed.stores.follows.unfollow(FollowPair(feed.organization_id, "bob", "cyd"))
    assert await feed.stores.home.readers_to_rebuild(1000) == []
    assert (await read_until_ready(feed, 50))[1] == 0
    assert await read_until_ready(feed) == (list(range(MAX_ITEMS + 100, 100, -1)), 1)
    assert (await read_until_ready(feed))[1] == 0


async def test_feed_of_few_posts_is_never_refilled(feed: FeedScenario) -> None:
    await add_posts(feed, "ann", range(1, 31))
    await follow(feed, "ann")
    await feed.stores.feeds.remove(PostKey(feed.organization_id, 3), ["bob"])
    assert (await read_until_ready(feed))[1] == 0


async def test_feed_of_earlier_release_refills_once(feed: FeedScenario) -> None:
    """Feeds of earlier releases lack `complete_from`."""
    await add_posts(feed, "ann", range(1, 31))
    await follow(feed, "ann")
    await feed.stores.mongo["feed_items"].delete_many({"_id.o": feed.organization_id})
    await feed.stores.mongo["feeds"].update_many({}, {"$unset": {"complete_from": 1}})
    assert await read_until_ready(feed) == (list(range(30, 0, -1)), 1)
    assert (await read_until_ready(feed))[1] == 0


async def test_gap_below_backfilled_posts_is_refilled(feed: FeedScenario) -> None:
    """The feed holds older posts of a new followee than those that it lost to trimming and removals."""
    await feed.sign_in("cyd")
    await add_posts(feed, "ann", range(101, 101 + MAX_ITEMS + 100))
    await add_posts(feed, "cyd", range(1, 101))
    await follow(feed, "ann")
    newest = range(301, 101 + MAX_ITEMS + 100)
    await feed.stores.mongo["posts"].delete_many({"_id.o": feed.organization_id, "_id.ts": {"$gte": newest.start}})
    await feed.stores.mongo["feed_items"].delete_many({"_id.o": feed.organization_id, "_id.ts": {"$gte": newest.start}})
    await follow(feed, "cyd")
    assert await read_until_ready(feed, 150) == (list(range(300, 150, -1)), 1)
    assert await read_until_ready(feed) == (list(range(300, 0, -1)), 0)


async def test_feed_with_items_of_deleted_posts_is_refilled(feed: FeedScenario) -> None:
    """A worker that was paused inserted the items again after the removal."""
    await add_posts(feed, "ann", range(1, MAX_ITEMS + 51))
    await follow(feed, "ann")
    newest = {"_id.o": feed.organization_id, "_id.ts": {"$gt": MAX_ITEMS + 40}}
    await feed.stores.mongo["posts"].update_many(newest, [{"$set": {"deleted_at": "$$NOW"}}])
    assert await read_until_ready(feed) == (list(range(MAX_ITEMS + 40, 40, -1)), 1)


async def test_rebuilt_feed_keeps_own_merged_posts(feed: FeedScenario) -> None:
    await feed.sign_in("cyd")
    own = await create_merged_post(feed, "bob")
    await feed.stores.mongo["feed_items"].delete_many({"_id.o": feed.organization_id})
    await feed.stores.home.rebuild(feed.organization_id, "bob")
    assert (await read(feed, PageArguments(None, NOW, 10, True)))[1] == [own.timestamp]


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
