"""Cross-posts: a reply that was also sent to the topic is one reply there, and stands once in the topic."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from storage.chat.changes import NewMessage
from storage.chat.stamps.rules import StampRuleKind
from storage.chat.threads.cross_posts import cross_post_source
from storage.errors import DomainError, RateLimited
from storage.feed.stamp_rules.counts import ActivityCounts
from storage.idempotency import idempotency_key
from storage.ids import UserKey, message_key
from storage.mongo import Driver, Mongo
from storage.stores import Stores, open_stores
from storage.streams.outbox import Outbox
from tests.cancellation import CancelledAwait
from tests.resolvers.people import DELETE, EDIT, REACT, Answer, ChatScenario, Person, until_outbox_is_empty

pytestmark = pytest.mark.anyio

SHOWN = """
fragment shown on Message {
  id topicId timestamp text deletedAt editedAt alsoInTopic author { id } stamp { id } mentions { id }
  quote { message { id } } thread { replyCount }
  threadReply { threadId message { id topicId text alsoInTopic } parentMessage { id text } }
}
"""
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { ...shown } }" + SHOWN
MESSAGE = "query ($id: ID!) { done: message(id: $id) { ...shown } }" + SHOWN
PAGE = 'query ($id: ID!) { done: messages(topicId: $id, latest: "now", limit: 500) { items { ...shown } } }' + SHOWN
EVENTS = (
    """
