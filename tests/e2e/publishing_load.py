"""Publishes many posts while workers are killed, Redis is lost and MongoDB's primary steps down.

Each outcome is compared with the ledgers: the stored messages and posts, and the posts that the twins recorded.
"""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from server.embedded import Valkey
from storage.publishing.networks import Network
from storage.publishing.records import PublicationState, ScheduledPost, Target
from storage.redis.queue import PUBLISHING
from storage.stores import Stores
from tests.serving import ServerProcess, server_variables, serving_process
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkTwin, running_twin
from tests.twins.webhook import WebhookTwin
from tests.waiting import poll_until_true

ENCODED_CREDENTIAL_KEYS = "1:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
"""The base64 form of tests.databases.CREDENTIAL_KEYS."""

TWIN_VARIABLES = {"NOROSHI_EGRESS_ALLOW": "127.0.0.0/8", "NOROSHI_CREDENTIAL_KEYS": ENCODED_CREDENTIAL_KEYS}
"""Settings of processes that send requests to twins with credentials of tests."""

JOBS_PER_POST = 3


@dataclass(frozen=True)
class PublishingLoadPlan:
    """The number of publications, the time in which they are due, and the faults."""

    publications: int
    duration_s: float
    workers: int
    kills: int
    redis_kills: int = 0
    stepdowns: int = 0
    lost_response_rate: float = 0.05
    outcome_deadline_s: float = 150.0


