"""Pages of scheduled posts against the timeline rule, by state too; and failing what waits for an account."""

import asyncio

import pytest

from storage.publishing.records import PublicationState, ScheduledPostState
from storage.timeline import NOW, timeline_range
from tests.storage.publishing.newsroom import Newsroom, account_target

pytestmark = pytest.mark.anyio


async def test_a_page_by_state_looks_past_what_is_in_other_states(newsroom: Newsroom) -> None:
    posts = [await newsroom.schedule(in_s=100 + number) for number in range(130)]
    store, organization_id = newsroom.stores.scheduled_posts, newsroom.organization_id
    kept = [posts[3], posts[64], posts[128]]
    waste = [post for post in posts if post not in kept]
    await asyncio.gather(*(store.cancel(organization_id, post.id) for post in waste))
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


async def test_everything_that_waits_for_an_account_fails_and_nothing_else(newsroom: Newsroom) -> None:
    account, other = await newsroom.account(), await newsroom.account()
    waiting = [await newsroom.schedule(account_target(account)) for _ in range(120)]
    untouched = await newsroom.schedule(account_target(other), newsroom.topic)
    assert await newsroom.stores.scheduled_posts.fail_waiting(account) == 120
    states = {(await newsroom.only(post)).state for post in waiting}
    assert states == {PublicationState.FAILED}
    assert {each.state for each in await newsroom.publications(untouched)} == {PublicationState.SCHEDULED}
    assert await newsroom.stores.scheduled_posts.fail_waiting(account) == 0
