"""The client's reads, writes, concerns and clock, with either driver."""

from datetime import UTC, datetime

import pytest
from pymongo import DeleteOne, InsertOne, ReadPreference

from storage.ids import new_id
from storage.mongo import Document, Mongo, Session, due_filter, older_than
from storage.stores import Stores

pytestmark = pytest.mark.anyio

LARGE_TEXT = "x" * 3_000_000


@pytest.fixture
def mongo(shared_stores: Stores) -> Mongo:
    return shared_stores.mongo


@pytest.fixture
async def things(mongo: Mongo) -> str:
    """The name of a collection with one document, whose n is 0."""
    name = f"things_{new_id()}"
    await mongo[name].insert_one({"_id": "counter", "n": 0})
    return name


async def test_reads_and_writes_are_at_majority(mongo: Mongo) -> None:
    things = mongo["things"]
    assert things.read_concern.level == "majority"
    assert things.write_concern.document == {"w": "majority"}
    assert things.read_preference == ReadPreference.PRIMARY


async def test_transaction_sees_its_writes_before_others_do(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        await mongo.find_one_and_update(things, {"_id": "counter"}, {"$inc": {"n": 1}}, session)
        await mongo.write(things, [InsertOne({"_id": 1})], session)
        assert len(await mongo.find(things, {}, session=session)) == 2
        assert len(await mongo[things].find({}, session=session).to_list(None)) == 2, (
            "The driver's cursor must see the writes, too."
        )
        assert len(await mongo.find(things, {})) == 1
        await mongo.write(things, [DeleteOne({"_id": 1}), InsertOne({"_id": 1, "again": True})], session)

    await mongo.transact(work)
    assert await mongo.find(things, {"_id": 1}) == [{"_id": 1, "again": True}]


async def test_find_in_transaction_spans_several_answers(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        for n in range(8):
            await mongo.write(things, [InsertOne({"_id": n, "text": LARGE_TEXT})], session)
        documents = await mongo.find(things, {"text": {"$exists": True}}, {"_id": 1}, [("_id", -1)], session=session)
        assert [document["_id"] for document in documents] == list(range(7, -1, -1))
        assert len(await mongo.find(things, {}, session=session)) == 9

    await mongo.transact(work)


async def test_find_one_and_update_without_match_is_none_unless_upsert(mongo: Mongo, things: str) -> None:
    async def work(session: Session) -> None:
        assert await mongo.find_one_and_update(things, {"_id": "x"}, {"$set": {"n": 1}}, session) is None
        upserted = await mongo.find_one_and_update(things, {"_id": "x"}, [{"$set": {"n": 2}}], session, upsert=True)
        assert upserted == {"_id": "x", "n": 2}

    await mongo.transact(work)


async def test_aggregate_returns_all_results_with_and_without_session(mongo: Mongo, things: str) -> None:
    pipeline: list[Document] = [{"$match": {"_id": "counter"}}, {"$project": {"n": 1}}]

    async def work(session: Session) -> list[Document]:
        return await mongo.aggregate(things, pipeline, session)

    assert await mongo.aggregate(things, pipeline) == await mongo.transact(work) == [{"_id": "counter", "n": 0}]


async def test_instants_have_a_time_zone(mongo: Mongo, things: str) -> None:
    at = datetime(2026, 11, 21, 12, 0, 0, 123000, UTC)
    await mongo[things].update_one({"_id": "counter"}, {"$set": {"at": at}})
    document = await mongo[things].find_one({"_id": "counter"})
    assert document is not None
    assert document["at"] == at


@pytest.mark.parametrize(("age_s", "count"), [(59, 0), (61, 1)])
async def test_older_than_uses_the_database_clock(mongo: Mongo, things: str, age_s: int, count: int) -> None:
    at = [{"$set": {"at": {"$subtract": ["$$NOW", age_s * 1000]}}}]
    await mongo[things].update_one({"_id": "counter"}, at)
    assert await mongo[things].count_documents({"_id": "counter", **older_than("at", 60)}) == count


async def test_document_of_this_millisecond_is_already_due(mongo: Mongo, things: str) -> None:
    pipeline: list[Document] = [{"$set": {"due": "$$NOW"}}, {"$match": due_filter("due")}]
    assert len(await mongo.aggregate(things, pipeline)) == 1
