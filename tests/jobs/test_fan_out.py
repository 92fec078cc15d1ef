"""Users follow an author while posts are created and deleted. In the end every feed is complete.

No removal event is lost.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from jobs.context import JobContext
from jobs.fan_out import finish_fan_outs, rebuild_feeds, settle_follows
from storage.chat.roles import Moderator
from storage.feed.changes import CreatePost
from storage.feed.feeds import FeedItemStore
from storage.feed.follows import FollowPair
from storage.feed.home import HomeFeedState
from storage.feed.records import Post, author_stream, home_stream
from storage.mongo import Driver, Mongo, Session
from storage.stores import Stores, open_stores
from storage.streams.changes import Batch
from storage.timeline import NOW, timeline_range
from tests.databases import fresh_database
from tests.jobs.contexts import job_context
from tests.storage.feed.feed_scenario import FeedScenario, limit_feeds, load_reader

pytestmark = pytest.mark.anyio

CHUNK_SIZE = 2
READERS = [f"reader-{n:02}" for n in range(10)]


@dataclass(slots=True)
class HeldCreatePost(CreatePost):
    """A change that creates a post, and waits for `may_commit` between its reads and its writes."""

    has_read: asyncio.Event = field(default_factory=asyncio.Event)
    may_commit: asyncio.Event = field(default_factory=asyncio.Event)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        self.has_read.set()
        await self.may_commit.wait()


@pytest.fixture(scope="module")
async def two_stores(mongodb_uri: str, redis_url: str, mongo_driver: Driver) -> AsyncIterator[list[Stores]]:
    """The stores of two processes on one database."""
    with fresh_database(mongodb_uri, redis_url) as name:
        contexts = [open_stores(mongodb_uri, redis_url, name, mongo_driver) for _ in range(2)]
        async with contexts[0] as one, contexts[1] as other:
            yield [one, other]


@pytest.fixture
async def feed(two_stores: list[Stores]) -> FeedScenario:
    feed = FeedScenario(two_stores[0])
    await feed.sign_in("ann", *READERS)
    return feed


@pytest.fixture
def workers(two_stores: list[Stores]) -> list[JobContext]:
    """The job contexts of two processes. Fan-outs have small chunks, so that each has several."""
    return [
        job_context(replace(each, feeds=FeedItemStore(each.mongo, each.outbox, each.home_subscribers, CHUNK_SIZE)))
        for each in two_stores
    ]


async def follow(feed: FeedScenario, *readers: str) -> None:
    for reader in readers:
        await feed.stores.follows.follow(FollowPair(feed.organization_id, reader, "ann"))


async def complete_feeds(feed: FeedScenario, jobs: JobContext) -> None:
    """Applies all follows, then runs fan-outs until none is open."""
    await feed.backdate("follow_changes", "at")
    await settle_follows(jobs)
    while await finish_fan_outs(jobs):
        pass
    assert not await feed.stores.mongo["fan_outs"].count_documents({"open": True})


async def home_feed_of(feed: FeedScenario, reader: str) -> list[int]:
    """Returns the timestamps of a reader's whole home feed, oldest first."""
    home = feed.stores.home
    viewer = await load_reader(home, feed.organization_id, reader, frozenset())
    return [post.timestamp for post in (await home.page(viewer, timeline_range(latest=NOW, limit=200))).items][::-1]


async def test_first_follower_during_commit_gets_post(feed: FeedScenario, workers: list[JobContext]) -> None:
    held_creation = HeldCreatePost(feed.stores.posts.plan(feed.new_post()))
    stream = author_stream(feed.organization_id, "ann")
    posting = asyncio.create_task(feed.stores.sequencer.commit(stream, held_creation))
    await held_creation.has_read.wait()
    await follow(feed, READERS[0])
    held_creation.may_commit.set()
    post = await posting
    await complete_feeds(feed, workers[0])
    assert await home_feed_of(feed, READERS[0]) == [post.timestamp]
    fan_out = await feed.stores.fan_outs.find(post.key)
    assert fan_out is not None
    assert (fan_out.state.value, fan_out.total, fan_out.delivered) == ("COMPLETED", 1, 1)


