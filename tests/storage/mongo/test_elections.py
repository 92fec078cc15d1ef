"""Reads and transactions continue after elections, and reads see all acknowledged writes or wait.

Runs on a replica set of three.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from pymongo import AsyncMongoClient, InsertOne
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from server.embedded import Mongod
from storage.mongo import Document, Driver, Mongo, Session, connect
from tests.replica_set import TEST_COMMANDS, ReplicaSet, replica_set
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


@pytest.fixture(scope="module")
async def three_mongods(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ReplicaSet]:
    """A replica set of three, whose primaries the tests replace."""
    async with replica_set(tmp_path_factory.mktemp("members"), TEST_COMMANDS) as running_set:
        yield running_set


@pytest.fixture
async def mongo(three_mongods: ReplicaSet, mongo_driver: Driver) -> AsyncIterator[Mongo]:
    """A client with an empty collection `things`."""
    mongo = connect(three_mongods.uri, "elections", mongo_driver)
    await mongo["things"].delete_many({})
    yield mongo
    await mongo.close()


async def test_find_continues_on_each_new_primary(three_mongods: ReplicaSet, mongo: Mongo) -> None:
    for n in range(3):
        await mongo["things"].insert_one({"_id": n})
        assert [document["_id"] for document in await mongo.find("things", {})] == list(range(n + 1))
        await three_mongods.step_down()


async def test_transactions_continue_on_each_new_primary(three_mongods: ReplicaSet, mongo: Mongo) -> None:
    await mongo["things"].insert_one({"_id": "counter", "n": 0})
    for target in (20, 40, 60):
        counting = asyncio.create_task(count_up(mongo, target))
        await asyncio.sleep(0.05)
        await three_mongods.step_down()
        await counting
        inserted = await mongo.find("things", {"_id": {"$ne": "counter"}}, sort=[("_id", 1)])
        assert [each["_id"] for each in inserted] == list(range(1, target + 1))


async def count_up(mongo: Mongo, target: int) -> None:
    """Commits one transaction after another until the counter reaches `target`. Each inserts its number."""

    async def add_numbered(session: Session) -> None:
        counter = await mongo.find_one_and_update("things", {"_id": "counter"}, {"$inc": {"n": 1}}, session)
        assert counter is not None
        await mongo.write("things", [InsertOne({"_id": counter["n"]})], session)

    while (await mongo.find("things", {"_id": "counter"}))[0]["n"] < target:
        await mongo.transact(add_numbered, deadline_s=30)


async def test_read_after_election_sees_every_acknowledged_write(three_mongods: ReplicaSet, mongo: Mongo) -> None:
    numbers = itertools.count(1)
    acknowledged = 0

    async def insert() -> None:
        nonlocal acknowledged
        await mongo["things"].insert_one({"_id": next(numbers)})
        acknowledged += 1

    await insert()
    async with three_mongods.killed_primary(insert) as new_primary:

        async def is_primary() -> bool:
            return await majority_count(new_primary) >= 0

        await until(is_primary)
        # The new primary holds the write, but does not know that it was acknowledged.
        assert await majority_count(new_primary) == acknowledged - 1
        reading = asyncio.create_task(count(mongo))
        await asyncio.wait([reading], timeout=2)
    assert await reading == acknowledged
