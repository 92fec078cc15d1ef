"""Runs the examples of clients that are generated from the OpenAPI document of a running product."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser_sessions import CLIENT
from tests.client import client
from tests.e2e.live_examples import (
    CLIENTS,
    PYTHON_CLIENTS,
    require_client_packages,
    run_generator,
    running_program,
)

ORGANIZATION = "main"
"""The organization of local accounts."""

PASSWORD = "the beacon on the hill"
INVITE = """mutation ($email: String!) {
  createInvitation(input: { role: MEMBER, email: $email, expiresInHours: 1 }) { url }
}"""
CREATE_KEY = 'mutation { createServiceKey(input: { name: "Mail server", scopes: ["mail:ingest"] }) { secret } }'


async def check_http_client(name: str, url: str, token: str) -> None:
    """Generates a client, and signs in, records a delivery and gets an error with it. The token is that of an ADMIN."""
    address = f"{secrets.token_hex(8)}@example.org"
    async with client(url, token) as admin:
        invitation = (await admin.run(INVITE, email=address))["createInvitation"]["url"].partition("#invitation=")[2]
        key = (await admin.run(CREATE_KEY))["createServiceKey"]["secret"]
        body = {"invitation": invitation, "name": "Ann", "password": PASSWORD}
        account = (await admin.http.post(f"{url}/accounts", json=body, headers=CLIENT)).json()
        document = (await admin.http.get(f"{url}/openapi.json")).content
    (CLIENTS / name / "openapi.json").write_bytes(document)
    settings = {"NOROSHI_ADDRESS": address, "NOROSHI_PASSWORD": PASSWORD, "NOROSHI_KEY": key}
    async with running_program(*COMMANDS[name](CLIENTS / name), NOROSHI_URL=url, **settings) as program:
        lines = [await program.line() for _ in range(4)]
        assert await program.errors() == ""
    assert lines == ["The server is ready.", "UNAUTHENTICATED", f"Signed in as {account['userId']}.", "Recorded 1."]


def _typescript_command(folder: Path) -> list[str]:
    """Generates the types of the document, compiles the example with them, and returns the command that runs it."""
    node, programs = require_client_packages(), CLIENTS / "node_modules/.bin"
    run_generator(programs / "openapi-typescript", folder, "openapi.json", "-o", "noroshi.d.ts")
    run_generator(programs / "tsc", folder)
    return [node, str(folder / "build/deliveries.js")]


def _python_command(folder: Path) -> list[str]:
    """Generates the client of the document, and returns the command that runs the example with it."""
    generator = PYTHON_CLIENTS / "bin/openapi-python-client"
    if not generator.exists():
        pytest.skip("openapi-python-client is not installed: `make clients`.")
    target = ("--meta", "none", "--output-path", "noroshi_http", "--overwrite")
    run_generator(generator, folder, "generate", "--path", "openapi.json", "--config", "config.yaml", *target)
    return [str(PYTHON_CLIENTS / "bin/python"), str(folder / "deliveries.py")]


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "openapi-fetch": _typescript_command,
    "openapi-python-client": _python_command,
}
"""The command of each example, which generates the client first."""
