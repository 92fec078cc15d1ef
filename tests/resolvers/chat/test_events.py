"""Subscriptions: StreamReady, then each visible change once and in order (docs/semantics.md, 3)."""

import asyncio
from contextlib import aclosing
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from resolvers.chat.events import RECHECK_S
from tests.client import GraphQLFailed
from tests.resolvers.people import DELETE, EDIT, LISTEN, REACT, Person, Room, SignIn

pytestmark = pytest.mark.anyio

SIDEBAR = """
subscription ($community: ID!, $since: Cursor) {
  communityEvents(communityId: $community, since: $since) {
    type: __typename
    ... on Event { cursor at }
    ... on StreamReady { resumed }
    ... on TopicCreated { topic { title } }
    ... on TopicActivity { topic { title lastMessage { text } } }
  }
}
"""


async def first(person: Person, query: str, **variables: Any) -> dict[str, Any]:
    async with aclosing(person.answers(query, **variables)) as answers:
        return await anext(answers)


async def refusal(person: Person, query: str, **variables: Any) -> dict[str, Any]:
    (error,) = (await first(person, query, **variables))["errors"]
    extensions: dict[str, Any] = error["extensions"]
    return extensions


async def test_new_subscription_starts_with_an_unresumed_position(room: Room) -> None:
    await room.ann.post(room.topic, "before")
    ready = (await first(room.bob, LISTEN, topic=room.topic))["data"]["topicEvents"]
    assert (ready["type"], ready["resumed"]) == ("StreamReady", False)
    assert ready["cursor"]


async def test_every_change_of_a_message_is_emitted_in_order(room: Room) -> None:
    async with room.bob.listening(LISTEN, topic=room.topic) as heard:
        posted = await room.ann.post(room.topic, "Ebb")
        event = await heard.event()
        assert (event["type"], event["message"]) == ("MessagePosted", posted)
        edited = await room.ann.do(EDIT, id=posted["id"], text="Flood")
        event = await heard.event()
        assert (event["type"], event["message"]) == ("MessageEdited", edited)
        await room.ann.run(REACT, id=posted["id"], emoji="👍")
        event = await heard.event()
        assert event["type"] == "ReactionsChanged"
        assert event["message"]["reactions"][0]["reacted"] is False
        tombstone = await room.ann.do(DELETE, id=posted["id"])
        event = await heard.event()
        assert (event["type"], event["message"]) == ("MessageDeleted", tombstone)


async def test_subscription_continues_after_its_cursor(room: Room) -> None:
    async with room.bob.listening(LISTEN, topic=room.topic) as heard:
        await room.ann.post(room.topic, "1")
        cursor = (await heard.event())["cursor"]
    for text in ("2", "3"):
        await room.ann.post(room.topic, text)
    async with aclosing(room.bob.answers(LISTEN, topic=room.topic, since=cursor)) as answers:
        ready = (await anext(answers))["data"]["topicEvents"]
        assert (ready["type"], ready["resumed"], ready["cursor"]) == ("StreamReady", True, cursor)
        texts = [(await anext(answers))["data"]["topicEvents"]["message"]["text"] for _ in range(2)]
    assert texts == ["2", "3"]


async def test_replayed_events_never_contain_deleted_text(room: Room) -> None:
    ready = (await first(room.bob, LISTEN, topic=room.topic))["data"]["topicEvents"]
    posted = await room.ann.post(room.topic, "Secret")
    await room.ann.run(EDIT, id=posted["id"], text="Secret still")
    await room.ann.run(DELETE, id=posted["id"])
    async with room.bob.listening(LISTEN, topic=room.topic, since=ready["cursor"]) as heard:
        events = [await heard.event() for _ in range(3)]
    assert [event["type"] for event in events] == ["MessagePosted", "MessageEdited", "MessageDeleted"]
    assert {event["message"]["text"] for event in events} == {""}


async def test_cursor_of_another_stream_or_malformed_is_refused(room: Room) -> None:
    sidebar = (await first(room.bob, SIDEBAR, community=room.community))["data"]["communityEvents"]["cursor"]
    other = await room.ann.open_topic(room.community, "Nets")
    there = (await first(room.bob, LISTEN, topic=other))["data"]["topicEvents"]["cursor"]
    for cursor in (sidebar, there, "", "nonsense", "狼煙", "YQ", there[:-2]):
        refused = await refusal(room.bob, LISTEN, topic=room.topic, since=cursor)
        assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "since"), cursor
        assert refused["expected"]


async def test_topic_events_need_membership_community_events_do_not(room: Room, sign_in: SignIn) -> None:
    zoe = await sign_in("zoe", "elsewhere")
    assert (await refusal(room.eve, LISTEN, topic=room.topic))["code"] == "FORBIDDEN"
    assert (await refusal(zoe, LISTEN, topic=room.topic))["code"] == "NOT_FOUND"
    assert (await refusal(zoe, SIDEBAR, community=room.community))["code"] == "NOT_FOUND"
    async with room.eve.listening(SIDEBAR, community=room.community) as heard:
        await room.ann.open_topic(room.community, "Nets")
        event = await heard.event()
        assert (event["type"], event["topic"]) == ("TopicCreated", {"title": "Nets"})
        await room.ann.post(room.topic, "not for her")
        event = await heard.event()
        assert (event["type"], event["topic"]) == ("TopicActivity", {"title": "Tides", "lastMessage": None})


async def test_leaving_ends_the_subscription_within_five_seconds(room: Room) -> None:
    assert RECHECK_S < 4, "No time is left for the lookup and the delivery."
    async with room.bob.listening(LISTEN, topic=room.topic) as heard:
        await room.bob.leave(room.community)
        with pytest.raises(GraphQLFailed) as left:
            await heard.event()
    assert left.value.codes == ["FORBIDDEN"]


async def test_topic_activity_is_emitted_at_most_once_a_second(room: Room) -> None:
    async with room.bob.listening(SIDEBAR, community=room.community) as heard:
        await asyncio.gather(*(room.ann.post(room.topic, str(number)) for number in range(10)))
        await room.ann.post(room.topic, "last")
        events = [await heard.event()]
        while events[-1]["topic"]["lastMessage"] != {"text": "last"}:
            events.append(await heard.event())
    assert {event["type"] for event in events} == {"TopicActivity"}
    told_at = [datetime.fromisoformat(event["at"]) for event in events]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(told_at))
