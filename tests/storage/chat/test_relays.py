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
from tests.storage.places import Place, found_place, soon

pytestmark = pytest.mark.anyio

NOBODY: frozenset[str] = frozenset()


async def activity(place: Place) -> list[Event]:
    """What the community heard of the topic."""
    events = await place.stores.events.read(place.community_stream, 0)
    return [event for event in events if event.kind == "TopicActivity" and event.ref == place.topic.id]


async def is_settled(place: Place) -> bool:
    """Whether nothing waits for any of the topic's audience."""
    streams = [place.community_stream.name] + [user_stream(place.organization_id, u).name for u in ("ann", "bob")]
    return await place.stores.mongo["outbox"].count_documents({"stream": {"$in": streams}}) == 0


async def test_a_message_is_told_to_the_community_at_once(place: Place) -> None:
    await place.post()
    assert await soon(lambda: activity(place))


async def test_activity_is_told_once_a_second_and_always_after_the_last_message(place: Place) -> None:
    async with asyncio.timeout(60):
        while len(await activity(place)) < 3:
            await asyncio.gather(*(place.post() for _ in range(5)))
    last = (await place.events())[-1]["at"]
    assert await soon(lambda: is_settled(place))
    told = [event.at for event in await activity(place)]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in itertools.pairwise(told))
    assert told[-1] >= last


async def test_each_topic_has_a_rate_of_its_own(place: Place) -> None:
    topic = await place.stores.topics.create(place.community, "ann", "Another", None)
    other = Place(place.stores, place.community, topic)
    await asyncio.gather(place.post(), other.post())
    assert await soon(lambda: activity(place))
    assert await soon(lambda: activity(other))


async def test_a_clock_that_fell_back_does_not_silence_a_topic(place: Place) -> None:
    await place.post()
    assert await soon(lambda: activity(place))
    hour_ms = 3_600_000
    later = [{"$set": {"at": {"$add": ["$at", hour_ms]}}}]
    await place.stores.mongo["activity"].update_one({"_id": place.topic.id}, later)
    await place.post()

    async def was_told_again() -> bool:
        return len(await activity(place)) == 2

    assert await soon(was_told_again)


async def received(place: Place, user: str = "ann") -> list[tuple[int, str, str]]:
    """What the user received, oldest first."""
    asked = timeline_range(oldest=0, limit=999)
    page = await place.stores.reactions.received(place.organization_id, user, asked, NOBODY)
    return [(item.message.timestamp, item.emoji, item.user_id) for item in page.items]


async def test_reactions_of_others_reach_the_author_in_the_order_they_were_told(place: Place) -> None:
    first, second = await place.post(), await place.post()
    for message, user, emoji in ((first, "bob", "👍"), (second, "cyd", "🎉"), (first, "ann", "👍")):
        await place.stores.messages.add_reaction(place.organization_id, message.key, user, emoji)
        assert await soon(lambda: is_settled(place))
    assert await received(place) == [(first.timestamp, "👍", "bob"), (second.timestamp, "🎉", "cyd")]


async def test_received_reactions_are_a_timeline_without_those_of_the_blocked(place: Place) -> None:
    message = await place.post()
    for user in ("bob", "cyd", "dan"):
        await place.stores.messages.add_reaction(place.organization_id, message.key, user, "👍")
        assert await soon(lambda: is_settled(place))
    asked = timeline_range(latest=NOW, limit=2)
    page = await place.stores.reactions.received(place.organization_id, "ann", asked, frozenset({"dan"}))
    assert [item.user_id for item in page.items] == ["cyd", "bob"]
    assert (page.has_older, page.has_newer) == (False, False)
    timestamps = [item.timestamp for item in page.items]
    assert (page.newest, page.oldest) == tuple(timestamps)
    assert len(set(timestamps)) == 2


async def test_reacting_and_taking_back_in_quick_turns_ends_as_it_is(place: Place) -> None:
    message = await place.post()
    for step in range(9):
        reactions = place.stores.messages
        act = reactions.add_reaction if step % 2 == 0 else reactions.remove_reaction
        await act(place.organization_id, message.key, "bob", "👍")
    await place.stores.messages.add_reaction(place.organization_id, message.key, "cyd", "👍")
    await place.stores.messages.remove_reaction(place.organization_id, message.key, "cyd", "👍")
    assert await soon(lambda: is_settled(place))
    assert await received(place) == [(message.timestamp, "👍", "bob")]


class Told:
    """Rows of reactions, told to an author in any order and number."""

    def __init__(self, place: Place, key: MessageKey) -> None:
        self.place, self.key = place, key
        self.stream = user_stream(place.organization_id, "ann")

    def reaction(self, user: str) -> Document:
        return {"t": self.key.topic_id, "ts": self.key.timestamp, "e": "👍", "u": user}

    async def tell(self, *users: str) -> None:
        """One row for each, moved together."""
        rows = [
            {"_id": ObjectId(), "stream": self.stream.name, "kind": "Reaction", "ref": self.reaction(user)}
            for user in users
        ]
        await self.place.stores.mongo["outbox"].insert_many(rows)
        self.place.stores.outbox.nudge(self.stream.name)
        assert await soon(lambda: is_settled(self.place))

    async def put(self, user: str, there: bool) -> None:
        """Past the sequencer: as if the word of it were still under way."""
        reactions = self.place.stores.mongo["reactions"]
        await reactions.delete_one({"_id": self.reaction(user)})
        if there:
            await reactions.insert_one({"_id": self.reaction(user), "at": None})


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_word_of_a_reaction_that_comes_late_or_often_only_says_look_again(place: Place, times: int) -> None:
    told = Told(place, (await place.post()).key)
    await told.tell(*["bob"] * times)
    assert await received(place) == []
    await told.put("bob", there=True)
    await told.tell(*["bob"] * times)
    assert await received(place) == [(told.key.timestamp, "👍", "bob")]
    await told.put("bob", there=False)
    await told.put("cyd", there=True)
    await told.tell("cyd", *["bob"] * times, "cyd")
    assert await received(place) == [(told.key.timestamp, "👍", "cyd")]


async def test_reactions_to_a_deleted_message_are_no_longer_received(place: Place) -> None:
    message = await place.post()
    await place.stores.messages.add_reaction(place.organization_id, message.key, "bob", "👍")
    assert await soon(lambda: received(place))
    await place.stores.messages.delete(message.key, "ann", False)
    assert await received(place) == []


async def test_an_organization_with_any_name_has_streams_of_its_own(place: Place) -> None:
    strange = await found_place(place.stores, f"a/b:c%2F {place.organization_id}")
    message = await strange.post()
    await strange.stores.messages.add_reaction(strange.organization_id, message.key, "bob", "👍")
    assert await soon(lambda: received(strange))
    assert await received(place) == []
