"""Faults on demand: commands that MongoDB refuses, and processes that hang."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from tests.product import eventually


@asynccontextmanager
async def failpoint(uri: str, command: str, times: int | None = None, **how: Any) -> AsyncIterator[None]:
    """Makes a command of the product's clients fail, the next `times` times or until the block ends.

    `errorCode=` refuses it, `closeConnection=True` drops it unread, `writeConcernError=` does it and then says that it
    may be lost. Source: MongoDB's failCommand, which needs enableTestCommands.
    """
    mode = "alwaysOn" if times is None else {"times": times}
    data = {"failCommands": [command], "appName": "noroshi", **how}
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
    async with client:
        await client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
        try:
            yield
        finally:
            await client.admin.command("configureFailPoint", "failCommand", mode="off")


@contextmanager
def sigstopped(pid: int | None) -> Iterator[None]:
    """A process that keeps its connections and answers nothing."""
    assert pid is not None, "it does not run"
    os.kill(pid, signal.SIGSTOP)
    # On a busy machine its threads go on for a moment.
    assert eventually(lambda: _is_stopped(pid)), "it did not stop"
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        return True  # no such place to look on this system
    return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir())
