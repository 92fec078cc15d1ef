"""Archived communities, pinned messages and slow mode."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from storage.chat import topic_changes
from storage.identity.audit import AuditFilter
from storage.identity.roles import Role
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.resolvers.people import (
    DELETE,
    EDIT,
    POST,
    REACT,
    TOPIC_EVENTS,
    UNREACT,
    Answer,
    ChatScenario,
    Person,
    SignIn,
)

pytestmark = pytest.mark.anyio

ARCHIVE = "mutation ($id: ID!) { done: archiveCommunity(communityId: $id) { archivedAt } }"
UNARCHIVE = "mutation ($id: ID!) { done: unarchiveCommunity(communityId: $id) { archivedAt } }"
LIST = "query ($all: Boolean! = false) { communities(includeArchived: $all) { id } }"
JOIN = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
CREATE_TOPIC = 'mutation ($id: ID!) { createTopic(input: { communityId: $id, title: "New" }) { id } }'
PIN = "mutation ($id: ID!) { done: pinMessage(messageId: $id) { id } }"
UNPIN = "mutation ($id: ID!) { done: unpinMessage(messageId: $id) { id } }"
PINS = "query ($id: ID!) { topic(id: $id) { pinnedMessages { id text } } }"
SLOW = "mutation ($id: ID!, $seconds: Int!) { done: setSlowMode(topicId: $id, seconds: $seconds) { slowModeSeconds } }"
PINNED_EVENTS = TOPIC_EVENTS.replace(
    "... on MessageEdited",
    "... on MessagePinned { message { ...message } } ... on MessageUnpinned { message { ...message } } "
    "... on MessageEdited",
)
ADD = "mutation ($id: ID!, $user: ID!) { addMember(communityId: $id, userId: $user) { role } }"


@pytest.fixture
async def other_process(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    """The stores of another process on the same database."""
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver) as opened:
        yield opened


async def pins(person: Person, topic: str) -> list[str]:
    return [each["id"] for each in (await person.run(PINS, id=topic))["topic"]["pinnedMessages"]]


async def listed(person: Person, **more: bool) -> int:
    return len((await person.run(LIST, **more))["communities"])


async def test_archived_community_is_read_only(chat: ChatScenario) -> None:
    mine, other = await chat.bob.post(chat.topic, "before"), await chat.ann.post(chat.topic, "by ann")
    await chat.bob.run(REACT, id=other["id"], emoji="👍")
    assert (await chat.ann.do(ARCHIVE, id=chat.community))["archivedAt"] is not None
    refused: Sequence[tuple[str, dict[str, object]]] = [
        (POST, {"input": {"topicId": chat.topic, "text": "after"}}),
        (EDIT, {"id": mine["id"], "text": "after"}),
        (REACT, {"id": mine["id"], "emoji": "🐟"}),
        (UNREACT, {"id": other["id"], "emoji": "👍"}),
        (CREATE_TOPIC, {"id": chat.community}),
    ]
    for person in (chat.ann, chat.bob):
        for query, variables in refused:
            if (person, query) != (chat.ann, EDIT):
                assert await person.code(query, **variables) == "FORBIDDEN", query
    assert await chat.eve.code(JOIN, id=chat.community) == "FORBIDDEN"
    assert await chat.ann.code(ADD, id=chat.community, user="eve") == "FORBIDDEN"
    assert await chat.bob.texts(chat.topic) == ["before", "by ann"]
    assert (await listed(chat.bob), await listed(chat.bob, all=True)) == (0, 1)
    await chat.bob.run(DELETE, id=mine["id"])
    assert (await chat.ann.do(UNARCHIVE, id=chat.community))["archivedAt"] is None
    await chat.bob.post(chat.topic, "after")
    await chat.eve.join(chat.community)
    assert await listed(chat.bob) == 1


async def test_only_owners_archive(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("zoe", roles=[Role.MEMBER, Role.ADMIN])
    for person in (chat.bob, chat.eve, admin):
        assert await person.code(ARCHIVE, id=chat.community) == "FORBIDDEN"
        assert await person.code(UNARCHIVE, id=chat.community) == "FORBIDDEN"


async def test_nothing_is_posted_after_the_archiving_returns(chat: ChatScenario, other_process: Stores) -> None:
    elsewhere = Person(other_process, chat.bob.user, chat.bob.roles)

    async def post_until_refused(person: Person) -> None:
        while await person.code(POST, input={"topicId": chat.topic, "text": "x"}) is None:
            pass

    writers = [asyncio.create_task(post_until_refused(person)) for person in (chat.bob, chat.ann, elsewhere)]
    while len((await chat.bob.page(chat.topic))["items"]) < 10:
        await asyncio.sleep(0.01)
    await chat.ann.run(ARCHIVE, id=chat.community)
    newest = (await chat.bob.page(chat.topic))["newest"]
    await asyncio.gather(*writers)
    assert (await chat.bob.page(chat.topic))["newest"] == newest


async def test_pins_are_ordered_and_end_with_the_message(chat: ChatScenario) -> None:
    first, second, third = [(await chat.bob.post(chat.topic, text))["id"] for text in ("a", "b", "c")]
    async with chat.bob.subscribed(PINNED_EVENTS, topic=chat.topic) as events:
        for id_ in (second, first, third, second):
            await chat.ann.run(PIN, id=id_)
        assert await pins(chat.bob, chat.topic) == [third, first, second]
        await chat.ann.run(UNPIN, id=first)
        await chat.ann.run(UNPIN, id=first)
        await chat.bob.run(DELETE, id=third)
        assert await pins(chat.bob, chat.topic) == [second]
        received: list[Answer] = [await events.event() for _ in range(5)]
    assert [(event["type"], event["message"]["id"]) for event in received] == [
        ("MessagePinned", second),
        ("MessagePinned", first),
        ("MessagePinned", third),
        ("MessageUnpinned", first),
        ("MessageDeleted", third),
    ]
    assert await chat.ann.code(PIN, id=third) == "CONFLICT"


async def test_pins_are_set_by_moderators_and_hidden_by_blocks(chat: ChatScenario) -> None:
    message = (await chat.bob.post(chat.topic))["id"]
    for person in (chat.bob, chat.eve):
        assert await person.code(PIN, id=message) == "FORBIDDEN"
        assert await person.code(UNPIN, id=message) == "FORBIDDEN"
    await chat.ann.run(PIN, id=message)
    assert await pins(chat.eve, chat.topic) == []
    await chat.ann.block(chat.bob)
    assert await pins(chat.ann, chat.topic) == []
    assert await pins(chat.bob, chat.topic) == [message]


async def test_concurrent_pins_stay_below_the_maximum(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_changes, "MAX_PINS", 3)
    messages = [(await chat.bob.post(chat.topic))["id"] for _ in range(6)]
    codes = await asyncio.gather(*(chat.ann.code(PIN, id=id_) for id_ in (*messages, *messages)))
    assert codes.count("CONFLICT") == 6
    assert len(await pins(chat.bob, chat.topic)) == 3


async def test_slow_mode_lets_one_message_of_each_person_pass(chat: ChatScenario, other_process: Stores) -> None:
    assert (await chat.ann.do(SLOW, id=chat.topic, seconds=600))["slowModeSeconds"] == 600
    await chat.eve.join(chat.community)
    elsewhere = [Person(other_process, each.user, each.roles) for each in (chat.bob, chat.eve)]
    people, new = [chat.bob, chat.eve, *elsewhere] * 5, {"topicId": chat.topic, "text": "x"}
    answers = await asyncio.gather(*(person.execute(POST, input=new) for person in people))
    errors = [error["extensions"] for answer in answers for error in answer["errors"]]
    assert len(errors) == 18
    assert {error["code"] for error in errors} == {"RATE_LIMITED"}
    assert all(0 < error["retryAfterMs"] <= 600_000 for error in errors)
    items = (await chat.ann.page(chat.topic))["items"]
    assert sorted(each["author"]["id"] for each in items) == ["bob", "eve"]


async def test_slow_mode_exempts_moderators_and_ends(chat: ChatScenario) -> None:
    await chat.ann.run(SLOW, id=chat.topic, seconds=600)
    await chat.bob.post(chat.topic)
    for _ in range(2):
        await chat.ann.post(chat.topic)
    await chat.ann.run(SLOW, id=chat.topic, seconds=0)
    await chat.bob.post(chat.topic)
    await chat.ann.run(SLOW, id=chat.topic, seconds=600)
    await chat.ann.stores.mongo["slow_mode_posts"].update_many({}, [{"$set": {"at": {"$subtract": ["$at", 600_000]}}}])
    await chat.bob.post(chat.topic)


async def test_slow_mode_is_set_by_moderators_within_limits(chat: ChatScenario) -> None:
    for seconds in (-1, 21_601):
        assert await chat.ann.code(SLOW, id=chat.topic, seconds=seconds) == "BAD_USER_INPUT"
    for person in (chat.bob, chat.eve):
        assert await person.code(SLOW, id=chat.topic, seconds=5) == "FORBIDDEN"


async def test_refused_message_in_slow_mode_may_be_repeated(chat: ChatScenario) -> None:
    await chat.ann.run(SLOW, id=chat.topic, seconds=600)
    new = {"topicId": chat.topic, "text": "once", "idempotencyKey": "k"}
    answers = await asyncio.gather(*(chat.bob.execute(POST, input=new) for _ in range(5)))
    assert [answer["errors"] for answer in answers] == [[]] * 5
    assert await chat.bob.texts(chat.topic) == ["once"]


async def test_each_setting_leaves_one_audit_entry(chat: ChatScenario) -> None:
    message = (await chat.bob.post(chat.topic))["id"]
    for _ in range(2):
        await chat.ann.run(PIN, id=message)
        await chat.ann.run(SLOW, id=chat.topic, seconds=5)
    for query, id_ in ((UNPIN, message), (ARCHIVE, chat.community), (UNARCHIVE, chat.community)):
        for _ in range(2):
            await chat.ann.run(query, id=id_)
    entries = await chat.ann.stores.audit.list_entries("acme", AuditFilter(), None, 50)
    assert [(entry.action.name, entry.target_id) for entry in reversed(entries)] == [
        (name, chat.community)
        for name in (
            "MESSAGE_PINNED",
            "TOPIC_SLOW_MODE_SET",
            "MESSAGE_UNPINNED",
            "COMMUNITY_ARCHIVED",
            "COMMUNITY_UNARCHIVED",
        )
    ]
