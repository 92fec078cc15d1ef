"""A publication is claimed by one process at a time, until its lease ends. A sweep reads only due publications."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from storage.publishing.claims import UPLOAD_LEASE_S, due_filter
from storage.publishing.networks import Network
from storage.publishing.records import Publication, ScheduledPost
from storage.publishing.transitions import LEASE_S
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


async def claim(scenario: PublishingScenario, post: ScheduledPost) -> list[Publication]:
    """Claims the post's publications that are due."""
    return [each for each in await scenario.stores.claims.claim(1000) if each.scheduled_post_id == post.id]


async def test_claim_takes_only_publications_due_within_5_s(scenario: PublishingScenario) -> None:
    near, far = await scenario.schedule(in_s=4.5), await scenario.schedule(in_s=30)
    claimed = await scenario.stores.claims.claim(1000)
    assert near.id in [each.scheduled_post_id for each in claimed]
    assert far.id not in [each.scheduled_post_id for each in claimed]


async def test_concurrent_claims_take_each_publication_once(
    scenario: PublishingScenario, open_process: OpenStores
) -> None:
    posts = [await scenario.schedule(in_s=1) for _ in range(20)]
    async with open_process() as stores:
        processes = [scenario, scenario.with_stores(stores)] * 5
        claims = await asyncio.gather(*(process.stores.claims.claim(1000) for process in processes))
    ids = [each.scheduled_post_id for claimed in claims for each in claimed]
    assert sorted(id_ for id_ in ids if id_ in {post.id for post in posts}) == sorted(post.id for post in posts)


async def test_expired_claim_is_taken_under_new_fence(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=4.5)
    (first,) = await claim(scenario, post)
    assert await claim(scenario, post) == []
    await scenario.pass_time(4.5 + LEASE_S - 3)
    assert await claim(scenario, post) == [], "The lease must count from the due moment."
    await scenario.pass_time(3)
    (second,) = await claim(scenario, post)
    assert second.fence > first.fence


async def test_only_holder_renews_and_releases_claim(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=-1)
    (first,) = await claim(scenario, post)
    await scenario.pass_time(LEASE_S + 1)
    (second,) = await claim(scenario, post)
    assert not await scenario.stores.claims.renew(first)
    await scenario.stores.claims.release([first])
    assert await claim(scenario, post) == []
    assert await scenario.stores.claims.renew(second)
    await scenario.stores.claims.release([second])
    assert len(await claim(scenario, post)) == 1


async def test_cancelled_publication_is_not_claimed(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=1)
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    assert await claim(scenario, post) == []


def stages(plan: Any) -> list[Any]:
    """Returns every stage of a query plan."""
    if isinstance(plan, list):
        return [stage for each in plan for stage in stages(each)]
    if not isinstance(plan, dict):
        return []
    return ([plan] if "stage" in plan else []) + stages(list(plan.values()))


async def test_sweep_examines_only_due_index_entries(scenario: PublishingScenario) -> None:
    """A sweep's cost must not depend on the number of publications that are not due."""
    later = await scenario.now() + timedelta(hours=1)
    waiting = [{"_id": f"{scenario.organization_id}-{i}", "wake_at": later, "state": "X"} for i in range(2000)]
    publications = scenario.stores.mongo["publications"]
    await publications.insert_many(waiting)
    post = await scenario.schedule(in_s=1)
    command = {"find": "publications", "filter": due_filter("wake_at"), "sort": {"wake_at": 1}, "limit": 500}
    explained = await scenario.stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    index_names = [stage.get("indexName") for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert "wake_at_1" in index_names
    assert "SORT" not in [stage["stage"] for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert explained["executionStats"]["totalKeysExamined"] < 100
    assert await claim(scenario, post)
    await publications.delete_many({"_id": {"$in": [each["_id"] for each in waiting]}})


async def test_upload_is_claimed_once_ten_minutes_ahead(scenario: PublishingScenario) -> None:
    account = account_target(await scenario.connect_account(Network.MASTODON, "token", "https://example.org"))
    post = await scenario.schedule(account, media=[IMAGE], in_s=660)

    async def claim_upload_tokens() -> list[str]:
        claims = await scenario.stores.claims.claim_uploads(100)
        return [token for each, token in claims if each.scheduled_post_id == post.id]

    assert await claim_upload_tokens() == []
    await scenario.pass_time(61)
    (token,) = [
        token for tokens in await asyncio.gather(claim_upload_tokens(), claim_upload_tokens()) for token in tokens
    ]
    publication = await scenario.publication(post)
    assert await scenario.stores.claims.renew_upload(publication, token)
    await scenario.pass_time(UPLOAD_LEASE_S + 1)
    assert len(await claim_upload_tokens()) == 1
    assert not await scenario.stores.claims.renew_upload(publication, token)
