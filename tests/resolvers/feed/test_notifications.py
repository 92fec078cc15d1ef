"""Notification queries: mentions, reactions, follows, read marks, and hidden content."""

import pytest

from storage.stores import Stores
from tests.resolvers.people import DELETE, EDIT, REACT, UNREACT, ChatScenario, Person, until_outbox_is_empty

pytestmark = pytest.mark.anyio

PAGE = """
{ notifications(latest: "now") { items { id timestamp kind actor { id } message { text } post { text } } }
  unreadNotificationCount }
"""
EMOJIS = '{ notifications(latest: "now") { readUpTo items { timestamp kind emoji actor { id } } } }'
REACT_TO_POST = "mutation ($id: ID!, $emoji: String!) { addPostReaction(postId: $id, emoji: $emoji) { id } }"
MARK_READ = "mutation ($at: Timestamp!) { markNotificationsRead(timestamp: $at) }"


async def notifications_of(person: Person) -> list[tuple[str, str, str | None]]:
    """Returns kind, actor and text of each notification, newest first."""
    await until_outbox_is_empty(person.stores)
    items = (await person.run(PAGE))["notifications"]["items"]
    return [(i["kind"], i["actor"]["id"], (i["message"] or i["post"] or {}).get("text")) for i in items]


async def test_mention_reaction_and_follow_notify_their_user(chat: ChatScenario, stores: Stores) -> None:
    message = await chat.ann.post(chat.topic, "Look @bob @ann")
    await chat.bob.run(REACT, id=message["id"], emoji="🐟")
    await until_outbox_is_empty(stores)
    await chat.eve.follow(chat.ann)
    await until_outbox_is_empty(stores)
    await chat.eve.create_post("Hello @ann")
    assert await notifications_of(chat.bob) == [("MENTION", "ann", "Look @bob @ann")]
    assert await notifications_of(chat.ann) == [
        ("MENTION", "eve", "Hello @ann"),
        ("FOLLOW", "eve", None),
        ("REACTION", "bob", "Look @bob @ann"),
    ]
    assert await notifications_of(chat.eve) == []


async def test_edit_notifies_only_added_mentions(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic, "@bob")
    await chat.ann.run(EDIT, id=message["id"], text="@bob again")
    assert len(await notifications_of(chat.bob)) == 1
    other = await chat.ann.post(chat.topic, "nobody")
    await chat.ann.run(EDIT, id=other["id"], text="now @bob")
    assert [text for *_, text in await notifications_of(chat.bob)] == ["now @bob", "@bob again"]


async def test_withdrawn_reaction_removes_its_notification(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic, "one")
    await chat.bob.run(REACT, id=message["id"], emoji="🐟")
    assert len(await notifications_of(chat.ann)) == 1
    await chat.bob.run(UNREACT, id=message["id"], emoji="🐟")
    assert await notifications_of(chat.ann) == []
    await chat.bob.run(REACT, id=message["id"], emoji="🐟")
    assert len(await notifications_of(chat.ann)) == 1
    await chat.ann.run(DELETE, id=message["id"])
    assert await notifications_of(chat.ann) == []


async def test_notification_hides_message_from_non_member(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "secret @eve @bob")
    assert await notifications_of(chat.eve) == []
    await until_outbox_is_empty(chat.ann.stores)
    await chat.bob.leave(chat.community)
    assert await notifications_of(chat.bob) == [("MENTION", "ann", None)]


async def test_unread_notifications_are_counted_until_marked(chat: ChatScenario) -> None:
    for n in range(3):
        await chat.ann.post(chat.topic, f"{n} @bob")
        await until_outbox_is_empty(chat.ann.stores)
    answer = await chat.bob.run(PAGE)
    items = answer["notifications"]["items"]
    assert answer["unreadNotificationCount"] == 3
    for item, unread_count in ((items[1], 1), (items[2], 1), (items[0], 0)):
        assert (await chat.bob.run(MARK_READ, at=item["timestamp"]))["markNotificationsRead"] == unread_count
    assert await chat.bob.code(MARK_READ, at="now") == "BAD_USER_INPUT"


