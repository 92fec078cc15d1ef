"""Direct messages: who starts, reads, writes, accepts and leaves them, and that nobody else sees a conversation."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from storage.chat.conversations import contacts
from storage.chat.stamps.rules import StampPackAvailability, StampRule, StampRuleKind
from storage.feed.content_reports.records import ContentReportSubject, content_report_id
from storage.feed.stamp_rules.counts import ActivityCounts
from storage.identity.audit import AUDIT, Actor
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from storage.streams.log import Stream
from tests.resolvers.operations import root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization, unknown_ids
from tests.resolvers.people import (
    DELETE,
    EDIT,
    REACT,
    TOPIC_EVENTS,
    Answer,
    ChatScenario,
    Person,
    RunningSubscription,
    SignIn,
    until_outbox_is_empty,
)
from tests.resolvers.test_isolation import EVENT_TYPES, execute_field, marks_in, stored_data

pytestmark = pytest.mark.anyio

FIELDS = """
fragment conversation on Conversation {
  id name isGroup state people { user { id } joined }
  topic { id title lastMessage { text } unreadCount community { name memberCount members { id } topics { id } } }
}
"""
START = (
    "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { ...conversation } }" + FIELDS
)
ACCEPT = "mutation ($id: ID!) { done: acceptConversation(conversationId: $id) { ...conversation } }" + FIELDS
DECLINE = "mutation ($id: ID!) { done: declineConversation(conversationId: $id) }"
LEAVE = "mutation ($id: ID!) { done: leaveConversation(conversationId: $id) }"
ADD = (
    "mutation ($id: ID!, $users: [ID!]!) { done: addToConversation(conversationId: $id, userIds: $users) "
    "{ ...conversation } }" + FIELDS
)
TOPIC_CHANGES = """
subscription ($topic: ID!) {
  topicEvents(topicId: $topic) { type: __typename ... on TopicChanged { topic { title } } }
}
"""
RENAME = (
    "mutation ($id: ID!, $name: String!) { done: renameConversation(conversationId: $id, name: $name) "
    "{ ...conversation } }" + FIELDS
)
ONE = "query ($id: ID!) { done: conversation(id: $id) { ...conversation } }" + FIELDS
LIST = (
    """
query ($state: ConversationState! = JOINED, $oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) {
  done: conversations(state: $state, oldest: $oldest, latest: $latest, limit: $limit) {
    items { ...conversation } hasOlder hasNewer oldest newest
  }
}
"""
    + FIELDS
)
EVENTS = """
subscription ($since: Cursor) {
  conversationEvents(since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on ConversationChanged { conversationId conversation { state topic { lastMessage { text } } } }
  }
}
"""
REPORTED = """
{ contentReports { id subjectId contentText community { id } messagesBefore { author { id } postedAt text } } }
"""
DECIDE_AND_READ = """
mutation ($id: ID!) {
  decideContentReport(contentReportId: $id, decision: DISMISS, note: "fine") { contentText messagesBefore { text } }
}
"""
REPORT = "mutation ($id: ID!) { reportContent(subject: MESSAGE, subjectId: $id, category: SPAM) }"
SCHEDULE = """
mutation ($topic: ID!) {
  schedulePost(input: { text: "Words", toTopicIds: [$topic], dueAt: "2031-01-01T00:00:00Z", timeZone: "UTC" }) { id }
}
"""
SECRET = "lighthouse"
"""A word of each text in the hidden conversations."""


async def start(person: Person, *others: Person, **more: Any) -> str:
    """Starts a conversation and returns the id of its topic."""
    return str((await person.do(START, input={"userIds": [each.id for each in others], **more}))["topic"]["id"])


async def listed(person: Person, state: str = "JOINED") -> list[str]:
    """Returns the ids of the topics of the person's conversations, the most recently active one first."""
    return [each["topic"]["id"] for each in (await person.do(LIST, latest="now", state=state))["items"]]


async def people_of(person: Person, id_: str) -> dict[str, bool]:
    """Returns whether each person of the conversation has joined, by the person's id."""
    return {each["user"]["id"]: each["joined"] for each in (await person.do(ONE, id=id_))["people"]}


async def request(chat: ChatScenario) -> str:
    """Lets Eve write to Ann, to whom she is a stranger. Returns the id of the conversation."""
    id_ = await start(chat.eve, chat.ann)
    await chat.eve.post(id_, f"{SECRET} hello")
    return id_


async def write(person: Person, id_: str, text: str = SECRET) -> str | None:
    """Posts a message, and returns the code of the error, or None."""
    query = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
    return await person.code(query, input={"topicId": id_, "text": text})


