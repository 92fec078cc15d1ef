"""Mutes hide a user, a topic or a community from one person. Nobody else notices (docs/semantics.md, 2)."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.resolvers.people import REACT, TOPIC_EVENTS, ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

MUTE = "mutation ($id: ID!, $until: DateTime) { done: mute%s(%sId: $id, until: $until) { id subject until } }"
UNMUTE = "mutation ($id: ID!) { done: unmute%s(%sId: $id) { id } }"
MUTES_QUERY = """
query ($of: MuteSubject, $after: ID, $limit: Int! = 50) {
  myMutes(of: $of, after: $after, limit: $limit) { id subjectId user { id } topic { id } community { id } until }
}
"""
NOTIFICATION_SUMMARY = (
    '{ notifications(latest: "now") { items { kind actor { id } } hasOlder } unreadNotificationCount }'
)
NOTIFICATION_EVENTS = (
    "subscription { notificationEvents { ... on NotificationArrived { notification { actor { id } } } } }"
)
HOME_EVENTS = "subscription { homeFeedEvents { type: __typename ... on PostArrived { post { text } } } }"
REACTIONS_RECEIVED = '{ reactionsReceived(latest: "now") { items { user { id } } } }'
POSTS = 'query ($id: ID!) { posts(authorId: $id, latest: "now") { items { text } } }'
LISTS = '{ localFeed(latest: "now") { items { text } } hashtagPosts(tag: "sea", latest: "now") { items { text } } }'


def field_of(subject: str) -> tuple[str, str]:
    return subject.capitalize(), subject


async def mute(person: Person, subject: str, id_: str, until: str | None = None) -> dict[str, Any]:
    """Mutes a user, a topic or a community."""
    return await person.do(MUTE % field_of(subject), id=id_, until=until)


async def unmute(person: Person, subject: str, id_: str) -> None:
    """Ends a mute."""
    await person.run(UNMUTE % field_of(subject), id=id_)


async def list_mutes(person: Person, **arguments: Any) -> list[dict[str, Any]]:
    mutes: list[dict[str, Any]] = (await person.run(MUTES_QUERY, **arguments))["myMutes"]
    return mutes


async def notification_summary(person: Person) -> tuple[list[tuple[str, str]], int]:
    """Returns kind and actor of the person's notifications, the newest first, and how many are unread."""
    await until_outbox_is_empty(person.stores)
    answer = await person.run(NOTIFICATION_SUMMARY)
    items = [(each["kind"], each["actor"]["id"]) for each in answer["notifications"]["items"]]
    return items, answer["unreadNotificationCount"]


@pytest.fixture
async def chat(chat: ChatScenario) -> ChatScenario:
    """The scenario, with Eve as another member of the community."""
    await chat.eve.join(chat.community)
    return chat


async def cause_notifications(chat: ChatScenario) -> None:
    """Lets Bob and Eve mention Ann in the topic, and Bob react to her message, follow her, and name her in a post."""
    message = await chat.ann.post(chat.topic, "mine")
    for person in (chat.bob, chat.eve):
        await person.post(chat.topic, "Hello @ann")
    await chat.bob.run(REACT, id=message["id"], emoji="🌊")
    await chat.bob.follow(chat.ann)
    await chat.bob.create_post("And @ann")
    await until_outbox_is_empty(chat.ann.stores)


async def test_nothing_of_muted_user_is_notified(chat: ChatScenario) -> None:
    await cause_notifications(chat)
    before = await notification_summary(chat.ann)
    assert before[1] == 5
    await mute(chat.ann, "user", "bob")
    assert await notification_summary(chat.ann) == ([("MENTION", "eve")], 1)
    assert (await chat.ann.run(REACTIONS_RECEIVED))["reactionsReceived"]["items"] == []
    await unmute(chat.ann, "user", "bob")
    assert await notification_summary(chat.ann) == before


@pytest.mark.parametrize("subject", ["topic", "community"])
async def test_nothing_of_muted_place_is_notified(chat: ChatScenario, subject: str) -> None:
    muted_id = {"topic": chat.topic, "community": chat.community}[subject]
    await cause_notifications(chat)
    await mute(chat.ann, subject, muted_id)
    assert sorted((await notification_summary(chat.ann))[0]) == [("FOLLOW", "bob"), ("MENTION", "bob")]
    assert (await notification_summary(chat.ann))[1] == 2
    await unmute(chat.ann, subject, muted_id)
    assert (await notification_summary(chat.ann))[1] == 5


