"""Reactions that earlier releases stored under several forms of one emoji, before and after their migration."""

import asyncio
from typing import Any

import pytest

from storage.ids import message_key, post_key
from storage.migrations.reaction_forms import join_reaction_forms
from tests.resolvers.people import TOPIC_EVENTS, UNREACT, ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

MESSAGE = "query ($id: ID!) { message(id: $id) { reactions { emoji count reacted users { id } } } }"
POST = "query ($id: ID!) { post(id: $id) { reactions { emoji count reacted users { id } } } }"
UNREACT_TO_POST = "mutation ($id: ID!, $emoji: String!) { done: removePostReaction(postId: $id, emoji: $emoji) { id } }"
RECEIVED = '{ reactionsReceived(latest: "now") { items { emoji user { id } } } }'
NOTIFICATIONS = '{ notifications(latest: "now") { items { kind actor { id } emoji } } }'

STORED = [
    *(("bob", "❤"), ("bob", "❤\ufe0f"), ("eve", "👍"), ("eve", "👍\ufe0f"), ("bob", "👍\ufe0f"), ("ann", "👍\ufe0f")),
    *(("eve", "❤"), ("bob", ":lit:"), ("bob", "👩\u200d👍"), ("eve", "1\u20e3"), ("bob", "🏳\u200d🌈")),
]
JOINED = [
    {"emoji": "❤\ufe0f", "count": 2, "reacted": False, "users": [{"id": "bob"}, {"id": "eve"}]},
    {"emoji": "👍", "count": 3, "reacted": True, "users": [{"id": "eve"}, {"id": "bob"}, {"id": "ann"}]},
    {"emoji": ":lit:", "count": 1, "reacted": False, "users": [{"id": "bob"}]},
    {"emoji": "👩\u200d👍", "count": 1, "reacted": False, "users": [{"id": "bob"}]},
    {"emoji": "1\ufe0f\u20e3", "count": 1, "reacted": False, "users": [{"id": "eve"}]},
    {"emoji": "🏳\ufe0f\u200d🌈", "count": 1, "reacted": False, "users": [{"id": "bob"}]},
]


async def store_reactions(chat: ChatScenario, message_id: str) -> None:
    """Stores reactions to a message as an earlier release did."""
    await chat.eve.join(chat.community)
    for user, emoji in STORED:
        await chat.ann.stores.messages.add_reaction("acme", message_key(message_id), user, emoji)
    await until_outbox_is_empty(chat.ann.stores)


async def migrate(person: Person, *, repeated: bool = True) -> None:
    for _ in range(1 + repeated):
        await join_reaction_forms(person.stores.mongo)


async def items(person: Person, query: str) -> list[dict[str, Any]]:
    (page,) = (await person.run(query)).values()
    found: list[dict[str, Any]] = page["items"]
    return found


async def test_forms_of_reactions_to_message_are_joined(chat: ChatScenario) -> None:
    id_ = (await chat.ann.post(chat.topic))["id"]
    await store_reactions(chat, id_)
    await migrate(chat.ann)
    assert (await chat.ann.run(MESSAGE, id=id_))["message"]["reactions"] == JOINED
    for user, emoji in (("bob", "❤"), ("eve", "❤\ufe0f")):
        await getattr(chat, user).run(UNREACT, id=id_, emoji=emoji)
    assert (await chat.ann.run(MESSAGE, id=id_))["message"]["reactions"] == JOINED[1:]


async def test_forms_of_received_reactions_are_joined(chat: ChatScenario) -> None:
    id_ = (await chat.ann.post(chat.topic))["id"]
    await store_reactions(chat, id_)
    await migrate(chat.ann)
    others = [(each["emoji"], user["id"]) for each in JOINED for user in each["users"] if user["id"] != "ann"]
    received = await items(chat.ann, RECEIVED)
    assert sorted((each["emoji"], each["user"]["id"]) for each in received) == sorted(others)
    notified = await items(chat.ann, NOTIFICATIONS)
    assert sorted((each["emoji"], each["actor"]["id"]) for each in notified) == sorted(others)
    await chat.bob.run(UNREACT, id=id_, emoji="👍")
    await until_outbox_is_empty(chat.ann.stores)
    assert ("👍", "bob") not in [(each["emoji"], each["actor"]["id"]) for each in await items(chat.ann, NOTIFICATIONS)]


