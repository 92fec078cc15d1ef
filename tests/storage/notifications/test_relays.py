"""Notifications of replies and quotes exist as long as the post, whatever is written and relayed first."""

import asyncio

import pytest

from storage.chat.roles import Moderator
from storage.feed.records import Post, PostParentKind
from storage.identity.mutes import HiddenSubjects
from storage.identity.records import user_stream
from storage.notifications import Notification, NotificationKind, notification_ref
from storage.stores import Stores
from storage.streams.log import Stream
from storage.streams.outbox import add_rows
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario

pytestmark = pytest.mark.anyio

REPLIERS = [f"r{n:02}" for n in range(20)]


@pytest.fixture
async def feed(shared_stores: Stores) -> FeedScenario:
    feed = FeedScenario(shared_stores)
    await feed.sign_in("ann", "bob", "cat")
    return feed


def stream_of(feed: FeedScenario, person: str = "ann") -> Stream:
    return user_stream(feed.organization_id, person)


async def answer(feed: FeedScenario, author: str, post: Post, kind: PostParentKind = PostParentKind.REPLY) -> Post:
    """Creates a reply to the post, or a quote of it."""
    return await feed.post(author, f"{kind.value} of {author}", parent=post.as_parent(kind))


async def delete(feed: FeedScenario, post: Post) -> None:
    await feed.stores.posts.delete(post.key, Moderator(post.author_id))


async def notifications_of(feed: FeedScenario, person: str = "ann") -> list[Notification]:
    """Returns the person's notifications, the newest first, after all rows were relayed."""
    await feed.wait_for_relays(stream_of(feed, person))
    newest = timeline_range(latest=NOW, limit=100)
    page = await feed.stores.notifications.page(feed.organization_id, person, newest, HiddenSubjects())
    return list(page.items)


@pytest.mark.parametrize("kind", [PostParentKind.REPLY, PostParentKind.QUOTE])
async def test_deleted_answer_takes_its_notification_along(feed: FeedScenario, kind: PostParentKind) -> None:
    post = await feed.post()
    first, last = await answer(feed, "bob", post, kind), await answer(feed, "cat", post, kind)
    found = await notifications_of(feed)
    assert sorted((each.actor_id, each.subject, each.root) for each in found) == [
        ("bob", post.key, post.key),
        ("cat", post.key, post.key),
    ]
    await delete(feed, last)
    await delete(feed, last)
    assert [each.post for each in await notifications_of(feed)] == [first.key]
    await delete(feed, first)
    assert await notifications_of(feed) == []
    kinds = [event.kind for event in await feed.events(stream_of(feed))]
    assert kinds == ["NotificationArrived"] * 2 + ["NotificationRemoved"] * 2


async def test_notification_after_the_deletion_is_not_added(feed: FeedScenario) -> None:
    """Rows of two processes may be relayed in any order."""
    post = await feed.post()
    reply = await answer(feed, "bob", post)
    await notifications_of(feed)
    await delete(feed, reply)
    assert await notifications_of(feed) == []
    late = notification_ref(NotificationKind.REPLY, "bob", post=reply.timestamp)
    await add_rows(feed.stores.mongo, stream_of(feed), "Notify", [late])
    feed.stores.outbox.nudge(stream_of(feed).name)
    assert await notifications_of(feed) == []


async def test_concurrent_replies_form_one_group_without_loss(feed: FeedScenario) -> None:
    await feed.sign_in(*REPLIERS)
    post = await feed.post()
    await asyncio.gather(*(answer(feed, each, post) for each in REPLIERS))
    found = await notifications_of(feed)
    assert sorted(str(each.actor_id) for each in found) == REPLIERS
    assert {(each.kind, each.subject) for each in found} == {(NotificationKind.REPLY, post.key)}
    unread = feed.stores.notifications.unread_count(feed.organization_id, "ann", HiddenSubjects())
    assert await unread == len(REPLIERS)


async def test_replies_added_and_deleted_at_once_leave_the_rest(feed: FeedScenario) -> None:
    await feed.sign_in(*REPLIERS)
    post = await feed.post()
    deleted, added = REPLIERS[:10], REPLIERS[10:]
    early = await asyncio.gather(*(answer(feed, each, post) for each in deleted[:5]))

    async def reply_and_delete(author: str) -> None:
        await delete(feed, await answer(feed, author, post))

    await asyncio.gather(
        *(delete(feed, each) for each in early),
        *(reply_and_delete(each) for each in deleted[5:]),
        *(answer(feed, each, post) for each in added),
    )
    assert sorted(str(each.actor_id) for each in await notifications_of(feed)) == added


async def test_undone_repost_stays_notified_once(feed: FeedScenario) -> None:
    post = await feed.post()
    for _ in range(2):
        await feed.stores.posts.repost("bob", post)
        await feed.stores.posts.undo_repost("bob", post.key)
    (found,) = await notifications_of(feed)
    assert (found.kind, found.post, found.subject) == (NotificationKind.REPOST, post.key, post.key)
