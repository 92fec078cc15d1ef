"""Migrations on real databases: what a start creates, what it refuses, and what `noroshi migrate` changes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import IndexModel

from storage.indexes import INDEXES
from storage.locks import Locks
from storage.migrations.data_version import DOCUMENT_ID, read_data_version, record_data_version
from storage.migrations.index_changes import finished_indexes
from storage.migrations.migrator import MigrationProgress, describe, migrate
from storage.migrations.plan import DataMismatch, read_plan
from storage.migrations.start import prepare_database
from storage.migrations.steps import (
    DATA_VERSION,
    STEPS,
    appoint_owners,
    drop_indexes,
    mark_hidden_reports_and_lost_owners,
    name_communities_of_notifications,
)
from storage.mongo import Document, Driver, Mongo, connect
from tests.databases import fresh_database

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def empty_mongo(mongodb_uri: str, redis_url: str, mongo_driver: Driver) -> AsyncIterator[Mongo]:
    """An empty database."""
    with fresh_database(mongodb_uri, redis_url) as name:
        mongo = connect(mongodb_uri, name, mongo_driver)
        yield mongo
        await mongo.close()


@pytest.fixture(scope="module")
async def module_mongo(mongodb_uri: str, redis_url: str, mongo_driver: Driver) -> AsyncIterator[Mongo]:
    """A database with all collections and indexes. Creating them takes longer than a test."""
    with fresh_database(mongodb_uri, redis_url) as name:
        mongo = connect(mongodb_uri, name, mongo_driver)
        await prepare_database(mongo)
        yield mongo
        await mongo.close()


@pytest.fixture
async def mongo(module_mongo: Mongo) -> AsyncIterator[Mongo]:
    """A database as a start leaves an empty one. It is restored afterwards."""
    indexes = await stored_indexes(module_mongo)
    yield module_mongo
    await restore(module_mongo, indexes)


async def stored_indexes(mongo: Mongo) -> dict[str, list[Document]]:
    """Returns the definitions of the indexes of each collection."""
    names = await mongo.database.list_collection_names(filter={"name": {"$not": {"$regex": "^system"}}})
    return {name: await finished_indexes(mongo, name) for name in names}


async def restore(mongo: Mongo, indexes: dict[str, list[Document]]) -> None:
    """Deletes all documents, and drops collections without these indexes. Then prepares the database."""
    for name, existing in (await stored_indexes(mongo)).items():
        if existing == indexes.get(name):
            await mongo[name].delete_many({})
        else:
            await mongo.database.drop_collection(name)
    await prepare_database(mongo)


async def index_names(mongo: Mongo, collection: str) -> set[str]:
    return {index["name"] for index in await finished_indexes(mongo, collection)}


async def run_migration(mongo: Mongo) -> list[str]:
    """Migrates, and returns the titles of the reported progress."""
    reports: list[MigrationProgress] = []
    await migrate(mongo, Locks(mongo), "host/1", reports.append)
    return [progress.title for progress in reports]


async def expect_refusal(mongo: Mongo, *parts: str) -> None:
    """Expects that a process refuses to start, with one sentence that contains the parts."""
    with pytest.raises(DataMismatch) as refusal:
        await prepare_database(mongo)
    for part in parts:
        assert part in str(refusal.value)


async def downgrade_database(mongo: Mongo) -> None:
    """Gives the database documents, and the indexes of an earlier release, which had no data versions."""
    await mongo["data_version"].delete_many({})
    for collection, index in (("notifications", "topic_1_ts_1"), ("outbox", "stream_1_due_1")):
        await mongo[collection].drop_index(index)
        await mongo[collection].insert_one({"_id": {"o": "acme"}})
    former_filter = {"topic": {"$type": "string"}}
    await mongo["notifications"].create_index([("topic", 1), ("ts", 1)], partialFilterExpression=former_filter)
    await mongo["mail_domains"].create_index("org")


async def test_start_on_empty_database_creates_everything(empty_mongo: Mongo) -> None:
    # A process compares its keys earlier, which creates this collection.
    await empty_mongo["key_fingerprints"].insert_one({"_id": "address_keys", "keys": []})
    await prepare_database(empty_mongo)
    assert set(await empty_mongo.database.list_collection_names()) >= set(INDEXES)
    assert not await read_plan(empty_mongo)
    assert await read_data_version(empty_mongo) == {
        "_id": DOCUMENT_ID,
        "version": DATA_VERSION,
        "compatible_version": STEPS[-1].compatible_version,
    }


async def test_start_completes_interrupted_creation(empty_mongo: Mongo) -> None:
    await empty_mongo.database.create_collection("users")
    await empty_mongo["messages"].create_indexes(INDEXES["messages"][:1])
    await prepare_database(empty_mongo)
    assert not await read_plan(empty_mongo)


async def test_start_creates_indexes_of_collection_without_documents(mongo: Mongo) -> None:
    await mongo["users"].insert_one({"_id": {"org": "acme", "id": "ann"}, "handle": "ann"})
    await mongo.database.drop_collection("outbox")
    await prepare_database(mongo)
    assert not await read_plan(mongo)


async def test_start_refuses_missing_index_until_migrated(mongo: Mongo) -> None:
    await mongo["events"].insert_one({"_id": {"s": "topic:1", "n": 1}, "at": NOW})
    await mongo["events"].drop_index("at_1")
    await expect_refusal(mongo, "missing indexes: 1", "run `noroshi migrate`")
    assert await run_migration(mongo) == ["build the indexes at_1 of events"]
    await prepare_database(mongo)


async def test_old_data_are_refused_then_migrated_once(mongo: Mongo) -> None:
    await downgrade_database(mongo)
    await expect_refusal(
        mongo, f"missing indexes: 2, old indexes: 1, data steps: {len(STEPS)}", "run `noroshi migrate`"
    )
    assert await describe(mongo, await read_plan(mongo)) == [
        "build the indexes stream_1_due_1 of outbox, which has about 1 documents",
        "build the indexes topic_1_ts_1_v2 of notifications, which has about 1 documents",
        "drop the index topic_1_ts_1 of notifications",
        "step 1: drop the unused index org_1 of mail_domains",
        "step 2: make the earliest member of each community its owner",
        "step 3: write the community into notifications of messages",
        "step 4: write the terms by which messages and posts are found",
        "step 5: write the terms by which topics are found",
        "step 6: write the characters by which names in scripts without spaces are found",
        "step 7: join reactions with different forms of one emoji",
        "step 8: mark reports of private communities, and communities without owner",
        "step 9: rename stored fields; stop all earlier processes first",
        "step 10: write the first post of the conversation into replies",
        "step 11: write what mail policies apply to",
    ]
    assert len(await run_migration(mongo)) == 2 + len(STEPS)
    await prepare_database(mongo)
    assert await run_migration(mongo) == []
    assert "org_1" not in await index_names(mongo, "mail_domains")
    names = await index_names(mongo, "notifications")
    assert ("topic_1_ts_1_v2" in names, "topic_1_ts_1" in names) == (True, False)


async def test_old_index_left_by_a_crash_is_dropped(mongo: Mongo) -> None:
    """The crash came after the new index was built, before the old one was dropped."""
    await downgrade_database(mongo)
    (new_index,) = [model for model in INDEXES["notifications"] if model.document["name"] == "topic_1_ts_1"]
    document = new_index.document | {"key": list(new_index.document["key"].items()), "name": "topic_1_ts_1_v2"}
    await mongo["notifications"].create_indexes([IndexModel(document.pop("key"), **document)])
    await run_migration(mongo)
    assert "topic_1_ts_1" not in await index_names(mongo, "notifications")
    assert not await read_plan(mongo)


async def test_index_with_changed_time_to_live_is_replaced(mongo: Mongo) -> None:
    await mongo["workers"].drop_index("at_1")
    await mongo["workers"].create_index("at", expireAfterSeconds=60)
    await mongo["workers"].insert_one({"at": NOW})
    await expect_refusal(mongo, "missing indexes: 1, old indexes: 1")
    await run_migration(mongo)
    (index,) = [each for each in await finished_indexes(mongo, "workers") if each["name"] != "_id_"]
    assert index["expireAfterSeconds"] == 3600


async def test_indexes_of_operators_are_left_alone(mongo: Mongo) -> None:
    await mongo["messages"].create_index("author", name="of_the_operator")
    await mongo["messages"].insert_one({"author": "ann"})
    await prepare_database(mongo)
    assert await run_migration(mongo) == []
    assert "of_the_operator" in await index_names(mongo, "messages")


async def test_newer_data_are_refused_by_start_and_migration(mongo: Mongo) -> None:
    await record_data_version(mongo, DATA_VERSION + 2, DATA_VERSION + 1)
    sentence = f"data of version {DATA_VERSION + 2}, and this release understands version {DATA_VERSION}: start a newer"
    await expect_refusal(mongo, sentence)
    with pytest.raises(DataMismatch, match="start a newer release"):
        await run_migration(mongo)


async def test_newer_compatible_data_are_left_unchanged(mongo: Mongo) -> None:
    """A process of the last release restarts during a rolling upgrade, in which an index was replaced."""
    await downgrade_database(mongo)
    await record_data_version(mongo, DATA_VERSION + 1, DATA_VERSION)
    await prepare_database(mongo)
    assert await run_migration(mongo) == []
    assert "org_1" in await index_names(mongo, "mail_domains")


async def test_versions_never_become_lower(empty_mongo: Mongo) -> None:
    await record_data_version(empty_mongo, 5, 4)
    await record_data_version(empty_mongo, 3, 2)
    assert await read_data_version(empty_mongo) == {"_id": DOCUMENT_ID, "version": 5, "compatible_version": 4}


async def test_concurrent_migrations_run_one_after_the_other(mongo: Mongo) -> None:
    await downgrade_database(mongo)
    titles_of_runs = await asyncio.gather(*(run_migration(mongo) for _ in range(3)))
    work_titles = [title for titles in titles_of_runs for title in titles if not title.startswith("wait")]
    assert len(work_titles) == 2 + len(STEPS)
    assert not await read_plan(mongo)


async def test_notifications_get_the_community_of_their_topic(mongo: Mongo) -> None:
    await mongo["topics"].insert_many([{"_id": "t1", "community": "c1"}, {"_id": "t2", "community": "c2"}])
    owner = {"o": "acme", "u": "ann"}
    topics = ["t1", "t2", "t1", "gone", None]
    await mongo["notifications"].insert_many(
        [{"_id": {**owner, "ts": number}, "topic": topic} for number, topic in enumerate(topics)]
    )
    for _ in range(2):
        await name_communities_of_notifications(mongo)
        stored = await mongo.find("notifications", {}, sort=[("_id", 1)])
        assert [each.get("community") for each in stored] == ["c1", "c2", "c1", None, None]


async def test_dropping_absent_indexes_changes_nothing(mongo: Mongo) -> None:
    await drop_indexes("nowhere", "a_1")(mongo)
    await mongo["things"].create_index("b")
    await drop_indexes("things", "a_1", "b_1", "b_1")(mongo)
    assert await index_names(mongo, "things") == {"_id_"}


def test_steps_have_ascending_versions_and_compatible_code() -> None:
    assert [step.version for step in STEPS] == list(range(1, DATA_VERSION + 1))
    compatible_versions = [step.compatible_version for step in STEPS]
    assert compatible_versions == sorted(compatible_versions)
    # The steps of a release must not stop the processes of the last release.
    # Step 9 does: it belongs to no release yet, so nobody upgrades process by process (ADR 85).
    assert [step.version for step in STEPS if step.stops_older_code] == [9]


def test_declared_indexes_have_different_names() -> None:
    names: dict[str, list[Any]] = {name: [each.document["name"] for each in models] for name, models in INDEXES.items()}
    assert [name for name, found in names.items() if len(found) != len(set(found))] == []


async def test_hidden_reports_and_lost_owners_are_marked(mongo: Mongo) -> None:
    await downgrade_database(mongo)
    base = {"org": "o", "members": 1}
    await mongo["communities"].insert_many(
        [
            {"_id": "shown", "sort": "a", **base},
            {"_id": "hidden", "sort": "b", **base, "visibility": "PRIVATE"},
            {"_id": "empty", "sort": "c", "org": "o", "members": 0},
        ]
    )
    for id_, community in (("r1", "shown"), ("r2", "hidden"), ("r3", None)):
        await mongo["content_reports"].insert_one({"_id": id_, "org": "o", "community": community})
    await run_migration(mongo)
    await mongo["memberships"].delete_many({"community": "hidden"})
    for _ in range(2):
        await mark_hidden_reports_and_lost_owners(mongo)
    assert [each["_id"] for each in await mongo.find("content_reports", {"private": True})] == ["r2"]
    marked = await mongo.find("communities", {"owner_erased": True}, {"_id": 1})
    assert sorted(each["_id"] for each in marked) == ["hidden", "shown"]


async def test_earliest_member_becomes_owner_if_there_is_no_owner(mongo: Mongo) -> None:
    await downgrade_database(mongo)
    at = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    people = [("a", "bob", 1), ("a", "ann", 0), ("b", "eve", 0), ("b", "cyd", 2), ("c", "dan", 1)]
    for community, user, day in people:
        row = {"org": "o", "community": community, "user": user, "handle": user, "search": [], "at": at[day]}
        await mongo["memberships"].insert_one({**row, **({"role": "OWNER"} if user == "cyd" else {})})
    await mongo["communities"].insert_many([{"_id": id_, "org": "o", "sort": id_} for id_ in ("a", "b", "c", "empty")])
    await run_migration(mongo)
    await appoint_owners(mongo)
    owners = await mongo.find("memberships", {"role": "OWNER"})
    assert sorted((each["community"], each["user"]) for each in owners) == [("a", "ann"), ("b", "cyd"), ("c", "dan")]
