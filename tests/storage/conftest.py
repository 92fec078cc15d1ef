"""A topic to post to, further processes on the same database, and servers that a test may stop or make fail."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

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


@pytest.fixture
async def own_place(own_mongod: Mongod, redis_url: str, database: str, mongo_driver: Driver) -> AsyncIterator[Place]:
    """A topic on the mongod that may fail."""
    async with open_stores(own_mongod.uri, redis_url, database, mongo_driver) as stores:
        yield await found_place(stores)


@pytest.fixture
async def own_valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    """A Redis of the test's own, which may be killed."""
    valkey = Valkey(tmp_path / "own-redis", find_valkey())
    await valkey.start()
    yield valkey
    await valkey.stop()
