"""A topic to post to, further processes on the same database, and servers that a test may stop or make fail."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import pytest

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.storage.places import OpenStores, Place, found_place


@pytest.fixture
async def place(stores: Stores) -> Place:
    return await found_place(stores)


@pytest.fixture
def another(mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver) -> OpenStores:
    """Opens what another process would have."""

    def opened() -> AbstractAsyncContextManager[Stores]:
        return open_stores(mongodb_uri, redis_url, database, mongo_driver)

    return opened


@pytest.fixture(scope="session")
def own_mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mongod]:
    """A mongod that may be stopped and started again, and told to fail (tests/storage/faults.py)."""
    commands = ("--setParameter", "enableTestCommands=1")
    mongod = Mongod(tmp_path_factory.mktemp("own-mongodb"), find_mongod(), options=commands)
    asyncio.run(mongod.start())
    yield mongod
    asyncio.run(mongod.stop())
