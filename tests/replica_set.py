"""Three mongods in one replica set, for what happens when the primary changes. Small: some 130 MB each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from server.embedded import Mongod, find_mongod

MEMBERS = 3


class ReplicaSet:
    """The members, running and joined."""

    def __init__(self, members: list[Mongod]) -> None:
        self.members = members

    @property
    def uri(self) -> str:
        return f"mongodb://{','.join(member.address for member in self.members)}/?replicaSet=rs0"

    async def primary(self) -> Mongod:
        """The member that takes writes now; waits for one."""
        async with self._client() as client:
            await client.admin.command("ping")
            address = await client.primary
        return next(member for member in self.members if member.address == "{}:{}".format(*address or ()))

    async def step_down(self) -> None:
        """The primary becomes an ordinary member, and another one is elected."""
        async with self._client() as client:
            await client.admin.command("replSetStepDown", 10, force=True)

    async def initiate(self) -> None:
        addresses = [{"_id": number, "host": member.address} for number, member in enumerate(self.members)]
        # A short election timeout, so that tests don't wait long for the next primary.
        config = {"_id": "rs0", "members": addresses, "settings": {"electionTimeoutMillis": 1000}}
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.members[0].uri)
        async with client:
            await client.admin.command("replSetInitiate", config)
        await self.primary()

    def _client(self) -> AsyncMongoClient[dict[str, Any]]:
        return AsyncMongoClient(self.uri, serverSelectionTimeoutMS=20_000)


@asynccontextmanager
async def replica_set(folder: Path) -> AsyncIterator[ReplicaSet]:
    """A replica set with its data in `folder`, ended afterwards."""
    members = [Mongod(folder / f"member-{number}", find_mongod(), alone=False) for number in range(MEMBERS)]
    try:
        await asyncio.gather(*(member.start() for member in members))
        members_set = ReplicaSet(members)
        await members_set.initiate()
        yield members_set
    finally:
        for member in members:
            member.kill()
        await asyncio.gather(*(member.stop() for member in members))
