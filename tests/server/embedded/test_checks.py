"""Checks of the configured servers: refusals and their messages."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from server.commands.cli import run
from server.embedded import (
    Mongod,
    StartupError,
    Valkey,
    check_mongodb,
    check_redis,
    find_mongod,
    find_valkey,
)
from storage.mongo.deployments import MONGOS, STANDALONE
from tests.replica_set import replica_set
from tests.server.refused_starts import refusal
from tests.twins.mongos import mongos_twin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    server = Valkey(tmp_path / "redis", find_valkey())
    await server.start()
    yield server
    await server.stop()


class StandaloneMongod(Mongod):
    """A mongod outside any replica set."""

    def command(self) -> list[str]:
        command = super().command()
        index = command.index("--replSet")
        return [*command[:index], *command[index + 2 :]]


@pytest.fixture
async def standalone(tmp_path: Path) -> AsyncIterator[Mongod]:
    server = StandaloneMongod(tmp_path / "standalone", find_mongod(), initiate=False)
    await server.start()
    yield server
    await server.stop()


async def test_standalone_mongod_is_refused_with_remedy(standalone: Mongod) -> None:
    with pytest.raises(StartupError) as error:
        await check_mongodb(f"mongodb://{standalone.address}/")
    assert str(error.value) == f"MONGODB_URI ({standalone.address}): {STANDALONE}."
    with pytest.raises(StartupError, match="is a standalone mongod"):
        await check_mongodb(f"mongodb://{standalone.address}/?replicaSet=rs0")


@pytest.mark.parametrize("options", ["", "replicaSet=rs0", "directConnection=true"])
async def test_mongos_is_refused_with_one_sentence(options: str) -> None:
    async with mongos_twin() as address:
        with pytest.raises(StartupError) as error:
            await check_mongodb(f"mongodb://{address}/?{options}")
    assert str(error.value) == f"MONGODB_URI ({address}): {MONGOS}."


@pytest.mark.parametrize("command", ["up --port 0", "web", "worker"])
async def test_every_process_refuses_mongos_in_the_same_way(command: str, redis_url: str, tmp_path: Path) -> None:
    async with mongos_twin() as address:
        variables = {"MONGODB_URI": f"mongodb://{address}/", "REDIS_URL": redis_url}
        variables |= {"NOROSHI_AUTH_SECRET": "x" * 32, "NOROSHI_DATA_DIR": str(tmp_path / "data")}
        error = await asyncio.to_thread(refusal, tmp_path, *command.split(), **variables)
    assert error == f"noroshi: MONGODB_URI ({address}): {MONGOS}.\n"


@pytest.mark.parametrize("command", ["status", "mail rebuild --org acme"])
async def test_short_command_refuses_mongos_in_the_same_way(
    command: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands run in this process, since they change no process title and no logging."""
    async with mongos_twin() as address:
        variables = {"MONGODB_URI": f"mongodb://{address}/", "REDIS_URL": redis_url}
        for name, value in {**variables, "NOROSHI_DATA_DIR": str(tmp_path / "data")}.items():
            monkeypatch.setenv(name, value)
        assert await asyncio.to_thread(run, command.split()) == 1
    assert capsys.readouterr().err == f"noroshi: MONGODB_URI ({address}): {MONGOS}.\n"


async def test_silent_server_error_names_host_without_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        for check, address in (
            (check_mongodb, f"mongodb://user:hunter2@{host}/"),
            (check_redis, f"redis://user:hunter2@{host}/0"),
        ):
            with pytest.raises(StartupError) as error:
                await asyncio.wait_for(check(address), 30)
            assert host in str(error.value)
            assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("check", "address"),
    [
        (check_mongodb, "mongodb://user:hunter@2:x@127.0.0.1:1/"),
        (check_mongodb, "mongodb://127.0.0.1:hunter2/"),
        (check_redis, "redis://127.0.0.1:hunter2/0"),
        (check_redis, "redis://127.0.0.1:1/0"),
    ],
)
async def test_bad_address_error_is_one_line(check: Any, address: str) -> None:
    with pytest.raises(StartupError) as error:
        await check(address)
    assert "\n" not in str(error.value)
    assert "hunter" not in str(error.value)


async def test_redis_with_password_is_refused_without_it(tmp_path: Path, valkey: Valkey) -> None:
    async with Redis.from_url(valkey.url) as client:
        await client.config_set("requirepass", "correct")
        with pytest.raises(StartupError, match="refuses the user or password"):
            await check_redis(valkey.url)
        await check_redis(valkey.url.replace("redis://", "redis://:correct@"))


async def test_three_mongods_elect_another_primary(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as three_mongods:
        await check_mongodb(three_mongods.uri)
        first_primary = await three_mongods.primary()
        await three_mongods.step_down()
        assert await three_mongods.primary() is not first_primary
