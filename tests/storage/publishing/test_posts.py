"""Pages of scheduled posts by due time and state, and failing the publications to a disconnected account."""

import asyncio
import random

import pytest

from storage.errors import NotFound
from storage.publishing.posts import candidate_filter
from storage.publishing.records import PublicationState, PublishingPhase, ScheduledPostState, post_state
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkUnknown
from storage.timeline import NOW, Timestamp, timeline_range
from tests.storage.publishing.in_memory_posts import stored_post, stored_publication
from tests.storage.publishing.scenario import PublishingScenario, account_target

pytestmark = pytest.mark.anyio


async def test_page_by_state_skips_other_states(scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.publishing.posts.MIN_CHUNK_SIZE", 20)
    posts = [await scenario.schedule(in_s=100 + number) for number in range(26)]
    store, organization_id = scenario.stores.scheduled_posts, scenario.organization_id
    kept = [posts[3], posts[12], posts[24]]
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
    newest = await store.page(organization_id, "ann", timeline_range(latest=NOW, limit=2))
    assert [post.id for post in newest.items] == [posts[25].id, posts[24].id]
    assert (await store.page(organization_id, "bob", timeline_range(latest=NOW))).items == []


async def test_fail_scheduled_fails_publications_of_one_account(
    scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.publishing.posts.FAIL_BATCH_SIZE", 20)
    account, other = await scenario.connect_account(), await scenario.connect_account()
    waiting = [await scenario.schedule(account_target(account)) for _ in range(24)]
    untouched = await scenario.schedule(account_target(other), scenario.topic)
    fail_scheduled = scenario.stores.scheduled_posts.fail_scheduled
    assert sum(await asyncio.gather(fail_scheduled(account), fail_scheduled(account))) == 24
    states = {(await scenario.publication(post)).state for post in waiting}
    assert states == {PublicationState.FAILED}
    assert {each.state for each in await scenario.publications(untouched)} == {PublicationState.SCHEDULED}
    assert await scenario.stores.scheduled_posts.fail_scheduled(account) == 0


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


@pytest.mark.parametrize("seed", range(3))
async def test_pages_by_author_and_state_equal_model(
    scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("storage.publishing.posts.MIN_CHUNK_SIZE", 2)
    rng, organization_id, mongo = random.Random(seed), scenario.organization_id, scenario.stores.mongo
    model: list[tuple[int, str, ScheduledPostState]] = []
    posts, publications = [], []
    for ts in range(10, 50):
        id_, author = f"{organization_id}-{ts}", rng.choice(["ann", "bob"])
        states = rng.choices(list(PublicationState), k=rng.choice([1, 1, 2]))
        posts.append(stored_post(_id=id_, org=organization_id, author=author, ts=ts))
        moved = rng.random() < 0.1
        fields = {"org": organization_id, "post": id_, "author": author, "ts": ts + 100 if moved else ts}
        publications += [
            stored_publication(_id=f"{id_}-{number}", state=each.value, **fields) for number, each in enumerate(states)
        ]
        if not moved:
            model.append((ts, author, post_state(states)))
    publications.append(stored_publication(_id=f"{organization_id}-lost", org=organization_id, post="lost", ts=30))
    await mongo["scheduled_posts"].insert_many(posts)
    await mongo["publications"].insert_many(publications)
    for state in [*ScheduledPostState] * 2:
        author, bound, limit = rng.choice([None, "ann"]), Timestamp(rng.randint(9, 50)), rng.choice([1, 2, 3, 50])
        matching = [ts for ts, by, found in model if author in (None, by) and found is state]
        for range_, expected in (
            (timeline_range(latest=bound, limit=limit), [ts for ts in reversed(matching) if ts <= bound]),
            (timeline_range(oldest=bound, limit=limit), [ts for ts in matching if ts >= bound]),
        ):
            page = await scenario.stores.scheduled_posts.page(organization_id, author, range_, [state])
            assert [each.timestamp for each in page.items] == expected[:limit]


async def test_posts_and_publications_are_read_by_id(scenario: PublishingScenario) -> None:
    store, organization_id = scenario.stores.scheduled_posts, scenario.organization_id
    posts = [await scenario.schedule(in_s=seconds) for seconds in (60, 50, 70)]
    publications = [await scenario.publication(post) for post in posts]
    assert await store.get_many([posts[2].id, "unknown", posts[0].id]) == [posts[2], posts[0]]
    assert await store.find(organization_id, posts[1].id) == posts[1]
    assert await store.publication(organization_id, publications[1].id) == publications[1]
    for organization, post_id, publication_id in (
        (organization_id, "unknown", "unknown"),
        ("elsewhere", posts[0].id, publications[0].id),
    ):
        assert await store.find(organization, post_id) is None
        with pytest.raises(NotFound):
            await store.get(organization, post_id)
        with pytest.raises(NotFound):
            await store.publication(organization, publication_id)
    assert await store.publications_of("unknown") == []
    ids = [publications[0].id, publications[2].id]
    assert await store.publications_by_id(organization_id, ids) == dict(zip(ids, publications[::2], strict=True))
    assert await store.publications_by_id("elsewhere", ids) == {}
    assert (await store.cancel(organization_id, posts[0].id)).revision == 2


async def test_error_while_failing_publications_is_raised(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    post = await scenario.schedule(account_target(account))
    await scenario.stores.mongo["publications"].update_one({"post": post.id}, {"$unset": {"attempts": ""}})
    with pytest.raises(KeyError, match="attempts"):
        await scenario.stores.scheduled_posts.fail_scheduled(account)
