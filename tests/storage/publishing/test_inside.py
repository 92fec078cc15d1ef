"""Publishing inside is one transaction: exactly once, never early, with the message or post and what is told of it."""

import asyncio
from datetime import timedelta

import pytest

from storage.feed.changes import NewPost
from storage.publishing.progress import Early, Lost, TooLate
from storage.publishing.records import Publication, PublicationState
from tests.storage.places import OpenStores, soon
from tests.storage.publishing.newsroom import Newsroom

pytestmark = pytest.mark.anyio


async def publish(newsroom: Newsroom, publication: Publication, text: str = "hello") -> Publication:
    return await newsroom.stores.scheduled_posts.publish_message(publication, newsroom.place.new(text))


async def test_message_and_state_are_there_together(newsroom: Newsroom) -> None:
    publication = await newsroom.claimed(await newsroom.schedule(in_s=-1))
    done = await publish(newsroom, publication)
    (message,) = await newsroom.messages()
    assert done.state is PublicationState.PUBLISHED
    assert message["source"] == f"pub:{publication.id}"
    assert done.external_id == f"{newsroom.place.topic.id}-{message['_id']['ts']}"
    assert done.published_at is not None
    assert done.published_at >= done.due_at
    assert done.lateness_ms is not None
    assert done.lateness_ms >= 1000

    async def told() -> bool:
        return (await newsroom.events()).count(("PublicationChanged", publication.id)) == 2

    assert await soon(told)


async def test_the_home_feed_has_the_post(newsroom: Newsroom) -> None:
    publication = await newsroom.claimed(await newsroom.schedule(newsroom.home, in_s=-1))
    new = NewPost(newsroom.organization_id, "ann", "hello", ["https://example.org/a.png"], (), ())
    done = await newsroom.stores.scheduled_posts.publish_post(publication, new)
    assert done.external_id is not None
    rows = await newsroom.stores.mongo["posts"].find({"_id.o": newsroom.organization_id}).to_list(None)
    assert [(row["author"], row["text"], row["media"]) for row in rows] == [("ann", "hello", list(new.media))]
    with pytest.raises(Lost):
        await newsroom.stores.scheduled_posts.publish_post(publication, new)


async def test_of_many_duplicate_triggers_one_publishes(newsroom: Newsroom, another: OpenStores) -> None:
    publication = await newsroom.claimed(await newsroom.schedule(in_s=-1))
    async with another() as stores:
        rooms = [newsroom, newsroom.through(stores)] * 10
        outcomes = await asyncio.gather(*(publish(room, publication) for room in rooms), return_exceptions=True)
    assert sum(isinstance(each, Publication) for each in outcomes) == 1
    assert sum(isinstance(each, Lost) for each in outcomes) == 19
    assert len(await newsroom.messages()) == 1


async def test_it_is_never_early(newsroom: Newsroom) -> None:
    due_at = await newsroom.now() + timedelta(seconds=2)
    publication = await newsroom.claimed(await newsroom.schedule(due_at=due_at))
    with pytest.raises(Early) as early:
        await publish(newsroom, publication)
    assert 0 < early.value.wait_s <= 2
    assert await newsroom.messages() == []
    await asyncio.sleep(early.value.wait_s)
    assert (await publish(newsroom, publication)).published_at


async def test_an_old_fence_publishes_nothing(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(in_s=-1)
    first = await newsroom.claimed(post)
    await newsroom.pass_time(60)
    second = await newsroom.claimed(post)
    with pytest.raises(Lost):
        await publish(newsroom, first)
    assert (await publish(newsroom, second)).state is PublicationState.PUBLISHED


async def test_later_than_allowed_it_is_not_published(newsroom: Newsroom) -> None:
    post = await newsroom.schedule(in_s=-1, max_lateness_s=60)
    await newsroom.pass_time(60)
    with pytest.raises(TooLate):
        await publish(newsroom, await newsroom.claimed(post))
    assert await newsroom.messages() == []


async def test_a_lost_one_does_not_take_its_batch_along(newsroom: Newsroom) -> None:
    posts = [await newsroom.schedule(in_s=-1) for _ in range(10)]
    claims = {each.scheduled_post_id: each for each in await newsroom.stores.claims.claim(1000)}
    for post in posts[::2]:
        await newsroom.stores.scheduled_posts.cancel(newsroom.organization_id, post.id)
    work = (publish(newsroom, claims[post.id]) for post in posts)
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    assert [isinstance(each, Lost) for each in outcomes] == [True, False] * 5
    assert len(await newsroom.messages()) == 5
