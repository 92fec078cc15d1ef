"""Reads that may scan have maxTimeMS in MongoDB's profile, so MongoDB ends those whose clients have given up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from storage.mongo import MAX_TIME_MS, Document, Mongo
from storage.mongo.distinct import distinct_values
from storage.stores import Stores
from tests.storage.topic_scenario import create_topic_scenario

READS = ["find", "aggregate", "count", "distinct"]

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def profiled(mongo: Mongo) -> AsyncIterator[None]:
    """Records all commands to the database until the block ends."""
    await mongo.database.command("profile", 2)
    try:
        yield
    finally:
        await mongo.database.command("profile", 0)


async def recorded_reads(mongo: Mongo) -> list[Document]:
    """Returns the reads of messages and notifications in the profile. The outbox reads other collections meanwhile."""
    namespaces = [f"{mongo.database.name}.{name}" for name in ("messages", "notifications")]
    documents = await mongo["system.profile"].find({"ns": {"$in": namespaces}}).to_list(None)
    return [each["command"] for each in documents if any(name in each["command"] for name in READS)]


async def test_reads_that_may_scan_have_a_time_limit(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.mongo.distinct.MAX_DOCUMENTS", 1)
    scenario, mongo = await create_topic_scenario(stores), stores.mongo
    await scenario.post()
    async with profiled(mongo):
        await mongo.find("messages", {"_id.t": scenario.topic.id}, limit=3)
        await stores.notifications.unread_count(scenario.organization_id, "ann", frozenset())
        await distinct_values(mongo, "messages", "author", {})
        await mongo.aggregate("messages", [{"$match": {"_id.t": scenario.topic.id}}])
    reads = await recorded_reads(mongo)
    await mongo["system.profile"].drop()
    assert {name for each in reads for name in READS if name in each} == {"find", "aggregate", "distinct"}
    assert [each for each in reads if each.get("maxTimeMS") != MAX_TIME_MS] == []
