"""Finds in one round trip, past a driver's cursors, sessions, threads and tasks (ADR 42).

On connections of PyMongo's asynchronous pool, which knows the primary, TLS and passwords. Only the usual way is known
here: what fails is left to the driver, which reads again and tells what is wrong.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bson.codec_options import DEFAULT_CODEC_OPTIONS
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.asynchronous.server import Server
from pymongo.errors import PyMongoError
from pymongo.message import _op_msg, _OpMsg
from pymongo.read_preferences import ReadPreference
from pymongo.topology_description import TopologyDescription

Document = dict[str, Any]
Sort = Sequence[tuple[str, int]]

MAX_BATCH = 100_000
"""Documents an answer may hold: as many as fit into 16 MB, as far as it goes."""

CLOSING_S = 1.0


@dataclass(frozen=True, slots=True)
class Reads:
    """A database to read from, on a client of its own kind. Read concern and decoding are the database's."""

    client: AsyncMongoClient[Document]
    database: AsyncDatabase[Document]
    timeout_s: float
    under_way: set[asyncio.Task[list[Document]]] = field(default_factory=set)
    primaries: dict[TopologyDescription, Server] = field(default_factory=dict)
    """The primary of the last description of the servers; at most one."""

    async def find(
        self, collection: str, wanted: Document, fields: Document | None = None, sort: Sort = (), limit: int = 0
    ) -> list[Document]:
        """All documents that are wanted, at most `limit` unless that is 0. Raises: PyMongoError."""
        # Called off on its way, a read would cost its connection.
        read = asyncio.create_task(self._find(collection, wanted, fields, sort, limit))
        self.under_way.add(read)
        read.add_done_callback(self.under_way.discard)
        return await asyncio.shield(read)

    async def close(self) -> None:
        """Ends what is still being read, and closes all connections."""
        if self.under_way:
            await asyncio.wait(self.under_way, timeout=CLOSING_S)
        for read in self.under_way:
            read.cancel()
        await self.client.close()

    async def _find(
        self, collection: str, wanted: Document, fields: Document | None, sort: Sort, limit: int
    ) -> list[Document]:
        # A primary that can't be found is waited for once, not here and then by the driver again.
        server = await self._primary()
        try:
            return await self._found(server, _command(collection, wanted, fields, sort, limit))
        except PyMongoError as error:
            if error.timeout:
                raise
        cursor = self.database[collection].find(wanted, fields, sort=list(sort) or None, limit=limit)
        return await cursor.to_list(None)

    async def _primary(self) -> Server:
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

    async def _found(self, server: Server, command: Document) -> list[Document]:
        """Raises: PyMongoError."""
        cursor = await self._asked(server, command | {"readConcern": self.database.read_concern.document})
        found: list[Document] = cursor["firstBatch"]
        while cursor["id"]:
            cursor = await self._asked(server, {"getMore": cursor["id"], "collection": command["find"]})
            found += cursor["nextBatch"]
        return found

    async def _asked(self, server: Server, command: Document) -> Document:
        """The cursor of an answer. Raises: PyMongoError."""
        request_id, message, _, _ = _op_msg(0, command, self.database.name, None, DEFAULT_CODEC_OPTIONS)
        async with self.client._checkout(server, None) as connection:
            try:
                async with asyncio.timeout(self.timeout_s):
                    protocol = connection.conn.get_conn
                    await protocol.write(message)
                    data, _ = await protocol.read(request_id, connection.max_message_size)
            except BaseException as error:
                # An answer may still come, so that nobody else can use the connection.
                await connection._raise_connection_failure(error)
        answer = _OpMsg.unpack(data).command_response(self.database.codec_options)
        if not answer["ok"]:
            raise PyMongoError(str(answer.get("errmsg")))
        cursor: Document = answer["cursor"]
        return cursor


def _command(collection: str, wanted: Document, fields: Document | None, sort: Sort, limit: int) -> Document:
    # The command's name comes first.
    command: Document = {"find": collection, "filter": wanted, "batchSize": limit or MAX_BATCH}
    if fields:
        command["projection"] = fields
    if sort:
        command["sort"] = dict(sort)
    if limit:
        command["limit"] = limit
    return command
