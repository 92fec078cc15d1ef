"""Servers of benchmarks: MongoDB, Redis, and one web process at a time, alone on its core."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from server.auth.tokens import mint
from server.embedded import embedded_servers
from server.web import listen
from storage.mongo import Driver
from tests.product import NOROSHI, environment, eventually

ORGANIZATION, DATABASE = "benchmark", "fanout"
SERVER_CORE, OTHER_PROCESSES_CORE = 0, 1
STOP_DEADLINE_S = 5.0
PRODUCT = "noroshi"


@dataclass(frozen=True)
class DatabaseServers:
    """Running MongoDB and Redis servers, with the settings and tokens for a web process on them."""

    mongodb_uri: str
    redis_url: str
    mongod_pid: int
    driver: Driver
    secret: str

    def token(self, user_id: str) -> str:
        """Returns a member's token."""
        return mint(self.secret, user_id=user_id, organization_id=ORGANIZATION)

    def environment(self) -> dict[str, str]:
        """Returns the environment variables of a web process."""
        return environment(
            MONGODB_URI=self.mongodb_uri,
            REDIS_URL=self.redis_url,
            NOROSHI_DATABASE=DATABASE,
            NOROSHI_AUTH_SECRET=self.secret,
            NOROSHI_MONGO_DRIVER=self.driver,
            NOROSHI_LOG_LEVEL="warning",
        )


@dataclass(frozen=True)
class FanOutWebProcess:
    """A running web process."""

    pid: int
    port: int

    def rss_kib(self) -> int:
        """Returns the resident memory in KiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0


def pin_to_core(core: int, pid: int = 0) -> None:
    """Pins a process to one core, with the threads and child processes that it starts later."""
    if os.cpu_count() != 1:
        os.sched_setaffinity(pid, {core})


@asynccontextmanager
async def database_servers(driver: Driver) -> AsyncIterator[DatabaseServers]:
    """Runs embedded MongoDB and Redis servers in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="noroshi-fanout-") as folder:
        async with embedded_servers(Path(folder) / "data") as servers:
            assert servers.mongod
            assert servers.mongod.pid
            assert servers.mongodb_uri
            assert servers.redis_url
            yield DatabaseServers(
                servers.mongodb_uri, servers.redis_url, servers.mongod.pid, driver, secrets.token_hex(32)
            )


@asynccontextmanager
async def web_process(variant: str, servers: DatabaseServers) -> AsyncIterator[FanOutWebProcess]:
    """Runs a web process of a variant alone on its core."""
    log_file = tempfile.NamedTemporaryFile(prefix="noroshi-fanout-", suffix=".log")  # noqa: SIM115
    with listen("127.0.0.1", 0) as listener, log_file as log:
        process = _start(variant, listener.fileno(), servers, log.fileno())
        port = listener.getsockname()[1]
        try:
            await asyncio.to_thread(eventually, lambda: _is_ready(port) or process.poll() is not None)
            assert process.poll() is None, Path(log.name).read_text()
            yield FanOutWebProcess(process.pid, port)
        finally:
            await end_process(process)


async def end_process(process: subprocess.Popen[bytes]) -> None:
    """Sends SIGTERM, and kills the process after a deadline."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        await asyncio.to_thread(process.wait, STOP_DEADLINE_S)
    process.kill()
    process.wait()


def _start(variant: str, fd: int, servers: DatabaseServers, log_fd: int) -> subprocess.Popen[bytes]:
    module = [sys.executable, "-m", "benchmarks.fanout_apps", variant, str(fd)]
    command = [*NOROSHI, "web", f"--fd={fd}"] if variant == PRODUCT else module
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log_fd,
        stderr=log_fd,
        pass_fds=[fd],
        env=servers.environment(),
        cwd=Path(__file__).parents[1],
    )
    pin_to_core(SERVER_CORE, process.pid)
    return process


def _is_ready(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False
