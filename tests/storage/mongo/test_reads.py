"""With either driver, `Mongo.find` returns the same documents as the driver's cursor, also after faults.

Some tests concern the private names of PyMongo that storage/mongo/reads.py uses. They run on PyMongo Async only.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pymongo import AsyncMongoClient, _csot, helpers_shared, message
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from pymongo.network_layer import AsyncNetworkingInterface, PyMongoProtocol

from server.embedded import Mongod
from storage.ids import new_id
from storage.mongo import Document, Driver, Mongo, connect
from storage.mongo.client import MAX_PIPELINES
from storage.mongo.reads import SingleRoundTripReads
from storage.stores import Stores
from tests.storage.faults import failpoint, sigstopped
from tests.storage.mongo.command_recorder import CommandNameRecorder
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

LARGE_TEXT = "x" * 1_000_000

PRIVATE_NAMES: list[tuple[Callable[..., Any], list[str]]] = [
    (AsyncMongoClient._get_topology, ["self"]),
    (AsyncMongoClient._select_server, ["self", "server_selector", "session", "operation"]),
    (AsyncMongoClient._checkout, ["self", "server", "session"]),
    (AsyncConnection._raise_connection_failure, ["self", "error"]),
    (PyMongoProtocol.write, ["self", "message"]),
    (PyMongoProtocol.read, ["self", "request_id", "max_message_size"]),
    (PyMongoProtocol.close, ["self", "exc"]),
    (message._op_msg, ["flags", "command", "dbname", "read_preference", "opts"]),
    (message._OpMsg.unpack, ["msg"]),
    (message._OpMsg.command_response, ["self", "codec_options"]),
    (helpers_shared._check_command_response, ["response", "max_wire_version"]),
    (_csot.clamp_remaining, ["max_timeout"]),
]


@pytest.fixture
def mongo(own_stores: Stores) -> Mongo:
    return own_stores.mongo


@pytest.fixture
async def things(mongo: Mongo) -> str:
    """The name of a collection with ten documents, n from 0 to 9."""
    name = f"things_{new_id()}"
    await mongo[name].insert_many([{"_id": n, "n": n, "word": f"word {n}"} for n in range(10)])
    return name


@pytest.fixture
async def pymongo_client(own_mongod: Mongod, mongo: Mongo) -> AsyncIterator[Mongo]:
    """A client of PyMongo Async on the same database, whichever driver the tests run on."""
    client = connect(own_mongod.uri, mongo.database.name, "pymongo")
    yield client
    await client.close()


async def test_find_applies_filter_fields_order_and_limit(mongo: Mongo, things: str) -> None:
    query: Document = {"n": {"$gte": 3}}
    assert await mongo.find(things, query, {"_id": 0, "n": 1}, [("n", -1)], 3) == [{"n": 9}, {"n": 8}, {"n": 7}]
    assert len(await mongo.find(things, query)) == 7
    assert await mongo.find(things, {"n": 10}) == []


async def test_find_uses_the_hint_also_after_a_fault(mongo: Mongo, own_mongod: Mongod, things: str) -> None:
    await mongo[things].create_index("rare", sparse=True, name="rare")
    await mongo[things].update_one({"_id": 4}, {"$set": {"rare": 1}})
    # A sparse index finds only the documents that it holds.
    assert await mongo.find(things, {}, {"n": 1}, hint="rare") == [{"_id": 4, "n": 4}]
    async with failpoint(own_mongod.uri, "find", times=1, closeConnection=True):
        assert await mongo.find(things, {}, {"n": 1}, hint="rare") == [{"_id": 4, "n": 4}]


async def test_find_returns_the_same_as_a_cursor(mongo: Mongo, things: str) -> None:
    await mongo[things].update_many({}, [{"$set": {"at": "$$NOW"}}])
    assert await mongo.find(things, {}, sort=[("_id", 1)]) == await mongo[things].find().sort("_id", 1).to_list(None)


async def test_find_spans_several_answers(mongo: Mongo, things: str) -> None:
    for n in range(20):
        await mongo[things].insert_one({"_id": 100 + n, "n": 100 + n, "word": LARGE_TEXT})
    documents = await mongo.find(things, {"n": {"$gte": 100}}, sort=[("n", 1)], limit=999)
    assert [each["n"] for each in documents] == list(range(100, 120))


async def test_find_sees_every_acknowledged_document(mongo: Mongo, things: str) -> None:
    for n in range(100, 200):
        await mongo[things].insert_one({"_id": n})
        assert await mongo.find(things, {"_id": n})


@pytest.mark.parametrize("fault", [{"closeConnection": True}, {"errorCode": 10107}, {"errorCode": 91}])
async def test_find_survives_one_fault(
    mongo: Mongo, own_mongod: Mongod, things: str, mongo_driver: Driver, fault: Document
) -> None:
    # A real shutdown ends the monitor's streaming `hello`, so that the driver notices the next state of the server. A
    # fail point leaves the stream open. This client polls the server instead.
    client = connect(f"{own_mongod.uri}&serverMonitoringMode=poll", mongo.database.name, mongo_driver)
    assert len(await client.find(things, {})) == 10
    async with failpoint(own_mongod.uri, "find", times=1, **fault):
        assert len(await client.find(things, {})) == 10
    await client.close()


async def test_aggregation_survives_one_fault(mongo: Mongo, own_mongod: Mongod, things: str) -> None:
    async with failpoint(own_mongod.uri, "aggregate", times=1, closeConnection=True):
        assert len(await mongo.aggregate(things, [{"$match": {}}])) == 10
    with pytest.raises(OperationFailure, match="nobody"):
        await mongo.aggregate(things, [{"$nobody": 1}])


async def test_results_of_many_pipelines_are_in_their_order(mongo: Mongo, things: str) -> None:
    numbers = [number % 10 for number in range(2 * MAX_PIPELINES + 1)]
    pipelines = [[{"$match": {"_id": number}}, {"$project": {"_id": 1}}] for number in numbers]
    assert await mongo.aggregate_each(things, pipelines) == [{"_id": number} for number in numbers]
    assert await mongo.aggregate_each(things, []) == []


async def test_find_raises_the_drivers_error_for_a_lasting_fault(mongo: Mongo, own_mongod: Mongod, things: str) -> None:
    async with failpoint(own_mongod.uri, "find", closeConnection=True):
        with pytest.raises(AutoReconnect):
            await mongo.find(things, {})
    with pytest.raises(OperationFailure, match="nobody"):
        await mongo.find(things, {"$nobody": 1})
    assert len(await mongo.find(things, {})) == 10


@may_leave_sockets
@pytest.mark.parametrize("iterations", range(12))
async def test_cancelled_find_leaves_no_answer_to_others(mongo: Mongo, things: str, iterations: int) -> None:
    for _ in range(8):
        reads = [asyncio.create_task(mongo.find(things, {"_id": n})) for n in range(10)]
        for _ in range(iterations):
            await asyncio.sleep(0)
        for each in reads[::2]:
            each.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        for n, each in list(enumerate(reads))[1::2]:
            assert [document["_id"] for document in each.result()] == [n]
        assert [document["_id"] for document in await mongo.find(things, {"_id": 5})] == [5]


@may_leave_sockets
async def test_cancelled_reads_return_their_connections(own_mongod: Mongod, mongo: Mongo, things: str) -> None:
    """A connection that a cancelled read did not return would be missing from a pool of two."""
    client = connect(f"{own_mongod.uri}&maxPoolSize=2", mongo.database.name, "pymongo")
    for attempt in range(60):
        reads = [asyncio.create_task(client.find(things, {})) for _ in range(6)]
        await asyncio.sleep(attempt / 20_000)
        for each in reads:
            each.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        async with asyncio.timeout(30):
            answers = await asyncio.gather(*(client.find(things, {"_id": n}) for n in range(2)))
        assert [[document["_id"] for document in documents] for documents in answers] == [[0], [1]]
    await client.close()


async def test_hanging_server_times_out(pymongo_client: Mongo, own_mongod: Mongod, things: str) -> None:
    short_timeout_reads = SingleRoundTripReads(pymongo_client.database, timeout_s=0.5)
    assert len(await pymongo_client.find(things, {})) == 10
    with sigstopped(own_mongod.pid), pytest.raises(NetworkTimeout):
        await short_timeout_reads.find(things, {}, None, (), 0, None)
    assert len(await pymongo_client.find(things, {})) == 10


async def test_pymongo_reads_bypass_the_drivers_cursor(
    own_mongod: Mongod, mongo: Mongo, things: str, command_recorder: CommandNameRecorder
) -> None:
    """Fails if a change of PyMongo makes every read fall back to the driver's cursor."""
    client = connect(own_mongod.uri, mongo.database.name, "pymongo")
    assert len(await client.find(things, {})) == 10
    assert len(await client.aggregate(things, [{"$match": {}}])) == 10
    assert command_recorder.names == []
    await client[things].find_one({})
    assert command_recorder.names == ["find"]
    await client.close()


@pytest.mark.parametrize(("function", "parameters"), PRIVATE_NAMES, ids=lambda each: getattr(each, "__qualname__", ""))
def test_private_name_of_pymongo_takes_the_expected_parameters(
    function: Callable[..., Any], parameters: list[str]
) -> None:
    assert list(inspect.signature(function).parameters)[: len(parameters)] == parameters


def test_private_attributes_of_pymongo_exist() -> None:
    assert isinstance(inspect.getattr_static(AsyncNetworkingInterface, "get_conn"), property)
