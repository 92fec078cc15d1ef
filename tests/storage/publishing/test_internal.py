"""Publishing to an internal target: one transaction stores the message or post and the state, once and never early."""

import asyncio
from datetime import timedelta

import pytest

from storage.chat.restrictions import RESTRICTIONS, restriction_id
from storage.errors import Forbidden
from storage.feed.changes import NewPost
from storage.publishing.records import Publication, PublicationState
from storage.publishing.transitions import ClaimLost, DeadlinePassed, NotYetDue
from tests.storage.publishing.scenario import PublishingScenario
from tests.storage.topic_scenario import OpenStores
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


async def publish(scenario: PublishingScenario, publication: Publication, text: str = "hello") -> Publication:
    return await scenario.stores.scheduled_posts.publish_message(publication, scenario.topic_scenario.new_message(text))


async def test_message_and_state_are_stored_together(scenario: PublishingScenario) -> None:
    publication = await scenario.claim(await scenario.schedule(in_s=-1))
    published = await publish(scenario, publication)
    (message,) = await scenario.messages()
    assert published.state is PublicationState.PUBLISHED
    assert [(each.at, each.outcome) for each in published.attempts] == [(published.published_at, "PUBLISHED")]
    assert message["source"] == f"pub:{publication.id}"
    assert published.external_id == f"{scenario.topic_scenario.topic.id}-{message['_id']['ts']}"
    assert published.published_at is not None
    assert published.published_at >= published.due_at
    assert published.lateness_ms is not None
    assert published.lateness_ms >= 1000

    async def are_both_emitted() -> bool:
        return (await scenario.events()).count(("PublicationChanged", publication.id)) == 2

    assert await poll_until_true(are_both_emitted)


async def test_publication_to_home_feed_creates_post(scenario: PublishingScenario) -> None:
    publication = await scenario.claim(await scenario.schedule(scenario.home, in_s=-1))
    new = NewPost(scenario.organization_id, "ann", "hello", ["https://example.org/a.png"], (), ())
    published = await scenario.stores.scheduled_posts.publish_post(publication, new)
    assert published.external_id is not None
    rows = await scenario.stores.mongo["posts"].find({"_id.o": scenario.organization_id}).to_list(None)
    assert [(row["author"], row["text"], row["media"]) for row in rows] == [("ann", "hello", list(new.media))]
    sources = await scenario.stores.mongo["post_sources"].find({"_id.o": scenario.organization_id}).to_list(None)
    assert [source["_id"]["source"] for source in sources] == [f"pub:{publication.id}"]
    with pytest.raises(ClaimLost):
        await scenario.stores.scheduled_posts.publish_post(publication, new)


async def test_concurrent_duplicates_publish_once(scenario: PublishingScenario, open_process: OpenStores) -> None:
    publication = await scenario.claim(await scenario.schedule(in_s=-1))
    async with open_process() as stores:
        processes = [scenario, scenario.with_stores(stores)] * 10
        outcomes = await asyncio.gather(
            *(publish(process, publication) for process in processes), return_exceptions=True
        )
    assert sum(isinstance(each, Publication) for each in outcomes) == 1
    assert sum(isinstance(each, ClaimLost) for each in outcomes) == 19
    assert len(await scenario.messages()) == 1


async def test_publishing_before_due_moment_is_refused(scenario: PublishingScenario) -> None:
    due_at = await scenario.now() + timedelta(seconds=2)
    publication = await scenario.claim(await scenario.schedule(due_at=due_at))
    with pytest.raises(NotYetDue) as refusal:
        await publish(scenario, publication)
    assert 0 < refusal.value.wait_s <= 2
    assert await scenario.messages() == []
    await asyncio.sleep(refusal.value.wait_s)
    assert (await publish(scenario, publication)).published_at


async def test_author_muted_in_community_publishes_nothing(scenario: PublishingScenario) -> None:
    publication = await scenario.claim(await scenario.schedule(in_s=-1))
    restriction = restriction_id(scenario.topic_scenario.community.id, scenario.ann.id)
    muted = {"_id": restriction, "muted_until": await scenario.now() + timedelta(hours=1)}
    await scenario.stores.mongo[RESTRICTIONS].insert_one(muted)
    with pytest.raises(Forbidden):
        await publish(scenario, publication)
    assert await scenario.messages() == []


async def test_old_fence_publishes_nothing(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=-1)
    first = await scenario.claim(post)
    await scenario.pass_time(60)
    second = await scenario.claim(post)
    with pytest.raises(ClaimLost):
        await publish(scenario, first)
    assert (await publish(scenario, second)).state is PublicationState.PUBLISHED


async def test_publishing_past_deadline_is_refused(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=-1, max_lateness_s=60)
    await scenario.pass_time(60)
    with pytest.raises(DeadlinePassed):
        await publish(scenario, await scenario.claim(post))
    assert await scenario.messages() == []


@pytest.mark.parametrize(("late_s", "kinds"), [(58, []), (60, ["PUBLICATION_LATE"])])
async def test_late_message_is_reported_to_its_author(
    scenario: PublishingScenario, late_s: float, kinds: list[str]
) -> None:
    """The topic's stream reports it in the transaction that publishes the message."""
    post = await scenario.schedule(in_s=-1)
    await scenario.pass_time(late_s)
    await publish(scenario, await scenario.claim(post))
    rows = scenario.stores.mongo["outbox"].find({"kind": "Notify", "ref.publication": {"$ne": None}})
    sent = scenario.stores.mongo["notifications"].find({"_id.o": scenario.organization_id})
    found = [each["ref"]["kind"] async for each in rows] + [each["kind"] async for each in sent]
    assert found == kinds


async def test_lost_claim_fails_alone_in_its_batch(scenario: PublishingScenario) -> None:
    posts = [await scenario.schedule(in_s=-1) for _ in range(10)]
    claims = {each.scheduled_post_id: each for each in await scenario.stores.claims.claim(1000)}
    for post in posts[::2]:
        await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    work = (publish(scenario, claims[post.id]) for post in posts)
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    assert [isinstance(each, ClaimLost) for each in outcomes] == [True, False] * 5
    assert len(await scenario.messages()) == 5
