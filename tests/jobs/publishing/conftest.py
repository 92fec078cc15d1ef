"""A publishing scenario without publications of earlier tests, and a publisher that may reach loopback addresses.

All tests of a module share a database, because creating one takes longer than most tests.
"""

from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_network

import pytest

from jobs.providers.egress import Egress
from jobs.publishing.publisher import PostPublisher
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS, fresh_database
from tests.jobs.publishing.runs import quick_networks
from tests.storage.publishing.scenario import PublishingScenario, create_publishing_scenario


@pytest.fixture(scope="module")
def shared_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    with fresh_database(mongodb_uri, redis_url) as name:
        yield name


@pytest.fixture(scope="module")
async def shared_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    keys = CREDENTIAL_KEYS
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, credential_keys=keys) as stores:
        yield stores


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
