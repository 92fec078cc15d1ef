"""What other streams hear of a topic: activity at a bearable rate, and reactions whatever the order they come in."""

import asyncio
import itertools
from datetime import timedelta

import pytest
from bson import ObjectId

from storage.identity.records import user_stream
from storage.ids import MessageKey
from storage.mongo import Document
from storage.streams.log import Event
from storage.timeline import NOW, timeline_range
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario, poll_until_true

pytestmark = pytest.mark.anyio

NOBODY: frozenset[str] = frozenset()


async def activity(scenario: TopicScenario) -> list[Event]:
    """What the community heard of the topic."""
    events = await scenario.stores.events.read(scenario.community_stream, 0)
    return [event for event in events if event.kind == "TopicActivity" and event.ref == scenario.topic.id]


async def is_settled(scenario: TopicScenario) -> bool:
    """Whether nothing waits for any of the topic's audience."""
    streams = [scenario.community_stream.name] + [user_stream(scenario.organization_id, u).name for u in ("ann", "bob")]
    return await scenario.stores.mongo["outbox"].count_documents({"stream": {"$in": streams}}) == 0


async def test_a_message_is_told_to_the_community_at_once(scenario: TopicScenario) -> None:
    await scenario.post()
    assert await poll_until_true(lambda: activity(scenario))


async def test_activity_is_told_once_a_second_and_always_after_the_last_message(scenario: TopicScenario) -> None:
    async with asyncio.timeout(60):
        while len(await activity(scenario)) < 3:
            await asyncio.gather(*(scenario.post() for _ in range(5)))
    last = (await scenario.events())[-1]["at"]
    assert await poll_until_true(lambda: is_settled(scenario))
    told = [event.at for event in await activity(scenario)]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in itertools.pairwise(told))
    assert told[-1] >= last


async def test_each_topic_has_a_rate_of_its_own(scenario: TopicScenario) -> None:
    topic = await scenario.stores.topics.create(scenario.community, "ann", "Another", None)
    other = TopicScenario(scenario.stores, scenario.community, topic)
    await asyncio.gather(scenario.post(), other.post())
    assert await poll_until_true(lambda: activity(scenario))
    assert await poll_until_true(lambda: activity(other))


async def test_a_clock_that_fell_back_does_not_silence_a_topic(scenario: TopicScenario) -> None:
    await scenario.post()
    assert await poll_until_true(lambda: activity(scenario))
    hour_ms = 3_600_000
    later = [{"$set": {"at": {"$add": ["$at", hour_ms]}}}]
    await scenario.stores.mongo["activity"].update_one({"_id": scenario.topic.id}, later)
    await scenario.post()

    async def was_told_again() -> bool:
        return len(await activity(scenario)) == 2

    assert await poll_until_true(was_told_again)


async def received(scenario: TopicScenario, user: str = "ann") -> list[tuple[int, str, str]]:
    """What the user received, oldest first."""
    asked = timeline_range(oldest=0, limit=999)
    page = await scenario.stores.reactions.received(scenario.organization_id, user, asked, NOBODY)
    return [(item.message.timestamp, item.emoji, item.user_id) for item in page.items]


async def test_reactions_of_others_reach_the_author_in_the_order_they_were_told(scenario: TopicScenario) -> None:
    first, second = await scenario.post(), await scenario.post()
    for message, user, emoji in ((first, "bob", "👍"), (second, "cyd", "🎉"), (first, "ann", "👍")):
        await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, emoji)
        assert await poll_until_true(lambda: is_settled(scenario))
    assert await received(scenario) == [(first.timestamp, "👍", "bob"), (second.timestamp, "🎉", "cyd")]


async def test_received_reactions_are_a_timeline_without_those_of_the_blocked(scenario: TopicScenario) -> None:
    message = await scenario.post()
    for user in ("bob", "cyd", "dan"):
        await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, "👍")
        assert await poll_until_true(lambda: is_settled(scenario))
    asked = timeline_range(latest=NOW, limit=2)
    page = await scenario.stores.reactions.received(scenario.organization_id, "ann", asked, frozenset({"dan"}))
    assert [item.user_id for item in page.items] == ["cyd", "bob"]
    assert (page.has_older, page.has_newer) == (False, False)
    timestamps = [item.timestamp for item in page.items]
    assert (page.newest, page.oldest) == tuple(timestamps)
    assert len(set(timestamps)) == 2


async def test_reacting_and_taking_back_in_quick_turns_ends_as_it_is(scenario: TopicScenario) -> None:
    message = await scenario.post()
    for step in range(9):
        reactions = scenario.stores.messages
        act = reactions.add_reaction if step % 2 == 0 else reactions.remove_reaction
        await act(scenario.organization_id, message.key, "bob", "👍")
    await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "cyd", "👍")
    await scenario.stores.messages.remove_reaction(scenario.organization_id, message.key, "cyd", "👍")
    assert await poll_until_true(lambda: is_settled(scenario))
    assert await received(scenario) == [(message.timestamp, "👍", "bob")]


class Told:
    """Rows of reactions, told to an author in any order and number."""

    def __init__(self, scenario: TopicScenario, key: MessageKey) -> None:
        self.scenario, self.key = scenario, key
        self.stream = user_stream(scenario.organization_id, "ann")

    def reaction(self, user: str) -> Document:
        return {"t": self.key.topic_id, "ts": self.key.timestamp, "e": "👍", "u": user}

    async def tell(self, *users: str) -> None:
        """One row for each, moved together."""
        rows = [
            {"_id": ObjectId(), "stream": self.stream.name, "kind": "Reaction", "ref": self.reaction(user)}
            for user in users
        ]
        await self.scenario.stores.mongo["outbox"].insert_many(rows)
        self.scenario.stores.outbox.nudge(self.stream.name)
        assert await poll_until_true(lambda: is_settled(self.scenario))

    async def put(self, user: str, there: bool) -> None:
        """Past the sequencer: as if the word of it were still under way."""
        reactions = self.scenario.stores.mongo["reactions"]
        await reactions.delete_one({"_id": self.reaction(user)})
        if there:
            await reactions.insert_one({"_id": self.reaction(user), "at": None})


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_word_of_a_reaction_that_comes_late_or_often_only_says_look_again(
    scenario: TopicScenario, times: int
) -> None:
    told = Told(scenario, (await scenario.post()).key)
    await told.tell(*["bob"] * times)
    assert await received(scenario) == []
    await told.put("bob", there=True)
    await told.tell(*["bob"] * times)
    assert await received(scenario) == [(told.key.timestamp, "👍", "bob")]
    await told.put("bob", there=False)
    await told.put("cyd", there=True)
    await told.tell("cyd", *["bob"] * times, "cyd")
    assert await received(scenario) == [(told.key.timestamp, "👍", "cyd")]


async def test_reactions_to_a_deleted_message_are_no_longer_received(scenario: TopicScenario) -> None:
    message = await scenario.post()
    await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "bob", "👍")
    assert await poll_until_true(lambda: received(scenario))
    await scenario.stores.messages.delete(message.key, "ann", False)
    assert await received(scenario) == []


async def test_an_organization_with_any_name_has_streams_of_its_own(scenario: TopicScenario) -> None:
    strange = await create_topic_scenario(scenario.stores, f"a/b:c%2F {scenario.organization_id}")
    message = await strange.post()
    await strange.stores.messages.add_reaction(strange.organization_id, message.key, "bob", "👍")
    assert await poll_until_true(lambda: received(strange))
    assert await received(scenario) == []
