"""Following of threads: who follows, who is notified of a reply, and the list of followed threads."""

import asyncio

import pytest

from storage.chat.threads import changes, followers
from storage.chat.threads.rules import thread_id
from storage.identity.records import user_document_id
from storage.ids import UserKey, message_key
from storage.privacy.steps import STEPS, Eraser
from tests.resolvers.people import REACT, Answer, ChatScenario, Person, until_outbox_is_empty

pytestmark = pytest.mark.anyio

NOTIFICATIONS = '{ done: notifications(latest: "now") { items { kind actor { id } message { id } } } }'
UNREAD = "{ done: unreadNotificationCount }"
FOLLOWED = "query ($id: ID!) { done: message(id: $id) { thread { followed } } }"
FOLLOW = "mutation ($id: ID!) { done: followThread(messageId: $id) { id } }"
UNFOLLOW = """
mutation ($id: ID!) {
  done: unfollowThread(messageId: $id) { id text stamp { id } reactions { emoji } }
}
"""
LIST = """
query ($oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) {
  done: followedThreads(oldest: $oldest, latest: $latest, limit: $limit) {
    items {
      thread { id parentMessageId unreadCount lastActivity lastMessage { text } }
      parentTopic { id title }
      parentMessage { id }
    }
    hasOlder hasNewer
  }
}
"""
MUTE = "mutation ($id: ID!) { muteTopic(topicId: $id) { id } }"
MUTE_USER = "mutation ($id: ID!) { muteUser(userId: $id) { id } }"
EVENTS = "subscription { notificationEvents { ... on NotificationArrived { notification { kind actor { id } } } } }"


async def reply(person: Person, parent: Answer, text: str = "reply") -> Answer:
    """Replies to a message, and waits until everybody is notified."""
    posted = await person.post(parent["topicId"], text, replyTo=parent["id"])
    await until_outbox_is_empty(person.stores)
    return posted


async def kinds(person: Person) -> list[tuple[str, str]]:
    """Returns the kinds and the actors of the person's notifications, the latest first."""
    items = (await person.do(NOTIFICATIONS))["items"]
    return [(each["kind"], each["actor"]["id"]) for each in items]


async def follows(person: Person, parent: Answer) -> bool:
    """Returns whether the person follows the thread of a message."""
    return bool((await person.do(FOLLOWED, id=parent["id"]))["thread"]["followed"])


async def listed(person: Person, **bounds: object) -> list[str]:
    """Returns the ids of the threads that the person follows, the most recently active one first."""
    return [each["thread"]["id"] for each in (await person.do(LIST, **(bounds or {"latest": "now"})))["items"]]