subscription ($topic: ID!) {
  topicEvents(topicId: $topic) {
    type: __typename
    ... on MessagePosted { message { ...shown } }
    ... on MessageEdited { message { ...shown } }
    ... on MessageDeleted { message { ...shown } }
    ... on ReactionsChanged { message { ...shown } }
  }
}
"""
    + SHOWN
)
UNREAD = "query ($id: ID!) { done: topic(id: $id) { unreadCount lastMessage { text } } }"
SEARCH = 'query ($q: String!) { done: searchMessages(query: $q, latest: "now") { items { message { id } } } }'
NOTIFICATIONS = '{ done: notifications(latest: "now") { items { kind message { id } } } }'
TRENDING = "{ done: trendingTopics { topic { id } people messagesPerMinute } }"
ARCHIVE = "mutation ($id: ID!) { archiveTopic(topicId: $id) { id } }"
PIN = "mutation ($id: ID!) { done: pinMessage(messageId: $id) { text } }"
SLOW = "mutation ($id: ID!) { setSlowMode(topicId: $id, seconds: 600) { id } }"
MUTE = """
mutation ($c: ID!, $u: ID!) { muteMember(communityId: $c, userId: $u, until: "2999-01-01T00:00:00Z") { user { id } } }
"""
REPORT = "mutation ($id: ID!) { reportContent(subject: MESSAGE, subjectId: $id, category: SPAM) }"
REPORTS = "query ($id: ID!) { done: contentReports(communityId: $id) { subjectId contentText } }"
FOLLOW = "mutation ($id: ID!) { followThread(messageId: $id) { id } }"
START = "mutation ($ids: [ID!]!) { done: startConversation(input: { userIds: $ids }) { id } }"
CONVERSATIONS = '{ done: conversations(latest: "now") { items { topic { unreadCount lastMessage { text } } } } }'


async def cross_post(person: Person, parent: Answer, text: str = "reply", **more: Any) -> Answer:
    """Replies to a message and sends the reply also to the topic. Waits until it stands there."""
    fields = {"topicId": parent["topicId"], "replyTo": parent["id"], "alsoToTopic": True, "text": text, **more}
    posted = await person.do(POST, input=fields)
    await until_outbox_is_empty(person.stores)
    return posted


async def page(person: Person, topic: str) -> list[Answer]:
    """Returns the newest page of a topic, oldest first."""
    items: list[Answer] = (await person.do(PAGE, id=topic))["items"]
    return items[::-1]


async def last(person: Person, topic: str) -> Answer:
    """Returns the last message of a topic."""
    return (await page(person, topic))[-1]


async def relay_nothing(_outbox: Outbox, _stream: str) -> float:
    """Leaves all rows to another process."""
    return -1.0


async def cross_post_later(person: Person, parent: Answer) -> Answer:
    """Replies to a message and sends the reply also to the topic, where it does not stand yet."""
    fields = {"topicId": parent["topicId"], "replyTo": parent["id"], "text": "secret", "alsoToTopic": True}
    return await person.do(POST, input=fields)


async def relay_waiting_rows(stores: Stores) -> None:
    """Relays the rows that another process has left."""
    for row in await stores.mongo["outbox"].find({}).to_list(None):
        stores.outbox.nudge(row["stream"])
    await until_outbox_is_empty(stores)


async def refused(person: Person, **fields: Any) -> str | None:
    """Posts a message, and returns the code of the error, or None."""
    return await person.code(POST, input={"text": "words", **fields})


async def test_reply_stands_in_thread_and_topic(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic, "who comes?")
    reply = await cross_post(chat.bob, parent, "I do, @ann", quotedMessageId=parent["id"])
    assert (reply["alsoInTopic"], reply["threadReply"]) == (True, None)
    assert [each["id"] for each in await page(chat.ann, reply["topicId"])] == [reply["id"]]
    first, shown = await page(chat.ann, chat.topic)
    assert (first["id"], first["thread"]) == (parent["id"], {"replyCount": 1})
    assert (shown["topicId"], shown["text"], shown["author"], shown["mentions"]) == (
        chat.topic,
        "I do, @ann",
        {"id": "bob"},
        [{"id": "ann"}],
    )
    assert (shown["alsoInTopic"], shown["thread"], shown["quote"]) == (False, None, {"message": {"id": parent["id"]}})
    assert shown["threadReply"] == {
        "threadId": reply["topicId"],
        "message": {"id": reply["id"], "topicId": reply["topicId"], "text": "I do, @ann", "alsoInTopic": True},
        "parentMessage": {"id": parent["id"], "text": "who comes?"},
    }
    assert await chat.ann.do(MESSAGE, id=shown["id"]) == shown


async def test_message_to_the_thread_is_sent_to_the_topic_too(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    thread = (await chat.bob.post(chat.topic, "one", replyTo=parent["id"]))["topicId"]
    await chat.bob.do(POST, input={"topicId": thread, "text": "two", "alsoToTopic": True})
    await chat.bob.do(POST, input={"topicId": thread, "text": "three", "alsoToTopic": False})
    await until_outbox_is_empty(chat.ann.stores)
    assert await chat.ann.texts(thread) == ["one", "two", "three"]
    assert await chat.ann.texts(chat.topic) == ["Hello", "two"]


async def test_only_replies_are_sent_to_the_topic_too(chat: ChatScenario) -> None:
    error = await chat.ann.fails(POST, input={"topicId": chat.topic, "text": "x", "alsoToTopic": True})
    assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "alsoToTopic")
    assert await chat.ann.texts(chat.topic) == []


async def test_repeated_key_posts_one_reply_and_one_cross_post(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    fields = {"topicId": chat.topic, "replyTo": parent["id"], "text": "x", "alsoToTopic": True, "idempotencyKey": "k"}
    replies = await asyncio.gather(*(chat.bob.do(POST, input=fields) for _ in range(8)))
    await until_outbox_is_empty(chat.ann.stores)
    assert len({each["id"] for each in replies}) == 1
    assert await chat.ann.texts(chat.topic) == ["Hello", "x"]
    assert await chat.ann.texts(replies[0]["topicId"]) == ["x"]
    assert await refused(chat.bob, **{**fields, "alsoToTopic": False}) == "CONFLICT"


async def test_key_of_an_earlier_release_is_repeated(chat: ChatScenario) -> None:
    """The digest of a post that is not sent to the topic is the same with and without the argument."""
    fields = {"topicId": chat.topic, "text": "x", "idempotencyKey": "k"}
    posted = await chat.bob.do(POST, input=fields)
    assert await chat.bob.do(POST, input={**fields, "alsoToTopic": False}) == posted
    stored = await chat.ann.stores.mongo["idempotency"].find_one({})
    arguments = {"topic_id": chat.topic, "text": "x"}
    earlier = idempotency_key("acme", "bob", "postMessage", "k", arguments)
    assert earlier is not None
    assert stored is not None
    assert stored == earlier.document(posted["id"], stored["at"])


async def test_cancelled_and_repeated_cross_post_stands_once(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    await chat.bob.post(chat.topic, "first", replyTo=parent["id"])

    async def check(number: int) -> None:
        fields = {
            "topicId": chat.topic,
            "replyTo": parent["id"],
            "text": f"{number}",
            "alsoToTopic": True,
            "idempotencyKey": f"k{number}",
        }
        work = CancelledAwait(chat.bob.do(POST, input=fields), number)

        async def run() -> None:
            await work

        await asyncio.wait([asyncio.create_task(run())])
        await chat.bob.do(POST, input=fields)

    await asyncio.gather(*(check(number) for number in range(1, 25)))
    await until_outbox_is_empty(chat.ann.stores)
    assert Counter((await chat.ann.texts(chat.topic))[1:]) == Counter(f"{number}" for number in range(1, 25))


async def test_killed_process_leaves_one_cross_post(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies after the commit of the reply. Sweeps of two other processes relay the row once."""
    parent = await chat.ann.post(chat.topic)
    await chat.bob.post(chat.topic, "first", replyTo=parent["id"])
    await until_outbox_is_empty(chat.ann.stores)
    stores = chat.ann.stores
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_relay", relay_nothing)
        fields = {"topicId": chat.topic, "replyTo": parent["id"], "text": "late", "alsoToTopic": True}
        await chat.bob.do(POST, input=fields)
    assert await chat.ann.texts(chat.topic) == ["Hello"]
    await stores.mongo["outbox"].update_many({}, [{"$set": {"at": {"$subtract": ["$$NOW", 60_000]}}}])
    await stores.mongo["outbox"].insert_many(
        [{**row, "_id": str(row["_id"])} for row in await stores.mongo["outbox"].find({}).to_list(None)]
    )
    await stores.outbox.sweep()
    await until_outbox_is_empty(stores)
    assert await chat.ann.texts(chat.topic) == ["Hello", "late"]


