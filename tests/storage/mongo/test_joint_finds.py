"""Joint finds read several collections with one command of a transaction, with either driver."""

import pytest

from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.mongo.joint_finds import Find, find_jointly
from storage.stores import Stores
from tests.storage.mongo.command_recorder import CommandNameRecorder

pytestmark = pytest.mark.anyio


@pytest.fixture
def mongo(stores: Stores) -> Mongo:
    return stores.mongo


@pytest.fixture
async def collections(mongo: Mongo) -> tuple[str, str]:
    """The names of two collections with the same three documents."""
    names = f"first_{new_id()}", f"second_{new_id()}"
    for name in names:
        await mongo[name].insert_many([{"_id": {"k": "$a", "n": n}, "n": n, "text": f"{name} {n}"} for n in range(3)])
    return names


async def test_finds_return_their_documents_in_order(mongo: Mongo, collections: tuple[str, str]) -> None:
    first, second = collections
    finds = [
        Find(first, {"_id": {"$in": [{"k": "$a", "n": 1}, {"k": "$a", "n": 7}]}}),
        Find(second, {"n": {"$gt": 0}}, {"_id": 0, "n": 1}),
        Find("missing", {"_id": {"$in": ["a"]}}),
        Find(first, {}, {"_id": 0, "n": 1}, newest=2),
        Find(first, {"n": 9}),
    ]

    async def work(session: Session) -> list[list[Document]]:
        return await find_jointly(mongo, (first, {"k": "$a", "n": 0}), finds, session)

    one, several, missing, newest, none = await mongo.transact(work)
    assert one == [{"_id": {"k": "$a", "n": 1}, "n": 1, "text": f"{first} 1"}]
    assert sorted(each["n"] for each in several) == [1, 2]
    assert all(set(each) == {"n"} for each in several)
    assert newest == [{"n": 2}, {"n": 1}]
    assert missing == none == []


async def test_finds_see_their_transaction_and_no_later_commit(mongo: Mongo, collections: tuple[str, str]) -> None:
    first, second = collections
    counts = []

    async def work(session: Session) -> None:
        await mongo[first].insert_one({"_id": "own", "n": 10}, session=session)
        await mongo[second].insert_one({"_id": "later", "n": 10})
        finds = [Find(name, {"n": 10}) for name in collections]
        counts.append([len(each) for each in await find_jointly(mongo, (first, "own"), finds, session)])

    await mongo.transact(work)
    assert counts == [[1, 0]]


async def test_finds_are_one_command(
    command_recorder: CommandNameRecorder, stores: Stores, collections: tuple[str, str]
) -> None:
    async def work(session: Session) -> None:
        finds = [Find(name, {"n": 1}) for name in collections * 2]
        await find_jointly(stores.mongo, (collections[0], {"k": "$a", "n": 0}), finds, session)

    command_recorder.names.clear()
    await stores.mongo.transact(work)
    assert [name for name in command_recorder.names if name in ("find", "aggregate", "getMore")] == ["aggregate"]
