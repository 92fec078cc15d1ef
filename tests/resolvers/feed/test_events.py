"""homeFeedEvents and notificationEvents: each event once, resumption by cursor, pushed and merged posts."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest

import resolvers.feed.events
import storage.streams.merged_subscription
from jobs.fan_out import finish_fan_outs
from server.embedded import Mongod
from storage.feed.records import home_stream
from storage.mongo import Driver, older_than
from storage.stores import Stores, open_stores
from storage.streams.log import StreamPosition
from storage.streams.merged_subscription import format_positions
from tests.jobs.contexts import job_context
from tests.resolvers.people import ChatScenario, Person, RunningSubscription, SignIn, until_outbox_is_empty
from tests.storage.faults import failpoint
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

HOME_FEED_EVENTS = """
subscription ($since: Cursor) {
  homeFeedEvents(since: $since) {
    type: __typename
    ... on Event { cursor at }
    ... on StreamReady { resumed }
    ... on PostArrived { post { id text author { id } } }
    ... on PostRemoved { postId }
  }
}
"""
NOTIFICATION_EVENTS = """
subscription ($since: Cursor) {
  notificationEvents(since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on StreamReady { resumed }
    ... on NotificationArrived { notification { kind actor { id } message { text } post { text } } }
  }
}
"""
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { id } }"
REPOST = "mutation ($id: ID!) { repost(postId: $id) { id } }"
MUTE = "mutation ($id: ID!) { muteUser(userId: $id) { id } }"
ActionOnPerson = Callable[[Person, Person], Awaitable[None]]


async def mute(person: Person, other: Person) -> None:
    """Mutes a user."""
    await person.run(MUTE, id=other.id)


async def run_fan_outs(stores: Stores) -> None:
    """Runs the workers' fan-out."""
    while await finish_fan_outs(job_context(stores)):
        pass


@pytest.fixture
async def sign_in_merged(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> AsyncIterator[SignIn]:
    """Returns a sign-in on stores where every author with a follower is a merged author."""
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver, 0) as stores:
        yield SignIn(stores)


async def test_subscriber_of_two_days_ago_is_not_resumed(sign_in: SignIn) -> None:
    """While a reader is absent, the reader's stream gets no events, so its event numbers have no gap.

    Only the time of the subscription shows that posts are missing.
    """
    ann, bob = await sign_in("ann"), await sign_in("bob")
    await bob.follow(ann)
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        await ann.create_post("received")
        await run_fan_outs(sign_in.stores)
        cursor = (await events.next_event())["cursor"]
    two_days_ago = {"$subtract": ["$subscribed_at", 48 * 3_600_000]}
    await sign_in.stores.mongo["feeds"].update_many({"_id.u": "bob"}, [{"$set": {"subscribed_at": two_days_ago}}])
    await ann.create_post("left out")
    await run_fan_outs(sign_in.stores)
    async with aclosing(bob.answers(HOME_FEED_EVENTS, since=cursor)) as answers:
        events = RunningSubscription(answers)
        assert (await events.next_event())["resumed"] is False
        await ann.create_post("live")
        await run_fan_outs(sign_in.stores)
        assert (await events.next_event())["post"]["text"] == "live"


async def assert_events_and_resumption(sign_in: SignIn) -> tuple[Person, Person]:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    await bob.follow(ann)
    await ann.create_post("before")
    await run_fan_outs(sign_in.stores)
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        ids = []
        for text in ("one", "two"):
            ids.append(await ann.create_post(text))
            await run_fan_outs(sign_in.stores)
        arrivals = [await events.next_event() for _ in range(2)]
        assert [event["post"]["text"] for event in arrivals] == ["one", "two"]
        await ann.run(DELETE, id=ids[0])
        await run_fan_outs(sign_in.stores)
        removal = await events.next_event()
        assert (removal["type"], removal["postId"]) == ("PostRemoved", ids[0])
    await ann.create_post("three")
    await run_fan_outs(sign_in.stores)
    async with bob.subscribed(HOME_FEED_EVENTS, since=arrivals[1]["cursor"]) as events:
        resumed_events = [await events.next_event() for _ in range(2)]
        assert [event.get("postId") or event["post"]["text"] for event in resumed_events] == [ids[0], "three"]
    return ann, bob


