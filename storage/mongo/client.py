"""The one seam to MongoDB: clients, read and write concerns, transactions, and where the two drivers differ.

Everything is read at majority from the primary and written at majority. Motor and PyMongo Async share one API but for
the calls wrapped here; both are typed as PyMongo's asynchronous classes (ADR 2). What is done often goes by `find`,
`write` and `find_one_and_update`, which are the same with both.
"""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

import pymongo
import structlog
from bson.codec_options import CodecOptions
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import AsyncMongoClient, DeleteOne, InsertOne, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from storage.errors import Unavailable
from storage.mongo.commands import Commands
from storage.mongo.reads import Reads, Sort

Driver = Literal["motor", "pymongo"]
Session = AsyncClientSession
Document = dict[str, Any]
Collection = AsyncCollection[Any]
"""Documents of any type: stores annotate their collections, as in `AsyncCollection[UserDocument]`."""

Update = Document | Sequence[Document]
Write = InsertOne[Any] | ReplaceOne[Any] | DeleteOne
Result = TypeVar("Result")

MAJORITY = WriteConcern("majority")
SERVER_SELECTION_S = 5.0
SOCKET_TIMEOUT_S = 10.0
TRANSACTION_DEADLINE_S = 5.0
ABORT_TIMEOUT_S = 1.0
ORPHAN_S = 1.5
"""A transaction that nobody has touched for so long was left by a process that died or a connection that broke."""

APP_NAME = "noroshi"
MAX_BACKOFF_S = 0.05
MAX_DUPLICATES = 3
DUPLICATE_KEY = 11000

log = structlog.get_logger(__name__)


async def _settled(value: Any) -> Any:
    """The value, awaited where one of the drivers hands out an awaitable and the other does not."""
    return await value if inspect.isawaitable(value) else value


@dataclass(frozen=True, slots=True)
class Mongo:
    """A database whose facts are read and written at majority."""

    client: AsyncMongoClient[Document]
    database: AsyncDatabase[Document]
    reads: Reads

    @property
    def commands(self) -> Commands:
        """What goes past the driver."""
        return self.reads.commands

    def __getitem__(self, name: str) -> Collection:
        """A collection by its name."""
        return self.database[name]

    async def find(
        self,
        collection: str,
        wanted: Document,
        fields: Document | None = None,
        sort: Sort = (),
        limit: int = 0,
        session: Session | None = None,
        hint: str | None = None,
    ) -> list[Any]:
        """All documents that are wanted, at most `limit` unless that is 0, for the least processor time.

        Not for more than should be in memory at once. `hint` is the name of the index to use, outside of a session.
        """
        if session is not None:
            return await self.reads.find_within(session, collection, wanted, fields, sort, limit)
        return await self.reads.find(collection, wanted, fields, sort, limit, hint)

    async def find_one_and_update(
        self, collection: str, wanted: Document, update: Update, session: Session, upsert: bool = False
    ) -> Document | None:
        """The document as the update leaves it, in a transaction, for the least processor time; None without one."""
        command: Document = {"findAndModify": collection, "query": wanted, "update": update, "new": True}
        found: Document | None = (await self.commands.ask_within(session, command | {"upsert": upsert}))["value"]
        return found

    async def write(self, collection: str, writes: Sequence[Write], session: Session) -> None:
        """Carries out the writes in their order, in a transaction; inserts alone for the least processor time."""
        documents = [each._doc for each in writes if isinstance(each, InsertOne)]
        if len(documents) == len(writes):
            await self.commands.ask_within(session, {"insert": collection, "documents": documents})
        else:
            await self[collection].bulk_write(writes, session=session)

    async def aggregate(
        self, collection: str, pipeline: Sequence[Document], session: Session | None = None
    ) -> list[Any]:
        """All that the pipeline gives, at once."""
        cursor = await _settled(self.database[collection].aggregate(pipeline, session=session))
        return cast(list[Any], await cursor.to_list(None))

    async def transact(
        self, work: Callable[[Session], Awaitable[Result]], deadline_s: float = TRANSACTION_DEADLINE_S
    ) -> Result:
        """Runs `work` in one snapshot transaction, committed at majority.

        `work` runs again from the start after a conflict, so it must have no effect but through its session. A
        duplicate key counts as one, a few times: whoever looks before inserting sees it on the next snapshot.
        Raises: Unavailable when no try was through by the deadline (seconds); whether it was committed is then open.
        """
        loop = asyncio.get_running_loop()
        end, look_at = loop.time() + deadline_s, loop.time() + ORPHAN_S
        backoff_s, duplicates = 0.002, 0
        while True:
            try:
                return await self._attempt(work, end)
            except PyMongoError as error:
                duplicates += is_duplicate(error)
                again = error.has_error_label("TransientTransactionError")
                again = again or (is_duplicate(error) and duplicates <= MAX_DUPLICATES)
                if not (again or _is_open(error)):
                    raise
                if not again or loop.time() + backoff_s > end:
                    raise Unavailable("The database is busy; try again with the same idempotency key.") from error
            if loop.time() > look_at:
                look_at = loop.time() + ORPHAN_S / 2
                await self.end_orphans()
            await asyncio.sleep(random.uniform(0.5, 1) * backoff_s)  # noqa: S311
            backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)

    async def _attempt(self, work: Callable[[Session], Awaitable[Result]], end: float) -> Result:
        session: Session = await _settled(self.client.start_session())
        async with session:
            await _settled(session.start_transaction(ReadConcern("snapshot"), MAJORITY))
            # Without a limit a server that hangs is waited for half a minute and longer.
            left_s = max(end - asyncio.get_running_loop().time(), 0.01)
            try:
                with pymongo.timeout(left_s):
                    result = await work(session)
                    await self._commit(session, end)
            except BaseException:
                # Cancelled or failed: the abort must reach the server, or the locks stay for a minute.
                await asyncio.shield(_abort(session))
                raise
            return result

    async def _commit(self, session: Session, end: float) -> None:
        """Commits, and asks again while the outcome is unknown: committing twice is harmless, MongoDB remembers.

        Raises: Unavailable when it stays unknown. Whoever tried the work again then might do it twice.
        """
        # Whatever is wrong with the first try, the driver finds it out by the next one.
        with suppress(PyMongoError):
            if await self.commands.commit(session):
                return
        while True:
            try:
                await session.commit_transaction()
                return
            except PyMongoError as error:
                # An interrupted wait for the majority leaves it as open as a lost answer; drivers don't label it so.
                if not isinstance(error, WriteConcernError) and not _is_open(error):
                    raise
                if asyncio.get_running_loop().time() > end:
                    raise Unavailable("The database did not say whether it was done.") from error
                await asyncio.sleep(0.01)

    async def past_orphans(self, write: Callable[[], Awaitable[Result]]) -> Result:
        """Runs a write that is no transaction, and may be run twice.

        What a dead process's transaction has locked would keep it waiting for a minute: that is ended meanwhile.
        """
        try:
            with pymongo.timeout(ORPHAN_S * 1.2):
                return await write()
        except PyMongoError as error:
            if not error.timeout:
                raise
        await self.end_orphans()
        return await write()

    async def end_orphans(self) -> None:
        """Ends transactions of ours that nobody touches: MongoDB would keep them, and their locks, for a minute.

        One whose process only slept starts over.
        """
        idle = {"type": "idleSession", "transaction.timeInactiveMicros": {"$gt": int(ORPHAN_S * 1_000_000)}}
        ours = {"$match": {**idle, "clientMetadata.application.name": APP_NAME}}
        with suppress(PyMongoError), pymongo.timeout(ABORT_TIMEOUT_S):
            cursor = await _settled(self.client.admin.aggregate([{"$currentOp": {"idleSessions": True}}, ours]))
            sessions = [{"id": row["lsid"]["id"]} for row in await cursor.to_list(None)]
            if sessions:
                await self.client.admin.command("killSessions", sessions)
                log.warning("orphans_ended", count=len(sessions))

    async def now(self) -> datetime:
        """The database's clock, to the millisecond."""
        hello = await self.database.command("hello", codec_options=self.database.codec_options)
        now: datetime = hello["localTime"]
        return now

    async def close(self) -> None:
        """Closes all connections."""
        await self.commands.close()
        if self.client is not self.commands.client:
            await _settled(self.client.close())


