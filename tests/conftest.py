"""Fixtures of all tests: real servers, started once, and an empty database for each test."""

import asyncio
import gc
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpcore2
import pytest
import structlog
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from storage.chat import relays
from storage.ids import new_id
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS, ReusedDatabase, reused_database
from tests.keys import ADDRESS_KEYS
from tests.unclosed_sockets import open_socket_count

# The duration of an example depends on the machine.
settings.register_profile("noroshi", deadline=None)
settings.load_profile("noroshi")


# Reading the system's certificates takes 30 ms, and httpx would read them for each of the tests' thousands of clients.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

# By default structlog renders tracebacks with rich, which takes half a second of processor time for each exception.
*_processors, _ = structlog.get_config()["processors"]
_renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*_processors, _renderer])

# Tests wait until all announcements of a topic's activity are relayed.
ACTIVITY_EVERY_S = relays.ACTIVITY_EVERY_S
relays.ACTIVITY_EVERY_S = 0.02

# A test's database has some 150 files. By default mongod keeps them open for ten minutes after they are dropped.
CLOSE_FILES = "file_manager=(close_idle_time=5,close_scan_interval=5,close_handle_minimum=250)"
MONGOD_OPTIONS = (
    *("--wiredTigerEngineConfigString", CLOSE_FILES),
    *("--setParameter", "minSnapshotHistoryWindowInSeconds=1"),
)


def pytest_sessionstart() -> None:
    """Collects no garbage while tests are collected. Nearly all objects of that time stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Excludes modules and collected tests from garbage collection, which else looks at them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)
    gc.enable()


class SchedulingByFile(LoadFileScheduling):
    """Gives each file to one process, and all files of a folder whose tests need a product of their own."""

    FOLDER = "tests/e2e/faults"

    def _split_scope(self, nodeid: str) -> str:
        return self.FOLDER if nodeid.startswith(self.FOLDER) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SchedulingByFile | None:
    return SchedulingByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the reasons of skipped tests. A reason names the command that installs the missing program."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    if reasons:
        terminalreporter.section("skipped tests")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count:4} skipped: {reason}")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def mongodb_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of a replica set with one member. If TEST_MONGODB_URI is set, it names a running replica set."""
    if uri := os.environ.get("TEST_MONGODB_URI"):
        yield uri
        return
    mongod = Mongod(tmp_path_factory.mktemp("mongodb"), find_mongod(), options=MONGOD_OPTIONS)
    asyncio.run(mongod.start())
    yield mongod.uri
    asyncio.run(mongod.stop())


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Valkey server. If TEST_REDIS_URL is set, it names a running Redis or Valkey."""
    if url := os.environ.get("TEST_REDIS_URL"):
        yield url
        return
    valkey = Valkey(tmp_path_factory.mktemp("redis"), find_valkey())
    asyncio.run(valkey.start())
    yield valkey.url
    asyncio.run(valkey.stop())


@pytest.fixture(scope="session")
def reusable_database(mongodb_uri: str, redis_url: str) -> Iterator[ReusedDatabase]:
    """The database that the tests of this process use one after another."""
    with reused_database(mongodb_uri, redis_url) as database:
        yield database


@pytest.fixture
def database(reusable_database: ReusedDatabase) -> Iterator[str]:
    """The name of an empty MongoDB database, also the prefix of Redis keys. Both are emptied afterwards."""
    yield reusable_database.name
    reusable_database.empty()


@pytest.fixture(scope="session")
def reusable_shared_database(mongodb_uri: str, redis_url: str) -> Iterator[ReusedDatabase]:
    """The database that the modules of this process use one after another."""
    with reused_database(mongodb_uri, redis_url) as database:
        yield database


@pytest.fixture(scope="module")
def shared_database(reusable_shared_database: ReusedDatabase) -> Iterator[str]:
    """The name of the database that the tests of a module share. It is emptied after the module."""
    yield reusable_shared_database.name
    reusable_shared_database.empty()


@pytest.fixture(scope="module")
async def shared_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    """All stores on the database that the tests of a module share."""
    options: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "is_prepared": True}
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, **options) as stores:
        yield stores


@pytest.fixture(scope="session")
def mongo_driver() -> Driver:
    """The MongoDB driver of the tests: pymongo, or the driver that NOROSHI_MONGO_DRIVER names."""
    return cast(Driver, os.environ.get("NOROSHI_MONGO_DRIVER", "pymongo"))


@pytest.fixture
async def stores(mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver) -> AsyncIterator[Stores]:
    """All stores on an empty database."""
    options: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "address_keys": ADDRESS_KEYS, "is_prepared": True}
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver, **options) as stores:
        yield stores


@pytest.fixture
def throttled_activity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Announces a topic's activity as rarely as the product does."""
    monkeypatch.setattr(relays, "ACTIVITY_EVERY_S", ACTIVITY_EVERY_S)


@pytest.fixture(autouse=True)
def unclosed_sockets_fail_their_test() -> Iterator[None]:
    """Collects garbage after a test that left more sockets, so that the warning of a leaked one fails this test."""
    before = open_socket_count()
    yield
    if open_socket_count() > before:
        gc.collect()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The path of a data folder for `noroshi up`. The folder does not exist yet."""
    return tmp_path / "data"


@pytest.fixture(scope="session")
def own_mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mongod]:
    """A mongod that may be stopped and started again, and set to fail (tests/storage/faults.py)."""
    commands = ("--setParameter", "enableTestCommands=1")
    mongod = Mongod(tmp_path_factory.mktemp("own-mongodb"), find_mongod(), options=commands)
    asyncio.run(mongod.start())
    yield mongod
    asyncio.run(mongod.stop())


@pytest.fixture(scope="module")
async def own_stores(own_mongod: Mongod, redis_url: str, mongo_driver: Driver) -> AsyncIterator[Stores]:
    """Stores on the mongod that a test may stop or make fail.

    The database is not dropped: dropping it would wait a minute for transactions whose commit a test made fail.
    """
    async with open_stores(own_mongod.uri, redis_url, f"t_{new_id()}", mongo_driver) as stores:
        yield stores
