"""What every test may ask for: real servers, started once, and names of its own on them."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import settings

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS, ReusedDatabase, reused_database
from tests.keys import ADDRESS_KEYS

# How long an example takes is the machine's affair.
settings.register_profile("noroshi", deadline=None)
settings.load_profile("noroshi")


# Each test has a database of some 150 files, which mongod would keep open for ten minutes after they were dropped.
CLOSE_FILES = "file_manager=(close_idle_time=5,close_scan_interval=5,close_handle_minimum=250)"
MANY_DATABASES = (
    *("--wiredTigerEngineConfigString", CLOSE_FILES),
    *("--setParameter", "minSnapshotHistoryWindowInSeconds=1"),
)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def mongodb_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A replica set of one. TEST_MONGODB_URI names one that runs already, and is then shared."""
    if uri := os.environ.get("TEST_MONGODB_URI"):
        yield uri
        return
    mongod = Mongod(tmp_path_factory.mktemp("mongodb"), find_mongod(), options=MANY_DATABASES)
    asyncio.run(mongod.start())
    yield mongod.uri
    asyncio.run(mongod.stop())


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis or Valkey. TEST_REDIS_URL names one that runs already, and is then shared."""
    if url := os.environ.get("TEST_REDIS_URL"):
        yield url
        return
    valkey = Valkey(tmp_path_factory.mktemp("redis"), find_valkey())
    asyncio.run(valkey.start())
    yield valkey.url
    asyncio.run(valkey.stop())


@pytest.fixture(scope="session")
def reused(mongodb_uri: str, redis_url: str) -> Iterator[ReusedDatabase]:
    with reused_database(mongodb_uri, redis_url) as reused:
        yield reused


@pytest.fixture
def database(reused: ReusedDatabase) -> Iterator[str]:
    """A name nobody else uses now: of a MongoDB database, and in front of Redis keys. Both are emptied afterwards."""
    yield reused.name
    reused.empty()


@pytest.fixture(scope="session")
def mongo_driver() -> Driver:
    """The driver that the storage tests run on: motor, unless NOROSHI_MONGO_DRIVER says pymongo."""
    return cast(Driver, os.environ.get("NOROSHI_MONGO_DRIVER", "motor"))


@pytest.fixture
async def stores(mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver) -> AsyncIterator[Stores]:
    """All of storage, on an empty database."""
    keys: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "address_keys": ADDRESS_KEYS}
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver, **keys) as stores:
        yield stores


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Where a test's own `noroshi up` keeps its data; not there yet."""
    return tmp_path / "data"
