"""Blocked users are hidden from the blocker, in counts too, and notice nothing (docs/semantics.md, 2)."""

from typing import Any

import pytest

from tests.resolvers.people import EDIT, LISTEN, REACT, UNREACT, Person, Room, SignIn, settled

pytestmark = pytest.mark.anyio

TOPIC = """
query ($id: ID!) { topic(id: $id) { unreadCount lastMessage { text } messages(latest: "now") { items { text } } } }
"""
MESSAGE = "query ($id: ID!) { message(id: $id) { text reactions { emoji count users { id } } mentions { id } } }"
RECEIVED = '{ reactionsReceived(latest: "now") { items { emoji user { id } } hasOlder hasNewer } }'
AROUND = """
query ($topic: ID!, $at: Timestamp!) { messagesAround(topicId: $topic, timestamp: $at, limit: 4) { items { text } } }
"""
FOLLOWS = "query ($id: ID!) { user(id: $id) { following followerCount followingCount } }"


async def topic(person: Person, room: Room) -> dict[str, Any]:
    found: dict[str, Any] = (await person.run(TOPIC, id=room.topic))["topic"]
    return found


async def message(person: Person, id_: str) -> dict[str, Any]:
    found: dict[str, Any] = (await person.run(MESSAGE, id=id_))["message"]
    return found


async def test_messages_of_blocked_users_are_on_no_page(room: Room) -> None:
    for number in range(6):
        await (room.ann if number % 2 else room.bob).post(room.topic, str(number))
    await room.ann.block(room.bob)
    assert await room.ann.texts(room.topic) == ["1", "3", "5"]
    assert [item["text"] for item in (await topic(room.ann, room))["messages"]["items"]] == ["5", "3", "1"]
    assert await room.bob.texts(room.topic) == ["0", "1", "2", "3", "4", "5"]


async def test_hidden_messages_count_neither_on_nor_beyond_a_page(room: Room) -> None:
    posted = [await (room.ann if number in (1, 3) else room.bob).post(room.topic, str(number)) for number in range(6)]
    await room.ann.block(room.bob)
    page = await room.ann.page(room.topic, latest="now", limit=2)
    assert [item["text"] for item in page["items"]] == ["3", "1"]
    assert (page["hasOlder"], page["hasNewer"]) == (False, False)
    page = await room.ann.page(room.topic, oldest=posted[0]["timestamp"], latest=posted[2]["timestamp"])
    assert [item["text"] for item in page["items"]] == ["1"]
    assert (page["hasOlder"], page["hasNewer"]) == (False, True)
    around = await room.ann.run(AROUND, topic=room.topic, at=posted[2]["timestamp"])
    assert [item["text"] for item in around["messagesAround"]["items"]] == ["1", "3"]


async def test_message_of_a_blocked_user_looks_missing(room: Room) -> None:
    hidden = (await room.bob.post(room.topic))["id"]
    await room.ann.block(room.bob)
    answer = await room.ann.ask(MESSAGE, id=hidden)
    assert answer["data"] == {"message": None}
    missing = await room.ann.ask(MESSAGE, id=f"{room.topic}-1")
    assert answer["errors"][0]["extensions"] == missing["errors"][0]["extensions"] == {"code": "NOT_FOUND"}
    for query in (REACT, UNREACT):
        assert await room.ann.code(query, id=hidden, emoji="👍") == "NOT_FOUND"
    assert (await message(room.bob, hidden))["reactions"] == []


async def test_last_message_and_unread_count_skip_blocked_users(room: Room) -> None:
    await room.eve.join(room.community)
    await room.eve.post(room.topic, "from eve")
    await room.bob.post(room.topic, "from bob")
    before = await topic(room.ann, room)
    assert (before["unreadCount"], before["lastMessage"]["text"]) == (2, "from bob")
    await room.ann.block(room.bob)
    after = await topic(room.ann, room)
    assert (after["unreadCount"], after["lastMessage"]["text"]) == (1, "from eve")
    await room.ann.block(room.eve)
    after = await topic(room.ann, room)
    assert (after["unreadCount"], after["lastMessage"]) == (0, None)


async def test_reaction_counts_leave_out_blocked_users(room: Room) -> None:
    posted = (await room.ann.post(room.topic))["id"]
    await room.eve.join(room.community)
    for person, emoji in ((room.bob, "🌊"), (room.bob, "👍"), (room.eve, "👍"), (room.ann, "👍")):
        await person.run(REACT, id=posted, emoji=emoji)
    await room.ann.block(room.bob)
    assert (await message(room.ann, posted))["reactions"] == [
        {"emoji": "👍", "count": 2, "users": [{"id": "eve"}, {"id": "ann"}]}
    ]
    assert [each["count"] for each in (await message(room.eve, posted))["reactions"]] == [1, 3]


