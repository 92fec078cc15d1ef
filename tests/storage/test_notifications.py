"""Notifications: created once, hidden if their actor is blocked, and counted from the read mark."""

import pytest

from storage.identity.mutes import HiddenSubjects
from storage.identity.records import user_stream
from storage.ids import MessageKey
from storage.mongo import Session
from storage.notifications import NotificationKind, notification_ref
from storage.stores import Stores
from storage.streams.outbox import add_rows
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

NOTHING = HiddenSubjects()
NEWEST = timeline_range(latest=NOW)


@pytest.fixture
async def feed(shared_stores: Stores) -> FeedScenario:
    feed = FeedScenario(shared_stores)
    await feed.sign_in("ann", "bob")
    return feed


async def test_notification_is_stored_iff_transaction_commits(feed: FeedScenario) -> None:
    stream = user_stream(feed.organization_id, "$ann")
    stores = feed.stores

    async def add_notification(session: Session) -> None:
        ref = notification_ref(NotificationKind.PUBLICATION_FAILED, publication_id="$p1")
        await add_rows(stores.mongo, stream, "Notify", [ref], session)

    async def add_notification_and_abort(session: Session) -> None:
        await add_notification(session)
        raise LookupError

    with pytest.raises(LookupError):
        await stores.mongo.transact(add_notification_and_abort)
    assert await stores.mongo["outbox"].count_documents({"stream": stream.name}) == 0
    await stores.mongo.transact(add_notification)
    stores.outbox.nudge(stream.name)
    assert [event.kind for event in await feed.events(stream)] == ["NotificationArrived"]
    (item,) = (await stores.notifications.page(feed.organization_id, "$ann", NEWEST, NOTHING)).items
    assert (item.kind, item.publication_id, item.actor_id) == (NotificationKind.PUBLICATION_FAILED, "$p1", None)


async def test_notification_rows_of_dead_process_are_swept(feed: FeedScenario) -> None:
    stream = user_stream(feed.organization_id, "ann")
    ref = notification_ref(NotificationKind.PUBLICATION_UNKNOWN, publication_id="p1")
    await add_rows(feed.stores.mongo, stream, "Notify", [ref])
    outbox = feed.stores.mongo["outbox"]
    one_minute_old = [{"$set": {"at": {"$subtract": ["$$NOW", 60_000]}}}]
    await outbox.update_many({"stream": stream.name}, one_minute_old)
    assert await feed.stores.outbox.sweep() >= 1
    assert len(await feed.events(stream)) == 1


async def test_same_notification_is_created_once(feed: FeedScenario) -> None:
    stream = user_stream(feed.organization_id, "ann")
    ref = notification_ref(NotificationKind.MENTION, "bob", post=5)
    for _ in range(3):
        await add_rows(feed.stores.mongo, stream, "Notify", [ref, ref])
        feed.stores.outbox.nudge(stream.name)
        assert len(await feed.events(stream)) == 1


async def test_equal_notifications_of_two_organizations_are_separate(feed: FeedScenario) -> None:
    """The user, the author and the timestamp of the post are equal in both organizations."""
    ref = notification_ref(NotificationKind.MENTION, "bob", post=5)
    for each in (feed, FeedScenario(feed.stores)):
        stream = user_stream(each.organization_id, "ann")
        await add_rows(each.stores.mongo, stream, "Notify", [ref])
        each.stores.outbox.nudge(stream.name)
        assert len(await each.events(stream)) == 1


async def test_mention_without_access_creates_no_notification(feed: FeedScenario) -> None:
    scenario: TopicScenario = await create_topic_scenario(feed.stores, feed.organization_id)
    message = MessageKey(scenario.topic.id, 7)
    ref = notification_ref(NotificationKind.MENTION, "cyd", message=message)
    for owner, count in (("ann", 1), ("bob", 0)):
        stream = user_stream(feed.organization_id, owner)
        await add_rows(feed.stores.mongo, stream, "Notify", [ref])
        feed.stores.outbox.nudge(stream.name)
        assert len(await feed.events(stream)) == count


async def test_unread_count_starts_at_mark_and_excludes_blocked(
    feed: FeedScenario,
) -> None:
    stream, store, org = (
        user_stream(feed.organization_id, "ann"),
        feed.stores.notifications,
        feed.organization_id,
    )
    refs = [notification_ref(NotificationKind.MENTION, actor, post=n) for n, actor in enumerate(["bob", "cyd"] * 3)]
    await add_rows(feed.stores.mongo, stream, "Notify", refs)
    feed.stores.outbox.nudge(stream.name)
    await feed.events(stream)
    page = (await store.page(org, "ann", NEWEST, NOTHING)).items
    assert [item.post and item.post.timestamp for item in page] == [5, 4, 3, 2, 1, 0]
    assert await store.unread_count(org, "ann", NOTHING) == 6
    assert await store.unread_count(org, "ann", HiddenSubjects(frozenset({"cyd"}))) == 3
    for item, unread in ((page[2], 2), (page[5], 2), (page[0], 0)):
        await store.mark_read(org, "ann", item.timestamp)
        assert await store.unread_count(org, "ann", NOTHING) == unread
    assert len((await store.page(org, "ann", NEWEST, HiddenSubjects(frozenset({"cyd"})))).items) == 3
    assert await store.unread_count("another", "ann", NOTHING) == 0


async def test_event_refers_to_its_notification(feed: FeedScenario) -> None:
    await feed.post(mention_ids=["bob"])
    stream = user_stream(feed.organization_id, "bob")
    (event,) = await feed.events(stream)

    async def find_notification() -> object:
        return (await feed.stores.notifications.of_events(stream, [event.ref])).get(event.ref)

    assert await poll_until_true(find_notification)