async def test_notifications_after_a_mark_in_the_future_are_unread(chat: ChatScenario) -> None:
    assert (await chat.bob.run(MARK_READ, at="9999999999.999999"))["markNotificationsRead"] == 0
    for _ in range(2):
        await chat.ann.post(chat.topic, "@bob")
        await until_outbox_is_empty(chat.ann.stores)
        assert (await chat.bob.run(PAGE))["unreadNotificationCount"] == 1
        assert (await chat.bob.run(MARK_READ, at="9999999999.999999"))["markNotificationsRead"] == 0


async def test_notification_from_blocked_user_is_hidden(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "@bob")
    await until_outbox_is_empty(chat.ann.stores)
    await chat.bob.block(chat.ann)
    assert await notifications_of(chat.bob) == []
    assert (await chat.bob.run(PAGE))["unreadNotificationCount"] == 0
    await chat.bob.unblock(chat.ann)
    assert len(await notifications_of(chat.bob)) == 1


async def test_notification_of_a_reaction_has_the_emoji(chat: ChatScenario, stores: Stores) -> None:
    message, post = await chat.ann.post(chat.topic, "one"), await chat.ann.create_post("two")
    for emoji in ("🐟", "🎉"):
        await chat.bob.run(REACT, id=message["id"], emoji=emoji)
        await until_outbox_is_empty(stores)
    await chat.eve.follow(chat.ann)
    await until_outbox_is_empty(stores)
    # The author of a post is notified once of a person's reactions to it.
    for emoji in ("👍", "🎉"):
        await chat.bob.run(REACT_TO_POST, id=post, emoji=emoji)
        await until_outbox_is_empty(stores)
    items = (await chat.ann.run(EMOJIS))["notifications"]["items"]
    assert [(each["kind"], each["emoji"]) for each in reversed(items)] == [
        ("REACTION", "🐟"),
        ("REACTION", "🎉"),
        ("FOLLOW", None),
        ("REACTION", "👍"),
    ]
    await stores.mongo["notifications"].update_many({}, {"$unset": {"emoji": ""}})
    items = (await chat.ann.run(EMOJIS))["notifications"]["items"]
    assert [each["emoji"] for each in items] == [None] * 4


async def test_page_has_the_read_mark_from_before_it_moves(chat: ChatScenario) -> None:
    assert (await chat.bob.run(EMOJIS))["notifications"] == {"readUpTo": None, "items": []}
    marks = []
    for _ in range(3):
        await chat.ann.post(chat.topic, "@bob")
        await until_outbox_is_empty(chat.ann.stores)
        page = (await chat.bob.run(EMOJIS))["notifications"]
        marks.append((page["readUpTo"], page["items"][0]["timestamp"]))
        await chat.bob.run(MARK_READ, at=page["items"][0]["timestamp"])
    (first, one), (second, two), (third, _) = marks
    assert (first, second, third) == (None, one, two)
    assert (await chat.ann.run(EMOJIS))["notifications"]["readUpTo"] is None


async def test_emoji_is_hidden_from_a_former_member(chat: ChatScenario, stores: Stores) -> None:
    message, post = await chat.bob.post(chat.topic, "one"), await chat.bob.create_post("two")
    await chat.ann.run(REACT, id=message["id"], emoji="🐟")
    await chat.ann.run(REACT_TO_POST, id=post, emoji="🎉")
    await until_outbox_is_empty(stores)
    await chat.bob.leave(chat.community)
    items = (await chat.bob.run(EMOJIS))["notifications"]["items"]
    assert {each["emoji"] for each in items} == {"🎉", None}
    await chat.bob.run("mutation ($id: ID!) { deletePost(id: $id) { id } }", id=post)
    items = (await chat.bob.run(EMOJIS))["notifications"]["items"]
    assert [each["emoji"] for each in items] == [None, None]
