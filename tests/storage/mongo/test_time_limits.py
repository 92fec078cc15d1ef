"""Every read has maxTimeMS, so MongoDB ends a slow read, and the driver does not repeat it."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import ExecutionTimeout

from server.embedded import Mongod
from storage.ids import new_id
from storage.mongo import Document, Driver, Mongo, connect, unavailable
from storage.mongo.distinct import distinct_values
from storage.mongo.time_limits import MAX_TIME_MS
from tests.storage.mongo.command_recorder import CommandNameRecorder
from tests.unlimited_reads import check_reads, record_unlimited_reads

pytestmark = pytest.mark.anyio

THINGS = "things"
HANG = "sleep(600000) || true"
SHORT_LIMIT_MS = 200

READS: dict[str, Callable[[Mongo], Awaitable[Any]]] = {
    "find": lambda mongo: mongo[THINGS].find({}).to_list(None),
    "find_one": lambda mongo: mongo[THINGS].find_one({}),
    "count_documents": lambda mongo: mongo[THINGS].count_documents({}),
    "estimated_document_count": lambda mongo: mongo[THINGS].estimated_document_count(),
    "distinct": lambda mongo: mongo[THINGS].distinct("n"),
    "Mongo.find": lambda mongo: mongo.find(THINGS, {}),
    "Mongo.aggregate": lambda mongo: mongo.aggregate(THINGS, [{"$match": {}}]),
    "distinct_values": lambda mongo: distinct_values(mongo, THINGS, "n", {}),
}


@pytest.fixture
async def mongo(own_mongod: Mongod, command_recorder: CommandNameRecorder, mongo_driver: Driver) -> Any:
    """A database with ten documents, n from 0 to 9, on the mongod that a test may slow down."""
    mongo = connect(own_mongod.uri, f"t_{new_id()}", mongo_driver)
    await mongo[THINGS].insert_many([{"_id": n, "n": n} for n in range(10)])
    command_recorder.names.clear()
    yield mongo
    await mongo.client.drop_database(mongo.database.name)
    await mongo.close()


@pytest.fixture
def profiled_database(own_mongod: Mongod, mongo: Mongo) -> Iterator[Database[Any]]:
    """The same database, opened by a client that is not the product's. The profiler records all commands."""
    with MongoClient[Document](own_mongod.uri) as client:
        database = client[mongo.database.name]
        record_unlimited_reads(database)
        database.command("profile", 2)
        yield database


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits reads to 0.2 s. Without a limit they would take longer than the driver waits."""
    for module in ("time_limits", "reads"):
        monkeypatch.setattr(f"storage.mongo.{module}.MAX_TIME_MS", SHORT_LIMIT_MS)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_read_has_a_time_limit(
    mongo: Mongo,
    profiled_database: Database[Any],
    read: Callable[[Mongo], Awaitable[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("storage.mongo.distinct.MAX_DOCUMENTS", 1)
    await read(mongo)
    entries = profiled_database["system.profile"].find(
        {"ns": f"{profiled_database.name}.{THINGS}", "appName": "noroshi"}
    )
    limits = [entry["command"].get("maxTimeMS") for entry in entries]
    assert limits
    assert set(limits) == {MAX_TIME_MS}
    check_reads(profiled_database)


async def test_read_without_limit_is_recorded(mongo: Mongo, profiled_database: Database[Any]) -> None:
    """The fixture `database` of all tests depends on these records."""
    await mongo.database[THINGS].find_one({})
    with pytest.raises(AssertionError, match="maxTimeMS"):
        check_reads(profiled_database)


async def test_further_batch_without_limit_is_recorded(mongo: Mongo, profiled_database: Database[Any]) -> None:
    cursor = mongo.database[THINGS].find({}, batch_size=5)
    await cursor.to_list(5)
    record_unlimited_reads(profiled_database)
    await cursor.to_list(None)
    with pytest.raises(AssertionError, match="getMore"):
        check_reads(profiled_database)


@pytest.mark.usefixtures("short_limit")
async def test_slow_read_is_ended_and_not_repeated(mongo: Mongo, command_recorder: CommandNameRecorder) -> None:
    with pytest.raises(ExecutionTimeout) as raised:
        await mongo[THINGS].find_one({"$where": HANG})
    assert unavailable(raised.value) is not None
    assert command_recorder.names == ["find"]


@pytest.mark.usefixtures("short_limit")
async def test_slow_single_round_trip_read_is_ended(mongo: Mongo) -> None:
    with pytest.raises(ExecutionTimeout):
        await mongo.find(THINGS, {"$where": HANG})
    # The connection still works, because its answer was read.
    assert len(await mongo.find(THINGS, {})) == 10


@pytest.mark.usefixtures("short_limit")
async def test_slow_further_batch_is_ended(mongo: Mongo, command_recorder: CommandNameRecorder) -> None:
    """A getMore has no limit of its own: MongoDB applies what the find left of its limit."""
    cursor = mongo[THINGS].find({"$where": f"this.n < 5 || {HANG}"}, batch_size=5)
    assert len(await cursor.to_list(5)) == 5
    with pytest.raises(ExecutionTimeout):
        await cursor.to_list(None)
    assert command_recorder.names == ["find", "getMore"]


async def test_reads_of_a_transaction_have_a_time_limit(mongo: Mongo, profiled_database: Database[Any]) -> None:
    await mongo.transact(lambda session: mongo[THINGS].find_one({}, session=session))
    await mongo.transact(lambda session: mongo.find(THINGS, {}, session=session))
    assert (
        profiled_database["system.profile"].count_documents({"command.find": THINGS, "command.maxTimeMS": {"$gt": 0}})
        == 2
    )
    check_reads(profiled_database)
