"""Embedded MongoDB and Valkey servers, for development and tests on a machine with no database installed.

Data stay in the data folder between runs. The servers end when the process that started them ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from server.embedded.binaries import find_mongod, find_valkey
from server.embedded.checks import check_mongodb, check_redis, check_servers, mongodb_failure
from server.embedded.data_dir import (
    MIN_FREE_BYTES,
    existing_secret,
    lock_data_dir,
    prepare_data_dir,
    require_free_space,
    stored_secret,
)
from server.embedded.mongod import Mongod
from server.embedded.private_server import PortInUseError, PrivateServer
from server.embedded.valkey import Valkey
from server.processes import StartupError

__all__ = [
    "EmbeddedServers",
    "Mongod",
    "PortInUseError",
    "PrivateServer",
    "StartupError",
    "Valkey",
    "check_mongodb",
    "check_redis",
    "check_servers",
    "embedded_servers",
    "existing_secret",
    "find_mongod",
    "find_valkey",
    "mongodb_failure",
    "prepare_data_dir",
    "stored_secret",
]


@dataclass(frozen=True)
class EmbeddedServers:
    """The embedded servers that run; None for a server that was not needed."""

    mongod: Mongod | None = None
    valkey: Valkey | None = None

    @property
    def mongodb_uri(self) -> str | None:
        return self.mongod.uri if self.mongod else None

    @property
    def redis_url(self) -> str | None:
        return self.valkey.url if self.valkey else None

    @property
    def all(self) -> tuple[PrivateServer, ...]:
        """The running servers in the order in which they stop."""
        return tuple(server for server in (self.valkey, self.mongod) if server)


@contextlib.asynccontextmanager
async def embedded_servers(
    data_dir: Path,
    *,
    need_mongodb: bool = True,
    need_redis: bool = True,
    mongod_program: str | None = None,
    redis_program: str | None = None,
    min_free_bytes: int = MIN_FREE_BYTES,
) -> AsyncIterator[EmbeddedServers]:
    """Runs the servers that are needed with their data in `data_dir`, which is locked meanwhile.

    Runs the programs of the installed wheels unless other programs are named. Raises: StartupError.
    """
    if not (need_mongodb or need_redis):
        yield EmbeddedServers()
        return
    folder = prepare_data_dir(data_dir)
    with lock_data_dir(folder):
        require_free_space(folder, min_free_bytes)
        servers = EmbeddedServers(
            Mongod(folder / "mongodb", find_mongod(mongod_program)) if need_mongodb else None,
            Valkey(folder / "redis", find_valkey(redis_program)) if need_redis else None,
        )
        try:
            await _start_together(servers)
            yield servers
        finally:
            for server in servers.all:
                await server.stop()


async def _start_together(servers: EmbeddedServers) -> None:
    """Starts all servers at once. If one start fails, cancels the others before it raises the error."""
    try:
        async with asyncio.TaskGroup() as group:
            for server in servers.all:
                group.create_task(server.start())
    except* StartupError as failures:
        raise failures.exceptions[0] from None
