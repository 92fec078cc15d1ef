"""Runs benchmarks in the test's process, on the database servers of the tests."""

import gc
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import ModuleType

import pymongo
import pytest
from typer.testing import CliRunner

from benchmarks.servers import DatabaseServers

RunBenchmark = Callable[..., str]
"""Runs a benchmark with arguments, and returns its output. Fails unless the benchmark succeeds."""


@pytest.fixture(scope="session", autouse=True)
def needs_linux() -> None:
    """Skips all tests elsewhere, because benchmarks read processor times in /proc."""
    if sys.platform != "linux":
        pytest.skip("Benchmarks need Linux.")


@pytest.fixture(autouse=True)
def restored_interpreter() -> Iterator[None]:
    """Undoes `tune_interpreter`, with which benchmarks tune their process like a worker."""
    interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval_s)
    gc.set_threshold(*thresholds)


@pytest.fixture(scope="session")
def mongod_pid(mongodb_uri: str) -> int:
    """The process id of the MongoDB server of the tests."""
    client: pymongo.MongoClient[dict[str, int]] = pymongo.MongoClient(mongodb_uri)
    with client:
        return int(client.admin.command("serverStatus")["pid"])


@pytest.fixture
def servers(mongodb_uri: str, redis_url: str, database: str, mongod_pid: int) -> DatabaseServers:
    """The servers of the tests, with an empty database."""
    return DatabaseServers(mongodb_uri, redis_url, mongod_pid, database, secrets.token_hex(32))


@pytest.fixture
def run_benchmark() -> RunBenchmark:
    """Runs a benchmark that starts its own servers."""

    def run(module: ModuleType, arguments: str) -> str:
        result = CliRunner().invoke(module.app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture
def run_on_servers(
    run_benchmark: RunBenchmark, servers: DatabaseServers, monkeypatch: pytest.MonkeyPatch
) -> RunBenchmark:
    """Runs a benchmark of web processes on the servers of the tests."""

    @asynccontextmanager
    async def database_servers() -> AsyncIterator[DatabaseServers]:
        yield servers

    def run(module: ModuleType, arguments: str) -> str:
        monkeypatch.setattr(module, "database_servers", database_servers)
        return run_benchmark(module, arguments)

    return run


@pytest.fixture
def set_sizes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets constants of a benchmark's module, such as the number of topics."""

    def set_constants(module: ModuleType, **sizes: object) -> None:
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)

    return set_constants