async def test_follower_during_fan_out_gets_every_post(feed: FeedScenario, workers: list[JobContext]) -> None:
    posts: list[Post] = []
    has_finished = asyncio.Event()

    async def create_posts() -> None:
        for _ in range(2 * len(READERS)):
            posts.append(await feed.post())

    async def follow_repeatedly(number: int, reader: str) -> None:
        """Follows while posts are fanned out. Every second reader unfollows and follows again."""
        while len(posts) < number:
            await asyncio.sleep(0)
        for _ in range(number % 2):
            await follow(feed, reader)
            await feed.stores.follows.unfollow(FollowPair(feed.organization_id, reader, "ann"))
        await follow(feed, reader)

    async def run_fan_outs(jobs: JobContext) -> None:
        while not has_finished.is_set():
            await finish_fan_outs(jobs)

    running = [asyncio.create_task(run_fan_outs(each)) for each in workers]
    # A fan-out processes followers by ascending id. These readers follow by descending id, so that the running fan-out
    # has already passed most of them.
    await asyncio.gather(create_posts(), *(follow_repeatedly(n, each) for n, each in enumerate(reversed(READERS))))
    has_finished.set()
    await asyncio.gather(*running)
    await complete_feeds(feed, workers[0])
    for reader in READERS:
        assert await home_feed_of(feed, reader) == [post.timestamp for post in posts], reader


async def test_deleted_post_emits_removal_to_every_subscriber(feed: FeedScenario, workers: list[JobContext]) -> None:
    org, (pushed, rebuilt, backfilled) = feed.organization_id, READERS[:3]
    await follow(feed, pushed, rebuilt)
    await feed.backdate("feeds", "seen_at", {"_id.u": rebuilt}, days=31)
    post = await feed.post()
    await complete_feeds(feed, workers[0])
    assert await feed.stores.home.record_read(org, rebuilt) is HomeFeedState.REBUILDING
    assert await rebuild_feeds(workers[0]) == 1
    await follow(feed, backfilled)
    await delete_and_assert_removals(feed, workers[0], post, pushed, rebuilt, backfilled)


async def test_deleted_post_is_removed_from_feeds_of_later_followers(
    feed: FeedScenario, workers: list[JobContext]
) -> None:
    post = await feed.post()
    await complete_feeds(feed, workers[0])
    await follow(feed, *READERS[:5])
    await delete_and_assert_removals(feed, workers[0], post, *READERS[:3])


async def test_feed_of_deleted_posts_refills_with_older_posts(
    feed: FeedScenario, workers: list[JobContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletions themselves rebuild nothing. The reader's next read does, and later deletions emit removals."""
    limit_feeds(monkeypatch, 4)
    org, reader = feed.organization_id, READERS[0]
    await follow(feed, reader)
    posts = [await feed.post() for _ in range(10)]
    await complete_feeds(feed, workers[0])
    await feed.stores.feeds.trim(org, reader)
    await feed.subscribe(reader)
    for post in posts[6:]:
        await feed.stores.posts.delete(post.key, Moderator("ann"))
    await complete_feeds(feed, workers[0])
    await feed.wait_for_relays(home_stream(org, reader))
    assert await feed.stores.home.readers_to_rebuild(1000) == []
    assert await home_feed_of(feed, reader) == []
    visit = await feed.stores.home.record_visit(org, reader)
    viewer = await load_reader(feed.stores.home, org, reader, frozenset())
    page = await feed.stores.home.page(viewer, timeline_range(latest=NOW, limit=10))
    assert await feed.stores.home.begin_refill(viewer, page, visit)
    await rebuild_feeds(workers[0])
    assert await home_feed_of(feed, reader) == [post.timestamp for post in posts[2:6]]
    await feed.stores.posts.delete(posts[5].key, Moderator("ann"))
    await complete_feeds(feed, workers[0])
    events = await feed.events(home_stream(org, reader))
    assert (events[-1].kind, events[-1].ref) == ("PostRemoved", posts[5].timestamp)


async def delete_and_assert_removals(feed: FeedScenario, jobs: JobContext, post: Post, *readers: str) -> None:
    """Deletes a post that is in the readers' feeds. Asserts that each gets one removal, and that no feed holds it."""
    for reader in readers:
        assert await home_feed_of(feed, reader) == [post.timestamp]
        await feed.subscribe(reader)
    await feed.stores.posts.delete(post.key, Moderator("ann"))
    await complete_feeds(feed, jobs)
    for reader in readers:
        events = await feed.events(home_stream(feed.organization_id, reader))
        assert [(event.kind, event.ref) for event in events] == [("PostRemoved", post.timestamp)], reader
    await feed.wait_for_relays(home_stream(feed.organization_id, "ann"))
    assert await feed.documents("feed_items") == []
