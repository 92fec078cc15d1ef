"""Outbox relays of topics: throttled activity events, and reactions whose rows are relayed in any order."""

import asyncio
import itertools
import random
from contextlib import suppress
from datetime import timedelta

import pytest
from bson import ObjectId

from storage.chat.messages import MessageStore
from storage.chat.roles import Moderator
from storage.errors import Conflict
from storage.identity.records import user_stream
from storage.ids import MessageKey
from storage.mongo import Document
from storage.stores import Stores
from storage.streams.log import Event
from storage.timeline import NOW, timeline_range
from tests.storage.topic_scenario import OpenStores, TopicScenario, create_topic_scenario, keep_all
from tests.waiting import poll_until_true

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("throttled_activity")]

NO_BLOCKED_USERS: frozenset[str] = frozenset()


async def activity_events(scenario: TopicScenario) -> list[Event]:
    """Returns the community's activity events of the topic."""
    events = await scenario.stores.events.read(scenario.community_stream, 0)
    return [event for event in events if event.kind == "TopicActivity" and event.ref == scenario.topic.id]


async def are_rows_relayed(scenario: TopicScenario) -> bool:
    """Returns whether no outbox row is left for the streams of the topic's audience."""
    streams = [scenario.community_stream.name] + [user_stream(scenario.organization_id, u).name for u in ("ann", "bob")]
    return await scenario.stores.mongo["outbox"].count_documents({"stream": {"$in": streams}}) == 0


async def test_message_emits_community_activity_at_once(scenario: TopicScenario) -> None:
    await scenario.post()
    assert await poll_until_true(lambda: activity_events(scenario))


async def test_activity_is_throttled_but_last_message_is_emitted(scenario: TopicScenario) -> None:
    async with asyncio.timeout(60):
        while len(await activity_events(scenario)) < 3:
            await asyncio.gather(*(scenario.post() for _ in range(5)))
            await asyncio.sleep(0.05)
    last_event_at = (await scenario.events())[-1]["at"]
    assert await poll_until_true(lambda: are_rows_relayed(scenario))
    times = [event.at for event in await activity_events(scenario)]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in itertools.pairwise(times))
    assert times[-1] >= last_event_at


async def test_activity_of_topics_is_throttled_separately(scenario: TopicScenario) -> None:
    topic = await scenario.stores.topics.create(scenario.community, "ann", "Another", None)
    other = TopicScenario(scenario.stores, scenario.community, topic)
    await asyncio.gather(scenario.post(), other.post())
    assert await poll_until_true(lambda: activity_events(scenario))
    assert await poll_until_true(lambda: activity_events(other))


async def test_clock_set_back_does_not_stop_activity(scenario: TopicScenario) -> None:
    await scenario.post()
    assert await poll_until_true(lambda: activity_events(scenario))
    hour_ms = 3_600_000
    later = [{"$set": {"at": {"$add": ["$at", hour_ms]}}}]
    await scenario.stores.mongo["activity"].update_one({"_id": scenario.topic.id}, later)
    await scenario.post()

    async def was_emitted_again() -> bool:
        return len(await activity_events(scenario)) == 2

    assert await poll_until_true(was_emitted_again)


async def received_reactions(scenario: TopicScenario, user: str = "ann") -> list[tuple[int, str, str]]:
    """Returns the reactions that the user received, oldest first."""
    page_range = timeline_range(oldest=0, limit=999)
    page = await scenario.stores.reactions.received(
        scenario.organization_id, user, page_range, NO_BLOCKED_USERS, keep_all
    )
    return [(item.message.timestamp, item.emoji, item.user_id) for item in page.items]


async def test_reactions_of_others_reach_author_in_order(scenario: TopicScenario) -> None:
    first, second = await scenario.post(), await scenario.post()
    for message, user, emoji in ((first, "bob", "👍"), (second, "cyd", "🎉"), (first, "ann", "👍")):
        await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, emoji)
        assert await poll_until_true(lambda: are_rows_relayed(scenario))
    assert await received_reactions(scenario) == [(first.timestamp, "👍", "bob"), (second.timestamp, "🎉", "cyd")]


async def test_received_reactions_omit_blocked_users(scenario: TopicScenario) -> None:
    message = await scenario.post()
    for user in ("bob", "cyd", "dan"):
        await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, "👍")
        assert await poll_until_true(lambda: are_rows_relayed(scenario))
    page_range = timeline_range(latest=NOW, limit=2)
    page = await scenario.stores.reactions.received(
        scenario.organization_id, "ann", page_range, frozenset({"dan"}), keep_all
    )
    assert [item.user_id for item in page.items] == ["cyd", "bob"]
    assert (page.has_older, page.has_newer) == (False, False)
    timestamps = [item.timestamp for item in page.items]
    assert (page.newest, page.oldest) == tuple(timestamps)
    assert len(set(timestamps)) == 2


async def test_alternating_reaction_ends_as_last_change(scenario: TopicScenario) -> None:
    message = await scenario.post()
    for number in range(9):
        messages = scenario.stores.messages
        change = messages.add_reaction if number % 2 == 0 else messages.remove_reaction
        await change(scenario.organization_id, message.key, "bob", "👍")
    await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "cyd", "👍")
    await scenario.stores.messages.remove_reaction(scenario.organization_id, message.key, "cyd", "👍")
    assert await poll_until_true(lambda: are_rows_relayed(scenario))
    assert await received_reactions(scenario) == [(message.timestamp, "👍", "bob")]


