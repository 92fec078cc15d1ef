"""Finds past the driver's cursors: the same documents, and whatever goes wrong is found out by the driver's own."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pymongo.errors import AutoReconnect, NetworkTimeout, OperationFailure

from server.embedded import Mongod
from storage.ids import new_id
from storage.mongo import Document, Mongo, connect
from storage.mongo.reads import Reads
from storage.stores import Stores
from tests.replica_set import replica_set
from tests.storage.faults import failing, hanging

pytestmark = pytest.mark.anyio

WORD = "x" * 1_000_000


@pytest.fixture
async def mongo(own_stores: Stores) -> Mongo:
    return own_stores.mongo


@pytest.fixture
async def things(mongo: Mongo) -> str:
    """The name of a collection with ten documents, n from 0 to 9."""
    name = f"things_{new_id()}"
    await mongo[name].insert_many([{"_id": n, "n": n, "word": f"word {n}"} for n in range(10)])
    return name


async def test_what_is_wanted_comes_in_its_order_with_its_fields_and_no_more_of_it(mongo: Mongo, things: str) -> None:
    wanted: Document = {"n": {"$gte": 3}}
    assert await mongo.find(things, wanted, {"_id": 0, "n": 1}, [("n", -1)], 3) == [{"n": 9}, {"n": 8}, {"n": 7}]
    assert len(await mongo.find(things, wanted)) == 7
    assert await mongo.find(things, {"n": 10}) == []


async def test_the_index_that_is_named_is_used_also_after_a_fault(
    mongo: Mongo, own_mongod: Mongod, things: str
) -> None:
    await mongo[things].create_index("rare", sparse=True, name="rare")
    await mongo[things].update_one({"_id": 4}, {"$set": {"rare": 1}})
    # What a sparse index lacks, nobody finds by it.
    assert await mongo.find(things, {}, {"n": 1}, hint="rare") == [{"_id": 4, "n": 4}]
    async with failing(own_mongod.uri, "find", times=1, closeConnection=True):
        assert await mongo.find(things, {}, {"n": 1}, hint="rare") == [{"_id": 4, "n": 4}]


async def test_it_reads_what_cursors_read(mongo: Mongo, things: str) -> None:
    await mongo[things].update_many({}, [{"$set": {"at": "$$NOW"}}])
    assert await mongo.find(things, {}, sort=[("_id", 1)]) == await mongo[things].find().sort("_id", 1).to_list(None)


async def test_more_than_an_answer_holds_comes_whole(mongo: Mongo, things: str) -> None:
    for n in range(20):
        await mongo[things].insert_one({"_id": 100 + n, "n": 100 + n, "word": WORD})
    found = await mongo.find(things, {"n": {"$gte": 100}}, sort=[("n", 1)], limit=999)
    assert [each["n"] for each in found] == list(range(100, 120))


async def test_a_document_that_was_acknowledged_is_found_at_once(mongo: Mongo, things: str) -> None:
    for n in range(100, 200):
        await mongo[things].insert_one({"_id": n})
        assert await mongo.find(things, {"_id": n})


@pytest.mark.parametrize("how", [{"closeConnection": True}, {"errorCode": 10107}, {"errorCode": 91}])
async def test_one_fault_is_read_over(mongo: Mongo, own_mongod: Mongod, things: str, how: Document) -> None:
    async with failing(own_mongod.uri, "find", times=1, **how):
        assert len(await mongo.find(things, {})) == 10


async def test_a_fault_that_stays_is_told_as_the_driver_tells_it(mongo: Mongo, own_mongod: Mongod, things: str) -> None:
    async with failing(own_mongod.uri, "find", closeConnection=True):
        with pytest.raises(AutoReconnect):
            await mongo.find(things, {})
    with pytest.raises(OperationFailure, match="nobody"):
        await mongo.find(things, {"$nobody": 1})
    assert len(await mongo.find(things, {})) == 10


async def test_who_stops_waiting_leaves_no_answer_to_the_next_one(mongo: Mongo, things: str) -> None:
    for _ in range(20):
        reads = [asyncio.create_task(mongo.find(things, {"_id": n})) for n in range(10)]
        for _ in range(4):
            await asyncio.sleep(0)
        for each in reads[::2]:
            each.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        for n, each in list(enumerate(reads))[1::2]:
            assert [document["_id"] for document in each.result()] == [n]
        assert [document["_id"] for document in await mongo.find(things, {"_id": 5})] == [5]


async def test_a_server_that_hangs_is_not_waited_for_without_end(mongo: Mongo, own_mongod: Mongod, things: str) -> None:
    hasty = Reads(replace(mongo.commands, timeout_s=0.5))
    assert len(await mongo.find(things, {})) == 10
    with hanging(own_mongod.pid), pytest.raises(NetworkTimeout):
        await hasty.find(things, {})
    assert len(await mongo.find(things, {})) == 10


async def test_whoever_becomes_the_primary_is_read_from(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as members:
        mongo = connect(members.uri, "reads", "pymongo")
        for n in range(3):
            await mongo["things"].insert_one({"_id": n})
            assert [document["_id"] for document in await mongo.find("things", {})] == list(range(n + 1))
            assert [each.description.address for each in mongo.commands.primaries.values()] == [
                await mongo.client.primary
            ]
            await members.step_down()
        await mongo.close()
