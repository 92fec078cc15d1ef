"""A Redis group of one master, one replica and three Sentinels, with a password."""

import asyncio
from pathlib import Path

from redis.asyncio import Redis

from server.embedded import Valkey, find_valkey
from tests.waiting import poll_until_true

PASSWORD = "p@ss:word/1"
QUOTED_PASSWORD = "p%40ss%3Aword%2F1"


class ProtectedValkey(Valkey):
    """A Valkey with a password."""

    @property
    def url(self) -> str:
        return f"redis://:{QUOTED_PASSWORD}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        return [*super().command(), "--requirepass", PASSWORD, "--masterauth", PASSWORD]

    async def wait_until_ready(self) -> None:
        """Waits until the server accepts the password."""
        async with Redis.from_url(self.url) as client:
            while not await client.ping():
                await asyncio.sleep(0.05)


class ValkeySentinel(Valkey):
    """A Sentinel of the master `main`. Sentinels replace a master that two of them have not reached for a second."""

    def __init__(self, folder: Path, binary: Path, master: Valkey) -> None:
        super().__init__(folder, binary)
        self._master = master

    def command(self) -> list[str]:
        # The Sentinel also stores its state in this file.
        file = self.data / "sentinel.conf"
        file.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.data}\n"
            f'sentinel monitor main 127.0.0.1 {self._master.port} 2\nsentinel auth-pass main "{PASSWORD}"\n'
            "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n"
        )
        return [str(self.binary), str(file), "--sentinel"]


class SentinelGroup:
    """The servers of the group. The first one is the master at the start."""

    def __init__(self, folder: Path) -> None:
        program = find_valkey()
        self.servers = [ProtectedValkey(folder / f"server{n}", program) for n in range(2)]
        self.sentinels = [ValkeySentinel(folder / f"sentinel{n}", program, self.servers[0]) for n in range(3)]

    @property
    def url(self) -> str:
        """The address for REDIS_URL."""
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://:{QUOTED_PASSWORD}@{hosts}/main/0"

    async def start(self) -> None:
        """Starts the servers, and waits until each Sentinel knows the replica and the other Sentinels."""
        for server in self.servers:
            await server.start()
        master, replica = self.servers
        async with Redis.from_url(replica.url) as client:
            await client.replicaof("127.0.0.1", str(master.port))
        for sentinel in self.sentinels:
            await sentinel.start()
        assert await poll_until_true(self._is_complete, 60)

    async def _is_complete(self) -> bool:
        masters = [await self._master_state(sentinel) for sentinel in self.sentinels]
        return all((each["num-slaves"], each["num-other-sentinels"]) == (1, 2) for each in masters)

    async def _master_state(self, sentinel: Valkey) -> dict[str, int]:
        async with Redis.from_url(sentinel.url) as client:
            state: dict[str, int] = (await client.sentinel_masters())["main"]
            return state

    async def stop(self) -> None:
        """Kills the servers."""
        for each in [*self.sentinels, *self.servers]:
            await each.stop(0)
