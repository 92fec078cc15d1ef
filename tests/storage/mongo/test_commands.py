"""Commands past the driver, in transactions: theirs or nobody's, whatever is called off or breaks on the way."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from pymongo import DeleteOne, InsertOne, monitoring
from pymongo.errors import PyMongoError

from server.embedded import Mongod
from storage.ids import new_id
from storage.mongo import Document, Driver, Mongo, Session, connect, is_duplicate
from storage.mongo.commands import Commands
from storage.stores import Stores
from tests.replica_set import replica_set
from tests.storage.faults import failing

pytestmark = pytest.mark.anyio

LARGE = "x" * 3_000_000
STEPS = 60
"""More turns of the event loop than a transaction takes on a connection that must be opened first."""

Work = Callable[[Session], Awaitable[None]]


@pytest.fixture
def mongo(own_stores: Stores) -> Mongo:
    return own_stores.mongo


@pytest.fixture
async def things(mongo: Mongo) -> str:
    """The name of a collection with one document, whose n is 0."""
    name = f"things_{new_id()}"
    await mongo[name].insert_one({"_id": "counter", "n": 0})
    return name


class Heard(monitoring.CommandListener):
    """The names of the commands that the driver sends."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.names.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


@pytest.fixture
def heard() -> Iterator[Heard]:
    """What the driver of every client sends that is opened in the test."""
    listener = Heard()
    monitoring.register(listener)
    yield listener
    monitoring._LISTENERS.command_listeners.remove(listener)


def one_more(mongo: Mongo, things: str) -> Work:
    """Takes the next number, and inserts a document that is called so."""

    async def work(session: Session) -> None:
        counter = await mongo.find_one_and_update(things, {"_id": "counter"}, {"$inc": {"n": 1}}, session)
        assert counter is not None
        await mongo.write(things, [InsertOne({"_id": counter["n"]})], session)

    return work


async def numbers(mongo: Mongo, things: str) -> list[int]:
    """The documents that were inserted, which must be those that were counted."""
    # At one moment: what was called off may still be committed just now.
    documents = await mongo.transact(lambda session: mongo.find(things, {}, sort=[("_id", 1)], session=session))
    *found, counter = documents
    assert [document["_id"] for document in found] == list(range(1, counter["n"] + 1))
    return list(range(1, counter["n"] + 1))


async def test_the_usual_transaction_costs_no_command_of_the_drivers(
    own_mongod: Mongod, mongo: Mongo, things: str, heard: Heard, mongo_driver: Driver
) -> None:
    """It also tells that what this rests on in PyMongo is there: otherwise the driver would do it, unseen."""
    another = connect(own_mongod.uri, mongo.database.name, mongo_driver)
    await another.transact(one_more(another, things))
    assert await numbers(another, things) == [1]
    assert len(await another.find(things, {})) == 2
    assert heard.names == []
    await another[things].find_one({})
    assert heard.names == ["find"]
    await another.close()


