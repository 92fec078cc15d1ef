"""Follows: counted exactly, never across a block, and the feed ends as the last of them says, however they race."""

import asyncio
from contextlib import suppress

import pytest

from storage.errors import Conflict, DomainError, Forbidden
from storage.feed.follows import FollowPair
from storage.feed.trimming import MAX_ITEMS
from storage.identity.records import user_stream
from storage.timeline import NOW, timeline_range
from tests.storage.feed.hall import Hall, together
from tests.storage.places import OpenStores

pytestmark = pytest.mark.anyio

NO_AUTHORS: frozenset[str] = frozenset()


def pair(hall: Hall, follower: str = "bob", followee: str = "ann") -> FollowPair:
    return FollowPair(hall.organization_id, follower, followee)


async def items(hall: Hall, reader: str = "bob") -> list[int]:
    return [row["_id"]["ts"] for row in await hall.documents("feed_items") if row["_id"]["u"] == reader]


async def counts(hall: Hall, user: str) -> tuple[int, int]:
    found = await hall.stores.users.get(hall.organization_id, user)
    return found.follower_count, found.following_count


async def test_a_hundred_follow_at_once_in_two_processes_and_all_are_counted(hall: Hall, another: OpenStores) -> None:
    names = [f"reader-{n}" for n in range(40)]
    await hall.enter(*names)
    async with another() as stores:
        halls = [hall, hall.through(stores)]
        await together(*(h.stores.follows.follow(pair(h, name)) for name in names for h in halls))
        assert await counts(hall, "ann") == (40, 0)
        await together(*(h.stores.follows.unfollow(pair(h, name)) for name in names[:15] for h in halls))
    assert await counts(hall, "ann") == (25, 0)
    assert [await counts(hall, names[n]) for n in (0, 39)] == [(0, 0), (0, 1)]


async def test_a_follow_brings_the_posts_and_an_unfollow_takes_them_away(hall: Hall) -> None:
    posts = [await hall.post() for _ in range(3)]
    own = await hall.post("bob")
    await hall.stores.follows.follow(pair(hall))
    assert await items(hall) == [*(post.timestamp for post in posts), own.timestamp]
    await hall.stores.follows.unfollow(pair(hall))
    assert await items(hall) == [own.timestamp]


async def test_a_follow_is_told_once_however_often_it_begins_anew(hall: Hall) -> None:
    for _ in range(3):
        await hall.stores.follows.follow(pair(hall))
        await hall.stores.follows.unfollow(pair(hall))
    assert len(await hall.events(user_stream(hall.organization_id, "ann"))) == 1
    page = await hall.stores.notifications.page(hall.organization_id, "ann", timeline_range(latest=NOW), NO_AUTHORS)
    assert [(told.kind.value, told.actor_id) for told in page.items] == [("FOLLOW", "bob")]


async def test_nobody_follows_across_a_block(hall: Hall) -> None:
    await hall.stores.relations.block(hall.organization_id, "ann", "bob")
    with pytest.raises(Forbidden):
        await hall.stores.follows.follow(pair(hall))
    with pytest.raises(Conflict):
        await hall.stores.follows.follow(pair(hall, "ann", "bob"))
    assert [await counts(hall, user) for user in ("ann", "bob")] == [(0, 0), (0, 0)]


async def test_a_follow_and_a_block_at_the_same_moment_never_both_stay(hall: Hall, another: OpenStores) -> None:
    async with another() as stores:
        for n in range(15):
            name = f"racer-{n}"
            await hall.enter(name)
            following = hall.stores.follows.follow(pair(hall, name))
            blocking = stores.relations.block(hall.organization_id, "ann", name)
            await asyncio.gather(following, blocking, return_exceptions=True)
            assert not await stores.relations.follows(hall.organization_id, name, "ann")
    assert await counts(hall, "ann") == (0, 0)


async def test_a_block_ends_follows_both_ways_and_empties_both_feeds(hall: Hall) -> None:
    await hall.post("ann")
    await hall.post("bob")
    for one, other in (("ann", "bob"), ("bob", "ann")):
        await hall.stores.follows.follow(pair(hall, one, other))
    assert [len(await items(hall, user)) for user in ("ann", "bob")] == [2, 2]
    await hall.stores.relations.block(hall.organization_id, "ann", "bob")
    for waiting in await hall.stores.follows.unsettled(-60, 100):
        await hall.stores.follows.settle(waiting)
    assert [len(await items(hall, user)) for user in ("ann", "bob")] == [1, 1]
    assert [await counts(hall, user) for user in ("ann", "bob")] == [(0, 0), (0, 0)]


async def test_the_feed_ends_as_the_last_change_says_however_many_settle(hall: Hall, another: OpenStores) -> None:
    posts = [(await hall.post()).timestamp for _ in range(5)]
    async with another() as stores:
        other = hall.through(stores)
        for last in (True, False) * 4:

            async def waver(h: Hall) -> None:
                for n in range(4):
                    with suppress(DomainError):
                        await (h.stores.follows.follow if n % 2 else h.stores.follows.unfollow)(pair(h))

            await together(waver(hall), waver(other), *(h.stores.follows.settle(pair(h)) for h in (hall, other)))
            await (hall.stores.follows.follow if last else hall.stores.follows.unfollow)(pair(hall))
            assert await items(hall) == (posts if last else [])


async def test_a_change_left_by_a_dead_process_is_found(hall: Hall) -> None:
    await hall.post()
    await hall.stores.follows.follow(pair(hall))
    await hall.stores.mongo["feed_items"].delete_many({"_id.o": hall.organization_id, "_id.u": "bob"})
    await hall.stores.mongo["follow_changes"].update_one(
        {"_id": pair(hall).document_id}, [{"$set": {"at": "$$NOW"}}], upsert=True
    )
    assert pair(hall) not in await hall.stores.follows.unsettled(3, 100)
    await hall.expire("follow_changes", "at")
    assert pair(hall) in await hall.stores.follows.unsettled(3, 100)
    await hall.stores.follows.settle(pair(hall))
    assert len(await items(hall)) == 1
    assert pair(hall) not in await hall.stores.follows.unsettled(-60, 100)


async def test_a_follow_leaves_the_newest_800_of_all_whom_the_reader_follows(hall: Hall) -> None:
    org, owner = hall.organization_id, {"o": hall.organization_id, "u": "bob"}
    rows = [{"_id": {"o": org, "ts": 2 * n}, "author": "ann", "text": "", "merged": False} for n in range(100)]
    await hall.stores.mongo["posts"].insert_many(rows)
    held = [{"_id": {**owner, "ts": 2 * n + 1}, "author": "cyd"} for n in range(MAX_ITEMS)]
    await hall.stores.mongo["feed_items"].insert_many(held)
    await hall.stores.follows.follow(pair(hall))
    newest = sorted([*range(0, 200, 2), *range(1, 2 * MAX_ITEMS, 2)])[-MAX_ITEMS:]
    assert await items(hall) == newest
