"""Workers that are killed with SIGKILL while they publish: at a sample of awaits, and in the soak test at each await.

The ledgers of the twins show what was published.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.providers.egress import Egress
from jobs.publishing.publisher import PostPublisher
from storage.files.attachments import NewAttachment
from storage.mongo import Mongo
from storage.publishing.networks import Network
from storage.publishing.records import (
    AccountTarget,
    ConnectedAccount,
    Publication,
    PublicationState,
    ScheduledMedia,
    ScheduledPost,
    Target,
    TopicTarget,
)
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.jobs.publishing.runs import connected_twin, quick_networks
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkTwin

pytestmark = pytest.mark.anyio

SAMPLED_STEPS = 12


class KillableWorker:
    """The process of tests/jobs/publishing/killable_worker.py."""

    def __init__(self, process: asyncio.subprocess.Process, mongo: Mongo) -> None:
        self._process = process
        self._mongo = mongo

    async def work(self, kill_at: int) -> int | None:
        """Runs a worker that dies at step `kill_at`. Returns None, or the number of steps if the worker finished."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kill_at}\n".encode())
        answer = (await self._process.stdout.readline()).decode().split()
        assert answer, "The worker's parent process died."
        # Ends the open transactions of the dead worker at once. The product ends them when they are 1.5 s old.
        await self._mongo.client.admin.command("killAllSessions", [])
        return None if answer[0] == "killed" else int(answer[1])


@pytest.fixture
async def killable_worker(
    mongodb_uri: str, redis_url: str, shared_database: str, shared_stores: Stores, tmp_path: Path
) -> AsyncIterator[KillableWorker]:
    command = [sys.executable, "-m", "tests.jobs.publishing.killable_worker", mongodb_uri, redis_url, shared_database]
    command.append(str(tmp_path))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    yield KillableWorker(process, shared_stores.mongo)
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


