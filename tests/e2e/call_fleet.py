"""Worker processes that only run brokers, on short leases, so that takeovers are quick."""

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
from tests.e2e.call_deployment import wait_for_holder
from tests.jobs.calls.call_centre import CallCentre, call_centre

LEASE_S = 1.5


@dataclass
class WorkerFleet:
    """The worker processes with their call centre and Redis."""

    centre: CallCentre
    valkey: Valkey
    mongodb_uri: str
    database: str
    processes: list[Process] = field(default_factory=list)

    async def start(self) -> None:
        """Starts one more process. Returns when it works."""
        urls = self.mongodb_uri, self.valkey.url, self.database, self.centre.twin.url
        command = sys.executable, "-m", "tests.e2e.call_worker", *urls, str(LEASE_S)
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        self.processes.append(process)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"

    async def wait_for_holder(self, but: int | None = None) -> int:
        """Waits until a process other than `but` holds the lock. Returns its process id."""
        return await wait_for_holder(self.centre.stores.mongo, self.centre.org, but)

    async def kill(self) -> int:
        """Kills the process that holds the lock, starts another one, and waits for the next holder."""
        pid = await self.wait_for_holder()
        os.kill(pid, signal.SIGKILL)
        await self.start()
        return await self.wait_for_holder(but=pid)


@asynccontextmanager
async def worker_fleet(
    folder: Path, mongodb_uri: str, database: str, allowed: int, **more: Any
) -> AsyncIterator[WorkerFleet]:
    """Starts two processes."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    try:
        async with (
            open_stores(mongodb_uri, valkey.url, database) as stores,
            call_centre(stores, allowed, **more) as centre,
        ):
            made = WorkerFleet(centre, valkey, mongodb_uri, database)
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
