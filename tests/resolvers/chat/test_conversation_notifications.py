"""Notifications of direct messages and of requests: one for each conversation, as long as it is unread or waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from storage.chat.conversations import relays
from storage.chat.conversations.relays import ConversationNotificationRelay
from storage.chat.memberships import community_stream
from storage.identity.audit import Actor
from storage.identity.records import user_stream
from storage.mongo import Mongo, Session
from storage.stores.event_kinds import OUTBOX_RELAYS
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.outbox import Outbox, add_rows
from tests.jobs.test_erasures import run_until_erased
from tests.resolvers.chat.test_conversations import ACCEPT, ADD, DECLINE, LEAVE, request, start
from tests.resolvers.chat.test_cross_posts import cross_post, relay_nothing
from tests.resolvers.feed.test_notifications import MARK_READ
from tests.resolvers.people import DELETE, EDIT, Answer, ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

LIST = """
{ unreadNotificationCount
  notifications(latest: "now") {
    items {
      id timestamp kind actor { id } message { id text } conversation { id state topic { unreadCount } }
    }
  } }
"""
EVENTS = """
subscription {
  notificationEvents {
    type: __typename
    ... on NotificationArrived { notification { id kind message { text } } }
    ... on NotificationRemoved { notificationId }
  }
}
"""
MARK_TOPIC_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"
UNREAD = "query ($id: ID!) { topic(id: $id) { unreadCount } }"
MUTE_TOPIC = "mutation ($id: ID!) { muteTopic(topicId: $id) { id } }"
MUTE_USER = "mutation ($id: ID!) { muteUser(userId: $id) { id } }"
UNMUTE_USER = "mutation ($id: ID!) { unmuteUser(userId: $id) { id } }"


@dataclass(frozen=True)
class Listed:
    """The list of a person's notifications, and the number of unread ones."""

    items: list[Answer]
    unread: int

    @property
    def brief(self) -> list[tuple[str, str, str | None]]:
        """The kind, actor and text of each notification, newest first."""
        return [(each["kind"], each["actor"]["id"], (each["message"] or {}).get("text")) for each in self.items]


async def listed(person: Person) -> Listed:
    """Returns the notifications of a person when everything was relayed."""
    await until_outbox_is_empty(person.stores)
    answer = await person.run(LIST)
    return Listed(answer["notifications"]["items"], answer["unreadNotificationCount"])


async def read(person: Person, message: Answer) -> None:
    """Marks a conversation as read up to the message."""
    await person.run(MARK_TOPIC_READ, topic=message["topicId"], at=message["timestamp"])


async def repeat_row(person: Person, conversation: str, count: int = 1) -> None:
    """Adds outbox rows, as if events of the conversation were relayed late or repeatedly."""
    assert person.user is not None
    stream = user_stream(*person.user.key)
    for _ in range(count):
        await add_rows(person.stores.mongo, stream, "ConversationNotification", [conversation])
    person.stores.outbox.nudge(stream.name)
    await until_outbox_is_empty(person.stores)


async def head(person: Person) -> Any:
    """Returns the head of a person's stream, which every commit changes, when everything was relayed."""
    assert person.user is not None
    await until_outbox_is_empty(person.stores)
    return await person.stores.mongo["streams"].find_one({"_id": user_stream(*person.user.key).name})


class HeldRelay(ConversationNotificationRelay):
    """A relay of one person's notifications that waits between its reads and its commit."""

    held_stream: ClassVar[str]
    has_read: ClassVar[asyncio.Event]
    may_commit: ClassVar[asyncio.Event]

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads, and waits until the commit is allowed."""
        await super().load(mongo, session, rows, batch)
        if batch.stream.name == self.held_stream:
            self.has_read.set()
            await self.may_commit.wait()


@pytest.fixture
def held_relay(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> type[HeldRelay]:
    """A relay that holds Bob's notifications until `may_commit` is set."""
    assert chat.bob.user is not None
    HeldRelay.held_stream = user_stream(*chat.bob.user.key).name
    HeldRelay.has_read, HeldRelay.may_commit = asyncio.Event(), asyncio.Event()
    monkeypatch.setitem(OUTBOX_RELAYS, "ConversationNotification", HeldRelay)
    return HeldRelay


