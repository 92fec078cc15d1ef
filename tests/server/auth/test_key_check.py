"""Processes on one database must have the same keys. The data folders of two hosts have different keys."""

import asyncio
import base64
import json
import time
from pathlib import Path

import pytest

from server import embedded
from server.auth.key_check import check_keys
from server.commands.cli import run
from server.processes import StartupError
from server.settings import Settings
from server.supervisor import run_up
from tests.keys import ADDRESS_KEYS_SETTING
from tests.preloaded import preloaded_command
from tests.product import ObservedProduct, environment
from tests.server.refused_starts import refusal

SECRET = "a secret of the tests, longer than 32 bytes"


def key(letter: str) -> str:
    return base64.b64encode(letter.encode() * 32).decode()


@pytest.fixture
def servers(mongodb_uri: str, redis_url: str, database: str) -> dict[str, str]:
    """Returns the variables that name the shared servers."""
    return {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": database}


@pytest.fixture
def first_data_dir(servers: dict[str, str], tmp_path: Path) -> Path:
    """Returns the data folder of a product that used the database until its first process started."""
    data_dir = tmp_path / "first"
    command = ["up", "--port", "0", "--data-dir", str(data_dir)]
    process = preloaded_command(command, environment(**servers), tmp_path / "err")
    try:
        ObservedProduct(data_dir, process.pid).child("cli web", "noroshi web")
    finally:
        process.terminate()
        process.wait(120)
    return data_dir


def refusal_of_up(data_dir: Path, servers: dict[str, str], **variables: str) -> str:
    """Runs a product that must not start, and returns its error."""
    settings = settings_of(servers, **variables).with_values(port=0, data_dir=data_dir)
    with pytest.raises(StartupError) as refused:
        run_up(settings, web=1, workers=1, say=fail_when_ready, started_at=time.monotonic())
    return str(refused.value)


def fail_when_ready(line: str) -> None:
    """Fails the test as soon as the product prints that it is ready."""
    raise AssertionError(f"The product must not start: {line}")


def test_up_of_other_host_with_generated_keys_is_refused(
    servers: dict[str, str], tmp_path: Path, first_data_dir: Path
) -> None:
    credentials = {"NOROSHI_CREDENTIAL_KEYS": f"1:{stored_secret(first_data_dir, 'credential_key')}"}
    keys = credentials | {"NOROSHI_ADDRESS_KEYS": f"1:{stored_secret(first_data_dir, 'address_key')}"}
    other = tmp_path / "other"
    assert refusal_of_up(other, servers).startswith("NOROSHI_CREDENTIAL_KEYS differs from the keys in use")
    assert "NOROSHI_ADDRESS_KEYS differs" in refusal_of_up(other, servers, **credentials)
    assert "NOROSHI_AUTH_SECRET differs" in refusal_of_up(other, servers, **keys)
    asyncio.run(check(servers, **keys, NOROSHI_AUTH_SECRET=SECRET))


@pytest.mark.parametrize("command", ["web", "worker"])
def test_process_with_other_keys_is_refused(servers: dict[str, str], command: str, tmp_path: Path) -> None:
    asyncio.run(check(servers, NOROSHI_ADDRESS_KEYS=ADDRESS_KEYS_SETTING))
    other_keys = {"NOROSHI_AUTH_SECRET": SECRET, "NOROSHI_ADDRESS_KEYS": f"1:{key('b')}"}
    error = refusal(tmp_path, command, **servers, **other_keys)
    assert "NOROSHI_ADDRESS_KEYS differs from the keys in use with the database t_" in error
    assert "(another key has the version 1)" in error
    assert key("b") not in error


def test_mail_command_with_generated_key_is_refused(
    servers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in servers.items():
        monkeypatch.setenv(name, value)
    asyncio.run(check(servers, NOROSHI_ADDRESS_KEYS=ADDRESS_KEYS_SETTING))
    rows = tmp_path / "rows.csv"
    rows.write_text("address,success,soft_bounce,hard_bounce\n")
    folder = tmp_path / "data"
    arguments = ["mail", "import", str(rows), "--org", "acme", "--source", "old", "--data-dir", str(folder)]
    assert run(arguments) == 1
    assert "NOROSHI_ADDRESS_KEYS is not set" in capsys.readouterr().err
    embedded.stored_secret(embedded.prepare_data_dir(folder), "address_key")
    assert run(arguments) == 1
    assert "NOROSHI_ADDRESS_KEYS differs" in capsys.readouterr().err


@pytest.mark.anyio
async def test_keys_are_rotated_as_documented(servers: dict[str, str]) -> None:
    for keys in (f"1:{key('a')}", f"2:{key('b')},1:{key('a')}", f"2:{key('b')}"):
        await check(servers, NOROSHI_CREDENTIAL_KEYS=keys, NOROSHI_ADDRESS_KEYS=keys)
    with pytest.raises(StartupError, match="NOROSHI_CREDENTIAL_KEYS differs"):
        await check(servers, NOROSHI_CREDENTIAL_KEYS=f"1:{key('c')}")


async def check(servers: dict[str, str], **variables: str) -> None:
    """Checks the keys as the start of a process with these variables does."""
    await check_keys(settings_of(servers, **variables))


def settings_of(servers: dict[str, str], **variables: str) -> Settings:
    """Returns the settings of a process with these variables."""
    names = {name.lower().removeprefix("noroshi_"): value for name, value in (servers | variables).items()}
    return Settings(**names)  # type: ignore[arg-type]


def stored_secret(data_dir: Path, name: str) -> str:
    """Returns a secret of a data folder."""
    secret: str = json.loads((data_dir / "secrets.json").read_text())[name]
    return secret
