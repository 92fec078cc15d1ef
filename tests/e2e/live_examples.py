"""Runs the programs of `examples/clients`, which print the messages of a topic as they arrive."""

import asyncio
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.client import client
from tests.e2e.chat_topic import create_chat_topic, post
from tests.storage.faulty_proxy import faulty_proxy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CLIENTS = EXAMPLES / "clients"
PYTHON_CLIENTS = EXAMPLES.parent / ".venv/clients"
"""The environment of clients that need other packages than Noroshi. `make clients` installs it."""

LIVE_CLIENTS = ("graphql-ws", "urql", "apollo", "relay", "gql")
LINE_DEADLINE_S = 60.0
OUTAGE_S = 1.2
"""Long enough for each client to try a connection that is refused."""


def require_client_packages() -> str:
    """Returns the path of Node.js. Skips the test when Node.js or the packages of the examples are missing."""
    if not (node := shutil.which("node")):
        pytest.skip("Node.js 20 or later is not installed: `apt-get install nodejs npm`.")
    if not (CLIENTS / "node_modules").exists():
        pytest.skip("The packages of the example clients are not installed: `make client-packages`.")
    return node


def command_of(client: str) -> list[str]:
    """Returns the command that runs the example of a client. Generates the code that it imports."""
    folder = CLIENTS / client
    if client == "gql":
        return [sys.executable, str(folder / "live.py")]
    if client == "ariadne-codegen":
        return [generate_python_client(folder), str(folder / "live.py")]
    node = require_client_packages()
    if client == "relay":
        run_generator(CLIENTS / "node_modules/.bin/relay-compiler", folder)
    return [node, str(folder / "live.mjs")]


def generate_python_client(folder: Path) -> str:
    """Returns the path of the Python that has the packages of the generated client."""
    if not PYTHON_CLIENTS.exists():
        pytest.skip("ariadne-codegen is not installed: `make clients`.")
    run_generator(PYTHON_CLIENTS / "bin/ariadne-codegen", folder, "--config", "ariadne-codegen.toml")
    return str(PYTHON_CLIENTS / "bin/python")


def run_generator(program: Path, folder: Path, *arguments: str) -> None:
    """Runs a code generator. Raises: AssertionError with its output if it fails."""
    generated = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    assert generated.returncode == 0, generated.stdout + generated.stderr


@dataclass
class Program:
    """A running example whose output a test reads line by line."""

    process: Process
    lines: list[str] = field(default_factory=list)

    async def line(self) -> str:
        """Returns the next line of output. Raises: AssertionError when the program has ended."""
        assert self.process.stdout
        async with asyncio.timeout(LINE_DEADLINE_S):
            line = await self.process.stdout.readline()
        assert line, f"The program has ended after {self.lines}.\n{await self.errors()}"
        self.lines.append(line.decode().rstrip("\n"))
        return self.lines[-1]

    async def errors(self) -> str:
        """Waits for the end of the program, and returns what it wrote to standard error."""
        assert self.process.stderr
        async with asyncio.timeout(LINE_DEADLINE_S):
            return (await self.process.stderr.read()).decode()


@asynccontextmanager
async def running_program(*command: str, cwd: Path | None = None, **variables: str) -> AsyncIterator[Program]:
    """Runs a program with further environment variables, and ends it afterwards."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("NOROSHI_")}
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, cwd=cwd, env=settings | variables
    )
    try:
        yield Program(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def check_live_example(name: str, url: str, token: str) -> None:
    """Runs the example of a client and cuts its connection. Raises: AssertionError unless it prints each message once.

    The token must be that of a user with the handle "ann".
    """
    async with client(url, token) as ann, faulty_proxy(url) as proxy:
        chat = await create_chat_topic(ann)
        variables = {"NOROSHI_URL": f"http://127.0.0.1:{proxy.port}", "NOROSHI_TOKEN": token}
        async with running_program(*command_of(name), "one", NOROSHI_TOPIC=chat.topic, **variables) as program:
            lines = [await program.line() for _ in range(3)]
            await proxy.refuse_connections()
            for text in ("two", "three"):
                await post(chat, ann, text)
            await asyncio.sleep(OUTAGE_S)
            await proxy.restore()
            lines += [await program.line() for _ in range(3)]
            await post(chat, ann, "four")
            lines.append(await program.line())
    assert lines == ["Signed in as ann.", "Live.", "ann: one", "Resumed.", "ann: two", "ann: three", "ann: four"]


async def errors_of_live_example(name: str, url: str, token: str, topic: str) -> str:
    """Runs the example of a client until it ends. Returns what it writes to standard error."""
    variables = {"NOROSHI_URL": url, "NOROSHI_TOKEN": token, "NOROSHI_TOPIC": topic}
    async with running_program(*command_of(name), **variables) as program:
        return await program.errors()
