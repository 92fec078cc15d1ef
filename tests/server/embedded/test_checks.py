"""Checks of the configured servers: refusals and their messages."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from server.embedded import (
    Mongod,
    StartupError,
    Valkey,
    check_mongodb,
    check_redis,
    find_mongod,
    find_valkey,
)
from tests.replica_set import replica_set

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
    assert str(error.value) == (
        "MONGODB_URI points to a standalone mongod; transactions need a replica set: "
        "start it with --replSet and run rs.initiate()"
    )
    with pytest.raises(StartupError, match="not a member of the replica set"):
        await check_mongodb(f"mongodb://{standalone.address}/?replicaSet=rs0")


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
