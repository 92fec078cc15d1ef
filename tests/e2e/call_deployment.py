"""Runs calls with real processes: a web process, workers that may be killed, a Redis, and the telephony twin."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from server.embedded import Valkey, find_valkey
from storage.mongo import Mongo, connect
from tests.client import Client, client
from tests.jobs.providers.telephony.twin import SECRET, TelephonyTwin, telephony_twin
from tests.serving import ServerProcess, WebProcess, web_process, worker_process

LAUNCH = "mutation ($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id state } }"
SET_LIMITS = "mutation ($input: CallLimitsInput!) { setCallLimits(input: $input) { concurrentCalls } }"
JOB = """query ($id: ID!) { callJob(id: $id) {
  state progress { total queued active completed failed unknown } estimatedEndAt
  tasks(limit: 999) { id phoneNumber state outcome attempts callId }
} }"""
ORG = "acme"


@dataclass
class CallDeployment:
    """The running processes, and an API client of one organization."""

    twin: TelephonyTwin
    web: WebProcess
    valkey: Valkey
    api: Client
    folder: Path
    mongodb_uri: str
    mongo: Mongo
    stack: ExitStack
    org: str = ORG
    workers: list[ServerProcess] = field(default_factory=list)

    def for_organization(self, org: str) -> "CallDeployment":
        """Returns the same processes with an API client of another organization."""
        return replace(self, org=org, api=Client(self.web.url, self.web.token("ann", org, ("ADMIN",)), self.api.http))

    def _start_worker_blocking(self) -> ServerProcess:
        """Starts one more worker process, and blocks until the worker is ready."""
        folder = self.folder / f"worker-{len(self.workers)}"
        variables = {
            "NOROSHI_TELEPHONY": "webhook",
            "NOROSHI_TELEPHONY_URL": self.twin.url,
            "NOROSHI_TELEPHONY_SECRET": SECRET,
            "NOROSHI_PUBLIC_URL": self.web.url,
        }
        process = worker_process(folder, self.mongodb_uri, self.valkey.url, self.web.database, **variables)
        worker = self.stack.enter_context(process)
        self.workers.append(worker)
        return worker

    async def start_worker(self) -> ServerProcess:
        """Starts one more worker process without blocking the twin, which runs in this process."""
        return await asyncio.to_thread(self._start_worker_blocking)

    async def set_limits(self, concurrent: int, per_second: float) -> None:
        """Sets the call limits. The twin allows the old number of calls until the surplus calls have ended."""
        self.twin.max_allowed = max(self.twin.max_allowed, concurrent)
        await self.api.run(SET_LIMITS, input={"concurrentCalls": concurrent, "callsPerSecond": per_second})
        while await self.slot_count() > concurrent:
            await asyncio.sleep(0.02)
        self.twin.max_allowed = concurrent

    async def slot_count(self) -> int:
        """Returns the number of calls with a slot: active calls, and calls whose request is on its way to the twin."""
        limits = await self.mongo["call_limits"].find_one({"_id": self.org})
        return 0 if limits is None else len(limits["slots"])

    async def launch(self, numbers: int, first: int = 0, **more: Any) -> str:
        """Launches a job with `numbers` consecutive phone numbers, beginning with number `first`. Returns its id."""
        csv = "phone_number\n" + "".join(f"+8190{10_000_000 + first + n}\n" for n in range(numbers))
        launched = await self.api.run(LAUNCH, input={"name": "List", "scenario": "Hello", "csv": csv, **more})
        assert launched["launchCallJob"]["state"] == "RUNNING"
        return str(launched["launchCallJob"]["id"])

    async def job(self, id_: str) -> dict[str, Any]:
        """Reads a job and its tasks through the API."""
        job: dict[str, Any] = (await self.api.run(JOB, id=id_))["callJob"]
        return job

    async def wait_for_holder(self, except_pid: int | None = None, deadline_s: float = 30) -> int:
        """Waits until a process other than `except_pid` holds the broker's lock. Returns the holder's process id."""
        return await wait_for_holder(self.mongo, self.org, except_pid, deadline_s)


@asynccontextmanager
async def call_deployment(
    folder: Path, mongodb_uri: str, database: str, allowed: int, **more: Any
) -> AsyncIterator[CallDeployment]:
    """Starts all processes except workers."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    with ExitStack() as stack:
        async with telephony_twin(allowed, **more) as telephony:
            variables: dict[str, Any] = {"database": database, "NOROSHI_TELEPHONY_SECRET": SECRET}
            web = await asyncio.to_thread(
                stack.enter_context, web_process(folder / "web", mongodb_uri, valkey.url, **variables)
            )
            mongo = connect(mongodb_uri, web.database)
            async with client(web.url, web.token("ann", ORG, ("ADMIN",))) as api:
                yield CallDeployment(telephony, web, valkey, api, folder, mongodb_uri, mongo, stack)
                await asyncio.to_thread(stack.pop_all().close)
            await mongo.close()
    await valkey.stop(0)


async def wait_for_holder(mongo: Mongo, org: str, except_pid: int | None = None, deadline_s: float = 30) -> int:
    """Waits until a process other than `except_pid` holds the organization's broker lock. Returns the process id."""
    ends_at = time.monotonic() + deadline_s
    while (pid := await _holder(mongo, org)) in (None, except_pid):
        assert time.monotonic() < ends_at, "No process took over the lock."
        await asyncio.sleep(0.02)
    assert pid is not None
    return pid


async def _holder(mongo: Mongo, org: str) -> int | None:
    """Returns the process id of the holder of an unexpired lock, or None."""
    query = {"_id": f"call_broker:{org}", "unlock_key": {"$ne": None}, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
    lock = await mongo["process_locks"].find_one(query)
    return None if lock is None else int(lock["holder"].rpartition("/")[2])