def older_than(field: str, age_s: float) -> Document:
    """A filter for documents whose instant lies further back than that, by the database's clock."""
    return {"$expr": {"$lt": [f"${field}", {"$subtract": ["$$NOW", int(age_s * 1000)]}]}}


async def _abort(session: Session) -> None:
    if session.in_transaction:
        # Cancelled during a commit, which goes on in a thread of Motor's: there may be nothing left to abort by now.
        with suppress(InvalidOperation), pymongo.timeout(ABORT_TIMEOUT_S):
            await session.abort_transaction()


def _is_open(error: PyMongoError) -> bool:
    """Whether nobody can say what became of the transaction, or time ran out: it may have been committed."""
    return error.timeout or error.has_error_label("UnknownTransactionCommitResult")


def is_duplicate(error: PyMongoError) -> bool:
    """Whether a unique index refused the write."""
    if isinstance(error, BulkWriteError):
        return any(e["code"] == DUPLICATE_KEY for e in error.details.get("writeErrors", ()))
    return isinstance(error, OperationFailure) and error.code == DUPLICATE_KEY


def connect(uri: str, database: str, driver: Driver = "motor") -> Mongo:
    """A client for the database, not yet connected. Must be called inside the running event loop."""
    reading = _client(AsyncMongoClient, uri)
    client = _client(AsyncIOMotorClient, uri) if driver == "motor" else reading
    commands = Commands(reading, _facts(reading, database), SOCKET_TIMEOUT_S)
    return Mongo(client, _facts(client, database), Reads(commands))


def _client(make: Callable[..., Any], uri: str) -> AsyncMongoClient[Document]:
    client: AsyncMongoClient[Document] = make(
        uri,
        serverSelectionTimeoutMS=int(SERVER_SELECTION_S * 1000),
        # A server that is stopped, not dead, would be waited for without end.
        socketTimeoutMS=int(SOCKET_TIMEOUT_S * 1000),
        appname=APP_NAME,
    )
    return client


def _facts(client: AsyncMongoClient[Document], database: str) -> AsyncDatabase[Document]:
    options: CodecOptions[Document] = CodecOptions(tz_aware=True)
    return client.get_database(
        database, codec_options=options, write_concern=MAJORITY, read_concern=ReadConcern("majority")
    )


def unavailable(error: BaseException) -> Unavailable | None:
    """What a client is told when MongoDB does not answer; None for every other error."""
    if isinstance(error, ConnectionFailure) or (isinstance(error, PyMongoError) and error.timeout):
        return Unavailable("The database does not answer right now.")
    return None