async def test_pushed_posts_emit_events_and_cursor_resumes(sign_in: SignIn) -> None:
    await assert_events_and_resumption(sign_in)


async def test_merged_posts_emit_events_and_cursor_resumes(sign_in_merged: SignIn) -> None:
    await assert_events_and_resumption(sign_in_merged)
    assert await sign_in_merged.stores.mongo["feed_items"].count_documents({"_id.u": "bob"}) == 0


async def assert_reposts_arrive_once(sign_in: SignIn) -> None:
    """Asserts that a repost of a post in the feed, or of one that was reposted before, causes no event."""
    ann, bob, cat, dan = [await sign_in(name) for name in ("ann", "bob", "cat", "dan")]
    for author in (ann, cat, dan):
        await bob.follow(author)
    followed, other = await ann.create_post("followed"), await (await sign_in("eve")).create_post("other")
    await run_fan_outs(sign_in.stores)
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        for person, post in ((bob, followed), (cat, followed), (cat, other), (dan, other)):
            await person.run(REPOST, id=post)
            await run_fan_outs(sign_in.stores)
            await until_outbox_is_empty(sign_in.stores)
        await ann.create_post("last")
        await run_fan_outs(sign_in.stores)
        arrived = [(await events.next_event())["post"] for _ in range(2)]
    assert [(post["author"]["id"], post["text"]) for post in arrived] == [(cat.id, ""), (ann.id, "last")]


async def test_pushed_reposts_arrive_once(sign_in: SignIn) -> None:
    await assert_reposts_arrive_once(sign_in)


async def test_merged_reposts_arrive_once(sign_in_merged: SignIn) -> None:
    await assert_reposts_arrive_once(sign_in_merged)


async def resume_with_failing_reads(
    reader: Person, query: str, uri: str, since: str, collection: str, count: int
) -> list[str]:
    """Resumes while reads of a collection fail, and returns the texts of the next posts."""
    namespace, texts = f"{reader.stores.mongo.database.name}.{collection}", []
    async with (
        failpoint(uri, "find", times=6, closeConnection=True, namespace=namespace),
        aclosing(reader.answers(query, since=since)) as answers,
        asyncio.timeout(30),
    ):
        async for answer in answers:
            (event,) = answer["data"].values()
            if event["type"] != "StreamReady":
                texts.append((event.get("notification") or event)["post"]["text"])
            if len(texts) == count:
                break
    return texts


async def test_failed_read_of_follows_loses_no_post(own_stores: Stores, own_mongod: Mongod) -> None:
    sign_in = SignIn(own_stores)
    ann, bob = await sign_in("ann"), await sign_in("bob")
    await bob.follow(ann)
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        await ann.create_post("one")
        await run_fan_outs(sign_in.stores)
        cursor = (await events.next_event())["cursor"]
    for text in ("two", "three"):
        await ann.create_post(text)
        await run_fan_outs(sign_in.stores)
    assert await resume_with_failing_reads(bob, HOME_FEED_EVENTS, own_mongod.uri, cursor, "follows", 2) == [
        "two",
        "three",
    ]


async def test_failed_read_of_blocks_loses_no_notification(own_stores: Stores, own_mongod: Mongod) -> None:
    sign_in = SignIn(own_stores)
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with bob.subscribed(NOTIFICATION_EVENTS) as events:
        await ann.create_post("one @bob")
        cursor = (await events.next_event())["cursor"]
        for text in ("two @bob", "three @bob"):
            await ann.create_post(text)
            await until_outbox_is_empty(own_stores)
    texts = await resume_with_failing_reads(bob, NOTIFICATION_EVENTS, own_mongod.uri, cursor, "blocks", 2)
    assert texts == ["two @bob", "three @bob"]


async def test_author_gets_own_post_once_if_pushed_or_merged(sign_in: SignIn, sign_in_merged: SignIn) -> None:
    for sign_in_user in (sign_in, sign_in_merged):
        ann, bob = await sign_in_user("ann"), await sign_in_user("bob")
        await bob.follow(ann)
        async with ann.subscribed(HOME_FEED_EVENTS) as events:
            for text in ("one", "two"):
                await ann.create_post(text)
                assert (await events.next_event())["post"]["text"] == text


