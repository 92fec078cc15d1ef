"""Topics: lists, read marks and unread counts."""

import asyncio

import pytest

from storage.chat.topics import UNREAD_CAP
from storage.errors import Conflict, NotFound
from storage.idempotency import IdempotencyKey, idempotency_key
from storage.streams.log import Stream
from storage.timeline import NOW, timeline_range
from tests.storage.places import Place

pytestmark = pytest.mark.anyio

NOBODY: frozenset[str] = frozenset()


def key(place: Place, title: str) -> IdempotencyKey | None:
    return idempotency_key(place.organization_id, "ann", "createTopic", "k", {"title": title})


async def test_create_topic_emits_one_event_for_a_repeated_key(place: Place) -> None:
    topics = place.stores.topics
    made = await asyncio.gather(*(topics.create(place.community, "ann", "New", key(place, "New")) for _ in range(5)))
    assert len({topic.id for topic in made}) == 1
    events = await place.stores.events.read(Stream("community", place.community.id), 0)
    assert [(event.kind, event.ref) for event in events][-1] == ("TopicCreated", made[0].id)
    assert len(events) == 2
    with pytest.raises(Conflict):
        await topics.create(place.community, "ann", "Other", key(place, "Other"))


async def test_topic_of_another_organization_is_not_found(place: Place) -> None:
    topics = place.stores.topics
    assert await topics.get(place.organization_id, place.topic.id) == place.topic
    assert await topics.find("another", place.topic.id) is None
    with pytest.raises(NotFound):
        await topics.get("another", place.topic.id)


async def last_activity(place: Place) -> int:
    return (await place.stores.topics.get(place.organization_id, place.topic.id)).last_activity


async def test_last_activity_moves_with_new_messages_only(place: Place) -> None:
    assert await last_activity(place) == int(place.topic.created_at.timestamp() * 1000) * 1000
    message = await place.post(key="k")
    assert await last_activity(place) == message.timestamp
    await place.post(key="k")
    await place.stores.messages.add_reaction(place.organization_id, message.key, "bob", "👍")
    with pytest.raises(Conflict):
        await place.post("another text", key="k")
    assert await last_activity(place) == message.timestamp
    both = await asyncio.gather(place.post(), place.post(key="k"))
    assert await last_activity(place) == max(message.timestamp for message in both)


async def test_repeated_key_does_not_raise_the_heat(place: Place) -> None:
    await place.post(key="k")
    before = await place.stores.mongo["topics"].find_one({"_id": place.topic.id}, {"heat": 1})
    for _ in range(5):
        await place.post(key="k")
    assert await place.stores.mongo["topics"].find_one({"_id": place.topic.id}, {"heat": 1}) == before


async def test_topics_are_listed_by_last_activity(place: Place) -> None:
    other = await place.stores.topics.create(place.community, "ann", "Other", None)

    async def listed() -> list[str]:
        page = await place.stores.topics.page(place.community.id, timeline_range(latest=NOW))
        return [topic.id for topic in page.items]

    await place.post()
    assert await listed() == [place.topic.id, other.id]
    await Place(place.stores, place.community, other).post()
    assert await listed() == [other.id, place.topic.id]


async def test_trending_ranks_topics_by_posting_rate(place: Place) -> None:
    hot = Place(place.stores, place.community, await place.stores.topics.create(place.community, "ann", "Hot", None))
    await place.stores.topics.create(place.community, "ann", "Quiet", None)
    await asyncio.gather(*(hot.post() for _ in range(20)), *(place.post() for _ in range(5)))
    trending = await place.stores.topics.trending(place.organization_id, 10)
    assert [each.topic.id for each in trending] == [hot.topic.id, place.topic.id]
    assert [each.messages_per_minute for each in trending] == pytest.approx([4, 1], rel=0.1)
    assert await place.stores.topics.trending("another", 10) == []
    assert len(await place.stores.topics.trending(place.organization_id, 1)) == 1


async def test_read_mark_never_decreases(place: Place) -> None:
    topics = place.stores.topics
    assert await topics.read_up_to(place.topic.id, "bob") is None
    await asyncio.gather(*(topics.mark_read(place.topic.id, "bob", timestamp) for timestamp in (5, 9, 7)))
    assert await topics.read_up_to(place.topic.id, "bob") == 9
    assert await topics.read_up_to(place.topic.id, "cyd") is None


async def last_of(place: Place) -> int:
    """Returns the timestamp of the topic's head."""
    return (await place.stores.topics.get(place.organization_id, place.topic.id)).last_activity


async def test_reader_at_the_end_has_nothing_unread(place: Place) -> None:
    newest = await place.post()
    assert await place.stores.topics.unread_count(place.topic.id, await last_of(place), "bob", NOBODY) == 1
    await place.stores.topics.mark_read(place.topic.id, "bob", newest.timestamp)
    assert await place.stores.topics.unread_count(place.topic.id, await last_of(place), "bob", NOBODY) == 0
    await place.post()
    assert await place.stores.topics.unread_count(place.topic.id, await last_of(place), "bob", NOBODY) == 1


async def test_own_deleted_and_blocked_messages_are_not_unread(place: Place) -> None:
    first, *_, gone = [await place.post(author=author) for author in ("ann", "bob", "cyd", "ann", "ann")]
    await place.stores.messages.delete(gone.key, "ann", False)

    async def unread(user: str, blocked: frozenset[str] = NOBODY) -> int:
        return await place.stores.topics.unread_count(place.topic.id, await last_of(place), user, blocked)

    assert await unread("bob") == 3
    assert await unread("bob", frozenset({"ann"})) == 1
    assert await unread("ann") == 2
    await place.stores.topics.mark_read(place.topic.id, "bob", first.timestamp)
    assert await unread("bob") == 2


async def test_unread_count_stops_at_a_hundred(place: Place) -> None:
    await asyncio.gather(*(place.post() for _ in range(UNREAD_CAP + 10)))
    assert await place.stores.topics.unread_count(place.topic.id, await last_of(place), "bob", NOBODY) == UNREAD_CAP


async def test_by_id_finds_topics_of_any_organization(place: Place) -> None:
    found = await place.stores.topics.by_id([place.topic.id, place.topic.id, "nowhere"])
    assert found == {place.topic.id: place.topic}
