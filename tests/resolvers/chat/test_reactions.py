"""Reactions: one per message, user and emoji; their users; received reactions (docs/semantics.md, 2)."""

import asyncio
from typing import Any

import pytest

from storage.ids import message_key
from tests.resolvers.people import DELETE, REACT, UNREACT, ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

RECEIVED = """
query ($oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) {
  reactionsReceived(oldest: $oldest, latest: $latest, limit: $limit) {
    items { timestamp emoji user { id } message { id topicId timestamp } } hasOlder hasNewer oldest newest
  }
}
"""
AROUND = "query ($topic: ID!, $at: Timestamp!) { messagesAround(topicId: $topic, timestamp: $at) { items { id } } }"
REACTIONS = """
query ($id: ID!, $limit: Int! = 10) {
  message(id: $id) { reactions { emoji count reacted users(limit: $limit) { id } } }
}
"""
FACES = [chr(0x1F600 + number) for number in range(31)]


async def react(person: Person, message: dict[str, Any], *emojis: str) -> None:
    for emoji in emojis:
        await person.run(REACT, id=message["id"], emoji=emoji)


async def reactions(person: Person, message: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    reactions_: list[dict[str, Any]] = (await person.run(REACTIONS, id=message["id"], **more))["message"]["reactions"]
    return reactions_


async def received_reactions(person: Person, **bounds: Any) -> dict[str, Any]:
    await until_outbox_is_empty(person.stores)
    page: dict[str, Any] = (await person.run(RECEIVED, **(bounds or {"latest": "now"})))["reactionsReceived"]
    return page


async def test_reactions_are_in_order_of_first_use(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, "🌊", "👍")
    await react(chat.ann, message, "👍")
    assert await reactions(chat.bob, message) == [
        {"emoji": "🌊", "count": 1, "reacted": True, "users": [{"id": "bob"}]},
        {"emoji": "👍", "count": 2, "reacted": True, "users": [{"id": "bob"}, {"id": "ann"}]},
    ]
    assert [reaction["reacted"] for reaction in await reactions(chat.ann, message)] == [False, True]


async def test_add_reaction_returns_the_changed_message(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    changed_message = await chat.bob.do(REACT, id=message["id"], emoji="👍")
    assert changed_message["reactions"] == [{"emoji": "👍", "count": 1, "reacted": True, "users": [{"handle": "bob"}]}]
    assert (await chat.bob.do(UNREACT, id=message["id"], emoji="👍"))["reactions"] == []


async def test_repeated_reaction_changes_and_emits_nothing(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, "👍")
    head_before = await chat.bob.stores.mongo["topics"].find_one({"_id": chat.topic}, {"n": 1})
    await react(chat.bob, message, "👍")
    assert await chat.bob.stores.mongo["topics"].find_one({"_id": chat.topic}, {"n": 1}) == head_before
    assert [reaction["count"] for reaction in await reactions(chat.bob, message)] == [1]


async def test_removing_a_missing_reaction_changes_nothing(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, "👍")
    await chat.ann.run(UNREACT, id=message["id"], emoji="👍")
    await chat.bob.run(UNREACT, id=message["id"], emoji="🌊")
    assert [reaction["count"] for reaction in await reactions(chat.bob, message)] == [1]
    for _ in range(2):
        await chat.bob.run(UNREACT, id=message["id"], emoji="👍")
    assert await reactions(chat.bob, message) == []


async def test_message_of_a_blocked_author_takes_no_reactions(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, "👍")
    await chat.bob.block(chat.ann)
    for mutation, emoji in ((REACT, "🎉"), (UNREACT, "👍")):
        assert await chat.bob.code(mutation, id=message["id"], emoji=emoji) == "NOT_FOUND"
    assert [each["emoji"] for each in await reactions(chat.ann, message)] == ["👍"]
    await chat.bob.unblock(chat.ann)
    await react(chat.bob, message, "🎉")
    assert [each["emoji"] for each in await reactions(chat.ann, message)] == ["👍", "🎉"]


async def test_concurrent_reactions_of_many_users_are_counted(chat: ChatScenario, sign_in: SignIn) -> None:
    message = await chat.ann.post(chat.topic)
    people = [await sign_in(f"member{number}") for number in range(12)]
    for person in people:
        await person.join(chat.community)
    await asyncio.gather(*(react(person, message, "👍") for person in people for _ in range(2)))
    (reaction,) = await reactions(chat.ann, message, limit=999)
    assert reaction["count"] == len(reaction["users"]) == 12
    assert len((await reactions(chat.ann, message))[0]["users"]) == 10
    assert len((await reactions(chat.ann, message, limit=3))[0]["users"]) == 3


async def test_message_has_at_most_thirty_different_reactions(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, *FACES[:30])
    assert await chat.ann.code(REACT, id=message["id"], emoji=FACES[30]) == "CONFLICT"
    await react(chat.ann, message, FACES[0])
    assert len(await reactions(chat.ann, message)) == 30
    await chat.bob.run(UNREACT, id=message["id"], emoji=FACES[1])
    await react(chat.ann, message, FACES[30])
    assert [reaction["emoji"] for reaction in await reactions(chat.ann, message)] == [FACES[0], *FACES[2:]]


async def test_reaction_other_than_one_emoji_is_refused(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    refusal = await chat.bob.fails(REACT, id=message["id"], emoji="👍👍")
    assert refusal == {"code": "BAD_USER_INPUT", "field": "emoji", "expected": "exactly one emoji"}
    assert await chat.bob.code(UNREACT, id=message["id"], emoji="👍" * 129) == "BAD_USER_INPUT"


async def test_forms_of_one_emoji_are_one_reaction(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    for form in ("❤", "❤️"):
        await react(chat.bob, message, form)
    assert [(each["emoji"], each["count"]) for each in await reactions(chat.ann, message)] == [("❤️", 1)]
    await chat.bob.run(UNREACT, id=message["id"], emoji="❤")
    assert await reactions(chat.ann, message) == []


@pytest.mark.parametrize("emoji", ["❤", "👩‍👍"])
async def test_reaction_of_an_earlier_version_is_removed(chat: ChatScenario, emoji: str) -> None:
    message = await chat.ann.post(chat.topic)
    await chat.ann.stores.messages.add_reaction("acme", message_key(message["id"]), chat.bob.id, emoji)
    await chat.bob.run(UNREACT, id=message["id"], emoji=emoji)
    assert await reactions(chat.ann, message) == []


async def test_received_reaction_leads_to_its_message(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "before")
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, "🌊", "👍")
    page = await received_reactions(chat.ann)
    assert [(item["emoji"], item["user"]["id"]) for item in page["items"]] == [("👍", "bob"), ("🌊", "bob")]
    assert (page["newest"], page["oldest"]) == (page["items"][0]["timestamp"], page["items"][1]["timestamp"])
    received_message = page["items"][0]["message"]
    assert received_message["id"] == message["id"]
    around = (await chat.ann.run(AROUND, topic=received_message["topicId"], at=received_message["timestamp"]))[
        "messagesAround"
    ]["items"]
    assert message["id"] in [item["id"] for item in around]


async def test_received_reactions_follow_the_timeline_rule(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await react(chat.bob, message, *FACES[:5])
    newest = await received_reactions(chat.ann, latest="now", limit=2)
    assert [item["emoji"] for item in newest["items"]] == [FACES[4], FACES[3]]
    assert (newest["hasOlder"], newest["hasNewer"]) == (True, False)
    oldest = await received_reactions(chat.ann, oldest="0.000000", limit=3)
    assert [item["emoji"] for item in oldest["items"]] == FACES[:3]
    assert (oldest["hasOlder"], oldest["hasNewer"]) == (False, True)
    assert (await chat.ann.fails(RECEIVED))["code"] == "BAD_USER_INPUT"


async def test_removed_deleted_and_own_reactions_are_not_received(chat: ChatScenario) -> None:
    remaining, deleted = await chat.ann.post(chat.topic), await chat.ann.post(chat.topic)
    await react(chat.ann, remaining, "👍")
    await react(chat.bob, remaining, "🌊", "👍")
    await react(chat.bob, deleted, "🌊")
    await received_reactions(chat.ann)
    await chat.bob.run(UNREACT, id=remaining["id"], emoji="🌊")
    await chat.ann.run(DELETE, id=deleted["id"])
    assert [(item["emoji"], item["user"]["id"]) for item in (await received_reactions(chat.ann))["items"]] == [
        ("👍", "bob")
    ]
    assert (await received_reactions(chat.bob))["items"] == []
