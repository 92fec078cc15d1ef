"""Leases: each publication goes to one, comes back when its holder dies, and sweeping costs what is due."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from storage.publishing.claims import UPLOAD_LEASE_S, reached
from storage.publishing.networks import Network
from storage.publishing.progress import LEASE_S
from storage.publishing.records import Publication, ScheduledPost
from tests.storage.places import OpenStores
from tests.storage.publishing.newsroom import IMAGE, Newsroom, account_target

pytestmark = pytest.mark.anyio


async def claim(newsroom: Newsroom, post: ScheduledPost) -> list[Publication]:
    """What can be claimed of the post."""
    return [each for each in await newsroom.stores.claims.claim(1000) if each.scheduled_post_id == post.id]


async def test_what_is_due_within_five_seconds_is_claimed_and_nothing_else(newsroom: Newsroom) -> None:
    near, far = await newsroom.schedule(in_s=4.5), await newsroom.schedule(in_s=30)
    claimed = await newsroom.stores.claims.claim(1000)
    assert near.id in [each.scheduled_post_id for each in claimed]
    assert far.id not in [each.scheduled_post_id for each in claimed]


async def test_of_many_who_claim_at_once_one_gets_it(newsroom: Newsroom, another: OpenStores) -> None:
    posts = [await newsroom.schedule(in_s=1) for _ in range(20)]
    async with another() as stores:
        rooms = [newsroom, newsroom.through(stores)] * 5
        claims = await asyncio.gather(*(room.stores.claims.claim(1000) for room in rooms))
    ids = [each.scheduled_post_id for claimed in claims for each in claimed]
    assert sorted(id_ for id_ in ids if id_ in {post.id for post in posts}) == sorted(post.id for post in posts)


async def test_a_claim_that_its_holder_left_comes_back_with_a_new_fence(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(in_s=4.5)
    (first,) = await claim(newsroom, post)
    assert await claim(newsroom, post) == []
    await newsroom.pass_time(4.5 + LEASE_S - 3)
    assert await claim(newsroom, post) == [], "the lease counts from the due moment"
    await newsroom.pass_time(3)
    (second,) = await claim(newsroom, post)
    assert second.fence > first.fence


async def test_only_the_holder_renews_and_releases(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(in_s=-1)
    (first,) = await claim(newsroom, post)
    await newsroom.pass_time(LEASE_S + 1)
    (second,) = await claim(newsroom, post)
    assert not await newsroom.stores.claims.renew(first)
    await newsroom.stores.claims.release([first])
    assert await claim(newsroom, post) == []
    assert await newsroom.stores.claims.renew(second)
    await newsroom.stores.claims.release([second])
    assert len(await claim(newsroom, post)) == 1


async def test_what_was_moved_or_cancelled_is_not_claimed(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(in_s=1)
    await newsroom.stores.scheduled_posts.cancel(newsroom.organization_id, post.id)
    assert await claim(newsroom, post) == []


def stages(plan: Any) -> list[Any]:
    """Every stage of a query plan."""
    if isinstance(plan, list):
        return [stage for each in plan for stage in stages(each)]
    if not isinstance(plan, dict):
        return []
    return ([plan] if "stage" in plan else []) + stages(list(plan.values()))


async def test_a_sweep_examines_what_is_due_and_not_what_waits(newsroom: Newsroom) -> None:
    """The same for a thousand as for a million: only index entries of moments that have come are looked at."""
    later = await newsroom.now() + timedelta(hours=1)
    waiting = [{"_id": f"{newsroom.organization_id}-{i}", "wake_at": later, "state": "X"} for i in range(2000)]
    publications = newsroom.stores.mongo["publications"]
    await publications.insert_many(waiting)
    post = await newsroom.schedule(in_s=1)
    command = {"find": "publications", "filter": reached("wake_at"), "sort": {"wake_at": 1}, "limit": 500}
    explained = await newsroom.stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    used = [stage.get("indexName") for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert "wake_at_1" in used
    assert "SORT" not in [stage["stage"] for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert explained["executionStats"]["totalKeysExamined"] < 100
    assert await claim(newsroom, post)
    await publications.delete_many({"_id": {"$in": [each["_id"] for each in waiting]}})


async def test_an_upload_is_begun_ten_minutes_ahead_by_one(newsroom: Newsroom) -> None:
    account = account_target(await newsroom.account(Network.MASTODON, "token", "https://example.org"))
    post = await newsroom.schedule(account, media=[IMAGE], in_s=660)

    async def uploads() -> list[str]:
        found = await newsroom.stores.claims.claim_uploads(100)
        return [token for each, token in found if each.scheduled_post_id == post.id]

    assert await uploads() == []
    await newsroom.pass_time(61)
    (token,) = [each for found in await asyncio.gather(uploads(), uploads()) for each in found]
    publication = await newsroom.only(post)
    assert await newsroom.stores.claims.renew_upload(publication, token)
    await newsroom.pass_time(UPLOAD_LEASE_S + 1)
    assert len(await uploads()) == 1
    assert not await newsroom.stores.claims.renew_upload(publication, token)