async def stored_events(person: Person) -> list[dict[str, Any]]:
    """Returns the stored events of a person's notifications."""
    assert person.user is not None
    query = {"_id.s": user_stream(*person.user.key).name}
    return await person.stores.mongo["events"].find(query).to_list(None)


async def test_concurrent_messages_make_one_notification(chat: ChatScenario, sign_in: SignIn) -> None:
    dan = await sign_in("dan")
    await dan.join(chat.community)
    group = await start(chat.ann, chat.bob, dan)
    await asyncio.gather(*(person.post(group, f"{n}") for n in range(6) for person in (chat.ann, chat.bob)))
    of_dan = await listed(dan)
    (item,) = of_dan.items
    assert (item["kind"], of_dan.unread) == ("DIRECT_MESSAGE", 1)
    assert item["conversation"] == {"id": f"Conversation:{group}", "state": "JOINED", "topic": {"unreadCount": 12}}


async def test_next_message_moves_a_notification_that_was_seen(chat: ChatScenario) -> None:
    id_, other = await start(chat.ann, chat.bob), await start(chat.ann, chat.bob, chat.eve)
    await chat.ann.post(id_, "one")
    before = await listed(chat.bob)
    await chat.ann.post(other, "elsewhere")
    await chat.ann.post(id_, "unseen")
    unseen = await listed(chat.bob)
    assert unseen.brief == [("DIRECT_MESSAGE", "ann", "elsewhere"), ("DIRECT_MESSAGE", "ann", "one")]
    assert [each["conversation"]["topic"]["unreadCount"] for each in unseen.items] == [1, 2]
    await chat.bob.run(MARK_READ, at="9999999999.999999")
    assert (await listed(chat.bob)).unread == 0
    await chat.ann.post(id_, "two")
    after = await listed(chat.bob)
    assert after.brief == [("DIRECT_MESSAGE", "ann", "two"), ("DIRECT_MESSAGE", "ann", "elsewhere")]
    assert after.unread == 1
    assert after.items[0]["timestamp"] > before.items[0]["timestamp"]
    assert (await listed(chat.ann)).items == []


