"""Timelines that are paged as Relay's connections: newest first, by `first` and `after` or `last` and `before`."""

from typing import Any

import pytest

from tests.resolvers.people import Answer, ChatScenario, Person

pytestmark = pytest.mark.anyio

CONNECTION = """
query ($topic: ID!, $first: Int, $after: Timestamp, $last: Int, $before: Timestamp) {
  done: messages(topicId: $topic, first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { text timestamp } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""
TEXTS = [f"message {number}" for number in range(7, 0, -1)]
"""The texts of the topic, the newest first."""


@pytest.fixture
async def ann(chat: ChatScenario) -> Person:
    for text in reversed(TEXTS):
        await chat.ann.post(chat.topic, text)
    return chat.ann


async def page(chat: ChatScenario, **arguments: Any) -> Answer:
    return await chat.ann.do(CONNECTION, topic=chat.topic, **arguments)


def texts(page: Answer) -> list[str]:
    return [edge["node"]["text"] for edge in page["edges"]]


async def test_pages_from_the_newest_item_have_every_item_once(chat: ChatScenario, ann: Person) -> None:
    pages = [await page(chat, first=3, after=None)]
    while pages[-1]["pageInfo"]["hasNextPage"]:
        pages.append(await page(chat, first=3, after=pages[-1]["pageInfo"]["endCursor"]))
    assert [texts(each) for each in pages] == [TEXTS[:3], TEXTS[3:6], TEXTS[6:]]
    assert [each["pageInfo"]["hasPreviousPage"] for each in pages] == [False, True, True]


async def test_pages_from_the_oldest_item_have_the_same_order(chat: ChatScenario, ann: Person) -> None:
    pages = [await page(chat, last=3)]
    while pages[-1]["pageInfo"]["hasPreviousPage"]:
        pages.append(await page(chat, last=3, before=pages[-1]["pageInfo"]["startCursor"]))
    assert [texts(each) for each in pages] == [TEXTS[4:], TEXTS[1:4], TEXTS[:1]]
    assert [each["pageInfo"]["hasNextPage"] for each in pages] == [False, True, True]


async def test_cursors_are_the_timestamps_of_the_items(chat: ChatScenario, ann: Person) -> None:
    connection = await page(chat, first=2)
    cursors = [edge["cursor"] for edge in connection["edges"]]
    assert cursors == [edge["node"]["timestamp"] for edge in connection["edges"]]
    assert [connection["pageInfo"][name] for name in ("startCursor", "endCursor")] == cursors


async def test_page_by_bounds_has_edges_too(chat: ChatScenario, ann: Person) -> None:
    query = (
        'query ($topic: ID!) { done: messages(topicId: $topic, oldest: "0.000000", limit: 2) '
        "{ items { text } edges { node { text } } pageInfo { hasPreviousPage } } }"
    )
    found = await ann.do(query, topic=chat.topic)
    assert [item["text"] for item in found["items"]] == ["message 1", "message 2"]
    assert texts(found) == ["message 2", "message 1"]
    assert found["pageInfo"] == {"hasPreviousPage": True}


async def test_empty_connection_has_no_cursors(chat: ChatScenario) -> None:
    for arguments in ({"first": 5}, {"last": 5}):
        assert await page(chat, **arguments) == {
            "edges": [],
            "pageInfo": {"hasNextPage": False, "hasPreviousPage": False, "startCursor": None, "endCursor": None},
        }


async def test_nested_connection_and_mapped_pages_have_edges(chat: ChatScenario, ann: Person) -> None:
    query = "query ($id: ID!) { done: topic(id: $id) { messages(first: 1) { edges { node { text } } } } }"
    assert texts((await ann.do(query, id=chat.topic))["messages"]) == TEXTS[:1]
    parent = (await chat.ann.page(chat.topic))["items"][0]["id"]
    await chat.bob.post(chat.topic, "A reply", replyTo=parent)
    followed = await ann.do("{ done: followedThreads(first: 5) { edges { node { parentMessage { id } } } } }")
    assert followed["edges"] == [{"node": {"parentMessage": {"id": parent}}}]


@pytest.mark.parametrize(
    ("arguments", "field", "expected"),
    [
        ({"first": 0}, "first", "a number from 1 to 999, not 0"),
        ({"last": 1000}, "last", "a number from 1 to 999, not 1000"),
        ({"first": 1, "last": 1}, "first", "no value beside last"),
        ({"first": 1, "before": "1.000000"}, "before", "no value without last"),
        ({"last": 1, "after": "1.000000"}, "after", "no value beside last"),
        ({"after": "1.000000"}, "after", "no value without first"),
        ({"before": "1.000000"}, "before", "no value without last"),
        ({"first": 1, "after": "now"}, "after", 'a timestamp; "now" is for latest only'),
        ({}, "oldest", "oldest, latest or both"),
    ],
)
async def test_contradictory_arguments_are_refused(
    chat: ChatScenario, arguments: dict[str, Any], field: str, expected: str
) -> None:
    refused = await chat.ann.fails(CONNECTION, topic=chat.topic, **arguments)
    assert refused == {"code": "BAD_USER_INPUT", "field": field, "expected": expected}


async def test_bounds_beside_first_are_refused(chat: ChatScenario) -> None:
    query = 'query ($topic: ID!) { messages(topicId: $topic, first: 1, latest: "now") { oldest } }'
    refused = await chat.ann.fails(query, topic=chat.topic)
    assert refused == {"code": "BAD_USER_INPUT", "field": "latest", "expected": "no value beside first or last"}