async def test_joined_reactions_are_emitted_to_subscribers(chat: ChatScenario) -> None:
    id_ = (await chat.ann.post(chat.topic))["id"]
    await store_reactions(chat, id_)
    async with chat.ann.subscribed(TOPIC_EVENTS, topic=chat.topic) as subscription:
        await chat.bob.run(UNREACT, id=id_, emoji=":lit:")
        cursor = (await subscription.next_event())["cursor"]
    await migrate(chat.ann, repeated=False)
    async with chat.ann.subscribed(TOPIC_EVENTS, topic=chat.topic, since=cursor) as subscription:
        event = await subscription.next_event()
        assert event["type"] == "ReactionsChanged"
        assert [each["emoji"] for each in event["message"]["reactions"]][:2] == ["❤\ufe0f", "👍"]


async def test_reactions_during_migration_are_counted(chat: ChatScenario) -> None:
    """Processes of the last release add and remove reactions meanwhile."""
    messages = [(await chat.ann.post(chat.topic))["id"] for _ in range(8)]
    await store_reactions(chat, messages[0])
    for id_ in messages[1:]:
        await chat.ann.stores.messages.add_reaction("acme", message_key(id_), "bob", "👍\ufe0f")
    store = chat.ann.stores.messages
    changes = [
        store.add_reaction("acme", message_key(id_), user, "👍") for id_ in messages for user in ("ann", "bob", "eve")
    ]
    await asyncio.gather(migrate(chat.ann, repeated=False), *changes)
    await migrate(chat.ann)
    for id_ in messages:
        shown = (await chat.ann.run(MESSAGE, id=id_))["message"]["reactions"]
        (thumbs,) = [each for each in shown if each["emoji"] == "👍"]
        assert (thumbs["count"], len(thumbs["users"])) == (3, 3)


async def test_waiting_outbox_rows_follow_their_reaction(chat: ChatScenario) -> None:
    id_ = (await chat.ann.post(chat.topic))["id"]
    await store_reactions(chat, id_)
    mongo, key = chat.ann.stores.mongo, message_key(id_)
    ref = {"t": key.topic_id, "ts": key.timestamp, "e": "❤", "u": "eve"}
    await mongo["outbox"].insert_one({"stream": "waiting", "kind": "Reaction", "ref": ref})
    await migrate(chat.ann)
    (row,) = await mongo.find("outbox", {"stream": "waiting"})
    assert row["ref"] == {**ref, "e": "❤\ufe0f"}


async def test_forms_of_reactions_to_post_are_joined(sign_in: SignIn) -> None:
    ann, _bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    id_ = await ann.create_post("news")
    post = await ann.stores.posts.get(post_key("acme", id_))
    for user, emoji in STORED:
        await ann.stores.post_reactions.add(post, user, emoji)
    await until_outbox_is_empty(ann.stores)
    await migrate(ann)
    assert (await ann.run(POST, id=id_))["post"]["reactions"] == JOINED
    notified = await items(ann, NOTIFICATIONS)
    assert sorted((each["emoji"], each["actor"]["id"]) for each in notified) == [("❤\ufe0f", "bob"), ("👍", "eve")]
    await eve.run(UNREACT_TO_POST, id=id_, emoji="❤")
    assert (await ann.run(POST, id=id_))["post"]["reactions"][0]["users"] == [{"id": "bob"}]


async def test_earlier_form_is_removed_from_post(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await ann.create_post("news")
    post = await ann.stores.posts.get(post_key("acme", id_))
    for emoji in ("❤", "👩\u200d👍"):
        await ann.stores.post_reactions.add(post, "bob", emoji)
        await bob.run(UNREACT_TO_POST, id=id_, emoji=emoji)
    assert (await ann.run(POST, id=id_))["post"]["reactions"] == []
