"""Transactions with either driver are atomic, retried after conflicts, limited in time, and leave no locks."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pymongo import AsyncMongoClient, DeleteOne, InsertOne
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError

from server.embedded import Mongod
from storage.errors import Unavailable
from storage.ids import new_id
from storage.mongo import Document, Driver, Mongo, Session, connect, is_duplicate
from storage.mongo.transactions import MAX_DUPLICATES
from storage.stores import Stores
from tests.storage.faults import failpoint, sigstopped
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

RELEASE_DEADLINE_S = 20
"""Longer than a transaction takes on a busy machine. MongoDB would end an orphaned transaction only after a minute."""

CANCELLATION_POINTS = 60
"""Number of cancelled transactions. Each one is cancelled three iterations of the event loop later than the one before.
The last cancellations come after the end of their transactions.
"""

WRITE_CONFLICT = 112
"""The code of the error of a transaction that writes what another open transaction has written."""

TransactionWork = Callable[[Session], Awaitable[None]]
Client = AsyncMongoClient[Document]


@pytest.fixture
def mongo(own_stores: Stores) -> Mongo:
    return own_stores.mongo


@pytest.fixture
async def things(mongo: Mongo) -> str:
    """The name of a collection with one document, whose n is 0."""
    name = f"things_{new_id()}"
    await mongo[name].insert_one({"_id": "counter", "n": 0})
    return name


@pytest.fixture
def keep_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves orphaned transactions to MongoDB, which ends them after a minute."""
    monkeypatch.setattr("storage.mongo.transactions.CHECK_ORPHANS_S", 60.0)


async def counter_value(mongo: Mongo, things: str) -> int:
    document = await mongo[things].find_one({"_id": "counter"})
    return -1 if document is None else int(document["n"])


def increment(mongo: Mongo, things: str) -> TransactionWork:
    """Returns work that reads the counter, then writes it. Concurrent increments without transactions would be lost."""

    async def work(session: Session) -> None:
        document = await mongo[things].find_one({"_id": "counter"}, session=session)
        assert document is not None
        await asyncio.sleep(0)
        await mongo[things].update_one({"_id": "counter"}, {"$set": {"n": document["n"] + 1}}, session=session)

    return work


def add_numbered(mongo: Mongo, things: str) -> TransactionWork:
    """Returns work that increments the counter, then inserts a document with the counter's value as _id."""

    async def work(session: Session) -> None:
        counter = await mongo.find_one_and_update(things, {"_id": "counter"}, {"$inc": {"n": 1}}, session)
        assert counter is not None
        await mongo.write(things, [InsertOne({"_id": counter["n"]})], session)

    return work


async def inserted_ids(mongo: Mongo, things: str) -> list[int]:
    """Returns the ids of the inserted documents. Asserts that these are the numbers from 1 to the counter's value."""
    # A cancelled transaction may commit at the same time, so all documents are read in one snapshot.
    documents = await mongo.transact(lambda session: mongo.find(things, {}, sort=[("_id", 1)], session=session))
    *inserted, counter = documents
    assert [document["_id"] for document in inserted] == list(range(1, counter["n"] + 1))
    return list(range(1, counter["n"] + 1))


async def test_conflicting_transactions_lose_no_update(mongo: Mongo, things: str) -> None:
    await asyncio.gather(*(mongo.transact(increment(mongo, things)) for _ in range(20)))
    assert await counter_value(mongo, things) == 20


async def test_concurrent_transactions_number_without_gaps(mongo: Mongo, things: str) -> None:
    await asyncio.gather(*(mongo.transact(add_numbered(mongo, things), 30) for _ in range(30)))
    assert len(await inserted_ids(mongo, things)) == 30


