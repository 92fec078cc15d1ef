"""Pushing into feeds: each reader once, each failure alone, the newest 800 kept, and told where somebody listens."""

import pytest

from storage.feed.follows import FollowPair
from storage.feed.records import Post, home_stream
from storage.feed.trimming import MAX_ITEMS, TRIM_EVERY
from storage.streams.sequencer import MAX_BATCH
from tests.storage.feed.hall import Hall, together

pytestmark = pytest.mark.anyio

READERS = [f"reader-{n:03}" for n in range(40)]


async def readers_of(hall: Hall, post: Post) -> list[str]:
    rows = await hall.documents("feed_items")
    return sorted(row["_id"]["u"] for row in rows if row["_id"]["ts"] == post.timestamp and row["_id"]["u"] != "ann")


async def test_each_reader_gets_it_once_however_often_it_is_pushed(hall: Hall) -> None:
    post = await hall.post()
    push = hall.stores.feeds.push
    assert await together(*(push(post.key, "ann", READERS) for _ in range(5))) == [set()] * 5
    assert await readers_of(hall, post) == READERS


async def test_a_reader_whose_insert_fails_keeps_nobody_else_from_it(hall: Hall) -> None:
    post = await hall.post()
    await hall.refuse("feed_items", READERS[3], READERS[7])
    try:
        failed = await hall.stores.feeds.push(post.key, "ann", READERS)
    finally:
        await hall.refuse("feed_items", None)
    assert failed == {READERS[3], READERS[7]}
    assert await readers_of(hall, post) == [each for each in READERS if each not in failed]


async def test_followers_come_in_chunks_by_id(hall: Hall) -> None:
    await hall.enter(*READERS[:5])
    for name in READERS[:5]:
        await hall.stores.follows.follow(FollowPair(hall.organization_id, name, "ann"))
    chunk = await hall.stores.feeds.followers(hall.organization_id, "ann", READERS[1])
    assert (chunk.follower_ids, chunk.after, chunk.is_last) == (READERS[2:5], READERS[4], True)
    empty = await hall.stores.feeds.followers(hall.organization_id, "ann", READERS[4])
    assert (empty.follower_ids, empty.after, empty.is_last) == ([], READERS[4], True)


async def test_readers_away_for_30_days_and_those_who_blocked_are_left_out(hall: Hall) -> None:
    org, feeds = hall.organization_id, hall.stores.feeds
    for reader in READERS[:3]:
        await hall.stores.home.record_visit(org, reader)
    await hall.expire("feeds", "seen_at", {"_id.u": READERS[1]}, days=31)
    await hall.expire("feeds", "seen_at", {"_id.u": READERS[2]}, days=29)
    assert await feeds.without_absent(org, READERS[:4]) == [READERS[0], READERS[2], READERS[3]]
    await hall.enter(READERS[0])
    await hall.stores.relations.block(org, READERS[0], "ann")
    assert await feeds.without_blockers(org, "ann", READERS[:4]) == READERS[1:4]


async def test_a_feed_keeps_its_newest_800_and_each_comes_round(hall: Hall) -> None:
    owner = {"o": hall.organization_id, "u": "bob"}
    items = [{"_id": {**owner, "ts": ts}, "author": "ann"} for ts in range(1, MAX_ITEMS + 51)]
    await hall.stores.mongo["feed_items"].insert_many(items)
    for _ in range(2):
        await hall.stores.feeds.trim(hall.organization_id, "bob")
        kept = [row["_id"]["ts"] for row in await hall.documents("feed_items")]
        assert kept == list(range(51, MAX_ITEMS + 51))
    due = [n for n in range(TRIM_EVERY) for _ in READERS[n::TRIM_EVERY]]
    assert len(due) == len(READERS)


async def test_who_listens_is_told_once_of_what_came_and_of_what_left(hall: Hall) -> None:
    post, org = await hall.post(), hall.organization_id
    listening = READERS[:3]
    for reader in listening:
        await hall.stores.events.head(home_stream(org, reader))
    for _ in range(2):
        await hall.stores.feeds.push(post.key, "ann", READERS)
    for reader in listening:
        events = await hall.events(home_stream(org, reader))
        assert [(event.kind, event.ref) for event in events] == [("PostArrived", post.timestamp)]
    await hall.stores.posts.delete(post.key, "ann", False)
    for _ in range(2):
        await hall.stores.feeds.remove(post.key, READERS)
    for reader in listening:
        assert [event.kind for event in await hall.events(home_stream(org, reader))] == ["PostArrived", "PostRemoved"]
    assert await readers_of(hall, post) == []
    others = [home_stream(org, reader).name for reader in READERS[3:]]
    assert await hall.stores.mongo["streams"].count_documents({"_id": {"$in": others}}) == 0


async def test_an_authors_own_feed_keeps_its_newest_800(hall: Hall) -> None:
    owner = {"o": hall.organization_id, "u": "ann"}
    old = [{"_id": {**owner, "ts": ts}, "author": "ann"} for ts in range(1, MAX_ITEMS + 51)]
    await hall.stores.mongo["feed_items"].insert_many(old)
    # One batch has timestamps in a row, one of which is due.
    posts = await together(*(hall.post() for _ in range(MAX_BATCH)))
    assert MAX_BATCH >= TRIM_EVERY
    await hall.settled(home_stream(hall.organization_id, "ann"))
    kept = [row["_id"]["ts"] for row in await hall.documents("feed_items")]
    assert len(kept) == MAX_ITEMS
    assert kept[-len(posts) :] == sorted(post.timestamp for post in posts)
