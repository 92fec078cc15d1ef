"""Topics: lists, read marks and unread counts."""

import asyncio
import math
import time

import pytest

from storage.chat.roles import Moderator
from storage.chat.topics import UNREAD_CAP
from storage.errors import Conflict, NotFound
from storage.idempotency import IdempotencyKey, idempotency_key
from storage.streams.heads import HEAT_TAU_S
from storage.streams.log import Stream
from storage.timeline import MAX_TIMESTAMP, NOW, timeline_range
from tests.storage.topic_scenario import TopicScenario, keep_all

pytestmark = pytest.mark.anyio

NO_BLOCKED_USERS: frozenset[str] = frozenset()


def key(scenario: TopicScenario, title: str) -> IdempotencyKey | None:
    return idempotency_key(scenario.organization_id, "ann", "createTopic", "k", {"title": title})


async def test_create_topic_emits_one_event_for_a_repeated_key(scenario: TopicScenario) -> None:
    topics = scenario.stores.topics
    created = await asyncio.gather(
        *(topics.create(scenario.community, "ann", "New", key(scenario, "New")) for _ in range(5))
    )
    assert len({topic.id for topic in created}) == 1
    events = await scenario.stores.events.read(Stream("community", scenario.community.id), 0)
    assert [(event.kind, event.ref) for event in events][-1] == ("TopicCreated", created[0].id)
    assert len(events) == 2
    with pytest.raises(Conflict):
        await topics.create(scenario.community, "ann", "Other", key(scenario, "Other"))


async def test_topic_of_another_organization_is_not_found(scenario: TopicScenario) -> None:
    topics = scenario.stores.topics
    assert await topics.get(scenario.organization_id, scenario.topic.id) == scenario.topic
    assert await topics.find("another", scenario.topic.id) is None
    with pytest.raises(NotFound):
        await topics.get("another", scenario.topic.id)


async def last_activity(scenario: TopicScenario) -> int:
    return (await scenario.stores.topics.get(scenario.organization_id, scenario.topic.id)).last_activity


async def test_last_activity_moves_with_new_messages_only(scenario: TopicScenario) -> None:
    assert await last_activity(scenario) == int(scenario.topic.created_at.timestamp() * 1000) * 1000
    message = await scenario.post(key="k")
    assert await last_activity(scenario) == message.timestamp
    await scenario.post(key="k")
    await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "bob", "👍")
    with pytest.raises(Conflict):
        await scenario.post("another text", key="k")
    assert await last_activity(scenario) == message.timestamp
    posted = await asyncio.gather(scenario.post(), scenario.post(key="k"))
    assert await last_activity(scenario) == max(message.timestamp for message in posted)


async def test_repeated_key_does_not_raise_the_heat(scenario: TopicScenario) -> None:
    await scenario.post(key="k")
    heat_before = await scenario.stores.mongo["topics"].find_one({"_id": scenario.topic.id}, {"heat": 1})
    for _ in range(5):
        await scenario.post(key="k")
    assert await scenario.stores.mongo["topics"].find_one({"_id": scenario.topic.id}, {"heat": 1}) == heat_before


async def test_topics_are_listed_by_last_activity(scenario: TopicScenario) -> None:
    other = await scenario.stores.topics.create(scenario.community, "ann", "Other", None)

    async def listed_ids() -> list[str]:
        page = await scenario.stores.topics.page(scenario.community.id, timeline_range(latest=NOW))
        return [topic.id for topic in page.items]

    await scenario.post()
    assert await listed_ids() == [scenario.topic.id, other.id]
    await TopicScenario(scenario.stores, scenario.community, other).post()
    assert await listed_ids() == [other.id, scenario.topic.id]


async def test_trending_ranks_topics_by_people(scenario: TopicScenario) -> None:
    hot = TopicScenario(
        scenario.stores, scenario.community, await scenario.stores.topics.create(scenario.community, "ann", "Hot", None)
    )
    await scenario.stores.topics.create(scenario.community, "ann", "Quiet", None)
    await asyncio.gather(
        *(hot.post(author=f"user{n}") for n in range(20)), *(scenario.post(author=f"user{n}") for n in range(5))
    )
    trending = await scenario.stores.topics.trending(scenario.organization_id, 10, keep_all)
    assert [each.topic.id for each in trending] == [hot.topic.id, scenario.topic.id]
    assert [each.messages_per_minute for each in trending] == pytest.approx([4, 1], rel=0.1)
    assert await scenario.stores.topics.trending("another", 10, keep_all) == []
    assert len(await scenario.stores.topics.trending(scenario.organization_id, 1, keep_all)) == 1