@pytest.mark.usefixtures("keep_orphans")
async def test_failing_work_leaves_no_write_and_no_lock(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        await increment(mongo, things)(session)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await mongo.transact(work)
    await mongo.transact(increment(mongo, things), deadline_s=RELEASE_DEADLINE_S)
    assert await counter_value(mongo, things) == 1


@pytest.mark.usefixtures("keep_orphans")
async def test_cancelled_work_leaves_no_write_and_no_lock(mongo: Mongo, things: str) -> None:
    locked = asyncio.Event()

    async def work(session: Session) -> None:
        await increment(mongo, things)(session)
        locked.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(mongo.transact(work))
    await locked.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await mongo.transact(increment(mongo, things), deadline_s=RELEASE_DEADLINE_S)
    assert await counter_value(mongo, things) == 1


@may_leave_sockets
@pytest.mark.usefixtures("keep_orphans")
async def test_cancellation_at_any_moment_raises_cancelled_error(mongo: Mongo, things: str) -> None:
    """With Motor, a cancelled commit continues in a thread and can no longer be aborted."""
    for attempt in range(240):
        task = asyncio.create_task(mongo.transact(increment(mongo, things)))
        await asyncio.sleep(0.002 + (attempt % 80) / 20_000)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert outcome is None or isinstance(outcome, asyncio.CancelledError), repr(outcome)
    await mongo.transact(increment(mongo, things), deadline_s=RELEASE_DEADLINE_S)


@may_leave_sockets
async def test_cancellation_at_any_iteration_commits_all_or_nothing(
    own_mongod: Mongod, mongo: Mongo, things: str, mongo_driver: Driver
) -> None:
    for point in range(CANCELLATION_POINTS):
        # A new client also opens its connections, so that the cancellation can come while it connects.
        new_client = connect(own_mongod.uri, mongo.database.name, mongo_driver)
        task = asyncio.create_task(new_client.transact(add_numbered(new_client, things)))
        for _ in range(point * 3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await new_client.close()
        await inserted_ids(mongo, things)
    await mongo.transact(add_numbered(mongo, things), deadline_s=20)
    await inserted_ids(mongo, things)


@may_leave_sockets
@pytest.mark.parametrize("command", ["findAndModify", "insert", "commitTransaction"])
async def test_cancellation_during_a_command_commits_all_or_nothing(
    own_mongod: Mongod, mongo: Mongo, things: str, command: str
) -> None:
    await mongo.transact(add_numbered(mongo, things))
    async with failpoint(own_mongod.uri, command, times=1, blockConnection=True, blockTimeMS=300):
        task = asyncio.create_task(mongo.transact(add_numbered(mongo, things)))
        await asyncio.sleep(0.1)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.4)
    await mongo.transact(add_numbered(mongo, things), deadline_s=RELEASE_DEADLINE_S)
    count = len(await inserted_ids(mongo, things))
    if outcome is None:  # A busy machine was too late to cancel.
        assert count == 3
    else:
        assert isinstance(outcome, asyncio.CancelledError)
        assert count in ((2, 3) if command == "commitTransaction" else (2,))


@may_leave_sockets
@pytest.mark.parametrize("command", ["insert", "delete"])
@pytest.mark.parametrize("blocked_ms", [300, 1500])
async def test_cancellation_during_mixed_writes_leaves_nothing(
    own_mongod: Mongod, mongo: Mongo, things: str, command: str, blocked_ms: int
) -> None:
    """With Motor, the driver would send the other commands of the list from its thread.
    The product gives up an abort that takes longer than 1 s.
    """
    writes = [each for n in range(4) for each in (InsertOne({"_id": n}), DeleteOne({"_id": "nobody"}))]
    async with failpoint(own_mongod.uri, command, times=1, blockConnection=True, blockTimeMS=blocked_ms):
        task = asyncio.create_task(mongo.transact(lambda session: mongo.write(things, writes, session)))
        await asyncio.sleep(0.1)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(blocked_ms / 1000)
    await mongo.transact(increment(mongo, things), deadline_s=RELEASE_DEADLINE_S)
    # Without an outcome, a busy machine was too late to cancel: all four inserts are stored.
    assert await mongo[things].count_documents({}) == (5 if outcome is None else 1)
    assert outcome is None or isinstance(outcome, asyncio.CancelledError)


async def test_command_that_outlives_its_transaction_writes_nothing(
    own_mongod: Mongod, mongo: Mongo, things: str, mongo_driver: Driver
) -> None:
    """With Motor, a cancelled command still waits in a thread for the pool's only connection."""
    single_connection_client = connect(f"{own_mongod.uri}&maxPoolSize=1", mongo.database.name, mongo_driver)
    await single_connection_client[things].find_one({})
    async with failpoint(own_mongod.uri, "find", times=1, blockConnection=True, blockTimeMS=500):
        blocking_find = asyncio.ensure_future(single_connection_client[things].find_one({}))
        await asyncio.sleep(0.1)
        task = asyncio.create_task(single_connection_client.transact(add_numbered(single_connection_client, things)))
        await asyncio.sleep(0.1)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)
        await blocking_find
    await single_connection_client[things].find_one({})
    await asyncio.sleep(0.2)
    assert await inserted_ids(single_connection_client, things) == []
    await single_connection_client.close()


