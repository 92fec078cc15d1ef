"""Archived communities and topics, renamed topics, pinned messages and slow mode."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

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
ARCHIVE_TOPIC = "mutation ($id: ID!) { done: archiveTopic(topicId: $id) { archivedAt } }"
UNARCHIVE_TOPIC = "mutation ($id: ID!) { done: unarchiveTopic(topicId: $id) { archivedAt } }"
RENAME_TOPIC = "mutation ($id: ID!, $title: String!) { done: renameTopic(topicId: $id, title: $title) { title } }"
TOPICS = """
query ($id: ID!, $archived: Boolean = false) {
  community(id: $id) { topics { id } }
  communityTopics(communityId: $id, latest: "now", archived: $archived) { items { id } }
  trendingTopics { topic { id } }
}
"""
COMMUNITY_EVENTS = """
subscription ($id: ID!) {
  communityEvents(communityId: $id) {
    type: __typename
    ... on Event { cursor }
    ... on StreamReady { resumed }
    ... on TopicChanged { topic { title slowModeSeconds archivedAt } }
  }
}
"""
COMMUNITY_CHANGES = """
subscription ($id: ID!, $since: Cursor) {
  communityEvents(communityId: $id, since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on CommunityChanged { community { name archivedAt } }
  }
}
"""
RENAME = 'mutation ($id: ID!) { updateCommunity(id: $id, name: "Sailors") { id } }'
HIDE = "mutation ($id: ID!) { updateCommunity(id: $id, visibility: PRIVATE) { id } }"
TOPIC_CHANGES = """
subscription ($topic: ID!) {
  topicEvents(topicId: $topic) { type: __typename ... on TopicChanged { topic { title slowModeSeconds archivedAt } } }
}
"""
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


async def topics(person: Person, community: str, **more: bool | None) -> tuple[int, int, int]:
    """Returns the number of topics in `community.topics`, in `communityTopics` and in `trendingTopics`."""
    found = await person.run(TOPICS, id=community, **more)
    lists = (found["community"]["topics"], found["communityTopics"]["items"], found["trendingTopics"])
    first, second, third = map(len, lists)
    return first, second, third


async def test_archived_topic_is_read_only(chat: ChatScenario) -> None:
    mine, other = await chat.bob.post(chat.topic, "before"), await chat.ann.post(chat.topic, "by ann")
    await chat.bob.run(REACT, id=other["id"], emoji="👍")
    assert await topics(chat.bob, chat.community) == (1, 1, 1)
    assert (await chat.ann.do(ARCHIVE_TOPIC, id=chat.topic))["archivedAt"] is not None
    refused: Sequence[tuple[str, dict[str, object]]] = [
        (POST, {"input": {"topicId": chat.topic, "text": "after"}}),
        (EDIT, {"id": mine["id"], "text": "after"}),
        (REACT, {"id": mine["id"], "emoji": "🐟"}),
        (UNREACT, {"id": other["id"], "emoji": "👍"}),
    ]
    for query, variables in refused:
        (error,) = (await chat.bob.execute(query, **variables))["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN", query
        assert error["message"] == "The topic is archived. It can only be read."
    assert await chat.bob.texts(chat.topic) == ["before", "by ann"]
    assert await topics(chat.bob, chat.community) == (0, 0, 0)
    await chat.bob.run(CREATE_TOPIC, id=chat.community)
    assert await topics(chat.bob, chat.community, archived=True) == (1, 1, 0)
    assert await topics(chat.bob, chat.community, archived=None) == (1, 2, 0)
    await chat.bob.run(DELETE, id=mine["id"])
    assert (await chat.ann.do(UNARCHIVE_TOPIC, id=chat.topic))["archivedAt"] is None
    await chat.bob.post(chat.topic, "after")
    assert await topics(chat.bob, chat.community) == (2, 2, 1)


async def test_administrators_change_topics_and_members_do_not(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("zoe", roles=[Role.MEMBER, Role.ADMIN])
    foreigner = await sign_in("ann", "umbrella", [Role.MEMBER, Role.ADMIN])
    changes: Sequence[tuple[str, dict[str, object]]] = [
        (RENAME_TOPIC, {"title": "New"}),
        (ARCHIVE_TOPIC, {}),
        (UNARCHIVE_TOPIC, {}),
    ]
    for query, variables in changes:
        for person in (chat.bob, chat.eve):
            assert await person.code(query, id=chat.topic, **variables) == "FORBIDDEN"
        assert await foreigner.code(query, id=chat.topic, **variables) == "NOT_FOUND"
        await admin.run(query, id=chat.topic, **variables)
    for title in ("", "x" * 201):
        assert await chat.ann.code(RENAME_TOPIC, id=chat.topic, title=title) == "BAD_USER_INPUT"


async def test_changes_of_topics_reach_subscribers(chat: ChatScenario) -> None:
    async with (
        chat.bob.subscribed(COMMUNITY_EVENTS, id=chat.community) as of_community,
        chat.bob.subscribed(TOPIC_CHANGES, topic=chat.topic) as of_topic,
    ):

        async def received() -> Answer:
            """Returns the topic in the next event, which must be the same in both subscriptions."""
            first, second = await of_topic.next_event(), await of_community.next_event()
            assert (first["type"], second["type"]) == ("TopicChanged", "TopicChanged")
            assert first["topic"] == second["topic"]
            topic: Answer = first["topic"]
            return topic

        for _ in range(2):
            assert (await chat.ann.do(RENAME_TOPIC, id=chat.topic, title="Harbour"))["title"] == "Harbour"
        assert await received() == {"title": "Harbour", "slowModeSeconds": 0, "archivedAt": None}
        await chat.ann.run(SLOW, id=chat.topic, seconds=5)
        assert (await received())["slowModeSeconds"] == 5
        await chat.ann.run(ARCHIVE_TOPIC, id=chat.topic)
        assert (await received())["archivedAt"] is not None


async def test_changes_of_a_community_reach_its_members(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(COMMUNITY_CHANGES, id=chat.community) as events:
        for mutation in (ARCHIVE, ARCHIVE, UNARCHIVE):
            await chat.ann.run(mutation, id=chat.community)
        await chat.ann.run(RENAME, id=chat.community)
        archived, reopened, renamed = [await events.next_event() for _ in range(3)]
    assert {each["type"] for each in (archived, reopened, renamed)} == {"CommunityChanged"}
    assert renamed["community"] == {"name": "Sailors", "archivedAt": None}
    async with chat.bob.subscribed(COMMUNITY_CHANGES, id=chat.community, since=archived["cursor"]) as events:
        assert [await events.next_event() for _ in range(2)] == [
            {**reopened, "community": renamed["community"]},
            renamed,
        ]
    await chat.bob.leave(chat.community)
    await chat.ann.run(HIDE, id=chat.community)
    async with aclosing(chat.bob.answers(COMMUNITY_CHANGES, id=chat.community, since=archived["cursor"])) as answers:
        assert (await anext(answers))["errors"][0]["extensions"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize(("archive", "subject"), [(ARCHIVE, "community"), (ARCHIVE_TOPIC, "topic")])
async def test_nothing_is_posted_after_the_archiving_returns(
    chat: ChatScenario, other_process: Stores, archive: str, subject: str
) -> None:
    elsewhere = Person(other_process, chat.bob.user, chat.bob.roles)

    async def post_until_refused(person: Person) -> None:
        while await person.code(POST, input={"topicId": chat.topic, "text": "x"}) is None:
            pass

    writers = [asyncio.create_task(post_until_refused(person)) for person in (chat.bob, chat.ann, elsewhere)]
    while len((await chat.bob.page(chat.topic))["items"]) < 10:
        await asyncio.sleep(0.01)
    await chat.ann.run(archive, id=getattr(chat, subject))
    newest = (await chat.bob.page(chat.topic))["newest"]
    await asyncio.gather(*writers)
    assert (await chat.bob.page(chat.topic))["newest"] == newest


async def test_only_owners_archive(chat: ChatScenario, sign_in: SignIn) -> None:
    admin = await sign_in("zoe", roles=[Role.MEMBER, Role.ADMIN])
    for person in (chat.bob, chat.eve, admin):
        assert await person.code(ARCHIVE, id=chat.community) == "FORBIDDEN"
        assert await person.code(UNARCHIVE, id=chat.community) == "FORBIDDEN"


async def test_pins_are_ordered_and_removed_with_the_message(chat: ChatScenario) -> None:
    first, second, third = [(await chat.bob.post(chat.topic, text))["id"] for text in ("a", "b", "c")]
    async with chat.bob.subscribed(PINNED_EVENTS, topic=chat.topic) as events:
        for id_ in (second, first, third, second):
            await chat.ann.run(PIN, id=id_)
        assert await pins(chat.bob, chat.topic) == [third, first, second]
        await chat.ann.run(UNPIN, id=first)
        await chat.ann.run(UNPIN, id=first)
        await chat.bob.run(DELETE, id=third)
        assert await pins(chat.bob, chat.topic) == [second]
        received: list[Answer] = [await events.next_event() for _ in range(5)]
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
    for query in (PIN, UNPIN):
        assert await chat.ann.code(query, id=message) == "NOT_FOUND"
    assert await pins(chat.bob, chat.topic) == [message]


async def test_outsiders_see_no_pins_in_lookups_shared_with_members(chat: ChatScenario) -> None:
    message = (await chat.bob.post(chat.topic))["id"]
    await chat.ann.run(PIN, id=message)
    people = (chat.ann, chat.eve) * 20
    assert await asyncio.gather(*(pins(each, chat.topic) for each in people)) == [[message], []] * 20


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


async def test_slow_mode_allows_repetition_with_the_same_key(chat: ChatScenario) -> None:
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
        await chat.ann.run(RENAME_TOPIC, id=chat.topic, title="Renamed")
    for query, id_ in (
        (UNPIN, message),
        (ARCHIVE_TOPIC, chat.topic),
        (UNARCHIVE_TOPIC, chat.topic),
        (ARCHIVE, chat.community),
        (UNARCHIVE, chat.community),
    ):
        for _ in range(2):
            await chat.ann.run(query, id=id_)
    entries = await chat.ann.stores.audit.list_entries("acme", AuditFilter(), None, 50)
    assert [(entry.action.name, entry.target_id) for entry in reversed(entries)] == [
        (name, chat.community)
        for name in (
            "MESSAGE_PINNED",
            "TOPIC_SLOW_MODE_SET",
            "TOPIC_RENAMED",
            "MESSAGE_UNPINNED",
            "TOPIC_ARCHIVED",
            "TOPIC_UNARCHIVED",
            "COMMUNITY_ARCHIVED",
            "COMMUNITY_UNARCHIVED",
        )
    ]