async def test_a_transaction_sees_what_it_wrote_and_nobody_else_does_before_its_end(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        await one_more(mongo, things)(session)
        assert len(await mongo.find(things, {}, session=session)) == 2
        assert len(await mongo[things].find({}, session=session).to_list(None)) == 2, "the driver's way sees it, too"
        assert len(await mongo.find(things, {})) == 1
        await mongo.write(things, [DeleteOne({"_id": 1}), InsertOne({"_id": 1, "again": True})], session)

    await mongo.transact(work)
    assert await mongo.find(things, {"_id": 1}) == [{"_id": 1, "again": True}]


async def test_more_than_an_answer_holds_is_found_within_a_transaction(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        for n in range(8):
            await mongo.write(things, [InsertOne({"_id": n, "text": LARGE})], session)
        found = await mongo.find(things, {"text": {"$exists": True}}, {"_id": 1}, [("_id", -1)], session=session)
        assert [document["_id"] for document in found] == list(range(7, -1, -1))
        assert len(await mongo.find(things, {}, session=session)) == 9

    await mongo.transact(work)


async def test_nothing_to_update_is_none_or_made(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        assert await mongo.find_one_and_update(things, {"_id": "x"}, {"$set": {"n": 1}}, session) is None
        made = await mongo.find_one_and_update(things, {"_id": "x"}, [{"$set": {"n": 2}}], session, upsert=True)
        assert made == {"_id": "x", "n": 2}

    await mongo.transact(work)


async def test_a_duplicate_is_told_as_one(mongo: Mongo, things: str) -> None:
    with pytest.raises(PyMongoError) as refused:
        await mongo.transact(lambda session: mongo.write(things, [InsertOne({"_id": "counter"})], session))
    assert is_duplicate(refused.value)


async def test_many_at_once_lose_nothing(mongo: Mongo, things: str) -> None:
    await asyncio.gather(*(mongo.transact(one_more(mongo, things), 30) for _ in range(30)))
    assert len(await numbers(mongo, things)) == 30


async def test_what_is_called_off_at_any_step_is_done_whole_or_not_at_all(
    own_mongod: Mongod, mongo: Mongo, things: str, mongo_driver: Driver
) -> None:
    """A command that still waits for a connection when its transaction is over must not be done without it."""
    for step in range(STEPS):
        # Everything has to be opened first, so that there is much to wait for.
        another = connect(own_mongod.uri, mongo.database.name, mongo_driver)
        task = asyncio.create_task(another.transact(one_more(another, things)))
        for _ in range(step * 3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await another.close()
        await numbers(mongo, things)
    await mongo.transact(one_more(mongo, things), deadline_s=20)
    await numbers(mongo, things)


async def test_a_command_that_comes_after_its_transaction_is_not_done(
    mongo: Mongo, things: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it waited for a connection or for a primary, while whoever asked was called off."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(self: Commands, *arguments: object) -> Document:
        asked.set()
        await go_on.wait()
        return await within(self, *arguments)  # type: ignore[arg-type]

    within = Commands._ask_within
    monkeypatch.setattr(Commands, "_ask_within", slow)
    task = asyncio.create_task(mongo.transact(one_more(mongo, things)))
    await asked.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    late = list(mongo.commands.under_way)
    go_on.set()
    outcomes = await asyncio.gather(*late, return_exceptions=True)
    assert any("over" in repr(outcome) for outcome in outcomes)
    assert await numbers(mongo, things) == []


async def test_a_session_that_broke_is_not_used_again(mongo: Mongo, own_mongod: Mongod, things: str) -> None:
    used: list[object] = []

    async def work(session: Session) -> None:
        try:
            await one_more(mongo, things)(session)
        finally:
            used.append(getattr(session, "delegate", session)._server_session)

    async with failing(own_mongod.uri, "insert", times=1, closeConnection=True):
        await mongo.transact(work)
    await mongo.transact(work)
    assert len(used) == 3
    assert used[0] is not used[1]
    assert used[1] is used[2]


async def test_whoever_becomes_the_primary_gets_the_transactions(tmp_path: Path, mongo_driver: Driver) -> None:
    async with replica_set(tmp_path) as members:
        mongo = connect(members.uri, "commands", mongo_driver)
        await mongo["things"].insert_one({"_id": "counter", "n": 0})
        for count in (20, 40, 60):
            counting = asyncio.create_task(count_up(mongo, "things", count))
            await asyncio.sleep(0.05)
            await members.step_down()
            await counting
            assert len(await numbers(mongo, "things")) == count
        await mongo.close()


async def count_up(mongo: Mongo, things: str, count: int) -> None:
    """One transaction after the other until there are so many numbers."""
    while (await mongo.find(things, {"_id": "counter"}))[0]["n"] < count:
        await mongo.transact(one_more(mongo, things), deadline_s=30)
