"""Commands in one round trip, past a driver's cursors, sessions, threads and tasks (ADR 2).

On connections of PyMongo's asynchronous pool, which knows the primary, TLS and passwords. Only the usual way is known
here: what fails is told as the driver would tell it, and whoever asked leaves it to the driver or starts over.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from bson.codec_options import DEFAULT_CODEC_OPTIONS
from pymongo import AsyncMongoClient, _csot
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.asynchronous.server import Server
from pymongo.client_session_shared import _TxnState
from pymongo.errors import BulkWriteError, ConnectionFailure, InvalidOperation
from pymongo.helpers_shared import _check_command_response
from pymongo.message import _op_msg, _OpMsg
from pymongo.read_preferences import ReadPreference
from pymongo.topology_description import TopologyDescription

Document = dict[str, Any]
Result = TypeVar("Result")

CLOSING_S = 1.0


@dataclass(frozen=True, slots=True)
class Commands:
    """Asks the primary of a database, on a client of its own kind. Answers are decoded as the database says."""

    client: AsyncMongoClient[Document]
    database: AsyncDatabase[Document]
    timeout_s: float
    primaries: dict[TopologyDescription, Server] = field(default_factory=dict)
    """The primary of the last description of the servers; at most one."""

    under_way: set[asyncio.Task[Any]] = field(default_factory=set)

    async def to_its_end(self, asking: Coroutine[Any, Any, Result]) -> Result:
        """What comes of asking. It goes on when nobody waits any more: called off, it would cost its connection."""
        task = asyncio.create_task(asking)
        self.under_way.add(task)
        task.add_done_callback(self._end)
        return await asyncio.shield(task)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.under_way.discard(task)
        if not task.cancelled():
            # Of what nobody waits for any more nobody must be told.
            task.exception()

    async def close(self) -> None:
        """Ends what is still being asked, and closes all connections."""
        if self.under_way:
            await asyncio.wait(self.under_way, timeout=CLOSING_S)
        for each in self.under_way:
            each.cancel()
        await self.client.close()

    async def primary(self) -> Server:
        """Chosen once for each description of the servers, which is another one as soon as anything changes.

        Raises: PyMongoError.
        """
        topology = await self.client._get_topology()
        described = topology.description
        server = self.primaries.get(described)
        if server is None:
            server = await self.client._select_server(ReadPreference.PRIMARY, None, "find")
            self.primaries.clear()
            # Chosen while they changed, it may be the primary of before.
            if topology.description is described:
                self.primaries[described] = server
        return server

    async def ask(self, server: Server, command: Document) -> Document:
        """The answer of the server. Raises: PyMongoError."""
        async with self.client._checkout(server, None) as connection:
            answer = await self._answer(connection, command, self.database.name)
        return _checked(answer)

    async def ask_within(self, session: AsyncClientSession, command: Document, database: str | None = None) -> Document:
        """The answer to a command of the session's transaction; the first one begins it.

        Raises: PyMongoError, as the driver labels it: TransientTransactionError where another try may succeed.
        """
        own = _own(session)
        try:
            return await self.to_its_end(self._ask_within(own, command, database or self.database.name))
        except ConnectionFailure as error:
            # Nobody knows how far the session got: it is not used for another transaction.
            own._server_session.mark_dirty()
            error._add_error_label("TransientTransactionError")
            raise

    async def _ask_within(self, session: Any, command: Document, database: str) -> Document:
        async with self.client._checkout(await self.primary(), None) as connection:
            if not session.in_transaction:
                # Whoever asked stopped waiting and aborted meanwhile; now it would be done outside of any transaction.
                raise InvalidOperation("The transaction is over.")
            session._apply_to(command, False, ReadPreference.PRIMARY, connection)
            if session._starting_transaction:
                session._transaction.set_in_progress()
            answer = await self._answer(connection, command, database)
        return _checked(answer)

    async def commit(self, session: AsyncClientSession) -> bool:
        """Whether there is nothing left to commit by now. Raises: PyMongoError; then the driver may commit again."""
        transaction = _own(session)._transaction
        if transaction.state is not _TxnState.IN_PROGRESS:
            return False
        wanted: Document = {"commitTransaction": 1, "writeConcern": self.database.write_concern.document}
        await self.ask_within(session, wanted, "admin")
        transaction.state = _TxnState.COMMITTED
        return True

    async def _answer(self, connection: AsyncConnection, command: Document, database: str) -> Document:
        """Raises: PyMongoError."""
        request_id, message, _, _ = _op_msg(0, command, database, None, DEFAULT_CODEC_OPTIONS)
        protocol = connection.conn.get_conn
        # A quarter of what asyncio.timeout costs.
        give_up = partial(protocol.close, TimeoutError("no answer in time"))
        late = asyncio.get_running_loop().call_later(_csot.clamp_remaining(self.timeout_s), give_up)
        try:
            await protocol.write(message)
            data, _ = await protocol.read(request_id, connection.max_message_size)
        except BaseException as error:
            # An answer may still come, so that nobody else can use the connection.
            await connection._raise_connection_failure(error)
        finally:
            late.cancel()
        answer: Document = _OpMsg.unpack(data).command_response(self.database.codec_options)
        return answer


def _checked(answer: Document) -> Document:
    """Raises: PyMongoError.

    Not where the pool would hear of it: who is the primary it learns from the servers, within milliseconds, and what
    one of them refused for another reason must not make it forget them all.
    """
    _check_command_response(answer, None, parse_write_concern_error=True)
    if "writeErrors" in answer:
        raise BulkWriteError(answer)
    return answer


def _own(session: AsyncClientSession) -> Any:
    """PyMongo's session; Motor wraps one of the synchronous ones, which adds to commands just the same."""
    return getattr(session, "delegate", session)
