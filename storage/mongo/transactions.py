"""Snapshot transactions, committed at majority and repeated after conflicts.

A transaction is orphaned if nobody can commit it any more. This module also ends orphaned transactions. A slow process
keeps its transactions until their deadline.
"""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import Any, TypeVar

import pymongo
import structlog
from pymongo import AsyncMongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import InvalidOperation, PyMongoError, WriteConcernError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from storage.errors import Unavailable
from storage.mongo.errors import is_duplicate, is_outcome_unknown
from storage.mongo.pools import discard_connections, lacks_sessions

Session = AsyncClientSession
Client = AsyncMongoClient[dict[str, Any]]
Result = TypeVar("Result")

APP_NAME = "noroshi"
MAJORITY = WriteConcern("majority")
TRANSACTION_DEADLINE_S = 5.0
ABORT_TIMEOUT_S = 1.0
GROWING_BACKOFFS_S = (0.002, 0.004, 0.008, 0.016, 0.032, 0.05)
"""The longest wait after each lost conflict, and after all further ones. The shortest wait is half of it."""

MAX_DUPLICATES = 3
"""How many duplicate keys of one transaction count as conflicts."""

CHECK_ORPHANS_S = 1.5
"""How long a transaction or write is blocked before it looks for orphans."""

CLOSED_S = 1.0
"""Seconds without a command after which a transaction whose connection is closed is orphaned.

A living process whose connection broke repeats its transaction sooner.
"""

log = structlog.get_logger(__name__)


async def transact(
    client: Client,
    work: Callable[[Session], Awaitable[Result]],
    deadline_s: float = TRANSACTION_DEADLINE_S,
    backoffs_s: Sequence[float] = GROWING_BACKOFFS_S,
) -> Result:
    """Runs `work` in a transaction. See `Mongo.transact`."""
    loop = asyncio.get_running_loop()
    ends_at, check_orphans_at = loop.time() + deadline_s, loop.time() + CHECK_ORPHANS_S
    waits_s, duplicates = chain(backoffs_s, repeat(backoffs_s[-1])), 0
    while True:
        try:
            return await _attempt(client, work, ends_at)
        except PyMongoError as error:
            backoff_s = next(waits_s)
            duplicates += is_duplicate(error)
            is_retryable = error.has_error_label("TransientTransactionError")
            is_retryable = is_retryable or (is_duplicate(error) and duplicates <= MAX_DUPLICATES)
            if lacks_sessions(error):
                is_retryable = True
                await discard_connections(client)
            if not (is_retryable or is_outcome_unknown(error)):
                raise
            if not is_retryable or loop.time() + backoff_s > ends_at:
                raise Unavailable("The database is busy; try again with the same idempotency key.") from error
        if loop.time() > check_orphans_at:
            check_orphans_at = loop.time() + CHECK_ORPHANS_S / 2
            await end_orphans(client)
        await asyncio.sleep(random.uniform(backoff_s / 2, backoff_s))  # noqa: S311


async def write_past_orphans(client: Client, write: Callable[[], Awaitable[Result]]) -> Result:
    """Runs an idempotent write outside of transactions. See `Mongo.write_past_orphans`."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + TRANSACTION_DEADLINE_S
    while loop.time() < ends_at:
        try:
            with pymongo.timeout(CHECK_ORPHANS_S):
                return await write()
        except PyMongoError as error:
            if not error.timeout:
                raise
        await end_orphans(client)
    # By now, every transaction that was open at the start has ended, or was ended as an orphan. If the write is still
    # blocked, the server is slow.
    return await write()


async def end_orphans(client: Client) -> None:
    """Ends this product's orphaned transactions. Otherwise MongoDB would keep them and their locks for a minute.

    If a process was suspended past the deadline of a transaction, it answers the callers with Unavailable.
    """
    listed = {"$currentOp": {"idleSessions": True, "idleConnections": True}}
    ours = {"$match": {"clientMetadata.application.name": APP_NAME}}
    fields = {"$project": {"type": 1, "connectionId": 1, "lsid.id": 1, "transaction": 1}}
    with suppress(PyMongoError), pymongo.timeout(ABORT_TIMEOUT_S):
        cursor = await awaited(client.admin.aggregate([listed, ours, fields]))
        sessions = _orphaned_sessions(await cursor.to_list(None))
        if sessions:
            await client.admin.command("killSessions", sessions)
            log.warning("orphans_ended", count=len(sessions))


def _orphaned_sessions(operations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the sessions of transactions whose connection is closed or whose deadline has passed."""
    open_connections = {each.get("connectionId") for each in operations if each["type"] == "op"}
    orphans = []
    for each in operations:
        if each["type"] == "idleSession" and "transaction" in each:
            transaction = each["transaction"]
            # The connection of the last command. It closes at once when the process dies.
            is_closed = each.get("connectionId") not in open_connections
            is_overdue = transaction["timeOpenMicros"] > TRANSACTION_DEADLINE_S * 1_000_000
            if is_overdue or (is_closed and transaction["timeInactiveMicros"] > CLOSED_S * 1_000_000):
                orphans.append({"id": each["lsid"]["id"]})
    return orphans


async def awaited(value: Any) -> Any:
    """Returns the value, after awaiting it if it is awaitable. Some calls are awaitable with one driver only."""
    return await value if inspect.isawaitable(value) else value


async def _attempt(client: Client, work: Callable[[Session], Awaitable[Result]], ends_at: float) -> Result:
    session: Session = await awaited(client.start_session())
    try:
        await awaited(session.start_transaction(ReadConcern("snapshot"), MAJORITY))
        # Without this timeout, a server that does not answer could block for over half a minute.
        left_s = max(ends_at - asyncio.get_running_loop().time(), 0.01)
        with pymongo.timeout(left_s):
            result = await work(session)
            await _commit(session, ends_at)
    except BaseException:
        # The abort must reach the server even after a cancellation. Otherwise locks stay for a minute.
        await asyncio.shield(_abort(session))
        raise
    await session.end_session()
    return result


async def _commit(session: Session, ends_at: float) -> None:
    """Commits, and repeats the commit while its outcome is unknown. MongoDB commits a transaction at most once.

    Raises: Unavailable if the outcome is still unknown at `ends_at`. Repeating the work then could carry it out twice.
    """
    while True:
        try:
            await session.commit_transaction()
            return
        except PyMongoError as error:
            # After an interrupted wait for the majority the outcome is unknown too, but the drivers do not label it.
            if not isinstance(error, WriteConcernError) and not is_outcome_unknown(error):
                raise
            if asyncio.get_running_loop().time() > ends_at:
                raise Unavailable("The outcome is unknown; try again with the same idempotency key.") from error
            await asyncio.sleep(0.01)


async def _abort(session: Session) -> None:
    """Aborts the transaction by ending its session.

    With Motor, a cancelled command may still run in a thread. It fails if the session has ended. If only the
    transaction were aborted, the command would write outside of it. A cancelled commit may have succeeded.
    """
    with suppress(InvalidOperation, PyMongoError), pymongo.timeout(ABORT_TIMEOUT_S):
        await session.end_session()
