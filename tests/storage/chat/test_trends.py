"""Trending topics count people: one person's messages count as one, however many there are."""

import asyncio
import time
from dataclasses import replace

import pytest

from storage.chat.trends import MAX_POSTERS, RENEWED_AFTER_S
from storage.mongo import Document
from tests.storage.topic_scenario import OpenStores, TopicScenario, keep_all

pytestmark = pytest.mark.anyio


async def other_topic(scenario: TopicScenario, title: str = "Other") -> TopicScenario:
    return replace(scenario, topic=await scenario.stores.topics.create(scenario.community, "ann", title, None))


async def post_as(scenario: TopicScenario, authors: list[str], posts_each: int = 1) -> None:
    await asyncio.gather(*(scenario.post(author=author) for author in authors for _ in range(posts_each)))


async def trending(scenario: TopicScenario) -> list[tuple[str, int]]:
    """Returns the id of each trending topic and the number of its people, in order."""
    topics = await scenario.stores.topics.trending(scenario.organization_id, 10, keep_all)
    return [(each.topic.id, each.people) for each in topics]


def people(count: int) -> list[str]:
    return [f"user{number}" for number in range(count)]


async def test_flood_of_one_person_does_not_trend(scenario: TopicScenario) -> None:
    flooded = await other_topic(scenario)
    for _ in range(10):
        await post_as(flooded, ["eve"], posts_each=100)
    await post_as(scenario, people(5), posts_each=5)
    assert await trending(scenario) == [(scenario.topic.id, 5)]
    await post_as(flooded, people(4))
    assert dict(await trending(scenario)) == {scenario.topic.id: 5, flooded.topic.id: 5}


async def test_people_count_once_in_and_across_batches(scenario: TopicScenario) -> None:
    await post_as(scenario, ["ann", "bob", "ann", "bob"], posts_each=3)
    await post_as(scenario, ["bob", "cyd"])
    assert await trending(scenario) == [(scenario.topic.id, 3)]


async def test_topic_with_more_recent_people_ranks_higher(scenario: TopicScenario) -> None:
    earlier = await other_topic(scenario)
    await post_as(earlier, people(5))
    await post_as(scenario, people(5))
    await age_posters(earlier, 240)
    assert [id_ for id_, _ in await trending(scenario)] == [scenario.topic.id, earlier.topic.id]


async def age_posters(scenario: TopicScenario, seconds: int) -> None:
    """Moves the stored times of the topic's posters `seconds` into the past."""
    topics = scenario.stores.mongo["topics"]
    topic = await topics.find_one({"_id": scenario.topic.id})
    assert topic is not None
    posters = [poster | {"at": poster["at"] - seconds} for poster in topic["posters"]]
    changes = {"posters": posters, "trend": topic["trend"] - seconds / 300}
    await topics.update_one({"_id": scenario.topic.id}, {"$set": changes})


async def test_topic_without_recent_people_stops_trending(scenario: TopicScenario) -> None:
    await post_as(scenario, people(5))
    await age_posters(scenario, 600)
    assert await trending(scenario) == []


async def test_person_who_posts_again_is_counted_as_of_now(scenario: TopicScenario) -> None:
    await post_as(scenario, people(2))
    await age_posters(scenario, 600)
    await post_as(scenario, people(2))
    assert await trending(scenario) == [(scenario.topic.id, 2)]
    topic = await stored_topic(scenario)
    assert all(time.time() - poster["at"] < 300 for poster in topic["posters"])


async def stored_topic(scenario: TopicScenario) -> Document:
    topic: Document | None = await scenario.stores.mongo["topics"].find_one({"_id": scenario.topic.id})
    assert topic is not None
    return topic


async def test_newest_people_are_remembered(scenario: TopicScenario) -> None:
    await post_as(scenario, people(MAX_POSTERS))
    await post_as(scenario, ["late"])
    posters = [poster["u"] for poster in (await stored_topic(scenario))["posters"]]
    assert (len(posters), posters[-1]) == (MAX_POSTERS, "late")
    assert await trending(scenario) == [(scenario.topic.id, MAX_POSTERS)]


async def test_processes_that_write_at_once_lose_no_person(scenario: TopicScenario, open_process: OpenStores) -> None:
    async with open_process() as other_stores:
        processes = scenario, scenario.with_stores(other_stores)
        await asyncio.gather(*(processes[n % 2].post(author=f"user{n}") for n in range(40)))
    assert await trending(scenario) == [(scenario.topic.id, 40)]


async def test_time_of_frequent_poster_is_renewed_once_a_minute(scenario: TopicScenario) -> None:
    await scenario.post()
    await age_posters(scenario, RENEWED_AFTER_S // 2)
    before = await stored_topic(scenario)
    await scenario.post()
    after = await stored_topic(scenario)
    assert (after["posters"], after["trend"]) == (before["posters"], before["trend"])
    await age_posters(scenario, RENEWED_AFTER_S // 2)
    await scenario.post()
    assert (await stored_topic(scenario))["posters"][0]["at"] > before["posters"][0]["at"]