async def test_received_reactions_leave_out_blocked_users(room: Room) -> None:
    posted = (await room.ann.post(room.topic))["id"]
    await room.eve.join(room.community)
    for person in (room.bob, room.eve):
        await person.run(REACT, id=posted, emoji="👍")
    await settled(room.ann.stores)
    await room.ann.block(room.eve)
    page = (await room.ann.run(RECEIVED))["reactionsReceived"]
    assert page == {"items": [{"emoji": "👍", "user": {"id": "bob"}}], "hasOlder": False, "hasNewer": False}


async def test_mentions_of_blocked_users_stay(room: Room) -> None:
    await room.eve.join(room.community)
    await room.ann.block(room.bob)
    posted = (await room.eve.post(room.topic, "Ask @bob"))["id"]
    assert (await message(room.ann, posted))["mentions"] == [{"id": "bob"}]


async def test_events_of_blocked_users_are_withheld(room: Room) -> None:
    await room.eve.join(room.community)
    await room.ann.block(room.bob)
    async with room.ann.listening(LISTEN, topic=room.topic) as heard:
        hidden = await room.bob.post(room.topic, "hidden")
        await room.bob.run(EDIT, id=hidden["id"], text="still hidden")
        await room.eve.run(REACT, id=hidden["id"], emoji="👍")
        await room.eve.post(room.topic, "seen")
        event = await heard.event()
        assert (event["type"], event["message"]["text"]) == ("MessagePosted", "seen")


async def test_block_applies_to_open_subscriptions(room: Room) -> None:
    await room.eve.join(room.community)
    async with room.ann.listening(LISTEN, topic=room.topic) as heard:
        await room.bob.post(room.topic, "before")
        assert (await heard.event())["message"]["text"] == "before"
        await room.ann.block(room.bob)
        await room.bob.post(room.topic, "hidden")
        await room.eve.post(room.topic, "seen")
        assert (await heard.event())["message"]["text"] == "seen"


async def test_blocked_user_notices_nothing(room: Room) -> None:
    posted = await room.ann.post(room.topic, "Hello @bob")
    await room.ann.block(room.bob)
    assert (await message(room.bob, posted["id"]))["text"] == "Hello @bob"
    assert (await topic(room.bob, room))["unreadCount"] == 1
    done = await room.bob.do(REACT, id=posted["id"], emoji="👍")
    assert done["reactions"] == [{"emoji": "👍", "count": 1, "reacted": True, "users": [{"handle": "bob"}]}]
    assert (await room.bob.post(room.topic, "@ann"))["mentions"] == [{"handle": "ann"}]
    assert (await room.bob.run('{ user(id: "ann") { blocked } }'))["user"] == {"blocked": False}


async def test_block_ends_follows_in_both_directions(room: Room) -> None:
    mongo = room.ann.stores.mongo
    for one, other in (("ann", "bob"), ("bob", "ann"), ("eve", "bob")):
        await mongo["follows"].insert_one({"org": "acme", "follower": one, "followee": other})
        await mongo["users"].update_one({"_id": {"org": "acme", "id": one}}, {"$inc": {"following": 1}})
        await mongo["users"].update_one({"_id": {"org": "acme", "id": other}}, {"$inc": {"followers": 1}})
    assert (await room.ann.run(FOLLOWS, id="bob"))["user"] == {
        "following": True,
        "followerCount": 2,
        "followingCount": 1,
    }
    for _ in range(2):
        await room.ann.block(room.bob)
        found = (await room.ann.run(FOLLOWS, id="bob"))["user"]
        assert found == {"following": False, "followerCount": 1, "followingCount": 0}
    found = (await room.bob.run(FOLLOWS, id="ann"))["user"]
    assert found == {"following": False, "followerCount": 0, "followingCount": 0}
    assert (await room.eve.run(FOLLOWS, id="bob"))["user"]["following"]


async def test_unblocking_restores_everything_but_follows(room: Room) -> None:
    posted = (await room.ann.post(room.topic, "from ann"))["id"]
    await room.bob.post(room.topic, "from bob")
    await room.bob.run(REACT, id=posted, emoji="👍")
    await settled(room.ann.stores)
    before = await topic(room.ann, room), await message(room.ann, posted), await room.ann.run(RECEIVED)
    await room.ann.block(room.bob)
    assert await room.ann.texts(room.topic) == ["from ann"]
    await room.ann.unblock(room.bob)
    assert (await topic(room.ann, room), await message(room.ann, posted), await room.ann.run(RECEIVED)) == before
    assert await room.ann.texts(room.topic) == ["from ann", "from bob"]


async def test_block_holds_in_one_organization_only(room: Room, sign_in: SignIn) -> None:
    """Users of the same ids elsewhere are other people."""
    ann, bob = await sign_in("ann", "elsewhere"), await sign_in("bob", "elsewhere")
    community = await ann.found()
    await bob.join(community)
    there = await ann.open_topic(community)
    await bob.post(there)
    await room.ann.block(room.bob)
    assert await ann.texts(there) == ["Hello"]
    assert (await ann.run("{ blockedUsers { id } }"))["blockedUsers"] == []
