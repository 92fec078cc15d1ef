"""Private MongoDB and Redis servers: what they can do, what survives, and what the operator is told."""

import asyncio
import json
import os
import shutil
import socket
import stat
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
    prepare,
    secret,
)
from tests.product import eventually, processes
from tests.replica_set import replica_set

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mongod(tmp_path: Path) -> AsyncIterator[Mongod]:
    server = Mongod(tmp_path / "mongodb", find_mongod())
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


async def store(uri: str, number: int) -> None:
    async with mongodb(uri) as client:
        await client["kept"]["facts"].with_options(write_concern=None).insert_one({"_id": number})


async def stored(uri: str) -> list[int]:
    async with mongodb(uri) as client:
        return [fact["_id"] async for fact in client["kept"]["facts"].find().sort("_id")]


async def refusal(data_dir: Path, **options: Any) -> str:
    with pytest.raises(StartupError) as refused:
        async with embedded_servers(data_dir, **options):
            pass
    message = str(refused.value)
    assert "\n" not in message
    return message


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


async def test_both_servers_run_with_transactions_and_end_with_the_block(data_dir: Path) -> None:
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


async def test_only_what_is_needed_is_started(data_dir: Path) -> None:
    async with embedded_servers(data_dir, need_mongodb=False) as servers:
        assert servers.mongodb_uri is None
        assert servers.redis_url


async def test_acknowledged_writes_survive_a_crash_and_the_port_stays(mongod: Mongod) -> None:
    await store(mongod.uri, 1)
    port = mongod.port
    mongod.kill()
    await mongod.wait()
    await mongod.restart()
    assert mongod.port == port
    assert await stored(mongod.uri) == [1]


async def test_redis_keeps_its_keys_and_its_port(valkey: Valkey) -> None:
    port = valkey.port
    async with Redis.from_url(valkey.url) as client:
        await client.set("a", "b")
    await valkey.stop()
    await valkey.start()
    async with Redis.from_url(valkey.url) as client:
        assert await client.get("a") == b"b"
    assert valkey.port == port


async def test_a_taken_port_is_left_for_another_and_the_data_come_along(tmp_path: Path, mongod: Mongod) -> None:
    await store(mongod.uri, 1)
    taken = mongod.port
    await mongod.stop()
    occupant = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", taken)
    async with occupant:
        await mongod.start()
        assert mongod.port != taken
        assert await stored(mongod.uri) == [1]
    await mongod.stop()
    again = Mongod(tmp_path / "mongodb", find_mongod())
    await again.start()
    assert again.port == mongod.port
    await again.stop()


@pytest.mark.parametrize("command", ["ping", "hello"])
async def test_a_mongod_that_closes_connections_at_first_is_waited_for(tmp_path: Path, command: str) -> None:
    # As it does while it loads its configuration or elects itself.
    server = Mongod(tmp_path / "mongodb", find_mongod(), options=("--setParameter", "enableTestCommands=1"))
    await server.start()
    closing = {"failCommands": [command], "closeConnection": True}
    try:
        async with mongodb(server.uri) as client:
            await client.admin.command({"configureFailPoint": "failCommand", "mode": {"times": 4}, "data": closing})
            await server.until_it_serves()
    finally:
        await server.stop()


async def test_a_restart_does_not_move_to_another_port(valkey: Valkey) -> None:
    await valkey.stop()
    with (
        socket.create_server(("127.0.0.1", valkey.port)),
        pytest.raises(StartupError, match=f"127.0.0.1:{valkey.port}"),
    ):
        await valkey.restart()
    await valkey.restart()
    assert valkey.pid


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives every machine a second loopback address")
async def test_servers_listen_on_one_loopback_address_only(mongod: Mongod, valkey: Valkey) -> None:
    for port in (mongod.port, valkey.port):
        with socket.create_connection(("127.0.0.1", port)):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends what is left")
