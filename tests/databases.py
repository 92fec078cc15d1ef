"""Empty databases for tests on shared servers, and collections that refuse new documents."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields
from typing import Any, TypeVar

import pymongo
import redis

from storage.indexes import INDEXES
from storage.migrations.start import prepare_database
from storage.mongo import Mongo, connect
from tests.unlimited_reads import check_reads, profiler_settings, record_unlimited_reads

CREDENTIAL_KEYS = {"1": b"k" * 32}
"""The keys that encrypt credentials in tests."""


MongoType = TypeVar("MongoType", bound=Mongo)


def with_class(mongo: Mongo, mongo_class: type[MongoType]) -> MongoType:
    """Returns an equal object of a subclass, which may count, delay or refuse operations."""
    return mongo_class(**{each.name: getattr(mongo, each.name) for each in fields(mongo)})


@asynccontextmanager
async def refusing_documents(mongo: Mongo, collection: str) -> AsyncIterator[None]:
    """Makes the server refuse every insert into the collection, so that a transaction with an insert fails."""
    command = mongo.database.command
    await command("collMod", collection, validator={"no_document_has_this_field": {"$exists": True}})
    try:
        yield
    finally:
        await command("collMod", collection, validator={})


class ReusedDatabase:
    """A database that tests use one after another, because creating its collections takes longer than most tests.

    It has the collections and indexes of this release, so stores are opened on it with `is_prepared`.
    """

    def __init__(
        self, uri: str, name: str, mongo: "pymongo.MongoClient[dict[str, Any]]", redis_client: "redis.Redis"
    ) -> None:
        self.name = name
        self._uri, self._database, self._redis = uri, mongo[name], redis_client
        self._profiler_settings = profiler_settings(self._database)
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        mongo = connect(self._uri, self.name)
        await prepare_database(mongo)
        await mongo.close()

    def empty(self) -> None:
        """Deletes all documents, keeps the data version, and undoes what a test did to collections and the profiler.

        Fails if the test made the product read without a time limit.
        """
        try:
            check_reads(self._database)
        finally:
            self._restore()

    def _restore(self) -> None:
        if profiler_settings(self._database) != self._profiler_settings or self._database["system.profile"].find_one():
            record_unlimited_reads(self._database)
        collections = {each["name"]: each["options"] for each in self._database.list_collections()}
        stored = [name for name in collections if not name.startswith(("system.", "data_version"))]
        for name in self._with_documents(stored):
            self._database[name].delete_many({})
        for name, options in collections.items():
            if options.get("validator"):
                self._database.command("collMod", name, validator={})
        if not collections.keys() >= INDEXES.keys():
            asyncio.run(self._prepare())
        for key in self._redis.scan_iter(match=f"{self.name}*", count=1000):
            self._redis.delete(key)

    def _with_documents(self, names: list[str]) -> list[str]:
        """Returns the collections that have documents. One command for all takes a tenth of the time of deletions."""
        first = {name: [{"$limit": 1}, {"$project": {"_id": 0, "name": {"$literal": name}}}] for name in names}
        unions = [{"$unionWith": {"coll": name, "pipeline": pipeline}} for name, pipeline in first.items()]
        found = self._database.aggregate([{"$documents": []}, *unions])
        return [each["name"] for each in found]


@contextmanager
def reused_database(mongodb_uri: str, redis_url: str) -> Iterator[ReusedDatabase]:
    """Creates a database with a unique name, and drops it afterwards."""
    with (
        fresh_database(mongodb_uri, redis_url) as name,
        pymongo.MongoClient[dict[str, Any]](mongodb_uri) as mongo,
        redis.Redis.from_url(redis_url) as redis_client,
    ):
        yield ReusedDatabase(mongodb_uri, name, mongo, redis_client)


@contextmanager
def fresh_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    """Yields a unique name for a MongoDB database, which is also the prefix of Redis keys. Deletes both afterwards.

    Fails if the product made reads of this database without a time limit.
    """
    name = f"t_{secrets.token_hex(6)}"
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri)
    with client:
        record_unlimited_reads(client[name])
        yield name
        try:
            check_reads(client[name])
        finally:
            client.drop_database(name)
    with redis.Redis.from_url(redis_url) as redis_client:
        for key in redis_client.scan_iter(match=f"{name}*", count=1000):
            redis_client.delete(key)
