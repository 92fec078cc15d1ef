"""Pushes into feeds: one item per reader, isolated failures, trimming to 800, and events for subscribed readers."""

import pytest

from storage.chat.roles import Moderator
from storage.feed.feeds import _readers_to_trim
from storage.feed.follows import FollowPair
from storage.feed.records import Post, home_stream
from storage.feed.trimming import MAX_ITEMS, TRIM_EVERY
from storage.ids import PostKey
from storage.streams.sequencer import MAX_BATCH
from tests.storage.feed.feed_scenario import FeedScenario, gather_list

pytestmark = pytest.mark.anyio

READERS = [f"reader-{n:03}" for n in range(40)]


async def readers_of(feed: FeedScenario, post: Post) -> list[str]:
    """Returns the users whose feeds hold the post, without its author."""
    items = await feed.documents("feed_items")
    return sorted(
        item["_id"]["u"] for item in items if item["_id"]["ts"] == post.timestamp and item["_id"]["u"] != "ann"
    )


async def test_repeated_push_inserts_one_item_per_reader(feed: FeedScenario) -> None:
    post = await feed.post()
    push = feed.stores.feeds.push
    assert await gather_list(*(push(post, READERS) for _ in range(5))) == [set()] * 5
    assert await readers_of(feed, post) == READERS


async def test_failed_insert_affects_no_other_reader(feed: FeedScenario) -> None:
    post = await feed.post()
    await feed.refuse_writes_of("feed_items", READERS[3], READERS[7])
    try:
        failed = await feed.stores.feeds.push(post, READERS)
    finally:
        await feed.refuse_writes_of("feed_items", None)
    assert failed == {READERS[3], READERS[7]}
    assert await readers_of(feed, post) == [each for each in READERS if each not in failed]


async def test_followers_are_read_in_chunks_by_id(feed: FeedScenario) -> None:
    await feed.sign_in(*READERS[:5])
    for name in READERS[:5]:
        await feed.stores.follows.follow(FollowPair(feed.organization_id, name, "ann"))
    chunk = await feed.stores.feeds.followers(feed.organization_id, "ann", READERS[1])
    assert (chunk.follower_ids, chunk.after, chunk.is_last) == (READERS[2:5], READERS[4], True)
    empty = await feed.stores.feeds.followers(feed.organization_id, "ann", READERS[4])
    assert (empty.follower_ids, empty.after, empty.is_last) == ([], READERS[4], True)


async def test_absent_readers_are_left_out(feed: FeedScenario) -> None:
    org, feeds = feed.organization_id, feed.stores.feeds
    for reader in READERS[:3]:
        await feed.stores.home.record_read(org, reader)
    await feed.backdate("feeds", "seen_at", {"_id.u": READERS[1]}, days=31)
    await feed.backdate("feeds", "seen_at", {"_id.u": READERS[2]}, days=29)
    assert await feeds.without_absent(org, READERS[:4]) == [READERS[0], READERS[2], READERS[3]]


async def test_pushed_feed_is_trimmed_to_newest_800(feed: FeedScenario) -> None:
    owner = {"o": feed.organization_id, "u": "bob"}
    items = [{"_id": {**owner, "ts": ts}, "author": "ann"} for ts in range(1, MAX_ITEMS + 51)]
    await feed.stores.mongo["feed_items"].insert_many(items)
    for _ in range(2):
        await feed.stores.feeds.trim(feed.organization_id, "bob")
        timestamps = [item["_id"]["ts"] for item in await feed.documents("feed_items")]
        assert timestamps == list(range(51, MAX_ITEMS + 51))


def test_each_feed_is_trimmed_once_in_64_consecutive_posts() -> None:
    keys = [PostKey("acme", timestamp) for timestamp in range(1000, 1000 + TRIM_EVERY)]
    readers = [f"reader-{n:03}" for n in range(3 * TRIM_EVERY + 1)]
    trimmed = [_readers_to_trim(key, readers) for key in keys]
    assert sorted(reader for readers_of_post in trimmed for reader in readers_of_post) == readers
    assert {len(readers_of_post) for readers_of_post in trimmed} == {3, 4}


async def test_subscribed_reader_gets_arrival_and_removal_once(feed: FeedScenario) -> None:
    post, org = await feed.post(), feed.organization_id
    subscribed = READERS[:3]
    await feed.subscribe(*subscribed)
    for _ in range(2):
        await feed.stores.feeds.push(post, READERS)
    for reader in subscribed:
        events = await feed.events(home_stream(org, reader))
        assert [(event.kind, event.ref) for event in events] == [("PostArrived", post.timestamp)]
    await feed.stores.posts.delete(post.key, Moderator("ann"))
    for _ in range(2):
        await feed.stores.feeds.remove(post.key, READERS)
    for reader in subscribed:
        assert [event.kind for event in await feed.events(home_stream(org, reader))] == [
            "PostArrived",
            "PostRemoved",
        ]
    assert await readers_of(feed, post) == []
    others = [home_stream(org, reader).name for reader in READERS[3:]]
    assert await feed.stores.mongo["streams"].count_documents({"_id": {"$in": others}}) == 0


async def test_author_own_feed_is_trimmed_to_newest_800(feed: FeedScenario) -> None:
    owner = {"o": feed.organization_id, "u": "ann"}
    items = [{"_id": {**owner, "ts": ts}, "author": "ann"} for ts in range(1, MAX_ITEMS + 51)]
    await feed.stores.mongo["feed_items"].insert_many(items)
    # The timestamps of one batch are consecutive, so one of them triggers trimming.
    posts = await gather_list(*(feed.post() for _ in range(MAX_BATCH)))
    assert MAX_BATCH >= TRIM_EVERY
    await feed.wait_for_relays(home_stream(feed.organization_id, "ann"))
    timestamps = [item["_id"]["ts"] for item in await feed.documents("feed_items")]
    assert len(timestamps) == MAX_ITEMS
    assert timestamps[-len(posts) :] == sorted(post.timestamp for post in posts)
