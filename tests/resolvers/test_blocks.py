"""Blocked users are hidden from the blocker, also in counts, and cannot notice the block (docs/semantics.md, 2)."""

from typing import Any

import pytest

from tests.resolvers.people import (
    EDIT,
    REACT,
    TOPIC_EVENTS,
    UNREACT,
    ChatScenario,
    Person,
    SignIn,
    until_outbox_is_empty,
)

pytestmark = pytest.mark.anyio

TOPIC = """
query ($id: ID!) { topic(id: $id) { unreadCount lastMessage { text } messages(latest: "now") { items { text } } } }
"""
MESSAGE = "query ($id: ID!) { message(id: $id) { text reactions { emoji count users { id } } mentions { id } } }"
REACTIONS_RECEIVED = '{ reactionsReceived(latest: "now") { items { emoji user { id } } hasOlder hasNewer } }'
AROUND = """
query ($topic: ID!, $at: Timestamp!) { messagesAround(topicId: $topic, timestamp: $at, limit: 4) { items { text } } }
"""
FOLLOWS = "query ($id: ID!) { user(id: $id) { following followerCount followingCount } }"


async def topic_fields(person: Person, chat: ChatScenario) -> dict[str, Any]:
    fields: dict[str, Any] = (await person.run(TOPIC, id=chat.topic))["topic"]
    return fields


async def message_fields(person: Person, id_: str) -> dict[str, Any]:
    fields: dict[str, Any] = (await person.run(MESSAGE, id=id_))["message"]
    return fields


async def test_messages_of_blocked_users_are_on_no_page(chat: ChatScenario) -> None:
    for number in range(6):
        await (chat.ann if number % 2 else chat.bob).post(chat.topic, str(number))
    await chat.ann.block(chat.bob)
    assert await chat.ann.texts(chat.topic) == ["1", "3", "5"]
    assert [item["text"] for item in (await topic_fields(chat.ann, chat))["messages"]["items"]] == ["5", "3", "1"]
    assert await chat.bob.texts(chat.topic) == ["0", "1", "2", "3", "4", "5"]


async def test_hidden_messages_count_neither_on_nor_beyond_a_page(chat: ChatScenario) -> None:
    posted_messages = [
        await (chat.ann if number in (1, 3) else chat.bob).post(chat.topic, str(number)) for number in range(6)
    ]
    await chat.ann.block(chat.bob)
    page = await chat.ann.page(chat.topic, latest="now", limit=2)
    assert [item["text"] for item in page["items"]] == ["3", "1"]
    assert (page["hasOlder"], page["hasNewer"]) == (False, False)
    page = await chat.ann.page(
        chat.topic, oldest=posted_messages[0]["timestamp"], latest=posted_messages[2]["timestamp"]
    )
    assert [item["text"] for item in page["items"]] == ["1"]
    assert (page["hasOlder"], page["hasNewer"]) == (False, True)
    around = await chat.ann.run(AROUND, topic=chat.topic, at=posted_messages[2]["timestamp"])
    assert [item["text"] for item in around["messagesAround"]["items"]] == ["1", "3"]


async def test_message_of_a_blocked_user_looks_missing(chat: ChatScenario) -> None:
    hidden_id = (await chat.bob.post(chat.topic))["id"]
    await chat.ann.block(chat.bob)
    answer = await chat.ann.execute(MESSAGE, id=hidden_id)
    assert answer["data"] == {"message": None}
    unknown = await chat.ann.execute(MESSAGE, id=f"{chat.topic}-1")
    assert answer["errors"][0]["extensions"] == unknown["errors"][0]["extensions"] == {"code": "NOT_FOUND"}
    for query in (REACT, UNREACT):
        assert await chat.ann.code(query, id=hidden_id, emoji="👍") == "NOT_FOUND"
    assert (await message_fields(chat.bob, hidden_id))["reactions"] == []


