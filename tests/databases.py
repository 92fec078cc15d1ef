"""Empty databases for tests on shared servers, and collections that refuse new documents."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields
from typing import Any, TypeVar

import pymongo
import redis
from bson import Timestamp

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
        self._writes = WrittenCollections(mongo, name)

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
        names, has_commands = self._writes.next()
        for name in self._stored_names() if names is None else names - {"data_version"}:
            self._database[name].delete_many({})
        if has_commands:
            self._restore_collections()
        for key in self._redis.scan_iter(match=f"{self.name}*", count=1000):
            self._redis.delete(key)

    def _restore_collections(self) -> None:
        collections = {each["name"]: each["options"] for each in self._database.list_collections()}
        for name, options in collections.items():
            if options.get("validator"):
                self._database.command("collMod", name, validator={})
        if not collections.keys() >= INDEXES.keys():
            asyncio.run(self._prepare())

    def _stored_names(self) -> list[str]:
        names = self._database.list_collection_names()
        return [name for name in names if not name.startswith(("system.", "data_version"))]


class WrittenCollections:
    """The collections of a database that may have documents, as the oplog tells.

    Asking each of the ninety collections takes as much time as a small test.
    """

    def __init__(
        self, mongo: "pymongo.MongoClient[dict[str, Any]]", name: str, read_until: Timestamp | None = None
    ) -> None:
        self._oplog, self._prefix = mongo["local"]["oplog.rs"], f"{name}."
        self._read_until = read_until or self._oplog.find(sort=[("$natural", pymongo.DESCENDING)], limit=1)[0]["ts"]

    def next(self) -> tuple[set[str] | None, bool]:
        """Returns the collections with inserts since the last call, and whether collections were changed themselves.

        The set is None if the oplog does not reach back to the last call.
        """
        is_relevant = {"$or": [{"ts": self._read_until}, {"op": {"$in": ["i", "c"]}}]}
        fields = {"ts": 1, "op": 1, "ns": 1, "o.applyOps.op": 1, "o.applyOps.ns": 1}
        first, *entries = self._oplog.find({"ts": {"$gte": self._read_until}, **is_relevant}, fields)
        if first["ts"] != self._read_until:
            return None, True
        self._read_until = [first, *entries][-1]["ts"]
        operations = [operation for entry in entries for operation in [entry, *entry.get("o", {}).get("applyOps", [])]]
        inserts = {each["ns"] for each in operations if each["op"] == "i" and each["ns"].startswith(self._prefix)}
        names = {namespace.removeprefix(self._prefix) for namespace in inserts}
        # Views are inserts into a collection of the system.
        return {name for name in names if not name.startswith("system.")}, any(
            each["ns"] == f"{self._prefix}$cmd" for each in operations
        )


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