async def test_reaction_to_a_popular_message_reads_no_others(own_scenario: TopicScenario) -> None:
    mongo, message = own_scenario.stores.mongo, await own_scenario.post()
    organization_id = own_scenario.organization_id
    earlier = {"owner": f"{organization_id}/ann", "topic": message.topic_id, "ts": message.timestamp, "emoji": "👍"}
    ids = [{"o": organization_id, "u": "ann", "ts": number} for number in range(500)]
    await mongo["received_reactions"].insert_many(
        [{"_id": id_, **earlier, "from": f"user {number}"} for number, id_ in enumerate(ids)]
    )
    await mongo.database.command({"profile": 2})
    await own_scenario.stores.messages.add_reaction(organization_id, message.key, "bob", "👍")
    assert await poll_until_true(lambda: are_rows_relayed(own_scenario))
    await mongo.database.command({"profile": 0})
    commands = await mongo["system.profile"].find({"docsExamined": {"$exists": True}}).to_list(None)
    assert any("streams" in each["ns"] for each in commands)
    assert max(each["docsExamined"] for each in commands) < 50
    assert len(await received_reactions(own_scenario)) == 501


async def test_received_reactions_end_as_those_that_exist(scenario: TopicScenario, open_process: OpenStores) -> None:
    """Many people of two processes add and remove reactions, while one of the messages is deleted."""
    messages = [await scenario.post() for _ in range(3)]
    rng, organization_id = random.Random(7), scenario.organization_id

    async def toggle(stores: Stores, user: str) -> None:
        for _ in range(6):
            change = rng.choice([MessageStore.add_reaction, MessageStore.remove_reaction])
            with suppress(Conflict):
                await change(stores.messages, organization_id, rng.choice(messages).key, user, rng.choice("👍🎉"))

    async with open_process() as other:
        people = [(stores, f"user{n}") for n, stores in enumerate([scenario.stores, other] * 12)]
        deletion = scenario.stores.messages.delete(messages[0].key, Moderator("ann"))
        await asyncio.gather(*(toggle(*each) for each in people), deletion)
        assert await poll_until_true(lambda: are_rows_relayed(scenario))
    kept = {"_id.t": scenario.topic.id, "_id.ts": {"$ne": messages[0].timestamp}}
    stored = await scenario.stores.mongo["reactions"].find(kept).to_list(None)
    existing = [(each["_id"]["ts"], each["_id"]["e"], each["_id"]["u"]) for each in stored]
    assert sorted(await received_reactions(scenario)) == sorted(existing)
    found = await scenario.stores.messages.find_many([message.key for message in messages])
    assert sum(count for message in found.values() for _, count in message.reaction_counts) == len(existing)


class ReactionRows:
    """Reactions to one message, and their outbox rows, which can be added in any order and number."""

    def __init__(self, scenario: TopicScenario, key: MessageKey) -> None:
        self.scenario, self.key = scenario, key
        self.stream = user_stream(scenario.organization_id, "ann")

    def reaction(self, user: str) -> Document:
        return {"t": self.key.topic_id, "ts": self.key.timestamp, "e": "👍", "u": user}

    async def add_rows(self, *users: str) -> None:
        """Adds one row for each user. The rows are relayed together."""
        rows = [
            {"_id": ObjectId(), "stream": self.stream.name, "kind": "Reaction", "ref": self.reaction(user)}
            for user in users
        ]
        await self.scenario.stores.mongo["outbox"].insert_many(rows)
        self.scenario.stores.outbox.nudge(self.stream.name)
        assert await poll_until_true(lambda: are_rows_relayed(self.scenario))

    async def set_reaction(self, user: str, exists: bool) -> None:
        """Writes or deletes a reaction without the sequencer, so that no outbox row is added."""
        reactions = self.scenario.stores.mongo["reactions"]
        await reactions.delete_one({"_id": self.reaction(user)})
        if exists:
            await reactions.insert_one({"_id": self.reaction(user), "at": None})


@pytest.mark.parametrize("row_count", [1, 2, 5])
async def test_late_or_repeated_reaction_row_follows_current_state(scenario: TopicScenario, row_count: int) -> None:
    reactions = ReactionRows(scenario, (await scenario.post()).key)
    await reactions.add_rows(*["bob"] * row_count)
    assert await received_reactions(scenario) == []
    await reactions.set_reaction("bob", exists=True)
    await reactions.add_rows(*["bob"] * row_count)
    assert await received_reactions(scenario) == [(reactions.key.timestamp, "👍", "bob")]
    await reactions.set_reaction("bob", exists=False)
    await reactions.set_reaction("cyd", exists=True)
    await reactions.add_rows("cyd", *["bob"] * row_count, "cyd")
    assert await received_reactions(scenario) == [(reactions.key.timestamp, "👍", "cyd")]


async def test_reactions_to_deleted_message_are_not_received(scenario: TopicScenario) -> None:
    message = await scenario.post()
    await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "bob", "👍")
    assert await poll_until_true(lambda: received_reactions(scenario))
    await scenario.stores.messages.delete(message.key, Moderator("ann"))
    assert await received_reactions(scenario) == []


async def test_organizations_of_any_name_share_no_stream(scenario: TopicScenario) -> None:
    other_scenario = await create_topic_scenario(scenario.stores, f"a/b:c%2F {scenario.organization_id}")
    message = await other_scenario.post()
    await other_scenario.stores.messages.add_reaction(other_scenario.organization_id, message.key, "bob", "👍")
    assert await poll_until_true(lambda: received_reactions(other_scenario))
    assert await received_reactions(scenario) == []
