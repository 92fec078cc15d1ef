"""A worker process that kills itself with SIGKILL at a chosen step. tests/jobs/publishing/test_crashes.py starts it.

For each number n on stdin, a forked child publishes due publications and dies at step n. A step is the start or the
end of a suspension of any task. The parent prints "killed", or "done" and the number of steps.
"""

import asyncio
import os
import signal
import sys
import types
from collections.abc import Coroutine, Generator
from ipaddress import ip_network
from typing import Any

import httpcore2

from jobs.providers.egress import Egress
from jobs.publishing.publisher import PostPublisher
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.jobs.publishing.runs import quick_networks

TRUST = httpcore2.default_ssl_context()
"""The system's certificates. Reading them takes longer than a child's work, so the parent reads them once."""


class StepCounter:
    """A counter of steps that kills the process at step `kill_at`. With 0, it kills nothing."""

    def __init__(self, kill_at: int) -> None:
        self.count, self._kill_at = 0, kill_at

    def step(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    @types.coroutine
    def run_counted(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Runs the coroutine with a step before and after each suspension."""
        value, error = None, None
        while True:
            try:
                awaited = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                return stop.value
            self.step()
            value, error = None, None
            try:
                value = yield awaited
            except BaseException as thrown:
                error = thrown
            self.step()


async def work(uri: str, redis_url: str, database: str, files_address: str, kill_at: int) -> int:
    """Publishes due publications as a worker's sweep does, and returns the number of steps."""
    steps = StepCounter(kill_at)
    async with open_stores(
        uri, redis_url, database, credential_keys=CREDENTIAL_KEYS, files_address=files_address, is_prepared=True
    ) as stores:
        egress = Egress((ip_network("127.0.0.0/8"),), ssl_context=TRUST)
        publisher = PostPublisher(stores, quick_networks(stores, egress))

        async def run_counted(coroutine: Coroutine[Any, Any, Any]) -> Any:
            return await steps.run_counted(coroutine)

        def create_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
            return asyncio.Task(run_counted(coroutine), loop=loop, **more)

        asyncio.get_running_loop().set_task_factory(create_task)  # type: ignore[arg-type]
        await asyncio.create_task(publisher.sweep())
        await publisher.wait_until_idle()
        count = steps.count
        await publisher.close()
        await egress.aclose()
    return count


def run(arguments: list[str], kill_at: int) -> str:
    """Runs one child. Returns the answer that is printed: "killed", or "done" and the number of steps."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        uri, redis_url, database, files_address = arguments
        count = asyncio.run(work(uri, redis_url, database, files_address, kill_at))
        os.write(write_end, str(count).encode())
        os._exit(0)
    os.close(write_end)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(read_end) as answer:
        return "killed" if os.WIFSIGNALED(status) else f"done {answer.read()}"


if __name__ == "__main__":
    for line in sys.stdin:
        print(run(sys.argv[1:], int(line)), flush=True)
