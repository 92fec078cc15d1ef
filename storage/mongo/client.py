"""The product's MongoDB client: reads at majority from the primary, writes at majority.

Motor and PyMongo Async share one API except for a few calls, which this package wraps. Both are typed as PyMongo's
asynchronous classes (docs/adr/0002-two-mongodb-drivers-and-single-round-trip-reads.md).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient, DeleteOne, InsertOne, ReplaceOne, ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.read_concern import ReadConcern

from storage.mongo import transactions
from storage.mongo.elections import HEARTBEAT_S, SettledPrimaries
from storage.mongo.reads import MAX_BATCH, Document, SingleRoundTripReads, SortOrder
from storage.mongo.time_limits import COMMAND_TIMEOUT_S, time_limited
from storage.mongo.transactions import APP_NAME, MAJORITY, TRANSACTION_DEADLINE_S, Session, awaited

Driver = Literal["motor", "pymongo"]
DEFAULT_DRIVER: Driver = "pymongo"
Collection = AsyncCollection[Any]
"""Documents of any type. Stores annotate their collections, as in `AsyncCollection[UserDocument]`."""

Update = Document | Sequence[Document]
Write = InsertOne[Any] | ReplaceOne[Any] | DeleteOne
Result = TypeVar("Result")

SERVER_SELECTION_S = 5.0
MAX_PIPELINES = 50
"""Maximum number of pipelines that one command unites."""


@dataclass(frozen=True, slots=True)
class Mongo:
    """A database, through either driver. Reads and writes are at majority."""

    client: AsyncMongoClient[Document]
    database: AsyncDatabase[Document]
    collection_class: Callable[[AsyncDatabase[Document], str], Collection]
    """The driver's class of collections, with limits on the time of reads."""

    reads: SingleRoundTripReads | None = None
    """Set for PyMongo Async; None for Motor, which reads through its public API."""

    def __getitem__(self, name: str) -> Collection:
        """Returns a collection by its name."""
        return self.collection_class(self.database, name)

    async def find(
        self,
        collection: str,
        query: Document,
        projection: Document | None = None,
        sort: SortOrder = (),
        limit: int = 0,
        session: Session | None = None,
        hint: str | None = None,
    ) -> list[Any]:
        """Returns all matching documents at once, at most `limit` unless it is 0.

        `hint` is the name of the index to use.
        """
        if session is None and self.reads is not None:
            return await self.reads.find(collection, query, projection, sort, limit, hint)
        cursor = self[collection].find(
            query,
            projection,
            sort=list(sort) or None,
            limit=limit,
            batch_size=limit or MAX_BATCH,
            hint=hint,
            session=session,
        )
        return await cursor.to_list(None)

    async def find_one_and_update(
        self, collection: str, query: Document, update: Update, session: Session, upsert: bool = False
    ) -> Any:
        """Updates a document in a transaction and returns its new state, or None if nothing matched."""
        return await self[collection].find_one_and_update(
            query, update, upsert=upsert, return_document=ReturnDocument.AFTER, session=session
        )

    async def write(self, collection: str, writes: Sequence[Write], session: Session) -> None:
        """Executes the writes in order, in a transaction."""
        await self[collection].bulk_write(writes, session=session)

    async def aggregate(
        self, collection: str, pipeline: Sequence[Document], session: Session | None = None
    ) -> list[Any]:
        """Returns all results of the pipeline at once. The pipeline must write nothing."""
        if session is None and self.reads is not None:
            return await self.reads.aggregate(collection, pipeline)
        cursor = await awaited(self[collection].aggregate(pipeline, session=session))
        return cast(list[Any], await cursor.to_list(None))

    async def aggregate_each(self, collection: str, pipelines: Sequence[Sequence[Document]]) -> list[Any]:
        """Returns the results of all pipelines on a collection, in their order, with few commands at the same time."""
        chunks = [pipelines[start : start + MAX_PIPELINES] for start in range(0, len(pipelines), MAX_PIPELINES)]
        answers = await asyncio.gather(*(self.aggregate(collection, _union(collection, each)) for each in chunks))
        return [result for results in answers for result in results]

    async def transact(
        self,
        work: Callable[[Session], Awaitable[Result]],
        deadline_s: float = TRANSACTION_DEADLINE_S,
        backoffs_s: Sequence[float] = transactions.GROWING_BACKOFFS_S,
    ) -> Result:
        """Runs `work` in one snapshot transaction, committed at majority. Returns its result.

        After a conflict, `work` runs again from the start, so it must have no effects outside of its session. It waits
        at most as long as `backoffs_s` says for the conflict, or for the last one, and at least half of that. A
        duplicate key counts as a conflict up to three times, since `work` can then read the document that exists.
        Raises: Unavailable if no attempt succeeded within `deadline_s`. The transaction may have been committed.
        """
        return await transactions.transact(self.client, work, deadline_s, backoffs_s)

    async def write_past_orphans(self, write: Callable[[], Awaitable[Result]]) -> Result:
        """Runs an idempotent write outside of transactions. Ends orphaned transactions that block the write."""
        return await transactions.write_past_orphans(self.client, write)

    async def now(self) -> datetime:
        """Returns the current time by the database's clock, to the millisecond."""
        hello = await self.database.command("hello", codec_options=self.database.codec_options)
        now: datetime = hello["localTime"]
        return now

    async def close(self) -> None:
        """Closes all connections."""
        await awaited(self.client.close())


