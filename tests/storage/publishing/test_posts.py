"""Pages of scheduled posts by due time and state, and failing the publications to a disconnected account."""

import asyncio
import itertools

import pytest

from storage.publishing.posts import candidate_filter
from storage.publishing.records import (
    PublicationState,
    PublishingPhase,
    ScheduledPostState,
    post_state,
    publication_states_to_search,
)
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkUnknown
from storage.timeline import NOW, timeline_range
from tests.storage.publishing.scenario import PublishingScenario, account_target

pytestmark = pytest.mark.anyio


async def test_page_by_state_skips_other_states(scenario: PublishingScenario) -> None:
    posts = [await scenario.schedule(in_s=100 + number) for number in range(130)]
    store, organization_id = scenario.stores.scheduled_posts, scenario.organization_id
    kept = [posts[3], posts[64], posts[128]]
    cancelled = [post for post in posts if post not in kept]
    await asyncio.gather(*(store.cancel(organization_id, post.id) for post in cancelled))
    states = [ScheduledPostState.SCHEDULED]
    first = await store.page(organization_id, "ann", timeline_range(oldest=0, limit=2), states)
    assert [post.id for post in first.items] == [post.id for post in kept[:2]]
    assert (first.has_older, first.has_newer) == (False, True)
    last = await store.page(organization_id, None, timeline_range(latest=NOW, limit=5), states)
    assert [post.id for post in last.items] == [post.id for post in reversed(kept)]
    assert (last.has_older, last.has_newer) == (False, False)
    everything = await store.page(organization_id, "ann", timeline_range(oldest=0, limit=999))
    assert [post.timestamp for post in everything.items] == sorted(post.timestamp for post in posts)
    assert (await store.page(organization_id, "bob", timeline_range(latest=NOW))).items == []


async def test_fail_waiting_fails_publications_of_one_account(scenario: PublishingScenario) -> None:
    account, other = await scenario.connect_account(), await scenario.connect_account()
    waiting = [await scenario.schedule(account_target(account)) for _ in range(120)]
    untouched = await scenario.schedule(account_target(other), scenario.topic)
    assert await scenario.stores.scheduled_posts.fail_waiting(account) == 120
    states = {(await scenario.publication(post)).state for post in waiting}
    assert states == {PublicationState.FAILED}
    assert {each.state for each in await scenario.publications(untouched)} == {PublicationState.SCHEDULED}
    assert await scenario.stores.scheduled_posts.fail_waiting(account) == 0


async def test_page_by_state_examines_only_candidates(scenario: PublishingScenario) -> None:
    store, organization_id = scenario.stores.scheduled_posts, scenario.organization_id
    account = account_target(await scenario.connect_account())
    post = await scenario.schedule(account, scenario.topic, in_s=-1)
    claimed = next(each for each in await scenario.stores.claims.claim(1000) if each.target == account)
    begun = await store.apply(BeginAttempt(claimed, PublishingPhase.CALLING, "key"))
    await store.apply(MarkUnknown(begun, "no answer", MANUAL))
    await store.cancel(organization_id, post.id)
    waiting = [await scenario.schedule(in_s=100 + number) for number in range(20)]
    states = [ScheduledPostState.UNKNOWN]
    page = await store.page(organization_id, "ann", timeline_range(latest=NOW, limit=5), states)
    assert [each.id for each in page.items] == [post.id]
    query = candidate_filter({"org": organization_id, "author": "ann", "ts": {"$gte": 0}}, states)
    command = {"find": "publications", "filter": query, "sort": {"ts": -1}, "limit": 100}
    explained = await scenario.stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    assert explained["executionStats"]["totalKeysExamined"] <= 2 < len(waiting)
    assert "'SORT'" not in str(explained["queryPlanner"]["winningPlan"])


def test_candidate_states_cover_every_post_state() -> None:
    combinations = [
        states for size in (1, 2, 3) for states in itertools.combinations_with_replacement(PublicationState, size)
    ]
    assert all(publication_states_to_search([post_state(states)]) & set(states) for states in combinations)