async def test_muted_community_includes_later_topics(chat: ChatScenario) -> None:
    await mute(chat.ann, "community", chat.community)
    await chat.bob.post(await chat.bob.create_topic(chat.community, "New"), "Hello @ann")
    assert await notification_summary(chat.ann) == ([], 0)
    elsewhere = await chat.bob.create_community()
    await chat.ann.join(elsewhere)
    await chat.bob.post(await chat.bob.create_topic(elsewhere), "Hello @ann")
    assert await notification_summary(chat.ann) == ([("MENTION", "bob")], 1)


async def test_muted_topic_still_counts_unread_messages(chat: ChatScenario) -> None:
    await mute(chat.ann, "topic", chat.topic)
    await mute(chat.ann, "user", "bob")
    await chat.bob.post(chat.topic, "unread")
    topic = await chat.ann.run("query ($id: ID!) { topic(id: $id) { unreadCount } }", id=chat.topic)
    assert topic["topic"]["unreadCount"] == 1


async def test_warnings_about_muted_places_arrive(chat: ChatScenario) -> None:
    stores = chat.ann.stores
    message = await chat.ann.post(chat.topic, "rude")
    await mute(chat.ann, "community", chat.community)
    report = "mutation ($id: ID!) { reportContent(subject: MESSAGE, subjectId: $id, category: SPAM) }"
    await chat.eve.run(report, id=message["id"])
    await stores.mongo["memberships"].update_one(
        {"community": chat.community, "user": "bob"}, {"$set": {"role": "OWNER"}}
    )
    await stores.mongo["memberships"].update_one(
        {"community": chat.community, "user": "ann"}, {"$set": {"role": "MEMBER"}}
    )
    query = "query ($c: ID!) { contentReports(communityId: $c) { id } }"
    (found,) = (await chat.bob.run(query, c=chat.community))["contentReports"]
    decide = 'mutation ($id: ID!) { decideContentReport(contentReportId: $id, decision: WARN, note: "Calm") { id } }'
    await chat.bob.run(decide, id=found["id"])
    await until_outbox_is_empty(stores)
    notifications = await chat.ann.run('{ notifications(latest: "now") { items { kind warning } } }')
    assert notifications["notifications"]["items"] == [{"kind": "WARNING", "warning": "Calm"}]


@pytest.mark.parametrize("subject", ["user", "topic", "community"])
async def test_mute_applies_to_open_subscriptions(chat: ChatScenario, subject: str) -> None:
    muted_id = {"user": "bob", "topic": chat.topic, "community": chat.community}[subject]
    elsewhere = await chat.eve.create_community()
    await chat.ann.join(elsewhere)
    other_topic = await chat.eve.create_topic(elsewhere)
    async with chat.ann.subscribed(NOTIFICATION_EVENTS) as events:
        await chat.bob.post(chat.topic, "Before @ann")
        assert (await events.next_event())["notification"]["actor"]["id"] == "bob"
        await mute(chat.ann, subject, muted_id)
        await chat.bob.post(chat.topic, "Hidden @ann")
        await until_outbox_is_empty(chat.ann.stores)
        await chat.eve.post(other_topic, "Visible @ann")
        assert (await events.next_event())["notification"]["actor"]["id"] == "eve"
        await unmute(chat.ann, subject, muted_id)
        await chat.bob.post(chat.topic, "After @ann")
        assert (await events.next_event())["notification"]["actor"]["id"] == "bob"