@pytest.fixture
async def processes(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> AsyncIterator[list[Stores]]:
    """The stores of two further processes on the same database."""
    async with AsyncExitStack() as stack:
        opened = [open_stores(mongodb_uri, redis_url, database, mongo_driver) for _ in range(2)]
        yield [await stack.enter_async_context(each) for each in opened]


async def test_acquaintances_write_at_once(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    assert await people_of(chat.ann, id_) == {"ann": True, "bob": True}
    await chat.ann.post(id_, "one")
    await chat.bob.post(id_, "two", stampId="hello")
    assert await chat.ann.texts(id_) == ["one", "two"]
    (item,) = (await chat.bob.do(LIST, latest="now"))["items"]
    assert item["state"] == "JOINED"
    assert item["topic"]["lastMessage"] == {"text": "two"}
    assert item["topic"]["unreadCount"] == 1
    assert item["topic"]["community"] == {
        "name": "",
        "memberCount": 2,
        "members": [{"id": "ann"}, {"id": "bob"}],
        "topics": [{"id": id_}],
    }


async def test_pair_has_one_conversation_whoever_starts_it(chat: ChatScenario) -> None:
    ids = {await start(one, other) for one, other in ((chat.ann, chat.bob), (chat.bob, chat.ann)) for _ in range(2)}
    assert len(ids) == 1
    await start(chat.ann, chat.bob, idempotencyKey="k")
    assert await start(chat.ann, chat.bob, idempotencyKey="k") in ids


async def test_concurrent_starts_of_a_pair_make_one_conversation(chat: ChatScenario, processes: list[Stores]) -> None:
    """Eve and Ann are strangers, so each start joins only the person who starts. Both start, so both have joined."""
    people = [replace(person, stores=stores) for stores in processes for person in (chat.ann, chat.eve)]
    starts = [start(each, chat.ann if each.id == "eve" else chat.eve) for each in people * 5]
    assert len(set(await asyncio.gather(*starts))) == 1
    (topic,) = await chat.ann.stores.mongo["topics"].find({"direct": {"$exists": True}}).to_list(None)
    assert sorted(topic["direct"]["joined"]) == ["ann", "eve"]
    memberships = chat.ann.stores.mongo["memberships"]
    assert await memberships.count_documents({"community": topic["_id"], "conversation": "JOINED"}) == 2


async def test_concurrent_first_starts_make_one_conversation(chat: ChatScenario, processes: list[Stores]) -> None:
    people = [replace(person, stores=stores) for stores in processes for person in (chat.ann, chat.eve)]
    starts = [start(each, chat.ann if each.id == "eve" else chat.eve) for each in people]
    assert len(set(await asyncio.gather(*starts))) == 1
    assert await chat.ann.stores.mongo["memberships"].count_documents({"conversation": "JOINED"}) == 2


async def test_group_is_new_unless_the_key_is_the_same(chat: ChatScenario) -> None:
    ids = [await start(chat.ann, chat.bob, chat.eve, groupName="Boat", idempotencyKey="k") for _ in range(2)]
    ids.append(await start(chat.ann, chat.bob, chat.eve, groupName="Boat"))
    assert ids[0] == ids[1] != ids[2]
    other = {"userIds": ["bob", "eve"], "groupName": "Other", "idempotencyKey": "k"}
    assert await chat.ann.code(START, input=other) == "CONFLICT"


async def test_conversation_is_listed_for_others_from_first_message_on(chat: ChatScenario) -> None:
    pair, group = await start(chat.ann, chat.bob), await start(chat.ann, chat.bob, chat.eve, groupName="Boat")
    assert await listed(chat.ann) == [group, pair]
    assert await listed(chat.bob) == await listed(chat.eve, "REQUESTED") == []
    for id_ in (group, pair):
        await chat.ann.post(id_)
    assert await listed(chat.bob) == await listed(chat.ann) == [pair, group]
    assert await listed(chat.eve, "REQUESTED") == [group]
    assert await listed(chat.eve) == []


async def test_list_is_paged_by_last_activity(chat: ChatScenario, sign_in: SignIn) -> None:
    others = [await sign_in(f"other{number}") for number in range(5)]
    ids = [await start(each, chat.ann) for each in others]
    for person, id_ in zip(others, ids, strict=True):
        await person.post(id_)
        await chat.ann.run(ACCEPT, id=id_)
    newest = await chat.ann.do(LIST, latest="now", limit=2)
    assert [each["topic"]["id"] for each in newest["items"]] == ids[:2:-1]
    assert newest["hasOlder"] is True
    older = await chat.ann.do(LIST, latest=newest["oldest"], limit=3)
    assert [each["topic"]["id"] for each in older["items"]] == ids[3:0:-1]
    await others[0].post(ids[0])
    assert (await listed(chat.ann))[0] == ids[0]


async def test_conversations_with_one_activity_are_all_listed(chat: ChatScenario) -> None:
    ids = [await start(chat.ann, chat.bob, chat.eve, groupName=f"Group {number}") for number in range(3)]
    await chat.ann.stores.mongo["topics"].update_many({"_id": {"$in": ids}}, {"$set": {"last": 5}})
    newest = await chat.ann.do(LIST, latest="now", limit=2)
    older = await chat.ann.do(LIST, latest=newest["oldest"])
    assert {each["topic"]["id"] for page in (newest, older) for each in page["items"]} == set(ids)
    assert newest["hasOlder"] is True


async def test_stranger_waits_for_acceptance(chat: ChatScenario) -> None:
    id_ = await request(chat)
    assert await people_of(chat.eve, id_) == {"eve": True, "ann": False}
    assert await listed(chat.ann) == []
    assert await listed(chat.ann, "REQUESTED") == [id_]
    assert await chat.ann.texts(id_) == [f"{SECRET} hello"]
    assert await write(chat.eve, id_, "and again") == "FORBIDDEN"
    assert await write(chat.ann, id_) == "FORBIDDEN"
    accepted = await chat.ann.do(ACCEPT, id=id_)
    assert accepted["state"] == "JOINED"
    assert await listed(chat.ann) == [id_]
    assert await listed(chat.ann, "REQUESTED") == []
    for person in (chat.eve, chat.eve, chat.ann):
        assert await write(person, id_) is None


async def test_person_who_is_followed_is_no_stranger(chat: ChatScenario) -> None:
    await chat.ann.follow(chat.eve)
    assert await people_of(chat.eve, await start(chat.eve, chat.ann)) == {"eve": True, "ann": True}
    await chat.eve.follow(chat.bob)
    assert await people_of(chat.eve, await start(chat.eve, chat.bob)) == {"eve": True, "bob": False}


async def test_conversations_make_nobody_acquainted(chat: ChatScenario, sign_in: SignIn) -> None:
    dan = await sign_in("dan")
    group = await start(chat.eve, chat.ann, dan, groupName="Boat")
    for person in (chat.ann, dan):
        await person.run(ACCEPT, id=group)
    assert await people_of(chat.ann, await start(dan, chat.ann)) == {"dan": True, "ann": False}


async def test_one_of_many_concurrent_messages_of_a_request_is_posted(
    chat: ChatScenario, processes: list[Stores]
) -> None:
    id_ = await start(chat.eve, chat.ann)
    writers = [replace(chat.eve, stores=each) for each in (chat.eve.stores, *processes)] * 5
    codes = await asyncio.gather(*(write(each, id_) for each in writers))
    assert sorted(codes, key=str) == ["FORBIDDEN"] * 14 + [None]


async def test_request_notifies_once_and_of_no_mention(chat: ChatScenario) -> None:
    kinds = '{ done: notifications(latest: "now") { items { kind } } }'
    id_ = await start(chat.eve, chat.ann)
    await chat.eve.post(id_, "Hello @ann")
    await until_outbox_is_empty(chat.ann.stores)
    assert (await chat.ann.do(kinds))["items"] == [{"kind": "CONVERSATION_REQUEST"}]
    await chat.ann.run(ACCEPT, id=id_)
    await chat.eve.post(id_, "Hello again @ann")
    await until_outbox_is_empty(chat.ann.stores)
    assert (await chat.ann.do(kinds))["items"] == [{"kind": "MENTION"}]


async def test_decline_is_hidden_from_sender_who_cannot_ask_again(chat: ChatScenario) -> None:
    id_ = await request(chat)
    group = await start(chat.eve, chat.ann, chat.bob)
    await chat.eve.post(group)
    before = [await chat.eve.do(ONE, id=each) for each in (id_, group)]
    for each in (id_, id_, group):
        assert await chat.ann.do(DECLINE, id=each) is True
    assert [await chat.eve.do(ONE, id=each) for each in (id_, group)] == before
    assert await chat.ann.code(ONE, id=id_) == "NOT_FOUND"
    assert await listed(chat.ann, "REQUESTED") == []
    assert await start(chat.eve, chat.ann) == id_
    assert await write(chat.eve, id_) == "FORBIDDEN"
    assert await listed(chat.ann, "REQUESTED") == []
    assert await start(chat.ann, chat.eve) == id_
    assert await write(chat.ann, id_) is None


async def test_joined_person_leaves_and_is_asked_again(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    await chat.ann.post(id_, "before")
    assert await chat.bob.code(DECLINE, id=id_) == "CONFLICT"
    for _ in range(2):
        assert await chat.bob.do(LEAVE, id=id_) is True
    assert await chat.bob.code(ONE, id=id_) == await chat.bob.code(ACCEPT, id=id_) == "NOT_FOUND"
    assert await write(chat.bob, id_) == "NOT_FOUND"
    assert await people_of(chat.ann, id_) == {"ann": True, "bob": False}
    assert await write(chat.ann, id_) == "FORBIDDEN"
    assert await start(chat.ann, chat.bob) == id_
    assert await write(chat.ann, id_, "again") is None
    assert await listed(chat.bob, "REQUESTED") == [id_]
    await chat.bob.run(ACCEPT, id=id_)
    assert await chat.bob.texts(id_) == ["before", "again"]


async def test_only_joined_people_extend_and_rename_a_group(chat: ChatScenario, sign_in: SignIn) -> None:
    dan = await sign_in("dan")
    group = await start(chat.ann, chat.bob, chat.eve)
    await chat.ann.post(group)
    assert await chat.eve.code(RENAME, id=group, name="Boat") == "FORBIDDEN"
    assert await chat.eve.code(ADD, id=group, users=["dan"]) == "FORBIDDEN"
    assert (await chat.bob.do(RENAME, id=group, name="Boat"))["topic"]["title"] == "Boat"
    for _ in range(2):
        await chat.bob.run(ADD, id=group, users=["dan", "eve"])
    assert await people_of(chat.ann, group) == {"ann": True, "bob": True, "eve": False, "dan": False}
    assert await listed(dan, "REQUESTED") == [group]
    await dan.run(DECLINE, id=group)
    await chat.bob.run(ADD, id=group, users=["dan"])
    assert await dan.code(ONE, id=group) == "NOT_FOUND"
    pair = await start(chat.ann, chat.bob)
    assert await chat.ann.code(ADD, id=pair, users=["eve"]) == "CONFLICT"
    assert await chat.ann.code(RENAME, id=pair, name="Boat") == "CONFLICT"


async def test_new_name_reaches_the_subscribers_of_the_group(chat: ChatScenario) -> None:
    group = await start(chat.ann, chat.bob, chat.eve)
    await chat.ann.post(group)
    async with chat.bob.subscribed(TOPIC_CHANGES, topic=group) as events:
        await chat.ann.do(RENAME, id=group, name="Boat")
        changed = await events.next_event()
    assert changed == {"type": "TopicChanged", "topic": {"title": "Boat"}}


async def test_group_has_at_most_fifty_people(chat: ChatScenario, sign_in: SignIn) -> None:
    people = [await sign_in(f"p{number}") for number in range(50)]
    too_many = {"userIds": [each.id for each in people]}
    assert await chat.ann.code(START, input=too_many) == "BAD_USER_INPUT"
    group = await start(chat.ann, *people[:48])
    codes = await asyncio.gather(*(chat.ann.code(ADD, id=group, users=[each.id]) for each in people[48:]))
    assert sorted(codes, key=str) == ["CONFLICT", None]
    await people[0].run(LEAVE, id=group)
    full = next(each for each, code in zip(people[48:], codes, strict=True) if code)
    await chat.ann.run(ADD, id=group, users=[full.id])
    assert await people[0].code(ACCEPT, id=group) == "CONFLICT"


@pytest.mark.parametrize("ids", [[], ["ann"], ["bob", "ann"], ["bob", "nobody"]])
async def test_start_with_oneself_nobody_or_unknown_people_fails(shared_chat: ChatScenario, ids: list[str]) -> None:
    chat = shared_chat
    expected = "NOT_FOUND" if "nobody" in ids else "BAD_USER_INPUT"
    assert await chat.ann.code(START, input={"userIds": ids}) == expected


async def test_new_contacts_per_day_are_limited_across_processes(
    chat: ChatScenario, sign_in: SignIn, mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    others = [await sign_in(f"p{number}") for number in range(6)]
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(
                open_stores(mongodb_uri, redis_url, database, mongo_driver, contacts_per_day=3)
            )
            for _ in range(2)
        ]
        starters = [replace(chat.ann, stores=opened[number % 2]) for number in range(6)]
        inputs = [{"userIds": [each.id]} for each in others]
        codes = await asyncio.gather(
            *(each.code(START, input=input_) for each, input_ in zip(starters, inputs, strict=True))
        )
        assert sorted(codes, key=str) == [None] * 3 + ["RATE_LIMITED"] * 3
        refused = await starters[0].fails(START, input={"userIds": ["bob"]})
        assert 0 < refused["retryAfterMs"] <= contacts.COUNTED_FOR.total_seconds() * 1000
    assert await chat.ann.stores.mongo["topics"].count_documents({"direct": {"$exists": True}}) == 3


async def test_block_ends_the_conversation_of_a_pair(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    await chat.ann.post(id_, "before")
    of_bob = await chat.bob.post(id_, "mine")
    async with chat.ann.subscribed(TOPIC_EVENTS, topic=id_) as events:
        await chat.ann.block(chat.bob)
        (error,) = (await events.next_answer())["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN"
    assert await write(chat.ann, id_) == "NOT_FOUND"
    assert await write(chat.bob, id_) == "FORBIDDEN"
    assert await chat.bob.code(EDIT, id=of_bob["id"], text="again") == "FORBIDDEN"
    assert await chat.bob.code(REACT, id=of_bob["id"], emoji="🐟") == "FORBIDDEN"
    assert await chat.bob.texts(id_) == ["before", "mine"]
    for one, other in ((chat.ann, chat.bob), (chat.bob, chat.ann)):
        assert await one.code(START, input={"userIds": [other.id]}) == "FORBIDDEN"
    await chat.ann.unblock(chat.bob)
    assert await start(chat.ann, chat.bob) == id_
    assert await write(chat.bob, id_) is None


async def test_error_after_block_equals_error_after_departure(chat: ChatScenario, sign_in: SignIn) -> None:
    dan = await sign_in("dan")
    await dan.join(chat.community)
    ids = [await start(each, chat.ann) for each in (chat.bob, dan)]
    await chat.ann.block(chat.bob)
    await chat.ann.run(LEAVE, id=ids[1])
    query = 'mutation ($id: ID!) { postMessage(input: { topicId: $id, text: "a" }) { id } }'
    errors = [(await each.execute(query, id=id_))["errors"] for each, id_ in zip((chat.bob, dan), ids, strict=True)]
    assert errors[0] == errors[1]
    assert errors[0][0]["extensions"]["code"] == "FORBIDDEN"


async def test_block_alone_refuses_messages_of_a_pair(chat: ChatScenario) -> None:
    """The process may die after it has stored the block, before the person has left the conversation."""
    id_ = await start(chat.ann, chat.bob)
    await chat.ann.stores.relations.block("acme", "ann", "bob")
    assert await write(chat.ann, id_) == await write(chat.bob, id_) == "FORBIDDEN"


async def test_no_message_is_committed_after_a_block(chat: ChatScenario, processes: list[Stores]) -> None:
    id_ = await start(chat.ann, chat.bob)
    writers = [replace(person, stores=stores) for stores in processes for person in (chat.ann, chat.bob)]

    async def write_until_refused(person: Person) -> None:
        while await write(person, id_) is None:
            pass

    tasks = [asyncio.create_task(write_until_refused(each)) for each in writers * 3]
    while len((await chat.bob.page(id_))["items"]) < 20:
        await asyncio.sleep(0.01)
    await chat.ann.block(chat.bob)
    stream = await chat.bob.stores.events.head(Stream("topic", id_))
    await asyncio.gather(*tasks)
    assert (await chat.bob.stores.events.head(Stream("topic", id_))).n == stream.n


async def test_messages_of_blocked_people_are_hidden_in_groups(chat: ChatScenario) -> None:
    group = await start(chat.ann, chat.bob, chat.eve)
    await chat.eve.run(ACCEPT, id=group)
    await chat.ann.block(chat.eve)
    await chat.eve.post(group, "hidden")
    await chat.bob.post(group, "shown")
    assert await chat.ann.texts(group) == ["shown"]
    assert await chat.bob.texts(group) == ["hidden", "shown"]


async def test_leaving_ends_the_subscription(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    async with chat.bob.subscribed(TOPIC_EVENTS, topic=id_) as events:
        await chat.ann.post(id_, "heard")
        assert (await events.next_event())["message"]["text"] == "heard"
        await chat.bob.run(LEAVE, id=id_)
        (error,) = (await events.next_answer())["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN"


async def test_new_text_of_last_message_changes_the_conversation(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    async with chat.bob.subscribed(EVENTS) as events:

        async def wait_for_text(text: str) -> None:
            while (await events.next_event())["conversation"]["topic"]["lastMessage"] != {"text": text}:
                pass

        message = await chat.ann.post(id_, "secret")
        await wait_for_text("secret")
        await chat.ann.do(EDIT, id=message["id"], text="edited")
        await wait_for_text("edited")
        await chat.ann.do(DELETE, id=message["id"])
        await wait_for_text("")


async def test_events_tell_people_about_their_conversations(chat: ChatScenario) -> None:
    async with chat.ann.subscribed(EVENTS) as events, chat.bob.subscribed(EVENTS) as others:
        id_ = await request(chat)
        event = await events.next_event()
        assert (event["type"], event["conversationId"]) == ("ConversationChanged", f"Conversation:{id_}")
        assert event["conversation"]["state"] == "REQUESTED"
        await chat.ann.run(ACCEPT, id=id_)
        assert (await events.next_event())["conversation"]["state"] == "JOINED"
        await chat.eve.post(id_, "more")
        while (event := await events.next_event())["conversation"]["topic"]["lastMessage"] != {"text": "more"}:
            pass
        cursor = event["cursor"]
        await chat.ann.run(LEAVE, id=id_)
        while (event := await events.next_event())["conversation"] is not None:
            pass
        assert event["conversationId"] == f"Conversation:{id_}"
        pair = await start(chat.ann, chat.bob)
        await chat.ann.post(pair)
        assert (await others.next_event())["conversationId"] == f"Conversation:{pair}"
    async with chat.ann.subscribed(EVENTS, since=cursor) as resumed:
        assert (await resumed.next_event())["conversationId"] == f"Conversation:{id_}"
    assert await chat.bob.code("query { viewer { id } }") is None
    (error,) = (await anext(chat.bob.answers(EVENTS, since=cursor)))["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"


async def test_nothing_is_scheduled_to_a_conversation(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    assert await chat.ann.code(SCHEDULE, topic=id_) == "BAD_USER_INPUT"
    assert await chat.eve.code(SCHEDULE, topic=id_) == "NOT_FOUND"


async def test_admin_in_a_conversation_deletes_own_messages_only(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("ann", roles=list(Role))
    id_ = await start(admin, chat.bob)
    of_bob, own = await chat.bob.post(id_), await admin.post(id_)
    assert await admin.code(DELETE, id=of_bob["id"]) == "FORBIDDEN"
    assert await admin.code(DELETE, id=own["id"]) is None


async def test_admin_decides_a_report_and_sees_the_message_only(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("admin", roles=list(Role))
    id_ = await request(chat)
    (message,) = (await chat.ann.page(id_))["items"]
    await chat.ann.run(REPORT, id=message["id"])
    query = "{ contentReports { id subjectId contentText community { id } author { id } messagesBefore { text } } }"
    (report,) = (await admin.run(query))["contentReports"]
    assert (report["subjectId"], report["messagesBefore"]) == (report["id"], [])
    assert (report["contentText"], report["author"], report["community"]) == (message["text"], {"id": "eve"}, None)
    assert await admin.code("query ($id: ID!) { message(id: $id) { id } }", id=message["id"]) == "NOT_FOUND"
    assert await admin.code(ONE, id=id_) == "NOT_FOUND"
    decide = (
        'mutation ($id: ID!) { decideContentReport(contentReportId: $id, decision: REMOVE, note: "spam") { failure } }'
    )
    assert await admin.run(decide, id=report["id"]) == {"decideContentReport": {"failure": None}}
    assert (await chat.ann.page(id_))["items"][0]["deletedAt"] is not None
    everything = [
        await admin.execute(each) for each in (query, "{ auditLog { action targetId details { name value } } }")
    ]
    assert id_ not in json.dumps(everything)
    assert '"CONTENT_REPORT_DECIDED"' in json.dumps(everything)
    stored = await chat.ann.stores.mongo[AUDIT].find({"action": "CONTENT_REPORT_DECIDED"}).to_list(None)
    assert [id_ in str(each) for each in stored] == [False]


async def reported_message(admin: Person) -> Answer:
    """Returns what an ADMIN sees of the only report."""
    (report,) = (await admin.run(REPORTED))["contentReports"]
    return dict(report)


async def test_report_shows_five_messages_before_and_no_later_one(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("admin", roles=list(Role))
    id_ = await start(chat.ann, chat.bob)
    await chat.bob.post(id_, "one too early")
    posted = [await (chat.ann, chat.bob)[number % 2].post(id_, f"text {number}") for number in range(7)]
    await chat.bob.run(EDIT, id=posted[3]["id"], text="edited before")
    await chat.ann.run(REPORT, id=posted[5]["id"])
    authors = [{"id": each.id} for each in (chat.ann, chat.bob, chat.ann, chat.bob, chat.ann)]
    texts: list[str | None] = ["text 0", "text 1", "text 2", "edited before", "text 4"]

    async def assert_shown() -> None:
        report = await reported_message(admin)
        assert report["contentText"] == "text 5"
        assert [each["author"] for each in report["messagesBefore"]] == authors
        assert [each["text"] for each in report["messagesBefore"]] == texts
        times = [each["postedAt"] for each in report["messagesBefore"]]
        assert times == sorted(times) != []
        assert not any(secret in json.dumps(report) for secret in (id_, "text 6", "edited after"))

    await assert_shown()
    await chat.ann.run(DELETE, id=posted[0]["id"])
    await chat.bob.run(EDIT, id=posted[1]["id"], text="edited after")
    await chat.ann.post(id_, "text 6 again")
    texts[:2] = [None, None]
    await assert_shown()


async def test_decided_report_shows_no_message_before_it(chat: ChatScenario, sign_in: SignIn) -> None:
    """The decision about the report of one person closes the report of another one, too."""
    admin, other = await sign_in("admin", roles=list(Role)), await sign_in("other", roles=list(Role))
    id_ = await start(chat.ann, chat.bob, await sign_in("dan"), groupName="Boat")
    posted = [await chat.bob.post(id_, f"text {number}") for number in range(3)]
    for reporter in (chat.ann, await sign_in("dan")):
        await reporter.run(REPORT, id=posted[2]["id"])
    first, second = (await admin.run(REPORTED))["contentReports"]
    assert [each["text"] for each in first["messagesBefore"]] == ["text 0", "text 1"]
    assert second["messagesBefore"] == first["messagesBefore"]
    decided = await admin.run(DECIDE_AND_READ, id=first["id"])
    assert decided["decideContentReport"] == {"messagesBefore": None, "contentText": "text 2"}
    for person in (admin, other):
        reports = (await person.run(REPORTED))["contentReports"]
        assert [(each["contentText"], each["messagesBefore"]) for each in reports] == [("text 2", None)] * 2


async def test_report_in_a_thread_shows_messages_of_the_thread(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("admin", roles=list(Role))
    id_ = await start(chat.ann, chat.bob)
    parent = await chat.ann.post(id_, "parent")
    replies = [await chat.bob.post(id_, text, replyTo=parent["id"]) for text in ("one", "two", "three")]
    await chat.ann.run(REPORT, id=replies[1]["id"])
    report = await reported_message(admin)
    assert [each["text"] for each in report["messagesBefore"]] == ["one"]
    assert not any(secret in json.dumps(report) for secret in (id_, replies[1]["topicId"]))


async def test_conversations_never_trend(chat: ChatScenario) -> None:
    id_ = await start(chat.ann, chat.bob)
    for person in (chat.ann, chat.bob):
        await person.post(id_)
    for person in (chat.ann, chat.bob, chat.eve):
        assert await person.run("{ trendingTopics { people } }") == {"trendingTopics": []}


DECIDE_REMOVE = """
mutation ($id: ID!) { decideContentReport(contentReportId: $id, decision: REMOVE, note: "spam") { failure } }
"""
HIDDEN_TYPES = {"Topic", "Message", "Subject", "Conversation", "RequestedConversation", "Community"}


async def create_hidden_group(organization: OrganizationScenario) -> dict[str, str]:
    """Starts a group of Cat, Dog and Owl, without Ann, and uses it in every way. Returns ids of its objects by type."""
    cat, dog, ann = organization.cat, organization.dog, organization.ann
    started = await cat.do(START, input={"userIds": [dog.id, "owl"], "groupName": SECRET})
    id_ = str(started["topic"]["id"])
    await cat.post(id_, f"{SECRET} before @{organization.mark}_ann")
    message = await dog.post(id_, f"{SECRET} https://{SECRET}.example/")
    await cat.run(REACT, id=message["id"], emoji="🦩")
    reply = await cat.post(id_, f"{SECRET} reply @{organization.mark}_ann", replyTo=message["id"])
    await dog.run(REACT, id=reply["id"], emoji="🦩")
    removed = [await dog.post(id_, f"{SECRET} {number}", quotedMessageId=message["id"]) for number in range(2)]
    await dog.run(EDIT, id=removed[0]["id"], text=f"{SECRET} edited")
    await dog.run(DELETE, id=removed[1]["id"])
    await cat.run(RENAME, id=id_, name=f"{SECRET} renamed")
    await until_outbox_is_empty(organization.stores)
    assert ann.id not in await people_of(cat, id_)
    ids = dict.fromkeys(("Topic", "Conversation", "RequestedConversation", "Community"), id_)
    return {**ids, "Message": message["id"], "Subject": message["id"], "Thread": reply["topicId"]}


async def remove_direct_message(organization: OrganizationScenario) -> str:
    """Lets Cat report a message of Dog in their conversation, and Ann remove it. Returns the conversation's id.

    Ann sees the reported text, and must not see the conversation.
    """
    cat, dog = organization.cat, organization.dog
    id_ = await start(cat, dog)
    message = [await dog.post(id_, f"{organization.mark} {text}") for text in ("before", "reported")][1]
    await cat.run(REPORT, id=message["id"])
    report_id = content_report_id(
        organization.organization_id, ContentReportSubject.MESSAGE, message["id"], organization.cat.id
    )
    assert await organization.ann.run(DECIDE_REMOVE, id=report_id) == {"decideContentReport": {"failure": None}}
    await until_outbox_is_empty(organization.stores)
    return id_


async def create_hidden_conversation(organization: OrganizationScenario) -> dict[str, str]:
    """Creates conversations without Ann. Returns ids of their objects by type."""
    return {**await create_hidden_group(organization), "Pair": await remove_direct_message(organization)}


@pytest.fixture(scope="module")
async def canary(shared_sign_in: SignIn) -> OrganizationScenario:
    """An organization that its tests only read. Ann has every role."""
    return await create_organization(shared_sign_in, "canary")


@pytest.fixture(scope="module")
async def hidden(canary: OrganizationScenario) -> dict[str, str]:
    """The ids of a conversation without Ann, by type."""
    return await create_hidden_conversation(canary)


async def test_ids_of_a_conversation_look_unknown_to_others(
    canary: OrganizationScenario, hidden: dict[str, str]
) -> None:
    unknown = unknown_ids()
    before = await stored_data(canary.stores)
    for field in (each for each in root_fields() if each.id_types):
        for id_type in sorted(HIDDEN_TYPES.intersection(field.id_types)):
            answers = [
                await execute_field(canary.ann, field, {**canary.ids, id_type: ids[id_type]}, depth=1)
                for ids in (hidden, unknown)
            ]
            texts = [
                json.dumps(answer).replace(ids[id_type], "?")
                for answer, ids in zip(answers, (hidden, unknown), strict=True)
            ]
            assert texts[0] == texts[1], f"{field} shows whether a conversation ({id_type}) exists."
            assert '"NOT_FOUND"' in texts[0], f"{field}({id_type})"
    assert await stored_data(canary.stores) == before


async def test_no_field_shows_a_conversation_to_others(canary: OrganizationScenario, hidden: dict[str, str]) -> None:
    fields = {each.text(): each for root in root_fields() for each in (root, root.without_optional_ids())}
    for field in (each for each in fields.values() if each.root != "Mutation"):
        answer = await execute_field(canary.ann, field, canary.ids, query=canary.mark)
        assert marks_in(answer, SECRET, "🦩", *hidden.values()) == [], f"{field}"


def counts_in(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yields each whole number of an answer and the length of each list, with their paths."""
    if isinstance(value, list):
        yield path, len(value)
        for each in value:
            yield from counts_in(each, path)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from counts_in(each, f"{path}.{name}")
    elif isinstance(value, int):
        yield path, value


async def test_no_count_changes_by_a_hidden_conversation(canary: OrganizationScenario) -> None:
    """Ann, who has every role, sees the same numbers before and after, also of packs that Cat and Dog may earn."""
    packs, actor = canary.stores.stamp_packs, Actor(canary.organization_id, canary.ann.id, is_command_line=True)
    for kind in StampRuleKind:
        pack = await packs.create(actor, f"{canary.mark} {kind.value}")
        await packs.set_availability(actor, pack.id, StampPackAvailability.EARNED, StampRule(kind, 100))
    counts = ActivityCounts(canary.stores.mongo)

    async def seen() -> dict[str, Any]:
        await until_outbox_is_empty(canary.stores)
        people = [UserKey(canary.organization_id, each.id) for each in (canary.cat, canary.dog)]
        earned = {f"{each} {kind}": await counts.count(each, kind, 1000) for each in people for kind in StampRuleKind}
        queries = [each for each in root_fields() if each.root == "Query"]
        fields = {each.text(): each for field in queries for each in (field, field.without_optional_ids())}
        answers = {
            text: await execute_field(canary.superuser, field, canary.ids, query=canary.mark)
            for text, field in fields.items()
        }
        return earned | {text: list(counts_in(answer["data"])) for text, answer in answers.items()}

    before = await seen()
    await create_hidden_group(canary)
    after = await seen()
    assert [text for text, value in after.items() if value != before[text]] == []


async def test_no_event_of_a_hidden_conversation_is_received(canary: OrganizationScenario) -> None:
    await until_outbox_is_empty(canary.stores)
    async with AsyncExitStack() as stack:
        opened: dict[str, RunningSubscription] = {}
        for field in (each.without_optional_ids() for each in root_fields() if each.name in EVENT_TYPES):
            subscription = canary.ann.subscribed(field.text(), **field.variables(canary.ids))
            opened[field.name] = await stack.enter_async_context(subscription)
        ids = await create_hidden_group(canary)
        await canary.emit_on_every_stream()
        for name, events in opened.items():
            event = await events.next_event()
            assert marks_in(event, SECRET, "🦩", *ids.values()) == [], name
            assert marks_in(event, canary.ids[EVENT_TYPES[name]]) != [], name


OF_COMMUNITIES = {
    "addMember", "archiveCommunity", "archiveTopic", "banMember", "community", "communityEvents", "communityMembers",
    "communityTopics", "createInvitation", "createTopic", "joinCommunity", "joinRequests", "kickMember",
    "leaveCommunity", "muteCommunity", "pinMessage", "renameTopic", "setCommunityRole", "setSlowMode", "unpinMessage",
    "updateCommunity",
}  # fmt: skip
"""Fields that need a community or its moderators."""


async def test_moderation_does_not_exist_in_a_conversation(canary: OrganizationScenario) -> None:
    """Expects NOT_FOUND even for an ADMIN who is in the conversation."""
    ann = canary.superuser
    id_ = canary.ids["Conversation"]
    message = await ann.post(id_)
    ids = {**canary.ids, "Community": id_, "Topic": id_, "Message": message["id"]}
    fields = {each.name: each for each in root_fields()}
    for name in sorted(OF_COMMUNITIES):
        answer: Answer = await execute_field(ann, fields[name], ids, depth=1)
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"], name
