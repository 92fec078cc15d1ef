"""Faults for tests: MongoDB commands that fail, and processes that hang."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from tests.product import eventually


@asynccontextmanager
async def failpoint(uri: str, command: str, times: int | None = None, **fault: Any) -> AsyncIterator[None]:
    """Makes a MongoDB command of the product's clients fail, `times` times or until the block ends.

    With `errorCode=`, the server refuses the command. With `closeConnection=True`, it closes the connection without
    reading the command. With `writeConcernError=`, it executes the command and answers with that error. The server
    needs enableTestCommands for MongoDB's failCommand.
    """
    mode = "alwaysOn" if times is None else {"times": times}
    data = {"failCommands": [command], "appName": "noroshi", **fault}
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
    async with client:
        await client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
        try:
            yield
        finally:
            await client.admin.command("configureFailPoint", "failCommand", mode="off")


@contextmanager
def sigstopped(pid: int | None) -> Iterator[None]:
    """Stops a process with SIGSTOP during the block: it keeps its connections and answers nothing."""
    assert pid is not None, "The process does not run."
    os.kill(pid, signal.SIGSTOP)
    # On a busy machine, the process's threads stop with a delay.
    assert eventually(lambda: _is_stopped(pid)), "The process did not stop."
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    threads = Path(f"/proc/{pid}/task")
    if not threads.exists():
        return True  # This system has no /proc, so the state cannot be read.
    return all((thread / "stat").read_text().rpartition(")")[2].split()[0] == "T" for thread in threads.iterdir())
