"""Quotes: a message shows another message to the people who may read that message now."""

from typing import Any

import pytest

from resolvers.audience import Audience
from resolvers.chat.quotes import quoted_messages
from resolvers.context import Context
from storage.chat.records import Message
from storage.ids import message_key
from tests.resolvers.people import EDIT, ChatScenario, Person, fake_signed_url

pytestmark = pytest.mark.anyio

QUOTE = """
query ($id: ID!) {
  done: message(id: $id) { text deletedAt quote { message { id topicId text deletedAt author { id } } } }
}
"""
PAGE = """
query ($topic: ID!) { done: messages(topicId: $topic, latest: "now") { items { quote { message { text } } } } }
"""
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { id } }"
DELETE = "mutation ($id: ID!) { done: deleteMessage(id: $id) { id } }"
START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { id } }"
EVENTS = """
subscription ($topic: ID!) {
  topicEvents(topicId: $topic) { ... on MessagePosted { message { quote { message { text } } } } }
}
"""


async def quote_seen_by(person: Person, id_: str) -> Any:
    """Returns the quoted message as the person sees it, or None."""
    return (await person.do(QUOTE, id=id_))["quote"]["message"]


async def refused(person: Person, topic: str, quoted: str, **more: Any) -> str | None:
    """Returns the code of the error of a post that quotes the message, or None."""
    return await person.code(POST, input={"topicId": topic, "text": "x", "quotedMessageId": quoted, **more})


async def test_quote_shows_the_message_as_it_is_now(chat: ChatScenario) -> None:
    quoted = await chat.ann.post(chat.topic, "low tide at noon")
    quoting = await chat.bob.post(chat.topic, "really?", quotedMessageId=quoted["id"])
    seen = {"id": quoted["id"], "topicId": chat.topic, "text": "low tide at noon", "deletedAt": None}
    assert await quote_seen_by(chat.ann, quoting["id"]) == {**seen, "author": {"id": "ann"}}
    await chat.ann.run(EDIT, id=quoted["id"], text="low tide at one")
    assert (await quote_seen_by(chat.bob, quoting["id"]))["text"] == "low tide at one"
    await chat.bob.run(EDIT, id=quoting["id"], text="oh")
    await chat.ann.do(DELETE, id=quoted["id"])
    deleted = await quote_seen_by(chat.bob, quoting["id"])
    assert (deleted["text"], deleted["deletedAt"] is None, deleted["author"]) == ("", False, {"id": "ann"})
    await chat.bob.do(DELETE, id=quoting["id"])
    assert (await chat.ann.do(QUOTE, id=quoting["id"]))["quote"] is None


async def test_quote_of_another_place_needs_membership(chat: ChatScenario) -> None:
    hidden = await chat.bob.create_community("Divers", visibility="PRIVATE")
    quoted = await chat.bob.post(await chat.bob.create_topic(hidden), "a wreck")
    quoting = await chat.bob.post(chat.topic, "see this", quotedMessageId=quoted["id"])
    assert (await quote_seen_by(chat.bob, quoting["id"]))["text"] == "a wreck"
    assert await quote_seen_by(chat.ann, quoting["id"]) is None
    add = "mutation ($c: ID!, $u: ID!) { addMember(communityId: $c, userId: $u) { role } }"
    await chat.bob.run(add, c=hidden, u="ann")
    assert (await quote_seen_by(chat.ann, quoting["id"]))["text"] == "a wreck"
    await chat.ann.leave(hidden)
    page = await chat.ann.do(PAGE, topic=chat.topic)
    assert page == {"items": [{"quote": {"message": None}}]}


async def test_quote_of_a_direct_message_stays_between_its_people(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    conversation = (await chat.ann.do(START, input={"userIds": ["bob"]}))["id"]
    quoted = await chat.ann.post(conversation, "between us")
    quoting = await chat.ann.post(chat.topic, "as I wrote", quotedMessageId=quoted["id"])
    assert (await quote_seen_by(chat.bob, quoting["id"]))["text"] == "between us"
    assert await quote_seen_by(chat.eve, quoting["id"]) is None
    assert await refused(chat.eve, chat.topic, quoted["id"]) == "NOT_FOUND"


async def test_reply_quotes_a_message_of_its_topic(chat: ChatScenario) -> None:
    parent = await chat.ann.post(chat.topic, "parent")
    reply = await chat.bob.post(chat.topic, "reply", replyTo=parent["id"], quotedMessageId=parent["id"])
    assert (await quote_seen_by(chat.ann, reply["id"]))["id"] == parent["id"]
    quoting = await chat.ann.post(chat.topic, "in the topic", quotedMessageId=reply["id"])
    assert (await quote_seen_by(chat.bob, quoting["id"]))["text"] == "reply"


async def test_message_of_a_blocked_person_is_not_quoted(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    quoted = await chat.bob.post(chat.topic, "from bob")
    quoting = await chat.eve.post(chat.topic, "he says", quotedMessageId=quoted["id"])
    await chat.ann.block(chat.bob)
    assert await quote_seen_by(chat.ann, quoting["id"]) is None
    assert (await quote_seen_by(chat.eve, quoting["id"]))["text"] == "from bob"
    assert await refused(chat.ann, chat.topic, quoted["id"]) == "NOT_FOUND"
    async with chat.ann.subscribed(EVENTS, topic=chat.topic) as events:
        await chat.eve.post(chat.topic, "again", quotedMessageId=quoted["id"])
        assert (await events.next_event())["message"]["quote"] == {"message": None}


async def test_unreadable_message_is_not_quoted(chat: ChatScenario) -> None:
    elsewhere = await chat.eve.create_community("Elsewhere")
    hidden = await chat.eve.create_community("Hidden", visibility="PRIVATE")
    public, private = [
        (await chat.eve.post(await chat.eve.create_topic(place), "words"))["id"] for place in (elsewhere, hidden)
    ]
    assert await refused(chat.bob, chat.topic, public) == "FORBIDDEN"
    for unknown in (private, f"{chat.topic}-1", "nothing-1", "nothing"):
        assert await refused(chat.bob, chat.topic, unknown) == "NOT_FOUND"


async def test_deleted_message_is_not_quoted_but_repetitions_succeed(chat: ChatScenario) -> None:
    quoted = await chat.ann.post(chat.topic)
    fields = {"topicId": chat.topic, "text": "x", "quotedMessageId": quoted["id"], "idempotencyKey": "k1"}
    first = await chat.bob.do(POST, input=fields)
    await chat.ann.do(DELETE, id=quoted["id"])
    assert await refused(chat.bob, chat.topic, quoted["id"]) == "CONFLICT"
    assert await chat.bob.do(POST, input=fields) == first


async def test_shared_result_excludes_viewers_who_may_not_read(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    elsewhere = await chat.bob.create_community("Divers")
    await chat.ann.join(elsewhere)
    quoted = await chat.bob.post(await chat.bob.create_topic(elsewhere), "a wreck")
    quoting = await chat.bob.post(chat.topic, "see this", quotedMessageId=quoted["id"])
    stores, viewers = chat.ann.stores, frozenset({"ann", "bob", "eve"})
    message: Message = await stores.messages.get(message_key(quoting["id"]))
    assert message.quote is not None
    audience = Audience("acme", viewers)

    class OneInfo:
        context = Context(stores, fake_signed_url, chat.ann.user, chat.ann.roles, coalesced=audience)

    (shown,) = await quoted_messages([message.quote], OneInfo())  # type: ignore[arg-type]
    assert shown is not None
    assert (shown.text, audience.excluded_ids) == ("a wreck", {"eve"})