async def test_servers_end_when_their_starter_is_killed(tmp_path: Path) -> None:
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
def bystander(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process
        process.kill()


async def test_a_server_left_over_from_an_earlier_run_is_ended_first(tmp_path: Path) -> None:
    first = Valkey(tmp_path / "redis", find_valkey())
    await first.start()
    second = Valkey(tmp_path / "redis", find_valkey())
    await second.start()
    assert first.pid is None
    assert second.port == first.port
    await second.stop()
    await first.stop()


async def test_a_strangers_process_with_a_remembered_id_is_left_alone(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    server = Valkey(tmp_path / "redis", find_valkey())
    server.folder.mkdir()
    (server.folder / "pid").write_text(str(bystander.pid))
    await server.start()
    assert bystander.poll() is None
    await server.stop()


async def test_a_missing_server_is_told_with_the_three_ways_out(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    for options, name, variable in (
        ({"need_redis": False}, "mongod", "MONGODB_URI"),
        ({"need_mongodb": False}, "valkey-server or redis-server", "REDIS_URL"),
    ):
        message = await refusal(data_dir, wheels=False, **options)
        assert "noroshi[embedded]" in message
        assert f"put {name} on PATH" in message
        assert f"set {variable}" in message


async def test_a_server_on_path_comes_before_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, find in (("mongod", find_mongod), ("redis-server", find_valkey), ("valkey-server", find_valkey)):
        assert find() != tmp_path / name
        script(tmp_path / name)
        assert find() == tmp_path / name


async def test_a_binary_that_misses_a_library_is_told_so(tmp_path: Path) -> None:
    line = "mongod: error while loading shared libraries: libcrypto.so.1.1: cannot open shared object file"
    broken = script(tmp_path / "mongod", f"echo '{line}' >&2", "exit 127")
    with pytest.raises(StartupError, match=r"can't run here .*libcrypto\.so\.1\.1.* or set MONGODB_URI") as refused:
        await Mongod(tmp_path / "mongodb", broken).start()
    assert "\n" not in str(refused.value)


async def test_what_is_no_program_is_told_so(tmp_path: Path) -> None:
    broken = tmp_path / "valkey-server"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(StartupError, match=r"can.t run here .*Exec format error"):
        await Valkey(tmp_path / "redis", broken).start()


async def test_a_server_that_runs_out_of_space_names_the_folder(tmp_path: Path) -> None:
    full = script(tmp_path / "mongod", "echo 'WiredTiger error: No space left on device'", "exit 14")
    with pytest.raises(StartupError, match=rf"no space left in {tmp_path}/mongodb \(\d+ MB free\)"):
        await Mongod(tmp_path / "mongodb", full).start()


async def test_an_unknown_failure_shows_what_the_log_said_last(tmp_path: Path) -> None:
    fatal = json.dumps({"s": "F", "msg": "Wrong storage engine", "attr": {"found": "mmapv1"}})
    failing = script(tmp_path / "mongod", f"echo '{fatal}'", 'echo \'{"s": "I", "msg": "bye"}\'', "exit 1")
    with pytest.raises(StartupError, match=r"Wrong storage engine .*mmapv1"):
        await Mongod(tmp_path / "mongodb", failing).start()


async def test_too_little_free_space_is_refused_with_folder_and_number(data_dir: Path) -> None:
    message = await refusal(data_dir, min_free_bytes=shutil.disk_usage("/").total * 1000)
    assert str(data_dir) in message
    assert "MB free" in message
    assert not (data_dir / "mongodb").exists()


async def test_a_data_folder_is_used_by_one_at_a_time(data_dir: Path) -> None:
    async with embedded_servers(data_dir, need_mongodb=False):
        message = await refusal(data_dir, need_mongodb=False)
    assert f"in use by `noroshi up`, process {os.getpid()}" in message
    async with embedded_servers(data_dir, need_mongodb=False):
        pass


async def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert "can't be used" in await refusal(path)


async def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").touch()
    assert "not Noroshi's" in await refusal(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


async def test_the_data_folder_and_the_secrets_are_for_the_owner_only(data_dir: Path) -> None:
    folder = prepare(data_dir)
    first = secret(folder, "auth_secret")
    assert len(first) >= 43
    assert secret(folder, "auth_secret") == first
    assert secret(folder, "another") != first
    assert secret(folder, "auth_secret") == first
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "secrets.json").stat().st_mode) == 0o600


async def test_two_processes_that_ask_at_once_get_the_same_secret(data_dir: Path) -> None:
    prepare(data_dir)
    code = f"from pathlib import Path; from server.embedded import secret; print(secret(Path({str(data_dir)!r}), 'a'))"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(6)]
    assert len({process.communicate()[0] for process in started}) == 1


async def test_unreadable_secrets_are_not_replaced_in_silence(data_dir: Path) -> None:
    folder = prepare(data_dir)
    (folder / "secrets.json").write_text("{")
    with pytest.raises(StartupError, match=r"secrets\.json can't be read"):
        secret(folder, "auth_secret")


class Standalone(Mongod):
    """A mongod outside any replica set."""

    def command(self) -> list[str]:
        command = super().command()
        place = command.index("--replSet")
        return [*command[:place], *command[place + 2 :]]


@pytest.fixture
async def standalone(tmp_path: Path) -> AsyncIterator[Mongod]:
    server = Standalone(tmp_path / "standalone", find_mongod(), alone=False)
    await server.start()
    yield server
    await server.stop()


async def test_a_standalone_mongod_is_refused_with_the_remedy(standalone: Mongod) -> None:
    with pytest.raises(StartupError) as refused:
        await check_mongodb(f"mongodb://{standalone.address}/")
    assert str(refused.value) == (
        "MONGODB_URI points to a standalone mongod; transactions need a replica set: "
        "start it with --replSet and run rs.initiate()"
    )
    with pytest.raises(StartupError, match="not a member of the replica set"):
        await check_mongodb(f"mongodb://{standalone.address}/?replicaSet=rs0")


async def test_servers_that_do_not_answer_are_named_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        for check, address in (
            (check_mongodb, f"mongodb://user:hunter2@{host}/"),
            (check_redis, f"redis://user:hunter2@{host}/0"),
        ):
            with pytest.raises(StartupError) as refused:
                await asyncio.wait_for(check(address), 30)
            assert host in str(refused.value)
            assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("check", "address"),
    [
        (check_mongodb, "mongodb://user:hunter@2:x@127.0.0.1:1/"),
        (check_mongodb, "mongodb://127.0.0.1:hunter2/"),
        (check_redis, "redis://127.0.0.1:hunter2/0"),
        (check_redis, "redis://127.0.0.1:1/0"),
    ],
)
async def test_addresses_that_lead_nowhere_are_one_line(check: Any, address: str) -> None:
    with pytest.raises(StartupError) as refused:
        await check(address)
    assert "\n" not in str(refused.value)
    assert "hunter" not in str(refused.value)


async def test_a_redis_that_wants_a_password_says_so(tmp_path: Path, valkey: Valkey) -> None:
    async with Redis.from_url(valkey.url) as client:
        await client.config_set("requirepass", "correct")
        with pytest.raises(StartupError, match="refuses the user or password"):
            await check_redis(valkey.url)
        await check_redis(valkey.url.replace("redis://", "redis://:correct@"))


async def test_three_mongods_elect_another_primary(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as members:
        await check_mongodb(members.uri)
        first = await members.primary()
        await members.step_down()
        assert await members.primary() is not first
