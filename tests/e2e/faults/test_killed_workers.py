"""A killed worker of `noroshi up` costs a restart, and not the rest of its leases. Nothing is published twice."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from storage.publishing.networks import Network
from storage.publishing.records import AccountTarget, Publication, PublicationState, ScheduledPost, Target
from storage.stores import Stores
from tests.e2e.publishing_load import worker_variables
from tests.preloaded import preloaded_command
from tests.product import RunningProduct, running_product
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario
from tests.twins.twin import NetworkFault, running_twin
from tests.twins.webhook import WebhookTwin
from tests.waiting import until

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class KilledWorkerScenario:
    """A product with one worker, and an account whose network is a twin."""

    product: RunningProduct
    publishing: PublishingScenario
    twin: WebhookTwin
    account: AccountTarget

    async def schedule(self, target: Target, text: str, in_s: float) -> ScheduledPost:
        return await self.publishing.schedule(target, in_s=in_s, text=text)

    async def lease_end(self, post: ScheduledPost) -> datetime:
        """Waits until a worker has claimed the post, and returns the end of its lease."""
        publication = await self.publishing.publication(post)

        async def is_claimed() -> bool:
            return "claim" in await self.publishing.stored_document(publication)

        await until(is_claimed)
        lease_end: datetime = (await self.publishing.stored_document(publication))["wake_at"]
        return lease_end

    async def kill_worker(self) -> None:
        """Kills the worker with SIGKILL while a standby is ready to take its place."""
        standby_pid = await asyncio.to_thread(self.product.child, "noroshi standby")
        await until(lambda: "standby_ready" in self.product.errors)
        os.kill(self.product.child("noroshi worker"), signal.SIGKILL)
        await until(lambda: self.product.children().get(standby_pid) == "noroshi worker")

    async def published(self, post: ScheduledPost) -> Publication:
        """Waits until the post is published."""

        async def is_published() -> bool:
            return (await self.publishing.publication(post)).state is PublicationState.PUBLISHED

        await until(is_published)
        return await self.publishing.publication(post)


@pytest.fixture
async def scenario(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str, tmp_path: Path
) -> AsyncIterator[KilledWorkerScenario]:
    variables = worker_variables(mongodb_uri, redis_url, database)
    async with AsyncExitStack() as stack:
        twin = await stack.enter_async_context(running_twin(WebhookTwin()))
        product = stack.enter_context(running_product(tmp_path / "data", start=preloaded_command, **variables))
        publishing = await create_publishing_scenario(stores)
        account = await publishing.connect_account(Network.WEBHOOK, twin.secret, f"{twin.url}/hook")
        yield KilledWorkerScenario(product, publishing, twin, account_target(account))


async def test_posts_of_killed_worker_do_not_wait_for_its_leases(scenario: KilledWorkerScenario) -> None:
    """The worker is killed during a call to a network, while it holds claims on posts that are due in seconds."""
    scenario.twin.faults.append(NetworkFault.SILENT_AFTER)
    topic = scenario.publishing.topic
    called = await scenario.schedule(scenario.account, "called", -1)
    await until(lambda: [post.text for post in scenario.twin.ledger] == ["called"])
    waiting = [await scenario.schedule(target, "soon", 4.9) for target in (scenario.account, topic)]
    lease_ends = [await scenario.lease_end(post) for post in waiting]
    await scenario.kill_worker()
    for post, lease_end in zip(waiting, lease_ends, strict=True):
        published_at = (await scenario.published(post)).published_at
        assert published_at is not None
        assert post.due_at <= published_at < lease_end
    outcomes = [attempt.outcome for attempt in (await scenario.published(called)).attempts]
    assert outcomes == ["UNKNOWN", "PUBLISHED"]
    assert sorted(post.text for post in scenario.twin.ledger) == ["called", "soon"]
    assert [message["text"] for message in await scenario.publishing.messages()] == ["soon"]
    assert "leases_released" in scenario.product.errors
