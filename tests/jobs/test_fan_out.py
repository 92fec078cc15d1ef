"""Who follows while posts are made and deleted: each feed ends with what is there, and who listens hears what left."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from jobs.context import JobContext
from jobs.fan_out import finish_fan_outs, rebuild_feeds, settle_follows
from storage.feed.changes import CreatePost
from storage.feed.feeds import FeedStore
from storage.feed.follows import FollowPair
from storage.feed.home import HomeFeedState
from storage.feed.records import Post, author_stream, home_stream
from storage.mongo import Driver, Mongo, Session
from storage.stores import Stores, open_stores
from storage.streams.changes import Batch
from storage.timeline import NOW, timeline_range
from tests.databases import fresh_database
from tests.jobs.contexts import job_context
from tests.storage.feed.hall import Hall

pytestmark = pytest.mark.anyio

CHUNK = 2
READERS = [f"reader-{n:02}" for n in range(10)]


@dataclass(slots=True)
class HeldPost(CreatePost):
    """A post whose transaction has read everything, and waits before it writes."""

    has_read: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        self.has_read.set()
        await self.may_go_on.wait()


@pytest.fixture(scope="module")
async def both(mongodb_uri: str, redis_url: str, mongo_driver: Driver) -> AsyncIterator[list[Stores]]:
    """What two processes have of one database."""
    with fresh_database(mongodb_uri, redis_url) as name:
        opened = [open_stores(mongodb_uri, redis_url, name, mongo_driver) for _ in range(2)]
        async with opened[0] as one, opened[1] as other:
            yield [one, other]


@pytest.fixture
async def hall(both: list[Stores]) -> Hall:
    hall = Hall(both[0])
    await hall.enter("ann", *READERS)
    return hall


@pytest.fixture
def workers(both: list[Stores]) -> list[JobContext]:
    """Two processes' ways to fan out, in chunks so small that there are many of them."""
    return [job_context(replace(each, feeds=FeedStore(each.mongo, each.outbox, CHUNK))) for each in both]


async def follow(hall: Hall, *readers: str) -> None:
    for reader in readers:
        await hall.stores.follows.follow(FollowPair(hall.organization_id, reader, "ann"))


async def work(hall: Hall, jobs: JobContext) -> None:
    """All that is left to do."""
    await hall.expire("follow_changes", "at")
    await settle_follows(jobs)
    while await finish_fan_outs(jobs):
        pass
    assert not await hall.stores.mongo["fan_outs"].count_documents({"open": True})


async def seen(hall: Hall, reader: str) -> list[int]:
    """The whole feed as it is read, the oldest first."""
    home = hall.stores.home
    who = await home.reader(hall.organization_id, reader, frozenset())
    return [post.timestamp for post in (await home.page(who, timeline_range(latest=NOW, limit=200))).items][::-1]


async def test_who_follows_as_the_first_while_a_post_commits_has_it(hall: Hall, workers: list[JobContext]) -> None:
    held = HeldPost(hall.stores.posts.plan(hall.new()))
    stream = author_stream(hall.organization_id, "ann")
    posting = asyncio.create_task(hall.stores.sequencer.commit(stream, held))
    await held.has_read.wait()
    await follow(hall, READERS[0])
    held.may_go_on.set()
    post = await posting
    await work(hall, workers[0])
    assert await seen(hall, READERS[0]) == [post.timestamp]
    fan_out = await hall.stores.fan_outs.find(post.key)
    assert fan_out is not None
    assert (fan_out.state.value, fan_out.total, fan_out.delivered) == ("COMPLETED", 1, 1)


async def test_whoever_follows_while_posts_are_made_and_walked_has_every_one(
    hall: Hall, workers: list[JobContext]
) -> None:
    made: list[Post] = []
    is_over = asyncio.Event()

    async def make() -> None:
        for _ in range(2 * len(READERS)):
            made.append(await hall.post())

    async def waver(number: int, reader: str) -> None:
        """Follows while the posts of its number are on their way; every other one thinks twice."""
        while len(made) < number:
            await asyncio.sleep(0)
        for _ in range(number % 2):
            await follow(hall, reader)
            await hall.stores.follows.unfollow(FollowPair(hall.organization_id, reader, "ann"))
        await follow(hall, reader)

    async def walk(jobs: JobContext) -> None:
        while not is_over.is_set():
            await finish_fan_outs(jobs)

    walking = [asyncio.create_task(walk(each)) for each in workers]
    # Ids in falling order, so that most come behind where a walk is already.
    await asyncio.gather(make(), *(waver(n, each) for n, each in enumerate(reversed(READERS))))
    is_over.set()
    await asyncio.gather(*walking)
    await work(hall, workers[0])
    for reader in READERS:
        assert await seen(hall, reader) == [post.timestamp for post in made], reader


async def test_all_who_listen_hear_of_a_deleted_post_however_it_came_into_their_feed(
    hall: Hall, workers: list[JobContext]
) -> None:
    org, (pushed, rebuilt, backfilled) = hall.organization_id, READERS[:3]
    await follow(hall, pushed, rebuilt)
    await hall.expire("feeds", "seen_at", {"_id.u": rebuilt}, days=31)
    post = await hall.post()
    await work(hall, workers[0])
    assert await hall.stores.home.record_visit(org, rebuilt) is HomeFeedState.REBUILDING
    assert await rebuild_feeds(workers[0]) == 1
    await follow(hall, backfilled)
    await is_deleted_and_heard_of(hall, workers[0], post, pushed, rebuilt, backfilled)


async def test_a_deleted_post_of_somebody_whom_nobody_followed_leaves_the_feeds_of_those_who_came_later(
    hall: Hall, workers: list[JobContext]
) -> None:
    post = await hall.post()
    await work(hall, workers[0])
    await follow(hall, *READERS[:5])
    await is_deleted_and_heard_of(hall, workers[0], post, *READERS[:3])


async def is_deleted_and_heard_of(hall: Hall, jobs: JobContext, post: Post, *readers: str) -> None:
    """These begin to listen with the post on their page, and hear once that it left; it is in no feed any more."""
    for reader in readers:
        assert await seen(hall, reader) == [post.timestamp]
        await hall.stores.events.head(home_stream(hall.organization_id, reader))
    await hall.stores.posts.delete(post.key, "ann", False)
    await work(hall, jobs)
    for reader in readers:
        events = await hall.events(home_stream(hall.organization_id, reader))
        assert [(event.kind, event.ref) for event in events] == [("PostRemoved", post.timestamp)], reader
    await hall.settled(home_stream(hall.organization_id, "ann"))
    assert await hall.documents("feed_items") == []