@pytest.mark.parametrize("act", [Person.unfollow, Person.block, mute], ids=["unfollow", "block", "mute"])
async def test_events_of_author_no_longer_wanted_are_withheld(sign_in: SignIn, act: ActionOnPerson) -> None:
    ann, bob, cyd = await sign_in("ann"), await sign_in("bob"), await sign_in("cyd")
    for author in (ann, cyd):
        await bob.follow(author)
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        await ann.create_post("late")
        await act(bob, ann)
        await run_fan_outs(sign_in.stores)
        await cyd.create_post("visible")
        await run_fan_outs(sign_in.stores)
        assert (await events.next_event())["post"]["text"] == "visible"


@pytest.mark.parametrize("act", [Person.unfollow, Person.block, mute], ids=["unfollow", "block", "mute"])
async def test_merged_posts_no_longer_wanted_are_withheld(sign_in_merged: SignIn, act: ActionOnPerson) -> None:
    ann, bob, cyd = await sign_in_merged("ann"), await sign_in_merged("bob"), await sign_in_merged("cyd")
    for author in (ann, cyd):
        await bob.follow(author)
        # The author stays a merged author without Bob.
        await (await sign_in_merged("dan")).follow(author)
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        await act(bob, ann)
        await ann.create_post("hidden")
        await cyd.create_post("visible")
        assert (await events.next_event())["post"]["text"] == "visible"


async def test_subscribed_reader_is_never_absent(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage.streams.merged_subscription, "IDLE_S", 0.05)
    monkeypatch.setattr(resolvers.feed.events, "SEEN_EVERY_S", 0.0)
    ann, bob = await sign_in("ann"), await sign_in("bob")
    await bob.follow(ann)
    feeds = sign_in.stores.mongo["feeds"]
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        next_event = asyncio.create_task(events.next_event())
        await feeds.update_one({"_id.u": "bob"}, [{"$set": {"seen_at": {"$subtract": ["$$NOW", 29 * 86_400_000]}}}])

        async def is_visit_recorded() -> bool:
            return not await feeds.count_documents({"_id.u": "bob", **older_than("seen_at", 3600)})

        assert await poll_until_true(is_visit_recorded)
        await ann.create_post("visible")
        await run_fan_outs(sign_in.stores)
        assert (await next_event)["post"]["text"] == "visible"


async def test_cursor_stays_short_with_5000_merged_authors(sign_in: SignIn) -> None:
    """With a position for each merged author, the cursor would be longer than the server accepts."""
    ann, bob = await sign_in("ann"), await sign_in("bob")
    assert ann.user is not None
    org, mongo = ann.user.organization_id, sign_in.stores.mongo
    authors = ["ann", *(f"author-{n}" for n in range(4999))]
    pairs = [{"o": org, "f": "bob", "e": author} for author in authors]
    follows = [{"_id": id_, "org": org, "follower": "bob", "followee": id_["e"]} for id_ in pairs]
    await mongo["follows"].insert_many(follows)
    merged_authors = [{"_id": {"o": org, "u": author}, "epoch": "e", "n": 0} for author in authors]
    await mongo["merged_authors"].insert_many(merged_authors)
    await mongo["users"].update_one({"_id": {"org": org, "id": "ann"}}, {"$set": {"followers": 10**6}})
    async with bob.subscribed(HOME_FEED_EVENTS) as events:
        await ann.create_post("one")
        cursor = (await events.next_event())["cursor"]
    assert len(cursor) < 1000
    await ann.create_post("two")
    async with bob.subscribed(HOME_FEED_EVENTS, since=cursor) as events:
        assert (await events.next_event())["post"]["text"] == "two"


async def test_cursor_with_authors_positions_is_not_resumed(sign_in: SignIn) -> None:
    """Earlier versions gave cursors with a position for each merged author. Clients may still hold such cursors."""
    bob = await sign_in("bob")
    assert bob.user is not None
    stream = home_stream(bob.user.organization_id, "bob")
    position = StreamPosition((await sign_in.stores.hub.head(stream)).epoch, 0)
    for count in (0, 1, 1400):
        positions = {"": position, **{f"{n:010x}": StreamPosition("0123abcd", n) for n in range(count)}}
        async with aclosing(bob.answers(HOME_FEED_EVENTS, since=format_positions(stream, positions))) as answers:
            start = await RunningSubscription(answers).next_event()
            assert (start["type"], start["resumed"]) == ("StreamReady", False)


