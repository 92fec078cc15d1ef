"""Transactions: whole or not at all, repeated after conflicts, over in time, and never in the way of the next one."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import AsyncMongoClient, ReadPreference
from pymongo.errors import AutoReconnect, DuplicateKeyError, ExecutionTimeout, OperationFailure, PyMongoError

from server.embedded import Mongod
from storage.errors import Unavailable
from storage.ids import new_id
from storage.mongo import APP_NAME, Document, Mongo, Session, is_duplicate, older_than, unavailable
from storage.mongo.client import MAX_DUPLICATES
from storage.stores import Stores
from tests.storage.faults import failing

pytestmark = pytest.mark.anyio

SOON_S = 20
"""More than a busy machine takes for one transaction, and less than the minute that MongoDB keeps what nobody ends."""

Work = Callable[[Session], Awaitable[None]]
Client = AsyncMongoClient[Document]


@pytest.fixture
async def mongo(shared_stores: Stores) -> Mongo:
    return shared_stores.mongo


@pytest.fixture
async def counter(mongo: Mongo) -> str:
    """The _id of a document in `things`, whose n is 0."""
    id_ = new_id()
    await mongo["things"].insert_one({"_id": id_, "n": 0})
    return id_


@pytest.fixture
def let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody ends what was left open: it would stay for a minute."""
    monkeypatch.setattr("storage.mongo.client.ORPHAN_S", 60.0)


async def count(mongo: Mongo, id_: str) -> int:
    document = await mongo["things"].find_one({"_id": id_})
    return -1 if document is None else int(document["n"])


def one_more(mongo: Mongo, id_: str) -> Work:
    """Reads, thinks, and writes: what is lost when two do it at once outside a transaction."""

    async def work(session: Session) -> None:
        document = await mongo["things"].find_one({"_id": id_}, session=session)
        assert document is not None
        await asyncio.sleep(0)
        await mongo["things"].update_one({"_id": id_}, {"$set": {"n": document["n"] + 1}}, session=session)

    return work


async def test_facts_are_read_and_written_at_majority(mongo: Mongo) -> None:
    things = mongo["things"]
    assert things.read_concern.level == "majority"
    assert things.write_concern.document == {"w": "majority"}
    assert things.read_preference == ReadPreference.PRIMARY


async def test_transactions_that_meet_start_over_and_lose_no_update(mongo: Mongo, counter: str) -> None:
    await asyncio.gather(*(mongo.transact(one_more(mongo, counter)) for _ in range(20)))
    assert await count(mongo, counter) == 20


@pytest.mark.usefixtures("let_be")
async def test_work_that_fails_leaves_nothing_behind_and_no_lock(mongo: Mongo, counter: str) -> None:
    async def work(session: Session) -> None:
        await one_more(mongo, counter)(session)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await mongo.transact(work)
    await mongo.transact(one_more(mongo, counter), deadline_s=SOON_S)
    assert await count(mongo, counter) == 1


@pytest.mark.usefixtures("let_be")
async def test_work_that_is_called_off_leaves_nothing_behind_and_no_lock(mongo: Mongo, counter: str) -> None:
    locked = asyncio.Event()

    async def work(session: Session) -> None:
        await one_more(mongo, counter)(session)
        locked.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(mongo.transact(work))
    await locked.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await mongo.transact(one_more(mongo, counter), deadline_s=SOON_S)
    assert await count(mongo, counter) == 1


@pytest.mark.usefixtures("let_be")
async def test_called_off_at_any_moment_it_ends_as_called_off(mongo: Mongo, counter: str) -> None:
    """During the commit, too: one that goes on in a thread of the driver's can't be aborted any more."""
    for moment in range(240):
        task = asyncio.create_task(mongo.transact(one_more(mongo, counter)))
        await asyncio.sleep(0.002 + (moment % 80) / 20_000)
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert ended is None or isinstance(ended, asyncio.CancelledError), repr(ended)
    await mongo.transact(one_more(mongo, counter), deadline_s=SOON_S)


async def hold(client: Client, mongo: Mongo, counter: str) -> Any:
    """A transaction of another process that has locked the counter and goes no further."""
    session = client.start_session()
    await session.start_transaction()
    things = client[mongo.database.name]["things"]
    await things.update_one({"_id": counter}, {"$inc": {"n": 100}}, session=session)
    return session


async def test_the_transaction_of_a_dead_process_blocks_the_others_for_seconds_only(
    mongo: Mongo, counter: str, mongodb_uri: str
) -> None:
    dead: Client = AsyncMongoClient(mongodb_uri, appname=APP_NAME)
    async with dead:
        session = await hold(dead, mongo, counter)
        await mongo.transact(one_more(mongo, counter), deadline_s=SOON_S)
        with pytest.raises(OperationFailure):
            await session.commit_transaction()
    assert await count(mongo, counter) == 1


