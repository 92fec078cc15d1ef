"""After an election, reads see all acknowledged writes or wait. Runs on a replica set of three."""

import asyncio
import itertools
from pathlib import Path

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from server.embedded import Mongod
from storage.mongo import Document, Driver, Mongo, connect
from tests.replica_set import TEST_COMMANDS, replica_set
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


async def majority_count(member: Mongod) -> int:
    """Returns how many documents a majority read on this member finds; -1 unless it is the primary."""
    client: AsyncMongoClient[Document] = AsyncMongoClient(member.uri)
    async with client:
        hello = await client.admin.command("hello")
        things = client["elections"].get_collection("things", read_concern=ReadConcern("majority"))
        return len(await things.find().to_list(None)) if hello["isWritablePrimary"] else -1


async def count(mongo: Mongo) -> int:
    """Returns how many documents the product finds. Tries again while no primary can be read."""
    while True:
        try:
            return len(await mongo.find("things", {}))
        except PyMongoError:
            await asyncio.sleep(0.1)


async def test_read_after_election_sees_every_acknowledged_write(tmp_path: Path, mongo_driver: Driver) -> None:
    async with replica_set(tmp_path, TEST_COMMANDS) as running_set:
        mongo = connect(running_set.uri, "elections", mongo_driver)
        numbers = itertools.count(1)
        acknowledged = 0

        async def insert() -> None:
            nonlocal acknowledged
            await mongo["things"].insert_one({"_id": next(numbers)})
            acknowledged += 1

        await insert()
        async with running_set.killed_primary(insert) as new_primary:

            async def is_primary() -> bool:
                return await majority_count(new_primary) >= 0

            await until(is_primary)
            # The new primary holds the write, but does not know that it was acknowledged.
            assert await majority_count(new_primary) == acknowledged - 1
            reading = asyncio.create_task(count(mongo))
            await asyncio.wait([reading], timeout=2)
        assert await reading == acknowledged
        await mongo.close()
