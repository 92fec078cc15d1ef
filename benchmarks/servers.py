"""Servers that benchmarks measure: `noroshi up`, or single web processes on database servers of their own."""

import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from server.auth.tokens import mint
from server.embedded import embedded_servers
from server.web import listen
from tests.product import NOROSHI, RunningProduct, eventually, running_product
from tests.serving import is_ready, server_variables, serving_process

ORGANIZATION = DATABASE = "benchmark"
FOLDER_PREFIX = "noroshi-benchmark-"
SERVER_CORE, OTHER_PROCESSES_CORE = 0, 1

NO_COST_LIMITS = {f"NOROSHI_{name}_COST_PER_MINUTE": "1000000000000" for name in ("VIEWER", "ORGANIZATION")}
"""Settings of web processes in which one viewer sends more than people do. Refusals would count as fast answers."""


@dataclass(frozen=True)
class WebProcesses:
    """Web processes that share a port."""

    port: int
    pids: list[int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the only web process."""
        (pid,) = self.pids
        return pid


@dataclass(frozen=True)
class DatabaseServers:
    """Running MongoDB and Redis servers, with the settings and tokens for a web process on them."""

    mongodb_uri: str
    redis_url: str
    mongod_pid: int
    database: str
    secret: str

    def token(self, user: str, *roles: str) -> str:
        """Returns a token with the roles, or a member's token."""
        return mint(self.secret, user_id=user, organization_id=ORGANIZATION, roles=roles)


@dataclass(frozen=True)
class RunningDeployment:
    """The web processes and the database servers of a running product."""

    servers: DatabaseServers
    web_processes: WebProcesses


@contextmanager
def deployment(
    web: int, driver: str = "pymongo", *, is_pinned: bool = False, **settings: str
) -> Iterator[RunningDeployment]:
    """Runs `noroshi up` with embedded servers and `web` web processes. Deletes its data afterwards.

    `is_pinned` gives core 0 to the web processes, and core 1 to all others and to this process.
    """
    variables = {"NOROSHI_LOG_LEVEL": "warning", "NOROSHI_MONGO_DRIVER": driver, **settings}
    with (
        tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder,
        running_product(Path(folder) / "data", "--web", str(web), **variables) as product,
    ):
        running = RunningDeployment(_servers_of(product), _web_processes_of(product))
        if is_pinned:
            _pin_processes(product, running.web_processes.pids)
        yield running


def _servers_of(product: RunningProduct) -> DatabaseServers:
    secret = json.loads((product.data_dir / "secrets.json").read_text())["auth_secret"]
    mongodb_uri = f"mongodb://127.0.0.1:{product.database_port('mongod')}/?directConnection=true"
    redis_url = f"redis://127.0.0.1:{product.database_port('valkey-server')}/0"
    return DatabaseServers(mongodb_uri, redis_url, product.child("mongod"), "noroshi", secret)


def _web_processes_of(product: RunningProduct) -> WebProcesses:
    pids = [pid for pid, command in product.children().items() if "noroshi web" in command]
    return WebProcesses(int(product.url.rpartition(":")[2]), pids)


def _pin_processes(product: RunningProduct, web: Sequence[int]) -> None:
    for pid in (*product.children(), os.getpid()):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                pin_to_core(SERVER_CORE if pid in web else OTHER_PROCESSES_CORE, int(thread.name))


@asynccontextmanager
async def database_servers() -> AsyncIterator[DatabaseServers]:
    """Runs embedded MongoDB and Redis servers in a temporary folder, on the core that web processes do not use."""
    pin_to_core(OTHER_PROCESSES_CORE)
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        async with embedded_servers(Path(folder) / "data") as servers:
            assert servers.mongod
            assert servers.mongod.pid
            assert servers.redis_url
            addresses = servers.mongod.uri, servers.redis_url
            yield DatabaseServers(*addresses, servers.mongod.pid, DATABASE, secrets.token_hex(32))


@contextmanager
def web_process(servers: DatabaseServers, program: Sequence[str] = NOROSHI) -> Iterator[WebProcesses]:
    """Runs a web process alone on its core. The program takes the arguments `web --fd=N`, as `noroshi` does."""
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder, listen("127.0.0.1", 0) as listener:
        variables = server_variables(servers.mongodb_uri, servers.redis_url, servers.database) | {
            "NOROSHI_AUTH_SECRET": servers.secret,
            "NOROSHI_FILES": f"{folder}/files",
            "NOROSHI_LOG_LEVEL": "warning",
            **NO_COST_LIMITS,
        }
        with serving_process(Path(folder), "web", variables, listener, program) as web:
            pin_to_core(SERVER_CORE, web.process.pid)
            processes = WebProcesses(listener.getsockname()[1], [web.process.pid])
            assert eventually(lambda: is_ready(processes.url) or web.process.poll() is not None), web.log_text
            assert web.process.poll() is None, web.log_text
            yield processes


def pin_to_core(core: int, pid: int = 0) -> None:
    """Pins a process to one core, with the threads and child processes that it starts later."""
    if os.cpu_count() != 1:
        os.sched_setaffinity(pid, {core})
