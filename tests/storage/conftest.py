"""Fixtures: a topic, stores of further processes on the same database, and servers that a test may stop or kill.

All tests of a module share a database, because creating one takes longer than most tests. Each test gets its own
topic. Tests that need an empty database use the fixture `stores` instead.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from server.embedded import Valkey, find_valkey
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.storage.topic_scenario import OpenStores, TopicScenario, create_topic_scenario


@pytest.fixture
async def scenario(shared_stores: Stores) -> TopicScenario:
    """A new topic in a new community, in the module's database."""
    return await create_topic_scenario(shared_stores)


@pytest.fixture
def open_process(mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver) -> OpenStores:
    """A function that opens the stores of another process on the module's database.

    Its arguments are another Redis, and the name of a worker.
    """

    def open_further_stores(redis_url: str = redis_url, worker: str = "") -> AbstractAsyncContextManager[Stores]:
        options: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "is_prepared": True, "worker": worker}
        return open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, **options)

    return open_further_stores


@pytest.fixture
async def own_scenario(own_stores: Stores) -> TopicScenario:
    """A topic in `own_stores`."""
    return await create_topic_scenario(own_stores)


@pytest.fixture
async def own_valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    """The test's own Redis server, which the test may kill."""
    valkey = Valkey(tmp_path / "own-redis", find_valkey())
    await valkey.start()
    yield valkey
    await valkey.stop()