async def test_what_stays_locked_is_unavailable_in_time_and_transactions_of_others_are_let_be(
    mongo: Mongo, counter: str, mongodb_uri: str
) -> None:
    loop = asyncio.get_running_loop()
    other: Client = AsyncMongoClient(mongodb_uri, appname="somebody else")
    async with other:
        session = await hold(other, mongo, counter)
        began = loop.time()
        with pytest.raises(Unavailable):
            await mongo.transact(one_more(mongo, counter), deadline_s=2.5)
        assert 2 < loop.time() - began < SOON_S
        await session.commit_transaction()
        await session.end_session()
    assert await count(mongo, counter) == 100


async def test_a_server_that_is_slow_to_answer_is_not_waited_for_longer_than_the_deadline(
    own_stores: Stores, own_mongod: Mongod
) -> None:
    mongo, id_, loop = own_stores.mongo, new_id(), asyncio.get_running_loop()
    await mongo["things"].insert_one({"_id": id_, "n": 0})
    async with failing(own_mongod.uri, "update", blockConnection=True, blockTimeMS=6_000):
        began = loop.time()
        with pytest.raises(Unavailable):
            await mongo.transact(one_more(mongo, id_), deadline_s=0.5)
        assert loop.time() - began < 5
    await mongo.transact(one_more(mongo, id_))
    assert await count(mongo, id_) == 1


async def test_a_duplicate_that_is_no_race_is_tried_a_few_times_and_raised(mongo: Mongo, counter: str) -> None:
    tries = 0

    async def work(session: Session) -> None:
        nonlocal tries
        tries += 1
        await mongo["things"].insert_one({"_id": counter}, session=session)

    with pytest.raises(DuplicateKeyError):
        await mongo.transact(work)
    assert tries == MAX_DUPLICATES + 1


async def test_one_that_looks_before_inserting_finds_what_the_faster_one_put(mongo: Mongo) -> None:
    id_ = new_id()

    async def put(session: Session) -> bool:
        if await mongo["things"].find_one({"_id": id_}, session=session) is not None:
            return False
        await mongo["things"].insert_one({"_id": id_, "n": 0}, session=session)
        return True

    assert sorted(await asyncio.gather(*(mongo.transact(put) for _ in range(10)))) == [False] * 9 + [True]


async def test_an_error_after_a_duplicate_is_raised_as_it_is(mongo: Mongo, counter: str) -> None:
    tries = 0

    async def work(session: Session) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await mongo["things"].insert_one({"_id": counter}, session=session)
        await mongo["things"].update_one({"_id": counter}, {"$nonsense": 1}, session=session)

    with pytest.raises(OperationFailure, match="nonsense"):
        await mongo.transact(work)
    assert tries == 2


async def test_an_aggregation_gives_everything_inside_and_outside_a_transaction(mongo: Mongo, counter: str) -> None:
    pipeline: list[Document] = [{"$match": {"_id": counter}}, {"$project": {"n": 1}}]

    async def work(session: Session) -> list[Document]:
        return await mongo.aggregate("things", pipeline, session)

    assert await mongo.aggregate("things", pipeline) == await mongo.transact(work) == [{"_id": counter, "n": 0}]


async def test_instants_are_aware(mongo: Mongo, counter: str) -> None:
    at = datetime(2026, 11, 21, 12, 0, 0, 123000, UTC)
    await mongo["things"].update_one({"_id": counter}, {"$set": {"at": at}})
    document = await mongo["things"].find_one({"_id": counter})
    assert document is not None
    assert document["at"] == at


@pytest.mark.parametrize(("age_s", "found"), [(59, 0), (61, 1)])
async def test_age_is_told_by_the_databases_clock(mongo: Mongo, counter: str, age_s: int, found: int) -> None:
    at = [{"$set": {"at": {"$subtract": ["$$NOW", age_s * 1000]}}}]
    await mongo["things"].update_one({"_id": counter}, at)
    assert await mongo["things"].count_documents({"_id": counter, **older_than("at", 60)}) == found


@pytest.mark.parametrize("error", [AutoReconnect("gone"), ExecutionTimeout("late", 50)], ids=repr)
def test_a_database_that_does_not_answer_is_unavailable(error: PyMongoError) -> None:
    found = unavailable(error)
    assert found is not None
    assert found.extensions["retryAfterMs"] == 1000


@pytest.mark.parametrize(
    "error", [OperationFailure("no", 2), ValueError(), DuplicateKeyError("twice", 11000)], ids=repr
)
def test_what_is_no_outage_is_not_unavailable(error: Exception) -> None:
    assert unavailable(error) is None


def test_a_duplicate_is_told_from_other_failures() -> None:
    assert is_duplicate(DuplicateKeyError("twice", 11000))
    assert not is_duplicate(OperationFailure("no", 2))
