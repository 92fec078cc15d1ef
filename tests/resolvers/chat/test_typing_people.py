"""People who type: the others in a topic or conversation see them, unless a setting, a block or a mute hides them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.chat.roles import Moderator
from storage.identity.presence import typing_hub
from tests.resolvers.chat.test_conversations import ACCEPT, start
from tests.resolvers.chat.test_presence import SHOW
from tests.resolvers.people import ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

TYPE = "mutation ($id: ID!, $typing: Boolean! = true) { done: setTyping(topicId: $id, typing: $typing) }"
TYPING = "query ($id: ID!) { done: typingUsers(topicId: $id) { id } }"
EVENTS = """
subscription ($id: ID!) {
  typingEvents(topicId: $id) {
    type: __typename
    ... on TypingStarted { user { id name } }
    ... on TypingEnded { user { id } }
  }
}
"""


@pytest.fixture(autouse=True)
def every_signal_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typing_hub, "SIGNAL_EVERY_S", 0.0)
    monkeypatch.setattr(typing_hub, "POLL_EVERY_S", 0.05)


async def type_in(person: Person, topic: str, typing: bool = True) -> Any:
    """Signals that the person is typing. Returns whether others may see it."""
    return (await person.run(TYPE, id=topic, typing=typing))["done"]


async def typing(viewer: Person, topic: str) -> list[str]:
    """Returns the ids of the people whom the viewer sees typing."""
    return [user["id"] for user in (await viewer.run(TYPING, id=topic))["done"]]


async def test_others_see_who_is_typing(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(EVENTS, id=chat.topic) as events:
        assert await type_in(chat.ann, chat.topic)
        started = await events.next_event()
        assert (started["type"], started["user"]["id"]) == ("TypingStarted", chat.ann.id)
        assert await typing(chat.bob, chat.topic) == [chat.ann.id]
        assert await typing(chat.ann, chat.topic) == []
        assert not await type_in(chat.ann, chat.topic, False)
        assert (await events.next_event())["type"] == "TypingEnded"
        assert await typing(chat.bob, chat.topic) == []


@pytest.mark.parametrize("is_by_viewer", [True, False])
async def test_blocks_hide_typing_in_both_directions(chat: ChatScenario, sign_in: SignIn, is_by_viewer: bool) -> None:
    cat = await sign_in("cat")
    await cat.join(chat.community)
    await (chat.bob.block(chat.ann) if is_by_viewer else chat.ann.block(chat.bob))
    async with chat.bob.subscribed(EVENTS, id=chat.topic) as events:
        assert await type_in(chat.ann, chat.topic)
        assert await type_in(cat, chat.topic)
        assert (await events.next_event())["user"]["id"] == cat.id
        assert await typing(chat.bob, chat.topic) == [cat.id]


async def test_own_typing_is_no_event(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(EVENTS, id=chat.topic) as events:
        await type_in(chat.bob, chat.topic)
        await type_in(chat.ann, chat.topic)
        assert (await events.next_event())["user"]["id"] == chat.ann.id


async def test_people_outside_neither_type_nor_see(chat: ChatScenario, sign_in: SignIn) -> None:
    private = await chat.ann.create_community("Cave", visibility="PRIVATE")
    hidden_topic = await chat.ann.create_topic(private)
    foreigner = await sign_in("ann", "elsewhere")
    for operation in (TYPE, TYPING, EVENTS):
        for person, topic, code in (
            (chat.eve, chat.topic, "FORBIDDEN"),
            (chat.eve, hidden_topic, "NOT_FOUND"),
            (foreigner, chat.topic, "NOT_FOUND"),
        ):
            if operation is EVENTS:
                async for answer in person.answers(EVENTS, id=topic):
                    assert answer["errors"][0]["extensions"]["code"] == code
                    break
            else:
                assert await person.code(operation, id=topic) == code


async def test_switches_mutes_and_archives_hide_typing(chat: ChatScenario) -> None:
    stores, community = chat.ann.stores, await chat.ann.stores.communities.get("acme", chat.community)
    await chat.bob.do(SHOW, shown=False)
    assert not await type_in(chat.bob, chat.topic)
    await chat.bob.do(SHOW, shown=True)
    assert await type_in(chat.bob, chat.topic)
    later = datetime.now(UTC) + timedelta(hours=1)
    await stores.moderation.mute(community, Moderator(chat.ann.id), chat.bob.id, later)
    assert not await type_in(chat.bob, chat.topic)
    assert await typing(chat.ann, chat.topic) == []
    assert await type_in(chat.ann, chat.topic)
    await stores.moderation.set_archived(replace(community), Moderator(chat.ann.id), True)
    assert not await type_in(chat.ann, chat.topic)


async def test_switch_hides_a_person_who_is_typing(chat: ChatScenario) -> None:
    assert await type_in(chat.bob, chat.topic)
    await chat.bob.do(SHOW, shown=False)
    assert await typing(chat.ann, chat.topic) == []


async def test_requested_people_neither_type_nor_see_typing(chat: ChatScenario) -> None:
    conversation = await start(chat.eve, chat.ann)
    await chat.eve.post(conversation)
    assert await type_in(chat.eve, conversation)
    for operation in (TYPE, TYPING):
        assert await chat.ann.code(operation, id=conversation) == "FORBIDDEN"
    await chat.ann.do(ACCEPT, id=conversation)
    assert await typing(chat.ann, conversation) == [chat.eve.id]
    assert await type_in(chat.ann, conversation)
    assert await chat.bob.code(TYPING, id=conversation) == "NOT_FOUND"
