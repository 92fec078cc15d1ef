"""Notification queries: mentions, reactions, follows, read marks, and hidden content."""

import pytest

from storage.stores import Stores
from tests.resolvers.people import DELETE, EDIT, REACT, UNREACT, Person, Room, settled

pytestmark = pytest.mark.anyio

PAGE = """
{ notifications(latest: "now") { items { id timestamp kind actor { id } message { text } post { text } } }
  unreadNotificationCount }
"""
MARK = "mutation ($at: Timestamp!) { markNotificationsRead(timestamp: $at) }"


async def notified(person: Person) -> list[tuple[str, str, str | None]]:
    """Returns kind, actor and text of each notification, newest first."""
    await settled(person.stores)
    items = (await person.run(PAGE))["notifications"]["items"]
    return [(i["kind"], i["actor"]["id"], (i["message"] or i["post"] or {}).get("text")) for i in items]


async def test_mention_reaction_and_follow_notify_their_user(room: Room, stores: Stores) -> None:
    message = await room.ann.post(room.topic, "Look @bob @ann")
    await room.bob.run(REACT, id=message["id"], emoji="🐟")
    await settled(stores)
    await room.eve.follow(room.ann)
    await settled(stores)
    await room.eve.create_post("Hello @ann")
    assert await notified(room.bob) == [("MENTION", "ann", "Look @bob @ann")]
    assert await notified(room.ann) == [
        ("MENTION", "eve", "Hello @ann"),
        ("FOLLOW", "eve", None),
        ("REACTION", "bob", "Look @bob @ann"),
    ]
    assert await notified(room.eve) == []


async def test_edit_notifies_only_added_mentions(room: Room) -> None:
    message = await room.ann.post(room.topic, "@bob")
    await room.ann.run(EDIT, id=message["id"], text="@bob again")
    assert len(await notified(room.bob)) == 1
    other = await room.ann.post(room.topic, "nobody")
    await room.ann.run(EDIT, id=other["id"], text="now @bob")
    assert [text for *_, text in await notified(room.bob)] == ["now @bob", "@bob again"]


async def test_withdrawn_reaction_sends_no_notification(room: Room) -> None:
    message = await room.ann.post(room.topic, "one")
    await room.bob.run(REACT, id=message["id"], emoji="🐟")
    assert len(await notified(room.ann)) == 1
    await room.bob.run(UNREACT, id=message["id"], emoji="🐟")
    assert await notified(room.ann) == []
    await room.bob.run(REACT, id=message["id"], emoji="🐟")
    assert len(await notified(room.ann)) == 1
    await room.ann.run(DELETE, id=message["id"])
    assert await notified(room.ann) == []


async def test_notification_hides_message_from_non_member(room: Room) -> None:
    await room.ann.post(room.topic, "secret @eve @bob")
    assert await notified(room.eve) == []
    await settled(room.ann.stores)
    await room.bob.leave(room.community)
    assert await notified(room.bob) == [("MENTION", "ann", None)]


async def test_unread_notifications_are_counted_until_marked(room: Room) -> None:
    for n in range(3):
        await room.ann.post(room.topic, f"{n} @bob")
        await settled(room.ann.stores)
    answer = await room.bob.run(PAGE)
    items = answer["notifications"]["items"]
    assert answer["unreadNotificationCount"] == 3
    for item, left in ((items[1], 1), (items[2], 1), (items[0], 0)):
        assert (await room.bob.run(MARK, at=item["timestamp"]))["markNotificationsRead"] == left
    assert await room.bob.code(MARK, at="now") == "BAD_USER_INPUT"


async def test_notification_from_blocked_user_is_hidden(room: Room) -> None:
    await room.ann.post(room.topic, "@bob")
    await settled(room.ann.stores)
    await room.bob.block(room.ann)
    assert await notified(room.bob) == []
    assert (await room.bob.run(PAGE))["unreadNotificationCount"] == 0
    await room.bob.unblock(room.ann)
    assert len(await notified(room.bob)) == 1
