"""Follows: exact counts, no follow across a block, and a feed that matches the last of concurrent changes."""

import asyncio
from contextlib import suppress

import pytest

from storage.errors import Conflict, DomainError, Forbidden
from storage.feed.follows import FollowPair
from storage.feed.records import home_stream
from storage.feed.trimming import MAX_ITEMS
from storage.identity.mutes import HiddenSubjects
from storage.identity.records import user_stream
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario, gather_list
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


def pair(feed: FeedScenario, follower: str = "bob", followee: str = "ann") -> FollowPair:
    """Returns a follower and a followee. By default, Bob follows Ann."""
    return FollowPair(feed.organization_id, follower, followee)


async def feed_timestamps(feed: FeedScenario, reader: str = "bob") -> list[int]:
    items = await feed.documents("feed_items")
    return [item["_id"]["ts"] for item in items if item["_id"]["u"] == reader]


async def counts(feed: FeedScenario, user: str) -> tuple[int, int]:
    """Returns how many followers a user has, and how many users the user follows."""
    record = await feed.stores.users.get(feed.organization_id, user)
    return record.follower_count, record.following_count


async def test_concurrent_follows_are_all_counted(feed: FeedScenario, open_process: OpenStores) -> None:
    names = [f"reader-{n}" for n in range(40)]
    await feed.sign_in(*names)
    async with open_process() as stores:
        process_feeds = [feed, feed.with_stores(stores)]
        await gather_list(
            *(
                process_feed.stores.follows.follow(pair(process_feed, name))
                for name in names
                for process_feed in process_feeds
            )
        )
        assert await counts(feed, "ann") == (40, 0)
        await gather_list(
            *(
                process_feed.stores.follows.unfollow(pair(process_feed, name))
                for name in names[:15]
                for process_feed in process_feeds
            )
        )
    assert await counts(feed, "ann") == (25, 0)
    assert [await counts(feed, names[n]) for n in (0, 39)] == [(0, 0), (0, 1)]


async def test_follow_and_rebuild_add_no_post_of_another_organization(feed: FeedScenario) -> None:
    other = FeedScenario(feed.stores)
    await other.sign_in("ann", "bob")
    await other.post()
    await other.stores.follows.follow(pair(other, "bob", "ann"))
    await other.wait_for_relays(*(home_stream(other.organization_id, reader) for reader in ("ann", "bob")))
    other_items = await other.documents("feed_items")
    await feed.stores.follows.follow(pair(feed))
    await feed.stores.home.rebuild(feed.organization_id, "bob")
    assert await feed_timestamps(feed) == []
    post = await feed.post()
    await feed.stores.home.rebuild(feed.organization_id, "bob")
    assert await feed_timestamps(feed) == [post.timestamp]
    await feed.stores.follows.unfollow(pair(feed))
    assert await feed_timestamps(feed) == []
    assert await other.documents("feed_items") == other_items


async def test_follow_backfills_posts_and_unfollow_removes_them(feed: FeedScenario) -> None:
    posts = [await feed.post() for _ in range(3)]
    own_post = await feed.post("bob")
    await feed.stores.follows.follow(pair(feed))
    assert await feed_timestamps(feed) == [*(post.timestamp for post in posts), own_post.timestamp]
    await feed.stores.follows.unfollow(pair(feed))
    assert await feed_timestamps(feed) == [own_post.timestamp]


async def test_repeated_follow_notifies_once(feed: FeedScenario) -> None:
    for _ in range(3):
        await feed.stores.follows.follow(pair(feed))
        await feed.stores.follows.unfollow(pair(feed))
    assert len(await feed.events(user_stream(feed.organization_id, "ann"))) == 1
    page = await feed.stores.notifications.page(
        feed.organization_id, "ann", timeline_range(latest=NOW), HiddenSubjects()
    )
    assert [(item.kind.value, item.actor_id) for item in page.items] == [("FOLLOW", "bob")]


async def test_follow_across_block_is_refused(feed: FeedScenario) -> None:
    await feed.stores.relations.block(feed.organization_id, "ann", "bob")
    with pytest.raises(Forbidden):
        await feed.stores.follows.follow(pair(feed))
    with pytest.raises(Conflict):
        await feed.stores.follows.follow(pair(feed, "ann", "bob"))
    assert [await counts(feed, user) for user in ("ann", "bob")] == [(0, 0), (0, 0)]


