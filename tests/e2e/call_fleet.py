"""Runs worker processes that only broker and poll calls. Their lock leases are short, so takeovers are quick."""

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
    """The worker processes, and the call centre and Redis that they use."""

    centre: CallCentre
    valkey: Valkey
    mongodb_uri: str
    database: str
    processes: list[Process] = field(default_factory=list)

    async def start(self) -> None:
        """Starts one more process, and returns when the process is ready."""
        urls = self.mongodb_uri, self.valkey.url, self.database, self.centre.twin.url
        command = sys.executable, "-m", "tests.e2e.call_worker", *urls, str(LEASE_S)
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        self.processes.append(process)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"

    async def wait_for_holder(self, except_pid: int | None = None) -> int:
        """Waits until a process other than `except_pid` holds the broker's lock. Returns the process id."""
        return await wait_for_holder(self.centre.stores.mongo, self.centre.org, except_pid)

    async def kill_holder(self) -> int:
        """Kills the lock's holder, starts another process, and returns the process id of the next holder."""
        pid = await self.wait_for_holder()
        os.kill(pid, signal.SIGKILL)
        await self.start()
        return await self.wait_for_holder(except_pid=pid)


@asynccontextmanager
async def worker_fleet(
    folder: Path, mongodb_uri: str, database: str, max_active_calls: int, **more: Any
) -> AsyncIterator[WorkerFleet]:
    """Starts a fleet of two worker processes."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    try:
        async with (
            open_stores(mongodb_uri, valkey.url, database) as stores,
            call_centre(stores, max_active_calls, **more) as centre,
        ):
            fleet = WorkerFleet(centre, valkey, mongodb_uri, database)
            try:
                await asyncio.gather(fleet.start(), fleet.start())
                yield fleet
            finally:
                for process in fleet.processes:
                    if process.returncode is None:
                        process.kill()
                await asyncio.gather(*(process.wait() for process in fleet.processes))
    finally:
        await valkey.stop(0)
