"""A publishing scenario without publications of earlier tests, and a publisher that may reach loopback addresses.

All tests of a module share a database, because creating one takes longer than most tests.
"""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from jobs.providers.egress import Egress
from jobs.publishing.publisher import PostPublisher
from storage.stores import Stores
from tests.jobs.publishing.runs import quick_networks
from tests.storage.publishing.scenario import PublishingScenario, create_publishing_scenario


@pytest.fixture
async def scenario(shared_stores: Stores) -> PublishingScenario:
    await shared_stores.mongo.write_past_orphans(lambda: shared_stores.mongo["publications"].delete_many({}))
    return await create_publishing_scenario(shared_stores)


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    guard = Egress((ip_network("127.0.0.0/8"),))
    yield guard
    await guard.aclose()


@pytest.fixture
async def publisher(shared_stores: Stores, egress: Egress) -> AsyncIterator[PostPublisher]:
    publisher = PostPublisher(shared_stores, quick_networks(shared_stores, egress))
    yield publisher
    await publisher.close()