async def test_concurrent_follow_and_block_never_both_stay(feed: FeedScenario, open_process: OpenStores) -> None:
    async with open_process() as stores:
        for n in range(15):
            name = f"racer-{n}"
            await feed.sign_in(name)
            following = feed.stores.follows.follow(pair(feed, name))
            blocking = stores.relations.block(feed.organization_id, "ann", name)
            await asyncio.gather(following, blocking, return_exceptions=True)
            assert not await stores.relations.follows(feed.organization_id, name, "ann")
    assert await counts(feed, "ann") == (0, 0)


async def test_block_ends_both_follows_and_clears_both_feeds(feed: FeedScenario) -> None:
    await feed.post("ann")
    await feed.post("bob")
    for one, other in (("ann", "bob"), ("bob", "ann")):
        await feed.stores.follows.follow(pair(feed, one, other))
    assert [len(await feed_timestamps(feed, user)) for user in ("ann", "bob")] == [2, 2]
    await feed.stores.relations.block(feed.organization_id, "ann", "bob")
    for pending in await feed.stores.follows.pending_changes(-60, 100):
        await feed.stores.follows.apply_change(pending)
    assert [len(await feed_timestamps(feed, user)) for user in ("ann", "bob")] == [1, 1]
    assert [await counts(feed, user) for user in ("ann", "bob")] == [(0, 0), (0, 0)]


async def test_concurrently_applied_changes_match_the_last_change(feed: FeedScenario, open_process: OpenStores) -> None:
    posts = [(await feed.post()).timestamp for _ in range(5)]
    async with open_process() as stores:
        other = feed.with_stores(stores)
        for is_followed_at_end in (True, False) * 4:

            async def alternate(process_feed: FeedScenario) -> None:
                for n in range(4):
                    with suppress(DomainError):
                        await (process_feed.stores.follows.follow if n % 2 else process_feed.stores.follows.unfollow)(
                            pair(process_feed)
                        )

            await gather_list(
                alternate(feed),
                alternate(other),
                *(process_feed.stores.follows.apply_change(pair(process_feed)) for process_feed in (feed, other)),
            )
            await (feed.stores.follows.follow if is_followed_at_end else feed.stores.follows.unfollow)(pair(feed))
            assert await feed_timestamps(feed) == (posts if is_followed_at_end else [])


async def test_change_of_dead_process_is_applied_by_sweep(feed: FeedScenario) -> None:
    await feed.post()
    await feed.stores.follows.follow(pair(feed))
    await feed.stores.mongo["feed_items"].delete_many({"_id.o": feed.organization_id, "_id.u": "bob"})
    await feed.stores.mongo["follow_changes"].update_one(
        {"_id": pair(feed).document_id}, [{"$set": {"at": "$$NOW"}}], upsert=True
    )
    assert pair(feed) not in await feed.stores.follows.pending_changes(3, 100)
    await feed.backdate("follow_changes", "at")
    assert pair(feed) in await feed.stores.follows.pending_changes(3, 100)
    await feed.stores.follows.apply_change(pair(feed))
    assert len(await feed_timestamps(feed)) == 1
    assert pair(feed) not in await feed.stores.follows.pending_changes(-60, 100)


async def test_backfill_trims_feed_to_newest_800(feed: FeedScenario) -> None:
    org, owner = feed.organization_id, {"o": feed.organization_id, "u": "bob"}
    posts = [{"_id": {"o": org, "ts": 2 * n}, "author": "ann", "text": "", "merged": False} for n in range(100)]
    await feed.stores.mongo["posts"].insert_many(posts)
    existing = [{"_id": {**owner, "ts": 2 * n + 1}, "author": "cyd"} for n in range(MAX_ITEMS)]
    await feed.stores.mongo["feed_items"].insert_many(existing)
    await feed.stores.follows.follow(pair(feed))
    newest = sorted([*range(0, 200, 2), *range(1, 2 * MAX_ITEMS, 2)])[-MAX_ITEMS:]
    assert await feed_timestamps(feed) == newest