def _union(collection: str, pipelines: Sequence[Sequence[Document]]) -> list[Document]:
    """Returns one pipeline with the results of all pipelines, in their order."""
    first, *others = pipelines
    return [*first, *({"$unionWith": {"coll": collection, "pipeline": list(each)}} for each in others)]


def older_than(field: str, age_s: float) -> Document:
    """Returns a filter for documents whose `field` is at least `age_s` seconds ago by the database's clock."""
    return {"$expr": {"$lte": [f"${field}", {"$subtract": ["$$NOW", int(age_s * 1000)]}]}}


def due_filter(field: str) -> Document:
    """Returns a filter for documents whose time `field` has come. `$exists` lets MongoDB use the partial index."""
    return {field: {"$exists": True}, "$expr": {"$lte": [f"${field}", "$$NOW"]}}


def seconds_from_now(seconds: float) -> Document:
    """Returns an expression for the time in `seconds` seconds by the database's clock."""
    return {"$add": ["$$NOW", int(seconds * 1000)]}


def literals(fields: Mapping[str, Any]) -> Document:
    """Returns the fields for a stage of an update pipeline, in which a text such as "$x" would be an expression."""
    return {name: {"$literal": value} for name, value in fields.items()}


def connect(
    uri: str, database: str, driver: Driver = DEFAULT_DRIVER, command_timeout_s: float | None = COMMAND_TIMEOUT_S
) -> Mongo:
    """Creates a client, which connects with its first command. Must be called inside the running event loop.

    `command_timeout_s` limits the wait for each answer. None sets no limit, since the build of an index may take hours.
    Reads have their own limit.
    """
    client = _client(driver, uri, command_timeout_s)
    options: CodecOptions[Document] = CodecOptions(tz_aware=True)
    opened_database = client.get_database(
        database, codec_options=options, write_concern=MAJORITY, read_concern=ReadConcern("majority")
    )
    reads = SingleRoundTripReads(opened_database, COMMAND_TIMEOUT_S) if driver == "pymongo" else None
    return Mongo(client, opened_database, time_limited(type(opened_database["any"])), reads)


def _client(driver: Driver, uri: str, command_timeout_s: float | None) -> AsyncMongoClient[Document]:
    client_class: Callable[..., Any] = AsyncMongoClient
    if driver == "motor":
        from motor.motor_asyncio import AsyncIOMotorClient

        client_class = AsyncIOMotorClient
    primaries = SettledPrimaries()
    client: AsyncMongoClient[Document] = client_class(
        uri,
        event_listeners=[primaries],
        server_selector=primaries.select,
        heartbeatFrequencyMS=int(HEARTBEAT_S * 1000),
        serverSelectionTimeoutMS=int(SERVER_SELECTION_S * 1000),
        # Without a timeout, commands to a suspended server process would never end. `timeoutMS` would also send
        # maxTimeMS with each command, but the selection of a server could then take as long.
        socketTimeoutMS=None if command_timeout_s is None else int(command_timeout_s * 1000),
        appname=APP_NAME,
    )
    return client
