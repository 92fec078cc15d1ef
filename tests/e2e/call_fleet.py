"""Worker processes that only call, with short leases, so that others take over soon."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.embedded import Valkey, find_valkey
from storage.stores import open_stores
from tests.e2e.call_deployment import dialling
from tests.jobs.calls.call_centre import CallCentre, calling

LEASE_S = 1.5


@dataclass
class Fleet:
    """The processes, their organizations, and a Redis of their own."""

    house: CallCentre
    valkey: Valkey
    mongodb_uri: str
    database: str
    processes: list[Process] = field(default_factory=list)

    async def start(self) -> None:
        """Starts one more process and waits until it works."""
        urls = self.mongodb_uri, self.valkey.url, self.database, self.house.twin.url
        command = sys.executable, "-m", "tests.e2e.call_worker", *urls, str(LEASE_S)
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        self.processes.append(process)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"

    async def dialling(self, but: int | None = None) -> int:
        """Waits until a process other than `but` holds the lock, and returns its id."""
        return await dialling(self.house.stores.mongo, self.house.org, but)

    async def kill(self) -> int:
        """Kills the process that dials, starts another one, and waits until another process dials."""
        pid = await self.dialling()
        os.kill(pid, signal.SIGKILL)
        await self.start()
        return await self.dialling(but=pid)


@asynccontextmanager
async def fleet(folder: Path, mongodb_uri: str, database: str, allowed: int, **more: Any) -> AsyncIterator[Fleet]:
    """Starts a fleet of two processes."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    try:
        async with open_stores(mongodb_uri, valkey.url, database) as stores, calling(stores, allowed, **more) as house:
            made = Fleet(house, valkey, mongodb_uri, database)
            try:
                await asyncio.gather(made.start(), made.start())
                yield made
            finally:
                for process in made.processes:
                    if process.returncode is None:
                        process.kill()
                await asyncio.gather(*(process.wait() for process in made.processes))
    finally:
        await valkey.stop(0)
