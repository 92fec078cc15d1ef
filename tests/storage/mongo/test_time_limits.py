"""Each read has maxTimeMS in MongoDB's profile, so MongoDB ends reads whose clients have given up."""

from collections.abc import AsyncIterator

import pytest

from storage.mongo import Document, Mongo
from storage.stores import Stores
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

READS = ["find", "aggregate", "count", "distinct"]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def profiled(stores: Stores) -> AsyncIterator[Mongo]:
    """Yields the database, which records all its commands until the test ends."""
    await stores.mongo.database.command("profile", 2)
    yield stores.mongo
    await stores.mongo.database.command("profile", 0)
    await stores.mongo["system.profile"].drop()


async def recorded_reads(mongo: Mongo) -> list[Document]:
    """Returns the commands of reads in the profile, without reads of the profile."""
    documents = await mongo["system.profile"].find({"appName": "noroshi"}).to_list(None)
    commands: list[Document] = [each["command"] for each in documents]
    return [each for each in commands if any(name in each for name in READS) and each.get("find") != "system.profile"]


async def read_everything(scenario: TopicScenario) -> None:
    """Reads by the methods of `Mongo` and of the driver that the product uses."""
    mongo = scenario.stores.mongo
    await scenario.post()
    await mongo.find("messages", {"_id.t": scenario.topic.id}, limit=3)
    await mongo["messages"].find_one({"_id.t": scenario.topic.id})
    await mongo["messages"].count_documents({"_id.t": scenario.topic.id})
    await mongo["messages"].distinct("author")
    await mongo["messages"].find({}).to_list(None)
    await mongo.aggregate("messages", [{"$match": {"_id.t": scenario.topic.id}}])


async def test_each_read_has_a_time_limit(stores: Stores, profiled: Mongo) -> None:
    await read_everything(await create_topic_scenario(stores))
    reads = await recorded_reads(profiled)
    assert {name for each in reads for name in READS if name in each} >= {"find", "aggregate", "distinct"}
    assert [each for each in reads if not 0 < each.get("maxTimeMS", 0) <= 10_000] == []
