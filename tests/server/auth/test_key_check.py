"""Processes on one database must have the same keys. The data folders of two hosts have different keys."""

import asyncio
import base64
import json
import subprocess
from pathlib import Path

import pytest

from server import embedded
from server.auth.key_check import check_keys
from server.processes import StartupError
from server.settings import Settings
from tests.keys import ADDRESS_KEYS_SETTING
from tests.product import NOROSHI, environment, running_product

SECRET = "a secret of the tests, longer than 32 bytes"


def key(letter: str) -> str:
    return base64.b64encode(letter.encode() * 32).decode()


@pytest.fixture
def servers(mongodb_uri: str, redis_url: str, database: str) -> dict[str, str]:
    """Returns the variables that name the shared servers."""
    return {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": database}


def refusal(servers: dict[str, str], *command: str, **variables: str) -> str:
    """Runs a command that must not start, and returns its error."""
    result = subprocess.run(
        [*NOROSHI, *command], capture_output=True, text=True, timeout=120, env=environment(**servers | variables)
    )
    assert result.returncode == 1, result.stderr
    assert (result.stdout, result.stderr.count("\n")) == ("", 1), result.stderr
    return result.stderr


def test_up_of_other_host_with_generated_keys_is_refused(servers: dict[str, str], tmp_path: Path) -> None:
    with running_product(tmp_path / "first", **servers):
        credentials = {"NOROSHI_CREDENTIAL_KEYS": f"1:{stored_secret(tmp_path / 'first', 'credential_key')}"}
        keys = credentials | {"NOROSHI_ADDRESS_KEYS": f"1:{stored_secret(tmp_path / 'first', 'address_key')}"}
    other = "up", "--port", "0", "--data-dir", str(tmp_path / "other")
    assert refusal(servers, *other).startswith("noroshi: NOROSHI_CREDENTIAL_KEYS differs from the keys in use")
    assert "NOROSHI_ADDRESS_KEYS differs" in refusal(servers, *other, **credentials)
    assert "NOROSHI_AUTH_SECRET differs" in refusal(servers, *other, **keys)
    asyncio.run(check(servers, **keys, NOROSHI_AUTH_SECRET=SECRET))


@pytest.mark.parametrize("command", ["web", "worker"])
def test_process_with_other_keys_is_refused(servers: dict[str, str], command: str) -> None:
    asyncio.run(check(servers, NOROSHI_ADDRESS_KEYS=ADDRESS_KEYS_SETTING))
    error = refusal(servers, command, NOROSHI_AUTH_SECRET=SECRET, NOROSHI_ADDRESS_KEYS=f"1:{key('b')}")
    assert "NOROSHI_ADDRESS_KEYS differs from the keys in use with the database t_" in error
    assert "(another key has the version 1)" in error
    assert key("b") not in error


def test_mail_command_with_generated_key_is_refused(servers: dict[str, str], tmp_path: Path) -> None:
    asyncio.run(check(servers, NOROSHI_ADDRESS_KEYS=ADDRESS_KEYS_SETTING))
    rows = tmp_path / "rows.csv"
    rows.write_text("address,success,soft_bounce,hard_bounce\n")
    folder = tmp_path / "data"
    arguments = "mail", "import", str(rows), "--org", "acme", "--source", "old", "--data-dir", str(folder)
    assert "NOROSHI_ADDRESS_KEYS is not set" in refusal(servers, *arguments)
    embedded.stored_secret(embedded.prepare_data_dir(folder), "address_key")
    assert "NOROSHI_ADDRESS_KEYS differs" in refusal(servers, *arguments)


@pytest.mark.anyio
async def test_keys_are_rotated_as_documented(servers: dict[str, str]) -> None:
    for keys in (f"1:{key('a')}", f"2:{key('b')},1:{key('a')}", f"2:{key('b')}"):
        await check(servers, NOROSHI_CREDENTIAL_KEYS=keys, NOROSHI_ADDRESS_KEYS=keys)
    with pytest.raises(StartupError, match="NOROSHI_CREDENTIAL_KEYS differs"):
        await check(servers, NOROSHI_CREDENTIAL_KEYS=f"1:{key('c')}")


async def check(servers: dict[str, str], **variables: str) -> None:
    """Checks the keys as the start of a process with these variables does."""
    names = {name.lower().removeprefix("noroshi_"): value for name, value in (servers | variables).items()}
    await check_keys(Settings(**names))  # type: ignore[arg-type]


def stored_secret(data_dir: Path, name: str) -> str:
    """Returns a secret of a data folder."""
    secret: str = json.loads((data_dir / "secrets.json").read_text())[name]
    return secret
