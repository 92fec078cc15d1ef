"""MongoDB and Redis servers of our own, for a product that runs with nothing installed, and for tests.

Data stay in the data folder between runs. The servers end with the process that started them, however that ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from server.embedded.binaries import find_mongod, find_valkey
from server.embedded.checks import check_mongodb, check_redis, check_servers
from server.embedded.data_dir import MIN_FREE_BYTES, held, prepare, require_free_space, secret
from server.embedded.mongod import Mongod
from server.embedded.private_server import PortTaken, PrivateServer
from server.embedded.valkey import Valkey
from server.processes import StartupError

__all__ = [
    "Mongod",
    "PortTaken",
    "PrivateServer",
    "Servers",
    "StartupError",
    "Valkey",
    "check_mongodb",
    "check_redis",
    "check_servers",
    "embedded_servers",
    "find_mongod",
    "find_valkey",
    "prepare",
    "secret",
]


@dataclass(frozen=True)
class Servers:
    """The servers that were asked for, running."""

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
        """In the order in which they end: what may need the other one goes first."""
        return tuple(server for server in (self.valkey, self.mongod) if server)


@contextlib.asynccontextmanager
async def embedded_servers(
    data_dir: Path,
    *,
    need_mongodb: bool = True,
    need_redis: bool = True,
    wheels: bool = True,
    min_free_bytes: int = MIN_FREE_BYTES,
) -> AsyncIterator[Servers]:
    """Servers with their data in `data_dir`, held against others meanwhile. Raises: StartupError."""
    if not (need_mongodb or need_redis):
        yield Servers()
        return
    folder = prepare(data_dir)
    with held(folder):
        require_free_space(folder, min_free_bytes)
        servers = Servers(
            Mongod(folder / "mongodb", find_mongod(wheels=wheels)) if need_mongodb else None,
            Valkey(folder / "redis", find_valkey(wheels=wheels)) if need_redis else None,
        )
        try:
            await _start_together(servers)
            yield servers
        finally:
            for server in servers.all:
                await server.stop()


async def _start_together(servers: Servers) -> None:
    """Both at once; when one fails, the other's start is called off first."""
    try:
        async with asyncio.TaskGroup() as group:
            for server in servers.all:
                group.create_task(server.start())
    except* StartupError as failures:
        raise failures.exceptions[0] from None