async def test_author_repliers_and_mentioned_people_follow(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    parent = await chat.ann.post(chat.topic)
    first = await reply(chat.bob, parent)
    assert await kinds(chat.ann) == [("THREAD_REPLY", "bob")]
    assert await kinds(chat.bob) == []
    assert [await follows(each, parent) for each in (chat.ann, chat.bob, chat.eve)] == [True, True, False]
    await reply(chat.ann, parent, "what do you say, @eve?")
    assert await kinds(chat.eve) == [("MENTION", "ann")]
    assert await follows(chat.eve, parent)
    await reply(chat.bob, parent)
    assert await kinds(chat.eve) == [("THREAD_REPLY", "bob"), ("MENTION", "ann")]
    assert await chat.bob.do(UNREAD) == 1
    assert (await chat.ann.do(NOTIFICATIONS))["items"][-1]["message"] == {"id": first["id"]}


async def test_people_follow_and_unfollow(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    parent = await chat.ann.post(chat.topic)
    for _ in range(2):
        assert await chat.eve.do(FOLLOW, id=parent["id"]) == {"id": parent["id"]}
        await chat.ann.do(UNFOLLOW, id=parent["id"])
    posted = await reply(chat.bob, parent)
    assert await kinds(chat.eve) == [("THREAD_REPLY", "bob")]
    assert await kinds(chat.ann) == []
    assert await chat.eve.code(FOLLOW, id=posted["id"]) == "BAD_USER_INPUT"
    assert await chat.eve.code(FOLLOW, id=f"{chat.topic}-1") == "NOT_FOUND"


async def test_list_has_followed_threads_by_activity(chat: ChatScenario) -> None:
    parents = [await chat.ann.post(chat.topic) for _ in range(3)]
    replies = [await reply(chat.bob, parent, text) for parent, text in zip(parents, "abc", strict=True)]
    last = await reply(chat.bob, parents[0], "d")
    threads = [each["topicId"] for each in replies]
    assert await listed(chat.ann) == [threads[0], threads[2], threads[1]]
    assert await listed(chat.ann, latest=last["timestamp"], limit=2) == [threads[0], threads[2]]
    assert await listed(chat.ann, oldest=replies[1]["timestamp"], limit=1) == [threads[1]]
    (item, *_) = (await chat.ann.do(LIST, latest="now"))["items"]
    assert (item["parentTopic"]["id"], item["parentMessage"]["id"]) == (chat.topic, parents[0]["id"])
    thread = item["thread"]
    assert (thread["parentMessageId"], thread["unreadCount"]) == (parents[0]["id"], 2)
    assert thread["lastMessage"] == {"text": "d"}
    await chat.bob.leave(chat.community)
    assert await listed(chat.bob) == []


async def test_thread_of_an_earlier_release_has_no_followers(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    thread = (await reply(chat.bob, parent))["topicId"]
    mongo = chat.ann.stores.mongo
    await mongo["topics"].update_one({"_id": thread}, {"$unset": {"thread.followers": 1}})
    await mongo["notifications"].update_many({}, {"$unset": {"parent_topic": 1}})
    await chat.ann.do(UNFOLLOW, id=parent["id"])
    assert (await listed(chat.ann), await follows(chat.ann, parent)) == ([], False)
    assert await kinds(chat.ann) == [("THREAD_REPLY", "bob")]
    await reply(chat.bob, parent)
    assert await listed(chat.bob) == [thread]
    await chat.ann.do(FOLLOW, id=parent["id"])
    assert await listed(chat.ann) == [thread]


async def test_people_without_access_are_not_notified(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    await reply(chat.bob, parent, "ask @eve")
    await reply(chat.ann, parent)
    assert await kinds(chat.eve) == []
    assert await listed(chat.eve) == []
    await chat.bob.leave(chat.community)
    before = await kinds(chat.bob)
    await reply(chat.ann, parent)
    assert await kinds(chat.bob) == before


async def test_blocked_and_muted_replies_are_hidden(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    parent = await chat.ann.post(chat.topic)
    await chat.eve.do(FOLLOW, id=parent["id"])
    await chat.ann.block(chat.bob)
    async with chat.ann.subscribed(EVENTS) as events:
        await reply(chat.bob, parent)
        await reply(chat.eve, parent)
        arrived = (await events.next_event())["notification"]
        assert arrived == {"kind": "THREAD_REPLY", "actor": {"id": "eve"}}
    assert await kinds(chat.ann) == [("THREAD_REPLY", "eve")]
    assert await kinds(chat.eve) == [("THREAD_REPLY", "bob")]
    await chat.eve.run(MUTE, id=chat.topic)
    assert (await kinds(chat.eve), await chat.eve.do(UNREAD)) == ([], 0)


async def test_muted_thread_notifies_of_nothing(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    thread = await reply(chat.bob, parent)
    other = await chat.ann.post(chat.topic)
    await chat.ann.run(MUTE, id=thread["topicId"])
    await reply(chat.bob, parent, "Hello @ann")
    assert (await kinds(chat.ann), await chat.ann.do(UNREAD)) == ([], 0)
    await reply(chat.bob, other)
    assert await kinds(chat.ann) == [("THREAD_REPLY", "bob")]
    (mute,) = await chat.ann.do("{ done: myMutes { topic { id parentMessageId muted } } }")
    assert mute["topic"] == {"id": thread["topicId"], "parentMessageId": parent["id"], "muted": True}


@pytest.mark.parametrize("is_muted", [False, True])
async def test_hidden_author_hides_no_other_reply(chat: ChatScenario, is_muted: bool) -> None:
    """Replies of several people are committed together, and the first is by a hidden author."""
    await chat.eve.join(chat.community)
    parent = await chat.ann.post(chat.topic)
    await chat.ann.run(MUTE_USER, id="bob") if is_muted else await chat.ann.block(chat.bob)
    thread = await reply(chat.bob, parent)
    writers = [chat.bob] * 9 + [chat.eve]
    await asyncio.gather(*(writer.post(thread["topicId"]) for writer in writers))
    await until_outbox_is_empty(chat.ann.stores)
    assert await kinds(chat.ann) == [("THREAD_REPLY", "eve")]


async def test_author_is_blocked_afterwards_and_unfollowed(chat: ChatScenario) -> None:
    parent = await chat.bob.post(chat.topic, "by Bob", stampId="hello")
    await chat.bob.run(REACT, id=parent["id"], emoji="👍")
    await chat.ann.do(FOLLOW, id=parent["id"])
    await chat.ann.block(chat.bob)
    assert await chat.ann.code(FOLLOW, id=parent["id"]) == "NOT_FOUND"
    (item,) = (await chat.ann.do(LIST, latest="now"))["items"]
    assert item["parentMessage"] is None
    answer = await chat.ann.do(UNFOLLOW, id=parent["id"])
    assert answer == {"id": parent["id"], "text": "", "stamp": None, "reactions": []}
    assert await listed(chat.ann) == []


async def test_full_thread_takes_no_further_followers(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (followers, changes):
        monkeypatch.setattr(module, "MAX_FOLLOWERS", 2)
    await chat.eve.join(chat.community)
    parent = await chat.ann.post(chat.topic)
    await asyncio.gather(*(reply(chat.bob, parent) for _ in range(3)))
    await reply(chat.eve, parent)
    assert [await follows(each, parent) for each in (chat.ann, chat.bob, chat.eve)] == [True, True, False]
    assert await chat.eve.code(FOLLOW, id=parent["id"]) == "CONFLICT"
    assert await chat.bob.code(FOLLOW, id=parent["id"]) is None


async def test_erased_person_follows_no_thread(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic)
    await reply(chat.bob, parent)
    stores, bob = chat.ann.stores, UserKey("acme", "bob")

    async def ignore(_: int) -> None:
        """Reports nothing."""

    for step in (Eraser.delete_messages, Eraser.end_memberships):
        await stores.eraser.run(STEPS.index(step), bob, ignore)
    await until_outbox_is_empty(stores)
    thread = await stores.mongo["topics"].find_one({"_id": thread_id(message_key(parent["id"]))})
    assert thread is not None
    assert thread["thread"]["followers"] == ["ann"]
    stored = await stores.mongo["messages"].find_one({"_id": message_key(parent["id"]).document_id})
    assert stored is not None
    assert stored["thread"] == {"replies": 0, "repliers": []}
    assert await stores.mongo["users"].find_one({"_id": user_document_id(*bob)}) is not None