@dataclass
class PublishingLoadScenario:
    """An organization, its targets, and the posts that it has scheduled."""

    scenario: PublishingScenario
    twins: dict[Network, NetworkTwin]
    targets: list[Target]
    posts: list[ScheduledPost] = field(default_factory=list)

    @property
    def stores(self) -> Stores:
        return self.scenario.stores

    async def schedule(self, plan: PublishingLoadPlan, start_at: datetime) -> None:
        """Schedules all posts of the plan. Their times are spread over the plan's duration."""

        async def schedule_one(number: int) -> ScheduledPost:
            due_at = start_at + timedelta(seconds=plan.duration_s * number / plan.publications)
            due_at = due_at.replace(microsecond=due_at.microsecond // 1000 * 1000)
            target = self.targets[number % len(self.targets)]
            return await self.scenario.schedule(target, due_at=due_at, text=f"number {number}")

        for first in range(0, plan.publications, 200):
            numbers = range(first, min(first + 200, plan.publications))
            self.posts += await asyncio.gather(*map(schedule_one, numbers))

    async def enqueue_repeatedly(self) -> None:
        """Enqueues every post's job three times, to provoke repeated publications."""
        for number in range(JOBS_PER_POST):
            for post in self.posts:
                await self.stores.queue.enqueue(PUBLISHING, "publishing.wake", post.id, number)

    async def has_all_outcomes(self) -> bool:
        """Returns whether every publication has its outcome."""
        open_states = [
            PublicationState.SCHEDULED.value,
            PublicationState.PUBLISHING.value,
            PublicationState.UNKNOWN.value,
        ]
        query = {"org": self.scenario.organization_id, "state": {"$in": open_states}}
        return await self.stores.mongo["publications"].count_documents(query) == 0

    async def lateness_s(self) -> list[tuple[str, float]]:
        """Returns the text of each publication in the ledgers, and how many seconds after the due moment it was there.

        A negative number is an early publication.
        """
        due_times_s = {post.text: post.due_at.timestamp() for post in self.posts}
        times_s = [(post.text, post.at) for twin in self.twins.values() for post in twin.ledger]
        posts = self.stores.mongo["posts"].find({"_id.o": self.scenario.organization_id})
        for stored in [*await self.scenario.messages(), *[post async for post in posts]]:
            times_s.append((stored["text"], stored["_id"]["ts"] / 1_000_000))
        return [(text, at - due_times_s[text]) for text, at in times_s]

    async def compare_with_ledgers(self) -> dict[str, Any]:
        """Returns lost, repeated and early publications according to the ledgers, and the counts of stored states."""
        lateness_s = await self.lateness_s()
        published = Counter(text for text, _ in lateness_s)
        query = {"org": self.scenario.organization_id}
        publications = self.stores.mongo["publications"].find(query, {"state": 1})
        states = Counter([publication["state"] async for publication in publications])
        return {
            "lost": sorted({post.text for post in self.posts} - set(published)),
            "repeated": sorted(text for text, count in published.items() if count > 1),
            "early": [text for text, late_s in lateness_s if late_s < 0],
            "states": dict(states),
        }


@asynccontextmanager
async def open_load_scenario(stores: Stores, plan: PublishingLoadPlan) -> AsyncIterator[PublishingLoadScenario]:
    """Creates an organization with internal targets, and twins that lose some responses after acting."""
    scenario = await create_publishing_scenario(stores)
    async with AsyncExitStack() as stack:
        mastodon = await stack.enter_async_context(running_twin(MastodonTwin(plan.lost_response_rate, seed=1)))
        webhook = await stack.enter_async_context(running_twin(WebhookTwin(plan.lost_response_rate, seed=2)))
        accounts = [
            await scenario.connect_account(Network.MASTODON, "token", mastodon.url),
            await scenario.connect_account(Network.WEBHOOK, WebhookTwin.secret, f"{webhook.url}/hook"),
        ]
        targets: list[Target] = [scenario.topic, scenario.home, *map(account_target, accounts)]
        yield PublishingLoadScenario(scenario, {Network.MASTODON: mastodon, Network.WEBHOOK: webhook}, targets)


@dataclass
class WorkerProcesses:
    """Worker processes. A killed worker is replaced by a new worker."""

    folder: Path
    variables: dict[str, str]
    stack: ExitStack = field(default_factory=ExitStack)
    running: list[ServerProcess] = field(default_factory=list)
    started: int = 0

    def start(self) -> None:
        """Starts one more worker."""
        self.started += 1
        worker = self.stack.enter_context(
            serving_process(self.folder / f"worker{self.started}", "worker", self.variables)
        )
        self.running.append(worker)

    def kill(self, number: int) -> None:
        """Kills one of the workers with SIGKILL, and starts another worker."""
        worker = self.running.pop(number % len(self.running))
        worker.process.kill()
        worker.process.wait()
        self.start()


def worker_variables(mongodb_uri: str, redis_url: str, database: str) -> dict[str, str]:
    """Returns the environment of a worker that may send requests to the twins."""
    return server_variables(mongodb_uri, redis_url, database) | TWIN_VARIABLES


async def restart_redis_without_data(valkey: Valkey) -> None:
    """Kills Redis with SIGKILL, deletes its data, and starts it again."""
    valkey.kill()
    await valkey.wait()
    shutil.rmtree(valkey.data)
    await valkey.start()


async def step_down(uri: str) -> None:
    """Makes the only member of the replica set step down. The member is elected again."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
    async with client:
        try:
            await client.admin.command("replSetStepDown", 2, force=True)
        except PyMongoError:
            return  # A primary that steps down closes its connections.


async def run_load(
    load_scenario: PublishingLoadScenario,
    plan: PublishingLoadPlan,
    workers: WorkerProcesses,
    mongodb_uri: str,
    valkey: Valkey | None = None,
) -> dict[str, Any]:
    """Schedules the posts, injects the faults, and waits for every outcome.

    Returns the comparison with the ledgers.
    """
    rng = random.Random(7)
    for _ in range(plan.workers):
        workers.start()
    for worker in workers.running:
        assert await asyncio.to_thread(worker.wait_for_log, "worker_ready"), worker.log_text
    start_at = await load_scenario.scenario.now() + timedelta(seconds=max(3.0, plan.publications / 200))
    await load_scenario.schedule(plan, start_at)
    enqueuing = asyncio.create_task(load_scenario.enqueue_repeatedly())
    faults = ["kill"] * plan.kills + ["redis"] * plan.redis_kills + ["stepdown"] * plan.stepdowns
    rng.shuffle(faults)
    # Faults are injected only while posts are due.
    await asyncio.sleep(max(0.0, (start_at - await load_scenario.scenario.now()).total_seconds()))
    for fault in faults:
        await asyncio.sleep(plan.duration_s / max(1, len(faults)) * rng.uniform(0.6, 1.1))
        if fault == "kill":
            await asyncio.to_thread(workers.kill, rng.randrange(100))
        elif fault == "redis":
            assert valkey is not None
            await restart_redis_without_data(valkey)
        else:
            await step_down(mongodb_uri)
    await enqueuing
    deadline_s = plan.duration_s + plan.outcome_deadline_s
    has_all = await poll_until_true(load_scenario.has_all_outcomes, deadline_s, interval_s=0.2)
    assert has_all, await load_scenario.compare_with_ledgers()
    return await load_scenario.compare_with_ledgers()