async def set_rate(scenario: TopicScenario, per_minute: float) -> None:
    """Sets the topic's posting rate, in messages a minute."""
    heat = math.log(per_minute * HEAT_TAU_S / 60) + time.time() / HEAT_TAU_S
    await scenario.stores.mongo["topics"].update_one({"_id": scenario.topic.id}, {"$set": {"heat": heat}})


@pytest.mark.parametrize("ahead_s", [-3600, 3600])
async def test_wrong_clock_of_host_leaves_rates_unchanged(
    scenario: TopicScenario, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    topics, now = scenario.stores.topics, time.time
    cold = TopicScenario(
        scenario.stores, scenario.community, await topics.create(scenario.community, "ann", "Cold", None)
    )
    for number in range(3):
        await scenario.post(author=f"user{number}")
        await cold.post(author=f"user{number % 2}")
    await set_rate(scenario, per_minute=1000)
    await set_rate(cold, per_minute=1)
    monkeypatch.setattr(time, "time", lambda: now() + ahead_s)
    trending = await topics.trending(scenario.organization_id, 10, keep_all)
    assert [each.topic.id for each in trending] == [scenario.topic.id, cold.topic.id]
    assert [each.messages_per_minute for each in trending] == pytest.approx([1000, 1], rel=0.1)


async def test_read_mark_never_decreases(scenario: TopicScenario) -> None:
    topics = scenario.stores.topics
    assert await topics.read_up_to(scenario.topic.id, "bob") is None
    await asyncio.gather(*(topics.mark_read(scenario.topic.id, "bob", timestamp, 10) for timestamp in (5, 9, 7)))
    assert await topics.read_up_to(scenario.topic.id, "bob") == 9
    assert await topics.read_up_to(scenario.topic.id, "cyd") is None


async def test_read_mark_in_the_future_moves_back_to_the_head(scenario: TopicScenario) -> None:
    topics = scenario.stores.topics
    await topics.mark_read(scenario.topic.id, "bob", MAX_TIMESTAMP, MAX_TIMESTAMP)
    await topics.mark_read(scenario.topic.id, "bob", MAX_TIMESTAMP, 8)
    assert await topics.read_up_to(scenario.topic.id, "bob") == 8


async def unread_count(scenario: TopicScenario, user: str, blocked: frozenset[str] = NO_BLOCKED_USERS) -> int:
    topics = scenario.stores.topics
    head = await topics.get(scenario.organization_id, scenario.topic.id)
    return await topics.unread_count(scenario.topic.id, head.last_activity, user, blocked)


async def test_reader_at_the_end_has_nothing_unread(scenario: TopicScenario) -> None:
    newest = await scenario.post()
    assert await unread_count(scenario, "bob") == 1
    await scenario.stores.topics.mark_read(scenario.topic.id, "bob", newest.timestamp, newest.timestamp)
    assert await unread_count(scenario, "bob") == 0
    await scenario.post()
    assert await unread_count(scenario, "bob") == 1


async def test_own_deleted_and_blocked_messages_are_not_unread(scenario: TopicScenario) -> None:
    first, *_, deleted = [await scenario.post(author=author) for author in ("ann", "bob", "cyd", "ann", "ann")]
    await scenario.stores.messages.delete(deleted.key, Moderator("ann"))
    assert await unread_count(scenario, "bob") == 3
    assert await unread_count(scenario, "bob", frozenset({"ann"})) == 1
    assert await unread_count(scenario, "ann") == 2
    await scenario.stores.topics.mark_read(scenario.topic.id, "bob", first.timestamp, first.timestamp)
    assert await unread_count(scenario, "bob") == 2


async def test_unread_count_stops_at_a_hundred(scenario: TopicScenario) -> None:
    await asyncio.gather(*(scenario.post() for _ in range(UNREAD_CAP + 10)))
    assert await unread_count(scenario, "bob") == UNREAD_CAP


async def test_by_id_returns_existing_topics_only(scenario: TopicScenario) -> None:
    topics_by_id = await scenario.stores.topics.by_id([scenario.topic.id, scenario.topic.id, "nowhere"])
    assert topics_by_id == {scenario.topic.id: scenario.topic}
