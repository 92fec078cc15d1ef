"""Threads: replies on a timeline of their own, and what the parent message shows of them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from storage.chat.changes import NewMessage
from storage.chat.roles import Moderator
from storage.chat.threads.rules import thread_id
from storage.errors import DomainError, Forbidden
from storage.ids import message_key
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.resolvers.people import DELETE, EDIT, REACT, Answer, ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

PARENT = """
query ($id: ID!) {
  done: message(id: $id) {
    deletedAt
    thread { id replyCount lastReplyAt lastReply { id text } lastRepliers { id } unreadCount }
  }
}
"""
TOPIC = (
    "query ($id: ID!) { done: topic(id: $id) { title parentMessageId unreadCount community { id name memberCount } } }"
)
TOPICS = """
query ($id: ID!) {
  community(id: $id) { topics { id } }
  communityTopics(communityId: $id, latest: "now", archived: null) { items { id } hasOlder }
  trendingTopics { topic { id } }
}
"""
EVENTS = """
subscription ($topic: ID!, $since: Cursor) {
  topicEvents(topicId: $topic, since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on MessagePosted { message { text } }
    ... on ThreadChanged { message { id thread { replyCount lastRepliers { id } } } }
  }
}
"""
COMMUNITY_EVENTS = """
subscription ($id: ID!) {
  communityEvents(communityId: $id) { type: __typename ... on TopicActivity { topic { id } } }
}
"""
MARK_READ = (
    "mutation ($topic: ID!, $at: Timestamp!) { done: markRead(topicId: $topic, timestamp: $at) { unreadCount } }"
)
PIN = "mutation ($id: ID!) { pinMessage(messageId: $id) { id } }"
ARCHIVE = "mutation ($id: ID!) { archiveTopic(topicId: $id) { id } }"
SLOW = "mutation ($id: ID!) { setSlowMode(topicId: $id, seconds: 600) { id } }"
BAN = 'mutation ($c: ID!, $u: ID!) { banMember(communityId: $c, userId: $u, reason: "x") { user { id } } }'
SEARCH = """
query ($query: String!, $topic: ID) {
  done: searchMessages(query: $query, topicId: $topic, latest: "now") { items { message { text } } }
}
"""
WRITE = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
START_CONVERSATION = "mutation ($ids: [ID!]!) { done: startConversation(input: { userIds: $ids }) { id } }"
LEAVE_CONVERSATION = "mutation ($id: ID!) { leaveConversation(conversationId: $id) }"


async def reply(person: Person, parent: Answer, text: str = "reply", **more: Any) -> Answer:
    """Replies to a message, and waits until the message shows the reply."""
    posted = await person.post(parent["topicId"], text, replyTo=parent["id"], **more)
    await until_outbox_is_empty(person.stores)
    return posted


async def shown(person: Person, parent: Answer) -> Answer:
    """Returns the thread of a message as the person sees it."""
    thread: Answer = (await person.do(PARENT, id=parent["id"]))["thread"]
    return thread


async def replier_ids(person: Person, parent: Answer) -> list[str]:
    """Returns the ids of the last repliers that a message shows to the person."""
    return [each["id"] for each in (await shown(person, parent))["lastRepliers"]]


async def refused(person: Person, topic: str, **more: Any) -> str | None:
    """Posts a message, and returns the code of the error, or None."""
    return await person.code(WRITE, input={"topicId": topic, "text": "words", **more})


async def test_replies_have_a_timeline_of_their_own(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic, "parent")
    assert await shown(chat.ann, parent) is None
    first = await reply(chat.bob, parent, "one")
    second = await reply(chat.ann, parent, "two")
    thread = first["topicId"]
    assert second["topicId"] == thread != chat.topic
    assert await chat.ann.texts(thread) == ["one", "two"]
    assert await chat.ann.texts(chat.topic) == ["parent"]
    assert await shown(chat.bob, parent) == {
        "id": f"Thread:{thread}",
        "replyCount": 2,
        "lastReplyAt": second["timestamp"],
        "lastReply": {"id": second["id"], "text": "two"},
        "lastRepliers": [{"id": "ann"}, {"id": "bob"}],
        "unreadCount": 1,
    }
    topic = await chat.bob.do(TOPIC, id=thread)
    assert (topic["title"], topic["parentMessageId"]) == ("", parent["id"])


async def test_messages_to_the_thread_are_replies_too(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    thread = (await reply(chat.bob, parent))["topicId"]
    posted = await chat.ann.post(thread, "more")
    await chat.bob.run(REACT, id=posted["id"], emoji="👍")
    await chat.ann.run(EDIT, id=posted["id"], text="edited")
    await until_outbox_is_empty(chat.ann.stores)
    assert (await shown(chat.ann, parent))["replyCount"] == 2
    assert await chat.bob.do(MARK_READ, topic=thread, at=posted["timestamp"]) == {"unreadCount": 0}


async def test_threads_cannot_nest(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    posted = await reply(chat.bob, parent)
    for topic in (chat.topic, posted["topicId"]):
        error = await chat.ann.fails(WRITE, input={"topicId": topic, "text": "x", "replyTo": posted["id"]})
        assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "replyTo")
    assert (await shown(chat.ann, posted)) is None


async def test_reply_to_unknown_message_is_not_found(chat: ChatScenario) -> None:
    other_topic = await chat.ann.create_topic(chat.community)
    other = await chat.ann.post(other_topic)
    for id_ in (other["id"], f"{chat.topic}-1", "x"):
        assert await refused(chat.ann, chat.topic, replyTo=id_) == "NOT_FOUND"
    assert not await chat.ann.stores.mongo["topics"].count_documents({"thread": {"$exists": True}})


async def test_threads_are_in_no_list_of_topics(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    for person in (chat.bob, chat.ann, chat.bob):
        thread = (await reply(person, parent))["topicId"]
    lists = await chat.bob.run(TOPICS, id=chat.community)
    assert lists["community"]["topics"] == lists["communityTopics"]["items"] == [{"id": chat.topic}]
    assert lists["communityTopics"]["hasOlder"] is False
    assert thread not in str(lists)


async def test_replies_emit_no_event_of_the_community(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    await until_outbox_is_empty(chat.ann.stores)
    other = await chat.ann.create_topic(chat.community)
    async with chat.ann.subscribed(COMMUNITY_EVENTS, id=chat.community) as events:
        await reply(chat.bob, parent)
        await chat.ann.post(other)
        assert await events.next_event() == {"type": "TopicActivity", "topic": {"id": other}}


async def test_replies_emit_thread_changed_in_the_topic(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    async with chat.ann.subscribed(EVENTS, topic=chat.topic) as events:
        await reply(chat.bob, parent)
        event = await events.next_event()
        assert event["type"] == "ThreadChanged"
        assert event["message"] == {
            "id": parent["id"],
            "thread": {"replyCount": 1, "lastRepliers": [{"id": "bob"}]},
        }


async def test_thread_has_its_own_events(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    thread = (await reply(chat.bob, parent))["topicId"]
    async with chat.ann.subscribed(EVENTS, topic=thread) as events:
        await chat.ann.post(chat.topic, "elsewhere")
        await reply(chat.bob, parent, "here")
        assert (await events.next_event())["message"] == {"text": "here"}


async def test_deleted_replies_are_not_counted(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    first = await reply(chat.bob, parent)
    second = await reply(chat.ann, parent)
    await chat.ann.run(DELETE, id=second["id"])
    await chat.ann.run(DELETE, id=second["id"])
    assert (await shown(chat.ann, parent))["lastReply"] in (None, {"id": first["id"], "text": first["text"]})
    await until_outbox_is_empty(chat.ann.stores)
    thread = await shown(chat.ann, parent)
    assert (thread["replyCount"], thread["lastReplyAt"]) == (1, first["timestamp"])
    assert thread["lastRepliers"] == [{"id": "bob"}]
    await chat.bob.run(DELETE, id=first["id"])
    await until_outbox_is_empty(chat.ann.stores)
    thread = await shown(chat.ann, parent)
    assert (thread["replyCount"], thread["lastReplyAt"], thread["lastRepliers"]) == (0, None, [])
    assert thread["lastReply"] is None


async def test_thread_of_a_deleted_message_stays(chat: ChatScenario) -> None:
    parent, other = [await chat.ann.post(chat.topic) for _ in range(2)]
    thread = (await reply(chat.bob, parent, "before"))["topicId"]
    for message in (parent, other):
        await chat.ann.run(DELETE, id=message["id"])
    await reply(chat.bob, parent, "after")
    assert await chat.ann.texts(thread) == ["before", "after"]
    shown_parent = await chat.ann.do(PARENT, id=parent["id"])
    assert shown_parent["deletedAt"] is not None
    assert shown_parent["thread"]["replyCount"] == 2
    assert await refused(chat.bob, chat.topic, replyTo=other["id"]) == "CONFLICT"


async def test_replies_of_blocked_people_do_not_count(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    await chat.eve.join(chat.community)
    first = await reply(chat.eve, parent)
    for _ in range(2):
        await reply(chat.bob, parent)
    await chat.ann.block(chat.bob)
    thread = await shown(chat.ann, parent)
    assert (thread["replyCount"], thread["lastReplyAt"]) == (1, first["timestamp"])
    assert (thread["lastRepliers"], thread["unreadCount"]) == ([{"id": "eve"}], 1)
    assert thread["lastReply"]["id"] == first["id"]
    assert await replier_ids(chat.eve, parent) == ["bob", "eve"]
    assert await refused(chat.bob, chat.topic, replyTo=parent["id"]) is None


async def test_message_of_blocked_author_takes_no_reply(chat: ChatScenario) -> None:
    parent = await chat.bob.post(chat.topic)
    await chat.ann.block(chat.bob)
    assert await refused(chat.ann, chat.topic, replyTo=parent["id"]) == "NOT_FOUND"


async def test_last_repliers_are_at_most_five(chat: ChatScenario, sign_in: SignIn) -> None:
    parent = await chat.ann.post(chat.topic)
    people = [await sign_in(f"p{number}") for number in range(7)]
    for person in people:
        await person.join(chat.community)
        await person.post(chat.topic, replyTo=parent["id"])
    await until_outbox_is_empty(chat.ann.stores)
    assert await replier_ids(chat.ann, parent) == ["p6", "p5", "p4", "p3", "p2"]


async def test_outsiders_see_no_thread(chat: ChatScenario, sign_in: SignIn) -> None:
    parent = await chat.ann.post(chat.topic)
    thread = (await reply(chat.bob, parent))["topicId"]
    page = 'query ($id: ID!) { messages(topicId: $id, latest: "now") { items { id } } }'
    assert await chat.eve.code(page, id=thread) == "FORBIDDEN"
    assert await refused(chat.eve, thread) == "FORBIDDEN"
    stranger = await sign_in("zed", "other")
    for query in (page, TOPIC):
        assert await stranger.code(query, id=thread) == "NOT_FOUND"


async def test_settings_of_the_topic_apply_to_its_threads(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    posted = await reply(chat.bob, parent)
    for query, id_ in ((PIN, posted["id"]), (ARCHIVE, posted["topicId"]), (SLOW, posted["topicId"])):
        assert await chat.ann.code(query, id=id_) == "FORBIDDEN"
    await chat.ann.run(SLOW, id=chat.topic)
    assert await refused(chat.bob, posted["topicId"]) is None
    assert await refused(chat.bob, posted["topicId"]) == "RATE_LIMITED"
    assert [await refused(chat.ann, posted["topicId"]) for _ in range(2)] == [None, None]
    await chat.ann.run(ARCHIVE, id=chat.topic)
    assert await refused(chat.ann, posted["topicId"]) == "FORBIDDEN"
    assert await chat.bob.code(REACT, id=posted["id"], emoji="👍") == "FORBIDDEN"


async def test_banned_people_write_to_no_thread(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    posted = await reply(chat.bob, parent)
    await chat.ann.run(BAN, c=chat.community, u="bob")
    new = NewMessage(posted["topicId"], chat.community, "bob", "late", None, ())
    with pytest.raises(Forbidden):
        await chat.ann.stores.messages.post(new)


async def test_search_in_a_topic_finds_its_replies(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic, "lighthouse")
    thread = (await reply(chat.bob, parent, "lighthouse keeper"))["topicId"]
    other = await chat.ann.create_topic(chat.community)
    for topic, texts in (
        (chat.topic, ["lighthouse keeper", "lighthouse"]),
        (thread, ["lighthouse keeper"]),
        (other, []),
    ):
        found = (await chat.ann.do(SEARCH, query="lighthouse", topic=topic))["items"]
        assert [each["message"]["text"] for each in found] == texts


async def test_threads_of_a_conversation_have_its_access_rights(chat: ChatScenario) -> None:
    id_ = (await chat.ann.do(START_CONVERSATION, ids=["bob"]))["id"]
    parent = await chat.ann.post(id_, "parent")
    thread = (await reply(chat.bob, parent, "direct"))["topicId"]
    assert (await chat.ann.do(TOPIC, id=thread))["community"]["memberCount"] == 2
    assert await chat.eve.code(TOPIC, id=thread) == "NOT_FOUND"
    await chat.bob.run(LEAVE_CONVERSATION, id=id_)
    assert await refused(chat.bob, thread) == "NOT_FOUND"
    assert await refused(chat.ann, thread) == "FORBIDDEN"
    for author in ("ann", "bob"):
        with pytest.raises(Forbidden):
            await chat.ann.stores.messages.post(NewMessage(thread, id_, author, "late", None, ()))


async def test_request_takes_no_second_message_as_reply(chat: ChatScenario) -> None:
    id_ = (await chat.eve.do(START_CONVERSATION, ids=["ann"]))["id"]
    parent = await chat.eve.post(id_, "please")
    assert await refused(chat.eve, id_, replyTo=parent["id"]) == "FORBIDDEN"
    assert await refused(chat.ann, id_, replyTo=parent["id"]) == "FORBIDDEN"


async def test_replies_of_many_processes_count_exactly(
    chat: ChatScenario, mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    """Two processes start the same threads, reply and delete at once. Each reply counts once."""
    parents = [await chat.ann.post(chat.topic) for _ in range(3)]
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver) as other:
        people = [chat.ann, chat.bob, replace(chat.bob, stores=other), replace(chat.ann, stores=other)]
        replies: list[Answer] = []
        for _ in range(5):
            posting = [person.post(chat.topic, replyTo=parent["id"]) for person in people for parent in parents]
            replies += await asyncio.gather(*posting)
        await asyncio.gather(
            *(
                person.run(DELETE, id=each["id"])
                for each in replies[:6]
                for person in people
                if person.id == each["author"]["id"]
            )
        )
        await until_outbox_is_empty(other)
    for parent in parents:
        stored = await chat.ann.stores.mongo["messages"].count_documents(
            {"_id.t": thread_id(message_key(parent["id"])), "deleted_at": None}
        )
        assert (await shown(chat.ann, parent))["replyCount"] == stored == 18


async def test_archiving_waits_for_replies_in_progress(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply that has read the topic before it was archived is committed before the archiving returns, or fails."""
    parent = await chat.ann.post(chat.topic)
    thread = (await reply(chat.bob, parent))["topicId"]
    stores: Stores = chat.ann.stores
    has_read, may_commit = asyncio.Event(), asyncio.Event()
    store = stores.messages._sequencer._store

    async def store_later(batch: Any, session: Any) -> None:
        if batch.stream.id == thread:
            has_read.set()
            await may_commit.wait()
        await store(batch, session)

    monkeypatch.setattr(stores.messages._sequencer, "_store", store_later)
    posting = asyncio.create_task(stores.messages.post(NewMessage(thread, chat.community, "bob", "late", None, ())))
    await has_read.wait()
    archiving = asyncio.create_task(stores.topics.set_archived(chat.topic, True, Moderator("ann")))
    done, _ = await asyncio.wait([archiving], timeout=0.5)
    assert not done
    may_commit.set()
    await archiving
    before = await chat.ann.texts(thread)
    with pytest.raises(DomainError):
        await stores.messages.post(NewMessage(thread, chat.community, "bob", "too late", None, ()))
    await asyncio.wait([posting])
    assert await chat.ann.texts(thread) == before