async def test_reading_the_conversation_removes_the_notification(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    one = await chat.ann.post(id_, "one")
    (first,) = (await listed(chat.bob)).items
    async with chat.bob.subscribed(EVENTS) as events:
        two = await chat.ann.post(id_, "two")
        await read(chat.bob, one)
        (item,) = (await listed(chat.bob)).items
        assert (item["message"]["text"], item["conversation"]["topic"]["unreadCount"]) == ("two", 1)
        await read(chat.bob, two)
        assert await listed(chat.bob) == Listed([], 0)
        assert await events.next_event() == {"type": "NotificationRemoved", "notificationId": first["id"]}
        arrived = await events.next_event()
        assert (arrived["notification"]["id"], arrived["type"]) == (item["id"], "NotificationArrived")
        assert await events.next_event() == {"type": "NotificationRemoved", "notificationId": item["id"]}


async def test_reading_while_messages_arrive_leaves_nothing(chat: ChatScenario) -> None:
    """The read marks and the relays of the messages overlap."""
    id_ = await start(chat.ann, chat.bob)

    async def post_and_read() -> None:
        await read(chat.bob, await chat.ann.post(id_))

    for _ in range(3):
        await asyncio.gather(*(post_and_read() for _ in range(8)))
        assert await listed(chat.bob) == Listed([], 0)


async def test_reading_during_a_relay_removes_the_notification(chat: ChatScenario, held_relay: type[HeldRelay]) -> None:
    """The relay has read the mark of before, and commits the notification after the mark has moved."""
    id_ = await start(chat.ann, chat.bob)
    message = await chat.ann.post(id_)
    await held_relay.has_read.wait()
    await read(chat.bob, message)
    held_relay.may_commit.set()
    assert await listed(chat.bob) == Listed([], 0)


async def test_concurrent_people_are_notified_of_unread_messages(chat: ChatScenario, sign_in: SignIn) -> None:
    people = [chat.ann, chat.bob, await sign_in("dan")]
    await people[2].join(chat.community)
    group = await start(*people)

    async def write_or_read(person: Person, number: int) -> None:
        if number % 3:
            await person.post(group, f"{number}")
        elif messages := (await person.page(group))["items"]:
            await read(person, messages[-1])

    for first in range(3):
        await asyncio.gather(*(write_or_read(each, first + n) for n in range(5) for each in people[: 2 + first % 2]))
        for person in people:
            unread = (await person.run(UNREAD, id=group))["topic"]["unreadCount"]
            assert [kind for kind, *_ in (await listed(person)).brief] == ["DIRECT_MESSAGE"] * (unread > 0)


@pytest.mark.usefixtures("throttled_activity")
@pytest.mark.parametrize("own_count", [1, 3], ids=["one", "more than are read"])
async def test_message_before_own_ones_notifies_the_author(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch, own_count: int
) -> None:
    """The messages are announced together, and the last ones are the author's."""
    monkeypatch.setattr(relays, "MAX_NEW_MESSAGES", 3)
    id_ = await start(chat.ann, chat.bob)
    await chat.ann.post(id_, "first")
    await listed(chat.ann)
    await chat.bob.post(id_, "from Bob")
    for _ in range(own_count):
        await chat.ann.post(id_, "last")
    assert (await listed(chat.ann)).brief == [("DIRECT_MESSAGE", "bob", "from Bob")]


async def test_own_message_causes_no_commit_for_the_author(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    await chat.ann.post(id_)
    before = await head(chat.ann)
    await read(chat.ann, await chat.ann.post(id_))
    assert await head(chat.ann) == before


async def test_message_that_was_read_at_once_causes_no_commit(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await start(chat.ann, chat.bob)
    await read(chat.bob, await chat.ann.post(id_))
    before = await head(chat.bob)
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_relay", relay_nothing)
        await read(chat.bob, await chat.ann.post(id_))
    chat.bob.stores.outbox.nudge(community_stream(id_).name)
    assert await head(chat.bob) == before


async def test_deletion_announced_with_an_own_message_is_noticed(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await start(chat.ann, chat.bob)
    message = await chat.ann.post(id_)
    assert len((await listed(chat.bob)).items) == 1
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_relay", relay_nothing)
        await chat.ann.run(DELETE, id=message["id"])
        await chat.bob.post(id_)
    chat.bob.stores.outbox.nudge(community_stream(id_).name)
    assert await listed(chat.bob) == Listed([], 0)


async def test_cross_post_notifies_those_who_do_not_follow(chat: ChatScenario, sign_in: SignIn) -> None:
    dan = await sign_in("dan")
    await dan.join(chat.community)
    group = await start(chat.ann, chat.bob, dan)
    parent = await chat.ann.post(group, "parent")
    await asyncio.gather(*(read(each, parent) for each in (chat.bob, dan)))
    await cross_post(chat.bob, parent, "reply")
    assert (await listed(dan)).brief == [("DIRECT_MESSAGE", "bob", "reply")]
    assert [kind for kind, *_ in (await listed(chat.ann)).brief] == ["THREAD_REPLY"]
    await chat.bob.post(group, "before")
    await cross_post(chat.bob, parent, "another")
    assert ("DIRECT_MESSAGE", "bob", "before") in (await listed(chat.ann)).brief


async def test_late_and_repeated_rows_change_nothing(chat: ChatScenario) -> None:
    id_, read_one = await start(chat.ann, chat.bob), await start(chat.ann, chat.bob, chat.eve)
    await chat.ann.post(id_, "one")
    await read(chat.bob, await chat.ann.post(read_one, "read"))
    before, events = await listed(chat.bob), await stored_events(chat.bob)
    for person in (chat.ann, chat.bob, chat.eve):
        for conversation in (id_, read_one, "unknown", chat.topic):
            await repeat_row(person, conversation, count=3)
    assert (await listed(chat.bob), await stored_events(chat.bob)) == (before, events)
    assert (await listed(chat.ann)).items == []


async def test_mention_has_its_own_notification_only(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    await chat.ann.post(id_, "you @bob")
    assert (await listed(chat.bob)).brief == [("MENTION", "ann", "you @bob")]
    await chat.ann.post(id_, "more")
    assert (await listed(chat.bob)).brief == [("DIRECT_MESSAGE", "ann", "more"), ("MENTION", "ann", "you @bob")]


async def test_deleted_and_edited_messages_do_not_arrive_again(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    one = await chat.ann.post(id_, "one")
    await listed(chat.bob)
    await chat.bob.run(MARK_READ, at="9999999999.999999")
    two = await chat.ann.post(id_, "two")
    before, events = await listed(chat.bob), len(await stored_events(chat.bob))
    await chat.ann.run(EDIT, id=two["id"], text="changed")
    assert (await listed(chat.bob)).brief == [("DIRECT_MESSAGE", "ann", "changed")]
    await chat.ann.run(DELETE, id=two["id"])
    after = await listed(chat.bob)
    assert after.brief == [("DIRECT_MESSAGE", "ann", "one")]
    assert [each["id"] for each in after.items] == [each["id"] for each in before.items]
    assert len(await stored_events(chat.bob)) == events
    await chat.ann.run(DELETE, id=one["id"])
    await chat.ann.run(DELETE, id=(await chat.ann.post(id_, "three"))["id"])
    assert await listed(chat.bob) == Listed([], 0)


@pytest.mark.parametrize("is_muted", [False, True])
async def test_hidden_people_of_a_group_cause_no_notification(chat: ChatScenario, is_muted: bool) -> None:
    await chat.eve.join(chat.community)
    group = await start(chat.ann, chat.bob, chat.eve)
    await chat.bob.run(MUTE_USER, id="ann") if is_muted else await chat.bob.block(chat.ann)
    await chat.ann.post(group, "hidden")
    assert await listed(chat.bob) == Listed([], 0)
    await asyncio.gather(chat.eve.post(group, "seen"), *(chat.ann.post(group, "hidden") for _ in range(4)))
    assert (await listed(chat.bob)).brief == [("DIRECT_MESSAGE", "eve", "seen")]
    assert len((await listed(chat.eve)).items) == 1


async def test_muted_person_and_conversation_are_hidden(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    pair, muted = await start(chat.ann, chat.bob), await start(chat.eve, chat.bob)
    await chat.bob.run(MUTE_USER, id="ann")
    await chat.bob.run(MUTE_TOPIC, id=muted)
    await chat.ann.post(pair, "hidden")
    await chat.eve.post(muted)
    assert await listed(chat.bob) == Listed([], 0)
    await chat.bob.run(UNMUTE_USER, id="ann")
    assert (await listed(chat.bob)).brief == [("DIRECT_MESSAGE", "ann", "hidden")]


async def test_blocked_and_left_conversations_notify_nobody(chat: ChatScenario) -> None:
    pair, group = await start(chat.ann, chat.bob), await start(chat.ann, chat.bob, chat.eve)
    for id_ in (pair, group):
        await chat.ann.post(id_)
    assert len((await listed(chat.bob)).items) == 2
    await chat.bob.run(LEAVE, id=group)
    assert [each["conversation"]["id"] for each in (await listed(chat.bob)).items] == [f"Conversation:{pair}"]
    await chat.bob.block(chat.ann)
    await chat.ann.post(group)
    assert await listed(chat.bob) == Listed([], 0)
    await chat.bob.unblock(chat.ann)
    assert await listed(chat.bob) == Listed([], 0)


async def test_request_has_one_notification_until_accepted(chat: ChatScenario) -> None:
    group = await start(chat.eve, chat.bob, chat.ann)
    assert await listed(chat.ann) == Listed([], 0)
    await chat.bob.follow(chat.eve)
    first = await chat.eve.post(group, "Hello @ann")
    before = await listed(chat.ann)
    assert before.brief == [("CONVERSATION_REQUEST", "eve", "Hello @ann")]
    assert (before.unread, before.items[0]["conversation"]["state"]) == (1, "REQUESTED")
    await chat.bob.run(ACCEPT, id=group)
    last = await chat.bob.post(group, "more")
    await repeat_row(chat.ann, group, count=2)
    after = await listed(chat.ann)
    assert ([each["id"] for each in after.items], after.brief) == ([before.items[0]["id"]], before.brief)
    await chat.ann.run(ACCEPT, id=group)
    assert (await listed(chat.ann)).brief == [("DIRECT_MESSAGE", "bob", "more")]
    await read(chat.ann, first)
    await read(chat.ann, last)
    assert await listed(chat.ann) == Listed([], 0)


async def test_read_and_accepted_request_leaves_no_notification(chat: ChatScenario) -> None:
    id_ = await request(chat)
    (message,) = (await chat.ann.page(id_))["items"]
    await read(chat.ann, message)
    assert (await listed(chat.ann)).brief == [("CONVERSATION_REQUEST", "eve", message["text"])]
    await chat.ann.run(ACCEPT, id=id_)
    assert await listed(chat.ann) == Listed([], 0)


async def test_declined_request_never_notifies_again(chat: ChatScenario) -> None:
    id_, group = await request(chat), await start(chat.eve, chat.ann, chat.bob)
    await chat.bob.run(ACCEPT, id=group) if (await listed(chat.bob)).items else None
    await chat.eve.post(group)
    assert len((await listed(chat.ann)).items) == 2
    for each in (id_, group):
        await chat.ann.run(DECLINE, id=each)
    assert await listed(chat.ann) == Listed([], 0)
    await chat.bob.run(ACCEPT, id=group)
    await chat.eve.post(group)
    await chat.eve.run(ADD, id=group, users=["ann"])
    await start(chat.eve, chat.ann)
    assert await listed(chat.ann) == Listed([], 0)


async def test_blocked_request_leaves_no_notification(chat: ChatScenario) -> None:
    id_ = await request(chat)
    (message,) = (await chat.ann.page(id_))["items"]
    await chat.eve.run(DELETE, id=message["id"])
    await repeat_row(chat.ann, id_)
    assert (await listed(chat.ann)).brief == [("CONVERSATION_REQUEST", "eve", "")]
    await chat.ann.block(chat.eve)
    assert await listed(chat.ann) == Listed([], 0)
    await chat.ann.unblock(chat.eve)
    assert await listed(chat.ann) == Listed([], 0)


async def test_person_who_is_being_erased_gets_no_notification(chat: ChatScenario) -> None:
    """The erasure has begun, and the person has not left the conversation yet."""
    id_ = await start(chat.ann, chat.bob)
    assert chat.bob.user is not None
    await chat.bob.stores.erasures.request(Actor(*chat.bob.user.key), "bob", f"@{chat.bob.user.handle}")
    await chat.ann.post(id_)
    await until_outbox_is_empty(chat.ann.stores)
    assert await chat.ann.stores.mongo["notifications"].count_documents({"_id.u": "bob"}) == 0


async def test_erased_people_have_and_cause_no_notifications(chat: ChatScenario) -> None:
    """The request of an erased person stays in the list of requests, without its text, and so does its notification."""
    id_, requested = await start(chat.bob, chat.ann), await request(chat)
    await chat.bob.post(id_)
    await chat.ann.post(id_)
    for person in (chat.ann, chat.bob):
        assert "DIRECT_MESSAGE" in [kind for kind, *_ in (await listed(person)).brief]
    for person in (chat.bob, chat.eve):
        assert person.user is not None
        await person.stores.erasures.request(Actor(*person.user.key), person.id, f"@{person.user.handle}")
        await run_until_erased(person.stores, person.user.key)
    for each in (id_, requested):
        await repeat_row(chat.ann, each)
        await repeat_row(chat.bob, each)
    assert [(kind, text) for kind, _, text in (await listed(chat.ann)).brief] == [("CONVERSATION_REQUEST", "")]
    assert await chat.ann.stores.mongo["notifications"].count_documents({"_id.u": "bob"}) == 0
    await chat.ann.run(DECLINE, id=requested)
    assert await listed(chat.ann) == Listed([], 0)