async def test_posts_of_muted_users_are_in_no_list_of_many_authors(chat: ChatScenario) -> None:
    for person in (chat.bob, chat.eve):
        await chat.ann.follow(person)
        await person.create_post(f"{person.id} #sea")
        await chat.ann.stores.mongo["feed_items"].update_one(
            {"_id": {"o": "acme", "u": "ann", "ts": await newest_post(person)}},
            {"$set": {"author": person.id}},
            upsert=True,
        )
    before = await chat.ann.run(LISTS), await chat.ann.home()
    assert before[1] == ["eve #sea", "bob #sea"]
    await mute(chat.ann, "user", "bob")
    lists = await chat.ann.run(LISTS)
    assert [each["items"] for each in lists.values()] == [[{"text": "eve #sea"}]] * 2
    assert await chat.ann.home() == ["eve #sea"]
    assert (await chat.ann.run(POSTS, id="bob"))["posts"]["items"] == [{"text": "bob #sea"}]
    assert (await chat.eve.run(LISTS)) == before[0]
    await unmute(chat.ann, "user", "bob")
    assert (await chat.ann.run(LISTS), await chat.ann.home()) == before


async def newest_post(author: Person) -> int:
    """Returns the timestamp of the author's newest post."""
    post = await author.stores.mongo["posts"].find_one({"author": author.id}, sort=[("_id.ts", -1)])
    return int(post["_id"]["ts"])


async def test_arrivals_of_muted_users_are_withheld(chat: ChatScenario) -> None:
    stores = chat.ann.stores
    for person in (chat.bob, chat.eve):
        await chat.ann.follow(person)
    async with chat.ann.subscribed(HOME_EVENTS) as events:
        await mute(chat.ann, "user", "bob")
        for person in (chat.bob, chat.eve):
            await person.create_post(f"of {person.id}")
            posts = await stores.posts.by_timestamp("acme", [await newest_post(person)])
            (post,) = posts.values()
            assert await stores.feeds.push(post, ["ann"]) == set()
            await until_outbox_is_empty(stores)
        event = await events.next_event()
        assert (event["type"], event["post"]["text"]) == ("PostArrived", "of eve")


async def test_messages_of_muted_users_stay_in_topics(chat: ChatScenario) -> None:
    await mute(chat.ann, "user", "bob")
    await mute(chat.ann, "topic", chat.topic)
    async with chat.ann.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        await chat.bob.post(chat.topic, "still here")
        assert (await events.next_event())["message"]["text"] == "still here"
    assert await chat.ann.texts(chat.topic) == ["still here"]


async def test_muted_user_notices_nothing(chat: ChatScenario) -> None:
    await chat.bob.follow(chat.ann)
    await chat.ann.follow(chat.bob)
    before = await chat.bob.run('{ user(id: "ann") { following blocked followerCount followingCount } }')
    await mute(chat.ann, "user", "bob")
    assert await chat.bob.run('{ user(id: "ann") { following blocked followerCount followingCount } }') == before
    assert await list_mutes(chat.bob) == []
    await chat.ann.post(chat.topic, "Hello @bob")
    assert ("MENTION", "ann") in (await notification_summary(chat.bob))[0]


async def test_mute_ends_by_the_databases_clock(chat: ChatScenario) -> None:
    stores = chat.ann.stores
    until = (await stores.mongo.now() + timedelta(seconds=1)).isoformat()
    await mute(chat.ann, "user", "bob", until)
    await chat.bob.post(chat.topic, "Hello @ann")
    async with asyncio.timeout(30):
        while await notification_summary(chat.ann) == ([], 0):
            await asyncio.sleep(0.05)
    assert await stores.mongo.now() >= datetime.fromisoformat(until)
    assert await list_mutes(chat.ann) == []


async def test_end_in_the_past_is_refused(chat: ChatScenario) -> None:
    for until in (datetime.now(UTC) - timedelta(days=1), datetime.now()):
        extensions = await chat.ann.fails(MUTE % field_of("user"), id="bob", until=until.isoformat())
        assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", "until")
    assert await chat.ann.code(MUTE % field_of("user"), id="ann", until=None) == "BAD_USER_INPUT"
    assert await list_mutes(chat.ann) == []


async def test_repeated_mute_replaces_the_end(chat: ChatScenario) -> None:
    first = await mute(chat.ann, "user", "bob", "2100-01-01T00:00:00Z")
    assert first == {"id": "USER:bob", "subject": "USER", "until": "2100-01-01T00:00:00.000Z"}
    assert (await mute(chat.ann, "user", "bob"))["until"] is None
    assert [(each["id"], each["until"]) for each in await list_mutes(chat.ann)] == [("USER:bob", None)]