async def test_last_message_and_unread_count_skip_blocked_users(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    await chat.eve.post(chat.topic, "from eve")
    await chat.bob.post(chat.topic, "from bob")
    before = await topic_fields(chat.ann, chat)
    assert (before["unreadCount"], before["lastMessage"]["text"]) == (2, "from bob")
    await chat.ann.block(chat.bob)
    after = await topic_fields(chat.ann, chat)
    assert (after["unreadCount"], after["lastMessage"]["text"]) == (1, "from eve")
    await chat.ann.block(chat.eve)
    after = await topic_fields(chat.ann, chat)
    assert (after["unreadCount"], after["lastMessage"]) == (0, None)


async def test_reaction_counts_leave_out_blocked_users(chat: ChatScenario) -> None:
    message_id = (await chat.ann.post(chat.topic))["id"]
    await chat.eve.join(chat.community)
    for person, emoji in ((chat.bob, "🌊"), (chat.bob, "👍"), (chat.eve, "👍"), (chat.ann, "👍")):
        await person.run(REACT, id=message_id, emoji=emoji)
    await chat.ann.block(chat.bob)
    assert (await message_fields(chat.ann, message_id))["reactions"] == [
        {"emoji": "👍", "count": 2, "users": [{"id": "eve"}, {"id": "ann"}]}
    ]
    assert [each["count"] for each in (await message_fields(chat.eve, message_id))["reactions"]] == [1, 3]


async def test_received_reactions_leave_out_blocked_users(chat: ChatScenario) -> None:
    message_id = (await chat.ann.post(chat.topic))["id"]
    await chat.eve.join(chat.community)
    for person in (chat.bob, chat.eve):
        await person.run(REACT, id=message_id, emoji="👍")
    await until_outbox_is_empty(chat.ann.stores)
    await chat.ann.block(chat.eve)
    page = (await chat.ann.run(REACTIONS_RECEIVED))["reactionsReceived"]
    assert page == {"items": [{"emoji": "👍", "user": {"id": "bob"}}], "hasOlder": False, "hasNewer": False}


async def test_mentions_of_blocked_users_stay(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    await chat.ann.block(chat.bob)
    message_id = (await chat.eve.post(chat.topic, "Ask @bob"))["id"]
    assert (await message_fields(chat.ann, message_id))["mentions"] == [{"id": "bob"}]


async def test_events_of_blocked_users_are_withheld(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    await chat.ann.block(chat.bob)
    async with chat.ann.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        hidden_message = await chat.bob.post(chat.topic, "hidden")
        await chat.bob.run(EDIT, id=hidden_message["id"], text="still hidden")
        await chat.eve.run(REACT, id=hidden_message["id"], emoji="👍")
        await chat.eve.post(chat.topic, "visible")
        event = await events.next_event()
        assert (event["type"], event["message"]["text"]) == ("MessagePosted", "visible")


async def test_block_applies_to_open_subscriptions(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    async with chat.ann.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        await chat.bob.post(chat.topic, "before")
        assert (await events.next_event())["message"]["text"] == "before"
        await chat.ann.block(chat.bob)
        await chat.bob.post(chat.topic, "hidden")
        await chat.eve.post(chat.topic, "visible")
        assert (await events.next_event())["message"]["text"] == "visible"


async def test_blocked_user_notices_nothing(chat: ChatScenario) -> None:
    posted_message = await chat.ann.post(chat.topic, "Hello @bob")
    await chat.ann.block(chat.bob)
    assert (await message_fields(chat.bob, posted_message["id"]))["text"] == "Hello @bob"
    assert (await topic_fields(chat.bob, chat))["unreadCount"] == 1
    reacted_message = await chat.bob.do(REACT, id=posted_message["id"], emoji="👍")
    assert reacted_message["reactions"] == [{"emoji": "👍", "count": 1, "reacted": True, "users": [{"handle": "bob"}]}]
    assert (await chat.bob.post(chat.topic, "@ann"))["mentions"] == [{"handle": "ann"}]
    assert (await chat.bob.run('{ user(id: "ann") { blocked } }'))["user"] == {"blocked": False}


async def test_block_ends_follows_in_both_directions(chat: ChatScenario) -> None:
    mongo = chat.ann.stores.mongo
    for follower, followee in (("ann", "bob"), ("bob", "ann"), ("eve", "bob")):
        await mongo["follows"].insert_one({"org": "acme", "follower": follower, "followee": followee})
        await mongo["users"].update_one({"_id": {"org": "acme", "id": follower}}, {"$inc": {"following": 1}})
        await mongo["users"].update_one({"_id": {"org": "acme", "id": followee}}, {"$inc": {"followers": 1}})
    assert (await chat.ann.run(FOLLOWS, id="bob"))["user"] == {
        "following": True,
        "followerCount": 2,
        "followingCount": 1,
    }
    for _ in range(2):
        await chat.ann.block(chat.bob)
        user = (await chat.ann.run(FOLLOWS, id="bob"))["user"]
        assert user == {"following": False, "followerCount": 1, "followingCount": 0}
    user = (await chat.bob.run(FOLLOWS, id="ann"))["user"]
    assert user == {"following": False, "followerCount": 0, "followingCount": 0}
    assert (await chat.eve.run(FOLLOWS, id="bob"))["user"]["following"]


async def test_unblocking_restores_everything_but_follows(chat: ChatScenario) -> None:
    message_id = (await chat.ann.post(chat.topic, "from ann"))["id"]
    await chat.bob.post(chat.topic, "from bob")
    await chat.bob.run(REACT, id=message_id, emoji="👍")
    await until_outbox_is_empty(chat.ann.stores)
    before = (
        await topic_fields(chat.ann, chat),
        await message_fields(chat.ann, message_id),
        await chat.ann.run(REACTIONS_RECEIVED),
    )
    await chat.ann.block(chat.bob)
    assert await chat.ann.texts(chat.topic) == ["from ann"]
    await chat.ann.unblock(chat.bob)
    assert (
        await topic_fields(chat.ann, chat),
        await message_fields(chat.ann, message_id),
        await chat.ann.run(REACTIONS_RECEIVED),
    ) == before
    assert await chat.ann.texts(chat.topic) == ["from ann", "from bob"]


async def test_block_holds_in_one_organization_only(chat: ChatScenario, sign_in: SignIn) -> None:
    """Users with the same ids in another organization are other people."""
    ann, bob = await sign_in("ann", "elsewhere"), await sign_in("bob", "elsewhere")
    community = await ann.create_community()
    await bob.join(community)
    other_topic = await ann.create_topic(community)
    await bob.post(other_topic)
    await chat.ann.block(chat.bob)
    assert await ann.texts(other_topic) == ["Hello"]
    assert (await ann.run("{ blockedUsers { id } }"))["blockedUsers"] == []
