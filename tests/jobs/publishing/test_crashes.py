"""kill -9 at the awaits of a publication, all of them in the soak: what was published says the other side's ledger."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from jobs.publishing.desk import Desk
from storage.mongo import Mongo
from storage.networks import Network
from storage.publishing.records import PublicationState, Target
from storage.stores import Stores
from tests.jobs.publishing.desks import connected, settled
from tests.storage.publishing.newsroom import IMAGE, Newsroom, account_target

pytestmark = pytest.mark.anyio

POINTS_IN_CI = 15


class Crasher:
    """The process of tests/jobs/publishing/crasher.py."""

    def __init__(self, process: asyncio.subprocess.Process, mongo: Mongo) -> None:
        self._process = process
        self._mongo = mongo

    async def work(self, kill_at: int) -> int | None:
        """A worker that dies at that step; None, or how many steps there were when it came through."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kill_at}\n".encode())
        answer = (await self._process.stdout.readline()).decode().split()
        assert answer, "the crasher itself died"
        # Transactions that the dead left open: the product ends them after a second and a half, by age.
        await self._mongo.client.admin.command("killAllSessions", [])
        return None if answer[0] == "killed" else int(answer[1])


@pytest.fixture
async def crasher(
    mongodb_uri: str, redis_url: str, shared_database: str, shared_stores: Stores
) -> AsyncIterator[Crasher]:
    command = [sys.executable, "-m", "tests.jobs.publishing.crasher", mongodb_uri, redis_url, shared_database]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    yield Crasher(process, shared_stores.mongo)
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


def points(steps: int, every: bool) -> Iterator[int]:
    """At which steps to die: all, or some that are spread evenly."""
    stride = 1 if every else max(1, steps // POINTS_IN_CI)
    yield from range(1 + stride // 2, steps, stride)


async def die_at_each(crasher: Crasher, newsroom: Newsroom, desk: Desk, network: Network | None, every: bool) -> None:
    if network is None:
        await _die_inside(crasher, newsroom, desk, every)
        return
    async with connected(newsroom, network) as (twin, account):
        media = [IMAGE] if network is Network.INSTAGRAM else []

        async def once(kill_at: int) -> int | None:
            before = len(twin.ledger)
            # X takes no text twice, which would hide that it was sent twice.
            post = await newsroom.schedule(account_target(account), in_s=-1, media=media, text=f"at {kill_at}")
            steps = await crasher.work(kill_at)
            await newsroom.pass_time(16)
            done = await settled(desk, newsroom, post)
            there = len(twin.ledger) - before
            assert there <= 1, f"published {there} times when killed at step {kill_at}"
            if network is Network.X and done.state is PublicationState.UNKNOWN:
                return steps
            assert (done.state, there) == (PublicationState.PUBLISHED, 1), f"killed at step {kill_at}: {done}"
            return steps

        steps = await once(0)
        assert steps is not None
        for kill_at in points(steps, every):
            await once(kill_at)


async def _die_inside(crasher: Crasher, newsroom: Newsroom, desk: Desk, every: bool) -> None:
    async def once(kill_at: int) -> int | None:
        targets: list[Target] = [newsroom.topic, newsroom.home]
        post = await newsroom.schedule(*targets, in_s=-1, text=f"at {kill_at}")
        steps = await crasher.work(kill_at)
        for _ in range(5):
            await newsroom.pass_time(16)
            await desk.sweep()
            await desk.idle()
        assert {each.state for each in await newsroom.publications(post)} == {PublicationState.PUBLISHED}
        texts = [message["text"] for message in await newsroom.messages()]
        posts = newsroom.stores.mongo["posts"].find({"_id.o": newsroom.organization_id, "text": post.text})
        assert (texts.count(post.text), len(await posts.to_list(None))) == (1, 1), f"killed at step {kill_at}"
        return steps

    steps = await once(0)
    assert steps is not None
    for kill_at in points(steps, every):
        await once(kill_at)


@pytest.mark.parametrize("network", [None, Network.WEBHOOK, Network.X])
async def test_a_worker_killed_at_an_await_publishes_once(
    crasher: Crasher, newsroom: Newsroom, desk: Desk, network: Network | None
) -> None:
    await die_at_each(crasher, newsroom, desk, network, every=False)


@pytest.mark.soak
@pytest.mark.parametrize("network", [None, *(each for each in Network if each is not Network.SANDBOX)])
async def test_a_worker_killed_at_any_await_publishes_once(
    crasher: Crasher, newsroom: Newsroom, desk: Desk, network: Network | None
) -> None:
    await die_at_each(crasher, newsroom, desk, network, every=True)