async def test_cross_posts_of_many_processes_stand_once(
    chat: ChatScenario, mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    """Two processes reply, post to the topic, edit and delete at once."""
    parents = [await chat.ann.post(chat.topic, "parent") for _ in range(3)]
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver) as other:
        people = [chat.ann, chat.bob, replace(chat.bob, stores=other), replace(chat.ann, stores=other)]

        async def write(person: Person, parent: Answer, number: int) -> Answer:
            fields = {"topicId": chat.topic, "replyTo": parent["id"], "alsoToTopic": True, "text": f"reply {number}"}
            posted = await person.do(POST, input=fields)
            await person.post(chat.topic, "between")
            if number % 3 == 0:
                await person.run(DELETE, id=posted["id"])
            elif number % 3 == 1:
                await person.run(EDIT, id=posted["id"], text=f"edited {number}")
            return posted

        work = [(person, parent) for _ in range(3) for person in people for parent in parents]
        replies = await asyncio.gather(*(write(*each, number) for number, each in enumerate(work)))
        await until_outbox_is_empty(other)
    messages = await chat.ann.stores.mongo["messages"].find({"_id.t": chat.topic}).sort("_id", 1).to_list(None)
    sources = Counter(each["source"] for each in messages if "source" in each)
    expected = {cross_post_source(message_key(each["id"])) for each in replies}
    assert set(sources) <= expected
    assert set(sources.values()) == {1}
    texts = Counter(each["text"] for each in await page(chat.ann, chat.topic))
    count = len(replies) // 3
    assert {text: n for text, n in texts.items() if text.startswith(("reply", "edited"))} == {
        **{f"reply {number}": 1 for number in range(2, len(replies), 3)},
        **{f"edited {number}": 1 for number in range(1, len(replies), 3)},
    }
    assert texts["between"] == 3 * count
    events = await chat.ann.stores.mongo["events"].find({"_id.s": f"topic:{chat.topic}"}).sort("_id", 1).to_list(None)
    posted = [each["ref"] for each in events if each["kind"] == "MessagePosted"]
    assert posted == sorted(set(posted)) == [each["_id"]["ts"] for each in messages]


