"""Embedded MongoDB and Valkey: start, restart, crash, stop and the errors of a failed start."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from redis.asyncio import Redis

from server.embedded import (
    Mongod,
    StartupError,
    Valkey,
    check_mongodb,
    check_redis,
    embedded_servers,
    find_mongod,
    find_valkey,
)
from tests.product import eventually, processes

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def mongod(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mongod]:
    """A running server. Tests may restart it and set it to fail."""
    folder, options = tmp_path_factory.mktemp("embedded") / "mongodb", ("--setParameter", "enableTestCommands=1")
    server = Mongod(folder, find_mongod(), options=options)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    server = Valkey(tmp_path / "redis", find_valkey())
    await server.start()
    yield server
    await server.stop()


def mongodb(uri: str) -> AsyncMongoClient[dict[str, Any]]:
    return AsyncMongoClient(uri, serverSelectionTimeoutMS=5000)


async def store_document(uri: str, number: int) -> None:
    """Stores a document with the id `number`."""
    async with mongodb(uri) as client:
        await client["kept"]["facts"].with_options(write_concern=None).insert_one({"_id": number})


async def stored_ids(uri: str) -> list[int]:
    """Returns the ids of the stored documents."""
    async with mongodb(uri) as client:
        return [fact["_id"] async for fact in client["kept"]["facts"].find().sort("_id")]


def write_script(path: Path, *lines: str) -> Path:
    """Writes an executable shell script, and returns its path."""
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


async def test_embedded_servers_run_transactions_and_stop(data_dir: Path) -> None:
    async with embedded_servers(data_dir) as servers:
        assert servers.mongodb_uri
        assert servers.redis_url
        await check_mongodb(servers.mongodb_uri)
        await check_redis(servers.redis_url)
        async with (
            mongodb(servers.mongodb_uri) as client,
            client.start_session() as session,
            await session.start_transaction(),
        ):
            await client["a"]["b"].insert_one({}, session=session)
        pids = [server.pid for server in servers.all]
    assert not set(pids) & set(processes())


async def test_unneeded_server_is_not_started(data_dir: Path) -> None:
    async with embedded_servers(data_dir, need_mongodb=False) as servers:
        assert servers.mongodb_uri is None
        assert servers.redis_url


async def test_mongod_restart_keeps_data_and_port(mongod: Mongod) -> None:
    await store_document(mongod.uri, 1)
    port = mongod.port
    mongod.kill()
    await mongod.wait()
    await mongod.restart()
    assert mongod.port == port
    assert await stored_ids(mongod.uri) == [1]


async def test_valkey_restart_keeps_keys_and_port(valkey: Valkey) -> None:
    port = valkey.port
    async with Redis.from_url(valkey.url) as client:
        await client.set("a", "b")
    await valkey.stop()
    await valkey.start()
    async with Redis.from_url(valkey.url) as client:
        assert await client.get("a") == b"b"
    assert valkey.port == port


async def test_mongod_closed_connections_at_start_are_retried(mongod: Mongod) -> None:
    # mongod closes connections while it loads its configuration or elects itself.
    failure = {"failCommands": ["hello"], "closeConnection": True}
    async with mongodb(mongod.uri) as client:
        await client.admin.command({"configureFailPoint": "failCommand", "mode": {"times": 4}, "data": failure})
        await mongod.wait_until_ready()
        fail_point = await client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})
    assert fail_point["count"] == 4


async def test_restart_on_used_port_is_refused(valkey: Valkey) -> None:
    await valkey.stop()
    with (
        socket.create_server(("127.0.0.1", valkey.port)),
        pytest.raises(StartupError, match=f"127.0.0.1:{valkey.port}"),
    ):
        await valkey.restart()
    await valkey.restart()
    assert valkey.pid


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives every machine a second loopback address")
async def test_servers_listen_on_one_loopback_address(mongod: Mongod, valkey: Valkey) -> None:
    for port in (mongod.port, valkey.port):
        with socket.create_connection(("127.0.0.1", port)):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))


async def test_mongod_start_on_used_port_changes_port_keeps_data(mongod: Mongod) -> None:
    """Must be the last test of the module's mongod, which it stops."""
    await store_document(mongod.uri, 2)
    used_port, kept = mongod.port, await stored_ids(mongod.uri)
    await mongod.stop()
    occupant = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", used_port)
    async with occupant:
        await mongod.start()
        assert mongod.port != used_port
        assert await stored_ids(mongod.uri) == kept
    await mongod.stop()
    restarted = Mongod(mongod.folder, find_mongod())
    await restarted.start()
    assert restarted.port == mongod.port
    await restarted.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="on other systems the next start ends the remaining server")
async def test_server_ends_when_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, time; from pathlib import Path; from server.embedded import Valkey, find_valkey\n"
        "server = Valkey(Path(sys.argv[1]), find_valkey()); asyncio.run(server.start())\n"
        "print(server.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "redis")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        assert pid in processes()
        starter.kill()
    assert eventually(lambda: pid not in processes())


@pytest.fixture
def foreign_process() -> Iterator[subprocess.Popen[bytes]]:
    """Yields a running process that is not an embedded server."""
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process
        process.kill()


async def test_start_ends_stale_server_of_same_data(tmp_path: Path) -> None:
    first = Valkey(tmp_path / "redis", find_valkey())
    await first.start()
    second = Valkey(tmp_path / "redis", find_valkey())
    await second.start()
    assert first.pid is None
    assert second.port == first.port
    await second.stop()
    await first.stop()


async def test_start_spares_foreign_process_with_remembered_pid(
    tmp_path: Path, foreign_process: subprocess.Popen[bytes]
) -> None:
    server = Valkey(tmp_path / "redis", find_valkey())
    server.folder.mkdir()
    (server.folder / "pid").write_text(str(foreign_process.pid))
    await server.start()
    assert foreign_process.poll() is None
    await server.stop()


async def test_program_without_library_error_names_library(tmp_path: Path) -> None:
    line = "mongod: error while loading shared libraries: libcrypto.so.1.1: cannot open shared object file"
    program = write_script(tmp_path / "mongod", f"echo '{line}' >&2", "exit 127")
    with pytest.raises(StartupError, match=r"can't run here .*libcrypto\.so\.1\.1.* with MONGODB_URI") as error:
        await Mongod(tmp_path / "mongodb", program).start()
    assert "\n" not in str(error.value)


async def test_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "valkey-server"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(StartupError, match=r"can.t run here .*Exec format error"):
        await Valkey(tmp_path / "redis", broken).start()


async def test_full_disk_at_start_names_folder(tmp_path: Path) -> None:
    full = write_script(tmp_path / "mongod", "echo 'WiredTiger error: No space left on device'", "exit 14")
    with pytest.raises(StartupError, match=rf"no space left in {tmp_path}/mongodb \(\d+ MB free\)"):
        await Mongod(tmp_path / "mongodb", full).start()


async def test_unknown_start_failure_shows_last_log_error(tmp_path: Path) -> None:
    fatal = json.dumps({"s": "F", "msg": "Wrong storage engine", "attr": {"found": "mmapv1"}})
    failing = write_script(tmp_path / "mongod", f"echo '{fatal}'", 'echo \'{"s": "I", "msg": "bye"}\'', "exit 1")
    with pytest.raises(StartupError, match=r"Wrong storage engine .*mmapv1"):
        await Mongod(tmp_path / "mongodb", failing).start()
