"""Subscriptions: StreamReady, then each visible change once and in order (docs/semantics.md, 3)."""

import asyncio
from contextlib import aclosing
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from server.graphql.broadcasts import RECHECK_EVERY_S
from tests.client import GraphQLFailed
from tests.resolvers.people import DELETE, EDIT, REACT, TOPIC_EVENTS, ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

COMMUNITY_EVENTS = """
subscription ($community: ID!, $since: Cursor) {
  communityEvents(communityId: $community, since: $since) {
    type: __typename
    ... on Event { cursor at }
    ... on StreamReady { resumed }
    ... on TopicCreated { topic { title } }
    ... on TopicActivity { topic { title lastMessage { text } } }
    ... on CommunityChanged { community { name archivedAt } }
  }
}
"""


async def first_answer(person: Person, query: str, **variables: Any) -> dict[str, Any]:
    async with aclosing(person.answers(query, **variables)) as answers:
        return await anext(answers)


async def first_error_extensions(person: Person, query: str, **variables: Any) -> dict[str, Any]:
    (error,) = (await first_answer(person, query, **variables))["errors"]
    extensions: dict[str, Any] = error["extensions"]
    return extensions


async def test_new_subscription_starts_with_stream_ready(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "before")
    ready = (await first_answer(chat.bob, TOPIC_EVENTS, topic=chat.topic))["data"]["topicEvents"]
    assert (ready["type"], ready["resumed"]) == ("StreamReady", False)
    assert ready["cursor"]


async def test_every_change_of_a_message_is_emitted_in_order(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        message = await chat.ann.post(chat.topic, "Ebb")
        event = await events.next_event()
        assert (event["type"], event["message"]) == ("MessagePosted", message)
        edited_message = await chat.ann.do(EDIT, id=message["id"], text="Flood")
        event = await events.next_event()
        assert (event["type"], event["message"]) == ("MessageEdited", edited_message)
        await chat.ann.run(REACT, id=message["id"], emoji="👍")
        event = await events.next_event()
        assert event["type"] == "ReactionsChanged"
        assert event["message"]["reactions"][0]["reacted"] is False
        tombstone = await chat.ann.do(DELETE, id=message["id"])
        event = await events.next_event()
        assert (event["type"], event["message"]) == ("MessageDeleted", tombstone)


async def test_subscription_continues_after_its_cursor(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        await chat.ann.post(chat.topic, "1")
        cursor = (await events.next_event())["cursor"]
    for text in ("2", "3"):
        await chat.ann.post(chat.topic, text)
    async with aclosing(chat.bob.answers(TOPIC_EVENTS, topic=chat.topic, since=cursor)) as answers:
        ready = (await anext(answers))["data"]["topicEvents"]
        assert (ready["type"], ready["resumed"], ready["cursor"]) == ("StreamReady", True, cursor)
        texts = [(await anext(answers))["data"]["topicEvents"]["message"]["text"] for _ in range(2)]
    assert texts == ["2", "3"]


async def test_replayed_events_never_contain_deleted_text(chat: ChatScenario) -> None:
    ready = (await first_answer(chat.bob, TOPIC_EVENTS, topic=chat.topic))["data"]["topicEvents"]
    message = await chat.ann.post(chat.topic, "Secret")
    await chat.ann.run(EDIT, id=message["id"], text="Secret still")
    await chat.ann.run(DELETE, id=message["id"])
    async with chat.bob.subscribed(TOPIC_EVENTS, topic=chat.topic, since=ready["cursor"]) as events:
        replayed = [await events.next_event() for _ in range(3)]
    assert [event["type"] for event in replayed] == ["MessagePosted", "MessageEdited", "MessageDeleted"]
    assert {event["message"]["text"] for event in replayed} == {""}


async def test_cursor_of_another_stream_or_malformed_is_refused(chat: ChatScenario) -> None:
    community_cursor = (await first_answer(chat.bob, COMMUNITY_EVENTS, community=chat.community))["data"][
        "communityEvents"
    ]["cursor"]
    other = await chat.ann.create_topic(chat.community, "Nets")
    other_cursor = (await first_answer(chat.bob, TOPIC_EVENTS, topic=other))["data"]["topicEvents"]["cursor"]
    for cursor in (community_cursor, other_cursor, "", "nonsense", "狼煙", "YQ", other_cursor[:-2]):
        extensions = await first_error_extensions(chat.bob, TOPIC_EVENTS, topic=chat.topic, since=cursor)
        assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", "since"), cursor
        assert extensions["expected"]


async def test_topic_events_need_membership_community_events_do_not(chat: ChatScenario, sign_in: SignIn) -> None:
    zoe = await sign_in("zoe", "elsewhere")
    assert (await first_error_extensions(chat.eve, TOPIC_EVENTS, topic=chat.topic))["code"] == "FORBIDDEN"
    assert (await first_error_extensions(zoe, TOPIC_EVENTS, topic=chat.topic))["code"] == "NOT_FOUND"
    assert (await first_error_extensions(zoe, COMMUNITY_EVENTS, community=chat.community))["code"] == "NOT_FOUND"
    async with chat.eve.subscribed(COMMUNITY_EVENTS, community=chat.community) as events:
        await chat.ann.create_topic(chat.community, "Nets")
        event = await events.next_event()
        assert (event["type"], event["topic"]) == ("TopicCreated", {"title": "Nets"})
        await chat.ann.post(chat.topic, "not for her")
        event = await events.next_event()
        assert (event["type"], event["topic"]) == ("TopicActivity", {"title": "Tides", "lastMessage": None})


async def test_leaving_ends_the_subscription_within_five_seconds(chat: ChatScenario) -> None:
    assert RECHECK_EVERY_S < 4, "No time is left for the lookup and the delivery."
    async with chat.bob.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        await chat.bob.leave(chat.community)
        with pytest.raises(GraphQLFailed) as error:
            await events.next_event()
    assert error.value.codes == ["FORBIDDEN"]


async def test_new_text_of_last_message_is_topic_activity(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(COMMUNITY_EVENTS, community=chat.community) as events:

        async def wait_for_text(text: str) -> None:
            while (await events.next_event())["topic"]["lastMessage"] != {"text": text}:
                pass

        message = await chat.ann.post(chat.topic, "secret")
        await wait_for_text("secret")
        await chat.ann.do(EDIT, id=message["id"], text="edited")
        await wait_for_text("edited")
        await chat.ann.do(DELETE, id=message["id"])
        await wait_for_text("")


@pytest.mark.usefixtures("throttled_activity")
async def test_topic_activity_is_emitted_at_most_once_a_second(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(COMMUNITY_EVENTS, community=chat.community) as events:
        await asyncio.gather(*(chat.ann.post(chat.topic, str(number)) for number in range(10)))
        await chat.ann.post(chat.topic, "last")
        received = [await events.next_event()]
        while received[-1]["topic"]["lastMessage"] != {"text": "last"}:
            received.append(await events.next_event())
    assert {event["type"] for event in received} == {"TopicActivity"}
    emitted_at = [datetime.fromisoformat(event["at"]) for event in received]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(emitted_at))