async def test_edit_and_deletion_reach_live_readers_of_the_topic(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    await chat.bob.post(chat.topic, "first", replyTo=parent["id"])
    await until_outbox_is_empty(chat.ann.stores)
    async with chat.ann.subscribed(EVENTS, topic=chat.topic) as events:

        async def next_of_message() -> Answer:
            while (event := await events.next_event())["type"] == "ThreadChanged":
                pass
            return event

        reply = await cross_post(chat.bob, parent, "one")
        posted = await next_of_message()
        assert (posted["type"], posted["message"]["text"]) == ("MessagePosted", "one")
        assert posted["message"]["threadReply"]["message"]["id"] == reply["id"]
        await chat.bob.run(EDIT, id=reply["id"], text="two")
        edited = await next_of_message()
        assert (edited["type"], edited["message"]["id"]) == ("MessageEdited", posted["message"]["id"])
        assert (edited["message"]["text"], edited["message"]["editedAt"] is None) == ("two", False)
        await chat.ann.run(DELETE, id=reply["id"])
        deleted = await next_of_message()
        assert (deleted["type"], deleted["message"]["id"]) == ("MessageDeleted", posted["message"]["id"])
        assert (deleted["message"]["text"], deleted["message"]["threadReply"]) == ("", None)
        assert deleted["message"]["deletedAt"] is not None


async def test_deleted_reply_disappears_before_the_relay(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = await chat.ann.post(chat.topic)
    kept, reply = await cross_post(chat.bob, parent, "kept"), await cross_post(chat.bob, parent, "secret")
    monkeypatch.setattr(Outbox, "_relay", relay_nothing)
    await chat.bob.run(DELETE, id=reply["id"])
    await chat.bob.run(EDIT, id=kept["id"], text="edited")
    _, edited, shown = await page(chat.ann, chat.topic)
    assert edited["text"] == "edited"
    assert (shown["text"], shown["threadReply"], shown["deletedAt"] is None) == ("", None, False)
    assert (await chat.ann.do(UNREAD, id=chat.topic))["lastMessage"] == {"text": ""}


async def test_reply_deleted_before_the_relay_never_stands(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = await chat.ann.post(chat.topic)
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_relay", relay_nothing)
        reply = await cross_post_later(chat.bob, parent)
        await chat.bob.run(DELETE, id=reply["id"])
    before = await chat.ann.stores.mongo["topics"].find_one({"_id": chat.topic}, {"last": 1, "heat": 1})
    await relay_waiting_rows(chat.ann.stores)
    assert await chat.ann.texts(chat.topic) == ["Hello"]
    assert await chat.ann.stores.mongo["topics"].find_one({"_id": chat.topic}, {"last": 1, "heat": 1}) == before


async def test_cross_post_of_a_missing_reply_is_deleted(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing deletes documents of messages. If it happens, neither a page nor the outbox fails."""
    parent = await chat.ann.post(chat.topic)
    missing, kept = await cross_post(chat.bob, parent, "missing"), await cross_post(chat.bob, parent, "kept")
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_relay", relay_nothing)
        late = await cross_post_later(chat.bob, parent)
        await chat.bob.run(EDIT, id=missing["id"], text="edited")
        await chat.bob.run(EDIT, id=kept["id"], text="edited")
    for each in (missing, late):
        await chat.ann.stores.mongo["messages"].delete_one({"_id": message_key(each["id"]).document_id})

    async def assert_shown() -> None:
        _, tombstone, shown = await page(chat.ann, chat.topic)
        assert (tombstone["text"], tombstone["threadReply"]) == ("", None)
        assert tombstone["deletedAt"] is not None
        assert (shown["text"], shown["deletedAt"]) == ("edited", None)

    await assert_shown()
    await relay_waiting_rows(chat.ann.stores)
    await assert_shown()
    stored = await chat.ann.stores.mongo["messages"].find({"source": {"$exists": True}}).sort("_id", 1).to_list(None)
    assert ["deleted_at" in each for each in stored] == [True, False]


async def test_removal_from_the_topic_keeps_the_reply(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    reply = await cross_post(chat.bob, parent, "one")
    shown = await last(chat.ann, chat.topic)
    assert await chat.eve.code(DELETE, id=shown["id"]) == "FORBIDDEN"
    await chat.bob.run(DELETE, id=shown["id"])
    await chat.bob.run(EDIT, id=reply["id"], text="two")
    await until_outbox_is_empty(chat.ann.stores)
    assert (await last(chat.ann, chat.topic))["deletedAt"] is not None
    kept = await chat.ann.do(MESSAGE, id=reply["id"])
    assert (kept["text"], kept["deletedAt"], kept["alsoInTopic"]) == ("two", None, True)
    assert await chat.ann.texts(chat.topic) == ["Hello", ""]


async def test_erasure_of_the_author_empties_both(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    reply = await cross_post(chat.bob, parent, "one")
    await chat.ann.stores.messages.erase(message_key(reply["id"]))
    await until_outbox_is_empty(chat.ann.stores)
    stored = await chat.ann.stores.mongo["messages"].find({"author": "bob"}).to_list(None)
    assert [(each["text"], "deleted_at" in each) for each in stored] == [("", True)] * 2


async def test_cross_post_counts_once(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic, "parent")
    reply = await cross_post(chat.bob, parent, "lighthouse @ann")
    found = (await chat.ann.do(SEARCH, q="lighthouse"))["items"]
    assert found == [{"message": {"id": reply["id"]}}]
    notified = (await chat.ann.do(NOTIFICATIONS))["items"]
    assert notified == [{"kind": "MENTION", "message": {"id": reply["id"]}}]
    for topic in (chat.topic, reply["topicId"]):
        assert await chat.ann.do(UNREAD, id=topic) == {"unreadCount": 1, "lastMessage": {"text": "lighthouse @ann"}}
        assert (await chat.bob.do(UNREAD, id=topic))["unreadCount"] == (topic == chat.topic)
    (trend,) = await chat.ann.do(TRENDING)
    assert (trend["topic"], trend["people"]) == ({"id": chat.topic}, 2)
    assert trend["messagesPerMinute"] == pytest.approx(2 * 60 / 300, rel=0.1)
    counted = await ActivityCounts(chat.ann.stores.mongo).count(
        UserKey("acme", "bob"), StampRuleKind.MESSAGES_POSTED, 10
    )
    assert counted == 1


async def test_settings_of_the_topic_apply(chat: ChatScenario) -> None:
    """A cross-post needs the pause of slow mode in the thread and in the topic, and counts in both."""
    parent = await chat.ann.post(chat.topic)
    fields = {"topicId": chat.topic, "replyTo": parent["id"], "alsoToTopic": True}
    await chat.ann.run(SLOW, id=chat.topic)
    assert await refused(chat.bob, topicId=chat.topic) is None
    assert await refused(chat.bob, **fields) == "RATE_LIMITED"
    assert await refused(chat.bob, **{**fields, "alsoToTopic": False}) is None
    await chat.eve.join(chat.community)
    assert await refused(chat.eve, **fields) is None
    assert await refused(chat.eve, topicId=chat.topic) == "RATE_LIMITED"
    assert await refused(chat.eve, **{**fields, "alsoToTopic": False}) == "RATE_LIMITED"
    assert [await refused(chat.ann, **fields) for _ in range(2)] == [None, None]
    await chat.ann.run(MUTE, c=chat.community, u="bob")
    assert await refused(chat.bob, **fields) == "FORBIDDEN"
    await chat.ann.run(ARCHIVE, id=chat.topic)
    assert await refused(chat.ann, **fields) == "FORBIDDEN"


async def test_slow_mode_admits_one_of_concurrent_posts(chat: ChatScenario) -> None:
    """Posts to the topic and cross-posts are committed to different streams, and share the pause."""
    parents = [await chat.ann.post(chat.topic) for _ in range(4)]
    threads = [(await chat.ann.post(chat.topic, replyTo=each["id"]))["topicId"] for each in parents]
    await chat.ann.run(SLOW, id=chat.topic)
    new = [NewMessage(each, chat.community, "bob", "x", None, (), also_in_topic=True) for each in threads]
    new += [NewMessage(chat.topic, chat.community, "bob", "x", None, ()) for _ in range(4)]
    results = await asyncio.gather(*(chat.ann.stores.messages.post(each) for each in new), return_exceptions=True)
    assert sum(isinstance(each, RateLimited) for each in results) == len(new) - 1, results


async def test_cross_post_has_no_content_of_its_own(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    reply = await cross_post(chat.bob, parent, "one")
    shown = await last(chat.ann, chat.topic)
    assert await chat.bob.code(EDIT, id=shown["id"], text="two") == "CONFLICT"
    assert await chat.ann.code(REACT, id=shown["id"], emoji="👍") == "CONFLICT"
    assert await refused(chat.ann, topicId=chat.topic, replyTo=shown["id"]) == "BAD_USER_INPUT"
    assert await chat.ann.code(FOLLOW, id=shown["id"]) == "BAD_USER_INPUT"
    assert await chat.ann.do(PIN, id=shown["id"]) == {"text": "one"}
    quoting = await chat.ann.do(POST, input={"topicId": chat.topic, "text": "x", "quotedMessageId": shown["id"]})
    assert quoting["quote"] == {"message": {"id": reply["id"]}}
    await chat.eve.join(chat.community)
    await chat.eve.run(REPORT, id=shown["id"])
    (report,) = await chat.ann.do(REPORTS, id=chat.community)
    assert report == {"subjectId": reply["id"], "contentText": "one"}


async def test_blocked_authors_are_hidden(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    parent = await chat.ann.post(chat.topic, "parent")
    await cross_post(chat.bob, parent, "one")
    await chat.eve.block(chat.ann)
    shown = await last(chat.eve, chat.topic)
    assert (shown["text"], shown["threadReply"]["parentMessage"]) == ("one", None)
    await chat.ann.block(chat.bob)
    assert [each["text"] for each in await page(chat.ann, chat.topic)] == ["parent"]
    assert (await chat.ann.do(UNREAD, id=chat.topic)) == {"unreadCount": 0, "lastMessage": {"text": "parent"}}
    await cross_post(chat.eve, await chat.bob.post(chat.topic, "other"), "two")
    await chat.eve.unblock(chat.ann)
    await chat.bob.post(chat.topic, "last")
    assert (await chat.ann.do(UNREAD, id=chat.topic))["lastMessage"] == {"text": "two"}


async def test_conversations_show_cross_posts_to_their_people(chat: ChatScenario) -> None:
    id_ = (await chat.ann.do(START, ids=["bob"]))["id"]
    parent = await chat.ann.post(id_, "parent")
    await cross_post(chat.bob, parent, "direct")
    assert (await last(chat.ann, id_))["text"] == "direct"
    (item,) = (await chat.ann.do(CONVERSATIONS))["items"]
    assert item == {"topic": {"unreadCount": 1, "lastMessage": {"text": "direct"}}}
    assert await chat.eve.code(PAGE, id=id_) == "NOT_FOUND"
    assert not await chat.ann.do(TRENDING)


async def test_mention_in_a_conversation_notifies_once(chat: ChatScenario) -> None:
    id_ = (await chat.ann.do(START, ids=["bob"]))["id"]
    parent = await chat.ann.post(id_, "parent")
    reply = await cross_post(chat.bob, parent, "look @ann")
    mention = {"kind": "MENTION", "message": {"id": reply["id"]}}
    assert (await chat.ann.do(NOTIFICATIONS))["items"] == [mention]
    await cross_post(chat.bob, parent, "nothing more")
    kinds = Counter(each["kind"] for each in (await chat.ann.do(NOTIFICATIONS))["items"])
    assert kinds == {"MENTION": 1, "THREAD_REPLY": 1}


async def test_page_without_cross_posts_costs_no_further_read(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = await chat.ann.post(chat.topic)
    reads, find = Counter[str](), Mongo.find

    async def count(mongo: Mongo, collection: str, *args: Any, **more: Any) -> Any:
        reads[collection] += 1
        return await find(mongo, collection, *args, **more)

    monkeypatch.setattr(Mongo, "find", count)
    await chat.ann.texts(chat.topic)
    without = reads["messages"]
    await cross_post(chat.bob, parent)
    reads.clear()
    await chat.ann.texts(chat.topic)
    assert (without, reads["messages"]) == (1, 2)


async def test_refused_change_of_the_thread_leaves_no_trace(chat: ChatScenario) -> None:
    """A cross-post that only the slow mode of the topic refuses starts no pause in the thread."""
    parent = await chat.ann.post(chat.topic)
    thread = (await chat.ann.post(chat.topic, replyTo=parent["id"]))["topicId"]
    await chat.ann.run(SLOW, id=chat.topic)
    messages = chat.ann.stores.messages
    await messages.post(NewMessage(chat.topic, chat.community, "bob", "x", None, ()))
    new = NewMessage(thread, chat.community, "bob", "x", None, (), also_in_topic=True)
    refused, posted = await asyncio.gather(
        messages.post(new), messages.post(replace(new, also_in_topic=False)), return_exceptions=True
    )
    assert isinstance(refused, DomainError)
    assert not isinstance(posted, BaseException)
