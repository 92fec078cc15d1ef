"""A reused database is empty for the next test, whatever the last one wrote."""

from collections.abc import Iterator
from typing import Any

import pymongo
import pytest
from bson import Timestamp

from tests.databases import ReusedDatabase, WrittenCollections, reused_database


@pytest.fixture(scope="module")
def mongo(mongodb_uri: str) -> Iterator["pymongo.MongoClient[dict[str, Any]]"]:
    with pymongo.MongoClient[dict[str, Any]](mongodb_uri) as client:
        yield client


@pytest.fixture(scope="module")
def reused(mongodb_uri: str, redis_url: str) -> Iterator[ReusedDatabase]:
    with reused_database(mongodb_uri, redis_url) as database:
        yield database


def documents(mongo: "pymongo.MongoClient[dict[str, Any]]", reused: ReusedDatabase) -> int:
    database = mongo[reused.name]
    names = [name for name in database.list_collection_names() if not name.startswith(("system.", "data_version"))]
    return sum(database[name].count_documents({}) for name in names)


def test_documents_of_every_kind_of_write_are_deleted(
    mongo: "pymongo.MongoClient[dict[str, Any]]", reused: ReusedDatabase
) -> None:
    database = mongo[reused.name]
    for _ in range(2):
        database["topics"].insert_many([{"title": "a"}, {"title": "b"}])
        database["posts"].update_one({"_id": "upserted"}, {"$set": {"text": "a"}}, upsert=True)
        database["topics"].aggregate([{"$merge": "messages"}])
        with mongo.start_session() as session, session.start_transaction():
            database["communities"].insert_one({"name": "a"}, session=session)
            database["exports"].insert_one({"name": "a"}, session=session)
        assert documents(mongo, reused) == 7
        reused.empty()
        assert documents(mongo, reused) == 0


def test_collections_are_restored(mongo: "pymongo.MongoClient[dict[str, Any]]", reused: ReusedDatabase) -> None:
    database = mongo[reused.name]
    database.command("collMod", "posts", validator={"text": {"$exists": True}})
    database.drop_collection("topics")
    reused.empty()
    assert "validator" not in database["posts"].options()
    assert len(list(database["topics"].list_indexes())) > 1


def test_overwritten_oplog_empties_all(
    mongo: "pymongo.MongoClient[dict[str, Any]]", reused: ReusedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    mongo[reused.name]["posts"].insert_one({"text": "a"})
    monkeypatch.setattr(reused, "_writes", WrittenCollections(mongo, reused.name, Timestamp(1, 1)))
    reused.empty()
    assert documents(mongo, reused) == 0


def test_views_are_left(mongo: "pymongo.MongoClient[dict[str, Any]]", reused: ReusedDatabase) -> None:
    database = mongo[reused.name]
    database.create_collection("a_view", viewOn="posts")
    database["posts"].insert_one({"text": "a"})
    reused.empty()
    assert documents(mongo, reused) == 0
    database.drop_collection("a_view")