async def test_resuming_reader_misses_no_merged_post(sign_in_merged: SignIn) -> None:
    """Bob always follows two authors, sometimes follows the next two, and never follows the last author."""
    rng = random.Random(5)
    authors = [await sign_in_merged(f"author-{n}") for n in range(5)]
    bob, texts_by_author = await sign_in_merged("bob"), [[f"{n}/{k}" for k in range(12)] for n in range(5)]
    for author in authors:
        # In these stores, each author with a follower is a merged author.
        await (await sign_in_merged("cyd")).follow(author)
    for author in authors[:2]:
        await bob.follow(author)
    received: list[str] = []

    async def post(author: Person, texts: list[str]) -> None:
        for text in texts:
            await author.create_post(text)
            await asyncio.sleep(rng.uniform(0, 0.05))

    async def change_follows() -> None:
        while True:
            await bob.follow(rng.choice(authors[2:4]))
            await bob.unfollow(rng.choice(authors[2:4]))
            await asyncio.sleep(0.1)

    async def subscribe(since: str | None, count: int) -> str | None:
        """Receives some events, and returns the cursor of the last one."""
        async with aclosing(bob.answers(HOME_FEED_EVENTS, since=since)) as answers:
            start = await (events := RunningSubscription(answers)).next_event()
            assert start["resumed"] is (since is not None)
            since = start["cursor"]
            started.set()
            for _ in range(count):
                event = await events.next_event()
                received.append(event["post"]["text"])
                since = event["cursor"]
        return since

    started, cursor = asyncio.Event(), None
    changing = asyncio.create_task(change_follows())
    expected = {text for texts in texts_by_author[:2] for text in texts}
    reader_may_end = False

    async def read() -> None:
        nonlocal cursor
        while not (reader_may_end and expected <= set(received)):
            missing = len(expected - set(received))
            cursor = await subscribe(cursor, min(rng.randrange(4), missing))

    reader = asyncio.create_task(read())
    try:
        await started.wait()
        await asyncio.gather(*map(post, authors, texts_by_author))
        reader_may_end = True
        async with asyncio.timeout(60):
            await reader
    finally:
        changing.cancel()
        reader.cancel()
    assert expected <= set(received)
    assert not set(received) & set(texts_by_author[4])
    for texts in texts_by_author[:2]:
        first_arrivals = [text for text in dict.fromkeys(received) if text in texts]
        assert first_arrivals == texts


async def test_notification_events_omit_blocked_actors(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(NOTIFICATION_EVENTS) as events:
        await chat.ann.post(chat.topic, "one @bob")
        first = await events.next_event()
        assert first["notification"] == {
            "kind": "MENTION",
            "actor": {"id": "ann"},
            "message": {"text": "one @bob"},
            "post": None,
        }
        await chat.bob.block(chat.ann)
        await chat.ann.post(chat.topic, "two @bob")
        await until_outbox_is_empty(chat.ann.stores)
        await chat.eve.create_post("three @bob")
        assert (await events.next_event())["notification"]["post"] == {"text": "three @bob"}
    async with chat.bob.subscribed(NOTIFICATION_EVENTS, since=first["cursor"]) as events:
        assert (await events.next_event())["notification"]["actor"] == {"id": "eve"}


async def test_cursor_of_other_subscription_is_refused(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    cursors = []
    for person in (ann, bob):
        for query in (HOME_FEED_EVENTS, NOTIFICATION_EVENTS):
            async for answer in person.answers(query):
                cursors.append(next(iter(answer["data"].values()))["cursor"])
                break
    for query, own_cursor in ((HOME_FEED_EVENTS, cursors[0]), (NOTIFICATION_EVENTS, cursors[1])):
        for cursor in {*cursors, "nonsense"} - {own_cursor}:
            async for answer in ann.answers(query, since=cursor):
                assert [error["extensions"]["code"] for error in answer["errors"]] == ["BAD_USER_INPUT"]
