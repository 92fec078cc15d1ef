"""Runs a replica set of three mongods for tests of elections. Each mongod needs about 130 MB."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from server.embedded import Mongod, find_mongod

MEMBER_COUNT = 3
TEST_COMMANDS = ("--setParameter", "enableTestCommands=1")


class ReplicaSet:
    """A running replica set."""

    def __init__(self, members: list[Mongod]) -> None:
        self.members = members

    @property
    def uri(self) -> str:
        return f"mongodb://{','.join(member.address for member in self.members)}/?replicaSet=rs0"

    async def primary(self) -> Mongod:
        """Waits for a primary, and returns it."""
        async with self._client() as client:
            await client.admin.command("ping")
            address = await client.primary
        return next(member for member in self.members if member.address == "{}:{}".format(*address or ()))

    async def step_down(self) -> None:
        """Makes the primary step down, so that another member is elected."""
        async with self._client() as client:
            await client.admin.command("replSetStepDown", 3, force=True)

    async def lose_writes(self, during_s: float) -> None:
        """Stops replication for `during_s` seconds, then elects a member without the primary's writes of that time.

        The writes, which were never acknowledged at majority, are rolled back.
        """
        primary = await self.primary()
        secondaries = [member for member in self.members if member is not primary]
        await asyncio.gather(*(_run_command(each, **_replication_command(is_off=True)) for each in secondaries))
        try:
            await asyncio.sleep(during_s)
            await _elect_one_of(secondaries)
        finally:
            await asyncio.gather(*(_run_command(each, **_replication_command(is_off=False)) for each in secondaries))

    @asynccontextmanager
    async def killed_primary(self, write: Callable[[], Awaitable[object]]) -> AsyncIterator[Mongod]:
        """Kills the primary when it has acknowledged `write`. Yields the secondary that holds the write.

        The secondary does not know that the write is committed. It can be elected, but none of its own writes reaches a
        majority until the block ends. Then the killed member is started again. `write` may be called several times.
        """
        primary, holder, other = await self._replicating_members()
        await _run_command(other, **_replication_command(is_off=True))
        try:
            await _write_once_replicated(holder, write)
            primary.kill()
            await _run_command(holder, **_replication_command(is_off=False))
            yield holder
        finally:
            await _run_command(other, **_replication_command(is_off=False))
            await primary.stop()
            await primary.start()

    async def initiate(self) -> None:
        """Configures the replica set, and waits for a primary."""
        addresses = [{"_id": number, "host": member.address} for number, member in enumerate(self.members)]
        # Short timeouts make elections quick. A new primary does not fetch missing writes first.
        replica_set_settings = {
            "electionTimeoutMillis": 1000,
            "heartbeatIntervalMillis": 250,
            "catchUpTimeoutMillis": 0,
        }
        config = {"_id": "rs0", "members": addresses, "settings": replica_set_settings}
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.members[0].uri)
        async with client:
            await client.admin.command("replSetInitiate", config)
        await self.primary()

    async def _replicating_members(self) -> tuple[Mongod, Mongod, Mongod]:
        """Returns the primary, a secondary that replicates from it, and the other secondary."""
        while True:
            primary = await self.primary()
            holder, other = (member for member in self.members if member is not primary)
            # On a busy machine, another member may be elected meanwhile.
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await _wait_for_sync_source(holder, primary)
                    return primary, holder, other

    def _client(self) -> AsyncMongoClient[dict[str, Any]]:
        return AsyncMongoClient(self.uri, serverSelectionTimeoutMS=20_000)


def _replication_command(is_off: bool) -> dict[str, Any]:
    return {"configureFailPoint": "stopReplProducer", "mode": "alwaysOn" if is_off else "off"}


async def _wait_for_sync_source(member: Mongod, source: Mongod) -> None:
    """Makes a member replicate from `source`, not from another secondary."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(member.uri)
    async with client:
        while (await client.admin.command("replSetGetStatus"))["syncSourceHost"] != source.address:
            with suppress(PyMongoError):
                await client.admin.command("replSetSyncFrom", source.address)
            await asyncio.sleep(0.05)


async def _write_once_replicated(member: Mongod, write: Callable[[], Awaitable[object]]) -> None:
    """Calls `write` until MongoDB acknowledges a write that is the last entry that the member fetched."""
    while True:
        # The member fetches once more. If it fetches an earlier entry, the write is not acknowledged.
        await _run_command(member, configureFailPoint="stopReplProducer", mode={"skip": 1})
        writing = asyncio.ensure_future(write())
        if (await asyncio.wait([writing], timeout=1))[0]:
            await writing
            return
        await _run_command(member, **_replication_command(is_off=False))
        await writing


async def _run_command(member: Mongod, **command: Any) -> None:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(member.uri)
    async with client:
        await client.admin.command(command)


async def _elect_one_of(members: list[Mongod]) -> None:
    """Makes one of the members the primary. A member that lags behind gets no votes, so every member is tried."""
    for _ in range(100):
        for member in members:
            try:
                return await _run_command(member, replSetStepUp=1)
            except PyMongoError:
                await asyncio.sleep(0.1)
    raise TimeoutError("No member was elected.")


@asynccontextmanager
async def replica_set(folder: Path, options: tuple[str, ...] = ()) -> AsyncIterator[ReplicaSet]:
    """Starts a replica set with its data in `folder`, and stops it afterwards."""
    members = [
        Mongod(folder / f"member-{number}", find_mongod(), initiate=False, options=options)
        for number in range(MEMBER_COUNT)
    ]
    try:
        await asyncio.gather(*(member.start() for member in members))
        running_set = ReplicaSet(members)
        await running_set.initiate()
        yield running_set
    finally:
        for member in members:
            member.kill()
        await asyncio.gather(*(member.stop() for member in members))
