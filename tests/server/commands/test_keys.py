"""`noroshi key ...` on a real server: creating, listing, rotating and revoking service keys."""

import asyncio
import os

import pytest

from server.commands.cli import run
from storage.identity.keys.secrets import parse_key
from storage.stores import open_stores
from tests.product import environment


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, mongodb_uri: str, database: str) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("MONGODB_URI", mongodb_uri)
    monkeypatch.setenv("NOROSHI_DATABASE", database)


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Runs `noroshi key` for the organization acme, and returns its output."""
    assert run(["key", *arguments, "--org", "acme"]) == 0
    return capsys.readouterr().out.strip()


def test_key_is_created_rotated_listed_and_revoked(
    capsys: pytest.CaptureFixture[str], mongodb_uri: str, redis_url: str, database: str
) -> None:
    first = output_of(capsys, "create", "--name", "Bot", "--scope", "chat:write", "--scope", "chat:read", "--days", "7")
    id_ = parse_key(first).id
    second = output_of(capsys, "rotate", id_, "--grace-s", "60")
    assert parse_key(second).id == id_
    assert second != first

    async def recognized() -> frozenset[str]:
        async with open_stores(mongodb_uri, redis_url, database) as stores:
            await stores.key_recognizer.recognize(first)
            return (await stores.key_recognizer.recognize(second)).scopes

    assert asyncio.run(recognized()) == {"chat:read", "chat:write"}
    listed = output_of(capsys, "list")
    assert "  by command-line  " in listed
    assert listed.startswith(f"{id_}  active")
    assert listed.endswith("Bot  chat:read chat:write")
    assert first not in listed
    assert second not in listed
    assert output_of(capsys, "revoke", f"ServiceKey:{id_}") == f"{id_} is revoked."
    assert output_of(capsys, "list").startswith(f"{id_}  revoked")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["create", "--name", "Bot", "--scope", "chat:fly"], 2, "chat:read"),
        (["create", "--name", " ", "--scope", "chat:read"], 2, "--name"),
        (["create", "--name", "Bot"], 2, "--scope"),
        (["revoke", "nothing"], 1, "no service key"),
        (["rotate", "nothing", "--grace-s", "0"], 1, "no service key"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["key", *arguments, "--org", "acme"]) == code
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