async def test_mutes_are_listed_in_pages(chat: ChatScenario) -> None:
    for subject, id_ in (("user", "eve"), ("topic", chat.topic), ("user", "bob"), ("community", chat.community)):
        await mute(chat.ann, subject, id_)
    expected = [f"COMMUNITY:{chat.community}", f"TOPIC:{chat.topic}", "USER:bob", "USER:eve"]
    assert [each["id"] for each in await list_mutes(chat.ann)] == expected
    pages: list[str] = []
    while page := await list_mutes(chat.ann, limit=1, after=pages[-1] if pages else None):
        pages += [each["id"] for each in page]
    assert pages == expected
    assert [each["user"] for each in await list_mutes(chat.ann, of="USER")] == [{"id": "bob"}, {"id": "eve"}]
    assert [each["topic"] for each in await list_mutes(chat.ann, of="TOPIC")] == [{"id": chat.topic}]
    assert [each["community"] for each in await list_mutes(chat.ann, of="COMMUNITY")] == [{"id": chat.community}]
    for limit, code in ((0, "BAD_USER_INPUT"), (1000, "BAD_USER_INPUT")):
        assert await chat.ann.code(MUTES_QUERY, limit=limit) == code
    assert await chat.ann.code(MUTES_QUERY, after="USER:nobody") == "NOT_FOUND"


async def test_mutes_of_places_that_became_invisible_can_be_ended(chat: ChatScenario) -> None:
    for subject, id_ in (("topic", chat.topic), ("community", chat.community)):
        await mute(chat.bob, subject, id_)
    update = "mutation ($id: ID!) { updateCommunity(id: $id, visibility: PRIVATE) { id } }"
    await chat.ann.run(update, id=chat.community)
    await chat.bob.leave(chat.community)
    assert [(each["topic"], each["community"]) for each in await list_mutes(chat.bob)] == [(None, None)] * 2
    for subject, id_ in (("topic", chat.topic), ("community", chat.community)):
        answer = await chat.bob.execute(UNMUTE % field_of(subject), id=id_)
        assert answer == {"data": {"done": None}, "errors": []}
        assert await chat.bob.code(UNMUTE % field_of(subject), id=id_) == "NOT_FOUND"
        assert await chat.bob.code(MUTE % field_of(subject), id=id_, until=None) == "NOT_FOUND"
    assert await list_mutes(chat.bob) == []


async def test_mute_holds_in_one_organization_only(chat: ChatScenario, sign_in: SignIn) -> None:
    """Users with the same ids in another organization are other people."""
    ann, bob = await sign_in("ann", "elsewhere"), await sign_in("bob", "elsewhere")
    await mute(chat.ann, "user", "bob")
    await bob.create_post("Hello @ann")
    assert await notification_summary(ann) == ([("MENTION", "bob")], 1)
    assert await list_mutes(ann) == []


MUTED = """
query ($user: ID!, $topic: ID!, $community: ID!) {
  user(id: $user) { muted } topic(id: $topic) { muted community { muted } } community(id: $community) { muted }
}
"""


async def test_objects_say_whether_the_viewer_muted_them(chat: ChatScenario) -> None:
    async def muted(person: Person) -> tuple[bool, bool, bool]:
        answer = await person.run(MUTED, user="bob", topic=chat.topic, community=chat.community)
        assert answer["topic"]["community"] == answer["community"]
        return answer["user"]["muted"], answer["topic"]["muted"], answer["community"]["muted"]

    assert await muted(chat.ann) == (False, False, False)
    await mute(chat.ann, "user", "bob")
    assert await muted(chat.ann) == (True, False, False)
    await mute(chat.ann, "community", chat.community)
    assert await muted(chat.ann) == (True, False, True)
    await mute(chat.ann, "topic", chat.topic, (datetime.now(UTC) + timedelta(days=1)).isoformat())
    assert await muted(chat.ann) == (True, True, True)
    assert await muted(chat.eve) == (False, False, False)
    await chat.ann.stores.mongo["mutes"].update_one({"_id.k": "TOPIC"}, {"$set": {"until": datetime.now(UTC)}})
    await unmute(chat.ann, "user", "bob")
    assert await muted(chat.ann) == (False, False, True)