def kill_steps(steps: int, at_each_step: bool) -> Iterator[int]:
    """Yields the steps at which a worker is killed: each step, or an evenly spread sample."""
    stride = 1 if at_each_step else max(1, steps // SAMPLED_STEPS)
    yield from range(1 + stride // 2, steps, stride)


@dataclass
class CrashScenario:
    """Publishes posts to the same targets (internal, networks or both) by workers that die."""

    killable_worker: KillableWorker
    scenario: PublishingScenario
    publisher: PostPublisher
    has_internal: bool
    networks: dict[Network, tuple[NetworkTwin, ConnectedAccount]]
    has_files: bool = False

    async def publish_with_crash(self, kill_at: int) -> int | None:
        """Kills a worker at step `kill_at`, lets another worker finish, and checks that each target got one post.

        Returns the number of steps if the worker finished, otherwise None.
        """
        counts_before = {network: len(twin.ledger) for network, (twin, _) in self.networks.items()}
        # X refuses a repeated text, which would hide a second call.
        post = await self.scenario.schedule(
            *self.targets(), in_s=-1, media=self.media(), text=f"at {kill_at}", attachments=await self.files()
        )
        steps = await self.killable_worker.work(kill_at)
        await self.scenario.pass_time(16)
        for publication in await self.run_until_finished(post):
            target = publication.target
            if isinstance(target, AccountTarget):
                published_count = len(self.networks[target.network][0].ledger) - counts_before[target.network]
            else:
                published_count = await self.published_internally(target, post.text)
            assert published_count <= 1, (
                f"Killed at step {kill_at}, the worker published {published_count} times: {publication}"
            )
            is_known = publication.state is not PublicationState.UNKNOWN
            if is_known or not isinstance(target, AccountTarget) or target.network is not Network.X:
                expected = (PublicationState.PUBLISHED, 1)
                assert (publication.state, published_count) == expected, f"Killed at step {kill_at}: {publication}"
        return steps

    def targets(self) -> list[Target]:
        internal: list[Target] = [self.scenario.topic, self.scenario.home] if self.has_internal else []
        return internal + [account_target(account) for _, account in self.networks.values()]

    def media(self) -> list[ScheduledMedia]:
        return [IMAGE] if Network.INSTAGRAM in self.networks else []

    async def files(self) -> list[NewAttachment]:
        return [NewAttachment(await self.scenario.upload(b"hill", "image/jpeg"), "A hill")] if self.has_files else []

    async def run_until_finished(self, post: ScheduledPost) -> list[Publication]:
        """Sweeps until the post's publications are finished or wait for a person. Returns the publications."""
        for _ in range(20):
            await self.publisher.sweep()
            await self.publisher.wait_until_idle()
            publications = await self.scenario.publications(post)
            if not any(["wake_at" in await self.scenario.stored_document(each) for each in publications]):
                break
            await self.scenario.pass_time(16)
        return publications

    async def published_internally(self, target: Target, text: str) -> int:
        """Returns how many messages of the topic, or posts of the organization, have the text."""
        if isinstance(target, TopicTarget):
            return [message["text"] for message in await self.scenario.messages()].count(text)
        query = {"_id.o": self.scenario.organization_id, "text": text}
        return await self.scenario.stores.mongo["posts"].count_documents(query)


async def crash_at_steps(
    killable_worker: KillableWorker,
    scenario: PublishingScenario,
    publisher: PostPublisher,
    networks: Sequence[Network],
    has_internal: bool,
    at_each_step: bool,
    has_files: bool = False,
) -> list[NetworkTwin]:
    """Returns the twins."""
    async with AsyncExitStack() as stack:
        twins = {each: await stack.enter_async_context(connected_twin(scenario, each)) for each in networks}
        for twin, _ in twins.values():
            if isinstance(twin, InstagramTwin):
                # The test publishes more posts than Instagram allows in a day.
                twin.quota = 1000
        crash_scenario = CrashScenario(killable_worker, scenario, publisher, has_internal, twins, has_files)
        steps = await crash_scenario.publish_with_crash(0)
        assert steps is not None
        for kill_at in kill_steps(steps, at_each_step):
            await crash_scenario.publish_with_crash(kill_at)
        return [twin for twin, _ in twins.values()]


async def test_worker_killed_at_some_awaits_publishes_once(
    killable_worker: KillableWorker, scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    await crash_at_steps(
        killable_worker, scenario, publisher, [Network.WEBHOOK, Network.X], has_internal=True, at_each_step=False
    )


async def test_worker_killed_while_it_uploads_files_publishes_once(
    killable_worker: KillableWorker,
    scenario: PublishingScenario,
    egress: Egress,
    tmp_path: Path,
    mongodb_uri: str,
    redis_url: str,
    shared_database: str,
) -> None:
    async with open_stores(
        mongodb_uri, redis_url, shared_database, credential_keys=CREDENTIAL_KEYS, files_address=str(tmp_path)
    ) as stores:
        publisher = PostPublisher(stores, quick_networks(stores, egress))
        (twin,) = await crash_at_steps(
            killable_worker,
            scenario.with_stores(stores),
            publisher,
            [Network.MASTODON],
            has_internal=False,
            at_each_step=False,
            has_files=True,
        )
        await publisher.close()
    assert isinstance(twin, MastodonTwin)
    used = [(each["description"], each["content"]) for each in twin.media.values() if each["used"]]
    assert used == [("A hill", b"hill")] * len(twin.ledger)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("network", [None, *(each for each in Network if each is not Network.SANDBOX)])
async def test_worker_killed_at_any_await_publishes_once(
    killable_worker: KillableWorker, scenario: PublishingScenario, publisher: PostPublisher, network: Network | None
) -> None:
    networks = [] if network is None else [network]
    await crash_at_steps(
        killable_worker, scenario, publisher, networks, has_internal=network is None, at_each_step=True
    )
