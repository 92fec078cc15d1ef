"""Topics as members and non-members see them: page, last message, unread count (docs/semantics.md, 2)."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from tests.resolvers.people import DELETE, PAGE, ChatScenario, Person

pytestmark = pytest.mark.anyio

TOPIC = """
query ($id: ID!) {
  topic(id: $id) {
    title unreadCount readUpTo lastActivity createdAt
    community { id }
    lastMessage { text }
    messages(latest: "now") { items { text } }
  }
}
"""
MARK_READ = """
mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id readUpTo unreadCount } }
"""
AROUND = 'query ($topic: ID!) { messagesAround(topicId: $topic, timestamp: "1.000000") { oldest } }'


async def topic_fields(person: Person, topic: str) -> dict[str, Any]:
    fields: dict[str, Any] = (await person.run(TOPIC, id=topic))["topic"]
    return fields


async def unread_count(person: Person, topic: str) -> int:
    count: int = (await topic_fields(person, topic))["unreadCount"]
    return count


async def mark_read(person: Person, topic: str, timestamp: str) -> dict[str, Any]:
    fields: dict[str, Any] = (await person.run(MARK_READ, topic=topic, at=timestamp))["markRead"]
    return fields


async def test_member_sees_last_message_and_page(chat: ChatScenario) -> None:
    fields_before = await topic_fields(chat.bob, chat.topic)
    assert (fields_before["lastMessage"], fields_before["readUpTo"], fields_before["unreadCount"]) == (None, None, 0)
    assert fields_before["messages"] == {"items": []}
    created_at = datetime.fromisoformat(fields_before["createdAt"]).timestamp()
    assert float(fields_before["lastActivity"]) == pytest.approx(created_at, abs=0.1)
    await chat.ann.post(chat.topic, "first")
    last = await chat.ann.post(chat.topic, "second")
    fields = await topic_fields(chat.bob, chat.topic)
    assert (fields["title"], fields["community"]["id"]) == ("Tides", chat.community)
    assert fields["lastMessage"] == {"text": "second"}
    assert fields["lastActivity"] == last["timestamp"]
    assert fields["messages"] == {"items": [{"text": "second"}, {"text": "first"}]}


async def test_non_member_sees_title_and_null_fields_without_error(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await chat.eve.join(chat.community)
    await mark_read(chat.eve, chat.topic, message["timestamp"])
    await chat.bob.post(chat.topic)
    assert (await topic_fields(chat.eve, chat.topic))["unreadCount"] == 1
    await chat.eve.leave(chat.community)
    fields = await topic_fields(chat.eve, chat.topic)
    assert fields["title"] == "Tides"
    assert [fields[name] for name in ("lastMessage", "readUpTo", "messages", "unreadCount")] == [None, None, None, 0]


async def test_messages_are_forbidden_to_non_members(chat: ChatScenario) -> None:
    hidden_message = await chat.ann.post(chat.topic)
    assert await chat.eve.code(PAGE, topic=chat.topic, latest="now") == "FORBIDDEN"
    assert await chat.eve.code(AROUND, topic=chat.topic) == "FORBIDDEN"
    assert await chat.eve.code(MARK_READ, topic=chat.topic, at="1.000000") == "FORBIDDEN"
    message = "query ($id: ID!) { message(id: $id) { text } }"
    for id_ in (hidden_message["id"], f"{chat.topic}-1"):
        answer = await chat.eve.execute(message, id=id_)
        assert answer["data"] == {"message": None}
        assert answer["errors"][0]["extensions"]["code"] == "FORBIDDEN"


async def test_wrong_bounds_are_reported_even_to_non_members(chat: ChatScenario) -> None:
    query = "query ($id: ID!) { topic(id: $id) { messages { oldest } } }"
    assert (await chat.eve.fails(query, id=chat.topic))["code"] == "BAD_USER_INPUT"


async def test_page_follows_the_timeline_rule(chat: ChatScenario) -> None:
    messages = [await chat.ann.post(chat.topic, str(number)) for number in range(6)]
    timestamps = [message["timestamp"] for message in messages]
    for bounds, texts, has_older, has_newer in (
        ({"latest": "now", "limit": 2}, "54", True, False),
        ({"latest": timestamps[3], "limit": 2}, "32", True, True),
        ({"oldest": timestamps[4]}, "45", True, False),
        ({"oldest": "0.000000", "limit": 3}, "012", False, True),
        ({"oldest": timestamps[1], "latest": timestamps[3]}, "123", True, True),
        ({"oldest": timestamps[1], "latest": "now", "limit": 2}, "12", True, True),
        ({"oldest": timestamps[3], "latest": timestamps[1]}, "", True, True),
    ):
        page = await chat.bob.page(chat.topic, **bounds)
        assert "".join(item["text"] for item in page["items"]) == texts, bounds
        assert (page["hasOlder"], page["hasNewer"]) == (has_older, has_newer), bounds


async def test_messages_after_the_read_mark_are_unread(chat: ChatScenario) -> None:
    messages = [await chat.ann.post(chat.topic, str(number)) for number in range(4)]
    assert await unread_count(chat.bob, chat.topic) == 4
    topic = await mark_read(chat.bob, chat.topic, messages[1]["timestamp"])
    assert topic == {"id": chat.topic, "readUpTo": messages[1]["timestamp"], "unreadCount": 2}
    assert await unread_count(chat.ann, chat.topic) == 0


async def test_mark_read_never_moves_back(chat: ChatScenario) -> None:
    messages = [await chat.ann.post(chat.topic, str(number)) for number in range(3)]
    late, early = messages[2]["timestamp"], messages[0]["timestamp"]
    await mark_read(chat.bob, chat.topic, late)
    assert (await mark_read(chat.bob, chat.topic, early))["readUpTo"] == late
    await asyncio.gather(*(mark_read(chat.bob, chat.topic, message["timestamp"]) for message in messages))
    assert (await topic_fields(chat.bob, chat.topic))["readUpTo"] == late


async def test_read_mark_is_at_most_the_newest_message(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    topic = await mark_read(chat.bob, chat.topic, "9999999999.999999")
    assert topic == {"id": chat.topic, "readUpTo": message["timestamp"], "unreadCount": 0}
    await chat.ann.post(chat.topic)
    assert await unread_count(chat.bob, chat.topic) == 1


async def test_read_marks_belong_to_one_reader_and_topic(chat: ChatScenario) -> None:
    other = await chat.ann.create_topic(chat.community, "Nets")
    await chat.ann.post(other)
    message = await chat.ann.post(chat.topic)
    await mark_read(chat.bob, chat.topic, message["timestamp"])
    assert await unread_count(chat.bob, other) == 1
    await chat.eve.join(chat.community)
    assert (await topic_fields(chat.eve, chat.topic))["readUpTo"] is None


async def test_own_and_deleted_messages_are_not_unread(chat: ChatScenario) -> None:
    await chat.bob.post(chat.topic)
    deleted, _ = await chat.ann.post(chat.topic), await chat.ann.post(chat.topic)
    await chat.ann.run(DELETE, id=deleted["id"])
    assert await unread_count(chat.bob, chat.topic) == 1
    assert await unread_count(chat.ann, chat.topic) == 1


async def test_unread_count_is_capped_at_a_hundred(chat: ChatScenario) -> None:
    # Ann has few operations at the same time: on a busy machine, others would be refused after a wait.
    for _ in range(9):
        await asyncio.gather(*(chat.ann.post(chat.topic) for _ in range(11)))
    assert await unread_count(chat.bob, chat.topic) == 99
    await asyncio.gather(*(chat.ann.post(chat.topic) for _ in range(6)))
    assert await unread_count(chat.bob, chat.topic) == 100
