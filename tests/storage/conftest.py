"""A topic to post to, further processes on the same database, and servers that a test may stop or make fail.

One database serves all tests of a module, since opening one takes longer than most tests. Each test has a topic of its
own; `stores` is for those that need an empty database.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from server.embedded import Mongod, Valkey, find_valkey
from storage.ids import new_id
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS, fresh_database
from tests.storage.topic_scenario import OpenStores, TopicScenario, create_topic_scenario


@pytest.fixture(scope="module")
def shared_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    """The name of the module's database."""
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
async def scenario(shared_stores: Stores) -> TopicScenario:
    """A topic in a community of its own."""
    return await create_topic_scenario(shared_stores)


@pytest.fixture
def open_process(mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver) -> OpenStores:
    """Opens what another process would have; other servers on request."""

    def opened(redis_url: str = redis_url) -> AbstractAsyncContextManager[Stores]:
        return open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, credential_keys=CREDENTIAL_KEYS)

    return opened


@pytest.fixture(scope="module")
async def own_stores(own_mongod: Mongod, redis_url: str, mongo_driver: Driver) -> AsyncIterator[Stores]:
    """Storage on the mongod that may fail.

    Its database is not dropped: transactions whose commit was made to fail would keep that waiting for a minute.
    """
    async with open_stores(own_mongod.uri, redis_url, f"t_{new_id()}", mongo_driver) as stores:
        yield stores


@pytest.fixture
async def own_scenario(own_stores: Stores) -> TopicScenario:
    """A topic there."""
    return await create_topic_scenario(own_stores)


@pytest.fixture
async def own_valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    """A Redis of the test's own, which may be killed."""
    valkey = Valkey(tmp_path / "own-redis", find_valkey())
    await valkey.start()
    yield valkey
    await valkey.stop()
