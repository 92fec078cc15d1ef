"""A web process's endpoint in the test's own process, and the stores of another process that cannot reach Redis."""

import gc
from collections.abc import AsyncIterator, Iterator

import pytest

from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import fresh_database
from tests.server.graphql.listeners import House, open_house
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def shared_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    """Yields the name of the module's database."""
    with fresh_database(mongodb_uri, redis_url) as name:
        yield name


@pytest.fixture(scope="module")
async def shared_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver) as stores:
        yield stores


@pytest.fixture
async def house(shared_stores: Stores) -> AsyncIterator[House]:
    """A served application with a topic of its own, in a community founded by ann."""
    async with open_house(await create_topic_scenario(shared_stores)) as house:
        yield house


@pytest.fixture
async def mute(
    house: House, mongodb_uri: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[TopicScenario]:
    """The same topic through the stores of another process, which cannot publish to Redis."""
    async with open_stores(mongodb_uri, NOWHERE, shared_database, mongo_driver) as stores:
        yield house.place.through(stores)


@pytest.fixture
def _no_garbage_collection() -> Iterator[None]:
    """Disables garbage collection, so that only reference counting frees objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