async def start_transaction(client: Client, mongo: Mongo, things: str) -> Any:
    """Starts another process's transaction, which locks the counter and does not continue."""
    session = client.start_session()
    await session.start_transaction()
    collection = client[mongo.database.name][things]
    await collection.update_one({"_id": "counter"}, {"$inc": {"n": 100}}, session=session)
    return session


LOCK_COUNTER = """
import sys, time
from pymongo import MongoClient

uri, database, things = sys.argv[1:]
with MongoClient(uri, appname="noroshi") as client, client.start_session() as session, session.start_transaction():
    client[database][things].update_one({"_id": "counter"}, {"$inc": {"n": 100}}, session=session)
    print("locked", flush=True)
    time.sleep(300)
"""


@contextmanager
def locking_process(uri: str, mongo: Mongo, things: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the product whose transaction has locked the counter."""
    command = [sys.executable, "-c", LOCK_COUNTER, uri, mongo.database.name, things]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


async def test_transaction_of_killed_process_does_not_block(own_mongod: Mongod, mongo: Mongo, things: str) -> None:
    with locking_process(own_mongod.uri, mongo, things) as process:
        process.kill()
        process.wait()
        # A transaction of a living process would block this one beyond its deadline.
        await mongo.transact(increment(mongo, things))
    assert await counter_value(mongo, things) == 1


async def test_write_past_orphans_ends_a_stopped_transaction(own_mongod: Mongod, mongo: Mongo, things: str) -> None:
    """The transaction of the stopped process is ended at its deadline."""
    with locking_process(own_mongod.uri, mongo, things) as process, sigstopped(process.pid):
        await mongo.write_past_orphans(lambda: mongo[things].update_one({"_id": "counter"}, {"$set": {"n": 7}}))
    assert await counter_value(mongo, things) == 7


async def test_slow_transaction_of_a_living_process_commits(
    own_mongod: Mongod, mongo: Mongo, things: str, mongo_driver: Driver
) -> None:
    """Meanwhile, a blocked client looks for orphaned transactions. It must not end the slow transaction."""
    attempts = 0
    locked = asyncio.Event()

    async def slow_work(session: Session) -> None:
        nonlocal attempts
        attempts += 1
        await increment(mongo, things)(session)
        locked.set()
        await asyncio.sleep(3)

    slow_transaction = asyncio.create_task(mongo.transact(slow_work))
    await locked.wait()
    new_client = connect(own_mongod.uri, mongo.database.name, mongo_driver)
    await new_client.transact(increment(new_client, things), deadline_s=RELEASE_DEADLINE_S)
    await new_client.close()
    await slow_transaction
    assert (attempts, await counter_value(mongo, things)) == (1, 2)


async def test_locked_document_is_unavailable(own_mongod: Mongod, mongo: Mongo, things: str) -> None:
    loop = asyncio.get_running_loop()
    foreign_client: Client = AsyncMongoClient(own_mongod.uri, appname="another product")
    async with foreign_client:
        session = await start_transaction(foreign_client, mongo, things)
        began_at = loop.time()
        with pytest.raises(Unavailable):
            await mongo.transact(increment(mongo, things), deadline_s=2.5)
        assert 2 < loop.time() - began_at < RELEASE_DEADLINE_S
        await session.commit_transaction()
        await session.end_session()
    assert await counter_value(mongo, things) == 100


async def end_blocked_updates(mongod: Mongod) -> None:
    """Ends the updates that a failpoint blocks. Otherwise the failpoint would wait for them."""
    async with AsyncMongoClient[dict[str, Any]](mongod.uri, appname="another product") as client:
        blocked = {"appName": "noroshi", "command.update": {"$exists": True}}
        operations = await client.admin.aggregate([{"$currentOp": {"allUsers": True}}, {"$match": blocked}])
        for operation in await operations.to_list(None):
            await client.admin.command("killOp", op=operation["opid"])


async def test_slow_server_is_unavailable_after_the_deadline(own_mongod: Mongod, mongo: Mongo, things: str) -> None:
    loop = asyncio.get_running_loop()
    async with failpoint(own_mongod.uri, "update", blockConnection=True, blockTimeMS=60_000):
        began_at = loop.time()
        with pytest.raises(Unavailable):
            await mongo.transact(increment(mongo, things), deadline_s=0.5)
        assert loop.time() - began_at < 20, "The answer of the server would take a minute."
        await end_blocked_updates(own_mongod)
    await mongo.transact(increment(mongo, things), deadline_s=RELEASE_DEADLINE_S)
    assert await counter_value(mongo, things) == 1


@pytest.mark.parametrize("command", ["findAndModify", "insert", "commitTransaction"])
async def test_transaction_is_repeated_after_connection_closes(
    own_mongod: Mongod, mongo: Mongo, things: str, command: str
) -> None:
    async with failpoint(own_mongod.uri, command, times=1, closeConnection=True):
        await mongo.transact(add_numbered(mongo, things))
    await mongo.transact(add_numbered(mongo, things))
    assert await inserted_ids(mongo, things) == [1, 2]


async def test_waits_are_those_of_the_caller(
    own_mongod: Mongod, mongo: Mongo, things: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def shortest_wait(shortest: float, longest: float) -> float:
        waits.append(longest)
        return shortest

    monkeypatch.setattr("storage.mongo.transactions.random.uniform", shortest_wait)
    async with failpoint(own_mongod.uri, "findAndModify", times=4, errorCode=WRITE_CONFLICT):
        await mongo.transact(add_numbered(mongo, things), backoffs_s=[0.003, 0.001])
    assert waits == [0.003, 0.001, 0.001, 0.001]


async def test_lasting_duplicate_is_raised_after_a_few_attempts(mongo: Mongo, things: str) -> None:
    attempts = 0

    async def work(session: Session) -> None:
        nonlocal attempts
        attempts += 1
        await mongo[things].insert_one({"_id": "counter"}, session=session)

    with pytest.raises(DuplicateKeyError):
        await mongo.transact(work)
    assert attempts == MAX_DUPLICATES + 1


async def test_duplicate_in_a_list_of_writes_is_recognised(mongo: Mongo, things: str) -> None:
    with pytest.raises(PyMongoError) as refusal:
        await mongo.transact(lambda session: mongo.write(things, [InsertOne({"_id": "counter"})], session))
    assert is_duplicate(refusal.value)


async def test_work_that_reads_first_finds_a_concurrent_insert(mongo: Mongo, things: str) -> None:
    async def insert_if_missing(session: Session) -> bool:
        if await mongo[things].find_one({"_id": "new"}, session=session) is not None:
            return False
        await mongo[things].insert_one({"_id": "new", "n": 0}, session=session)
        return True

    assert sorted(await asyncio.gather(*(mongo.transact(insert_if_missing) for _ in range(10)))) == [False] * 9 + [True]


async def test_error_after_a_duplicate_is_raised_unchanged(mongo: Mongo, things: str) -> None:
    attempts = 0

    async def work(session: Session) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await mongo[things].insert_one({"_id": "counter"}, session=session)
        await mongo[things].update_one({"_id": "counter"}, {"$nonsense": 1}, session=session)

    with pytest.raises(OperationFailure, match="nonsense"):
        await mongo.transact(work)
    assert attempts == 2
