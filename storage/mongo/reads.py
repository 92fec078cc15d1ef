"""Finds and aggregations by one command and one answer on a connection of the pool, without a cursor or a session.

Only this module and storage/mongo/pools.py use private names of PyMongo
(docs/adr/0002-two-mongodb-drivers-and-single-round-trip-reads.md).
tests/storage/mongo/test_reads.py fails when PyMongo changes one of these names:

- `_get_topology`, `_select_server`: select the primary once per topology description, not for each find.
- `_checkout`: takes a connection from the pool, without a session and a retry loop.
- `conn.get_conn`, `_op_msg`, `_OpMsg`: send a command and read its answer, for which the driver starts three tasks.
- `_raise_connection_failure`: closes the connection and informs the pool.
- `_check_command_response`: raises the driver's errors.
- `_csot.clamp_remaining`: applies `pymongo.timeout`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from bson.codec_options import DEFAULT_CODEC_OPTIONS
from pymongo import _csot
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.asynchronous.server import Server
from pymongo.errors import PyMongoError
from pymongo.helpers_shared import _check_command_response
from pymongo.message import _op_msg, _OpMsg
from pymongo.read_preferences import ReadPreference
from pymongo.topology_description import TopologyDescription

from storage.mongo.time_limits import MAX_TIME_MS

Document = dict[str, Any]
SortOrder = Sequence[tuple[str, int]]

MAX_BATCH = 100_000
"""Maximum number of documents per answer. MongoDB also ends an answer at 16 MB."""


class SingleRoundTripReads:
    """Reads of one database, at its read concern. For clients of PyMongo Async."""

    def __init__(self, database: AsyncDatabase[Document], timeout_s: float) -> None:
        """`timeout_s` limits the wait for each answer."""
        self._database = database
        self._client = database.client
        self._timeout_s = timeout_s
        self._topology: TopologyDescription | None = None
        self._primary: Server | None = None

    async def find(
        self,
        collection: str,
        query: Document,
        projection: Document | None,
        sort: SortOrder,
        limit: int,
        hint: str | None,
    ) -> list[Document]:
        """Returns the documents. Raises: PyMongoError.

        After a failure other than a timeout, repeats the read through the driver, which raises the precise error. A
        cancelled read closes its connection, as in the driver.
        """
        documents = await self._read(collection, _find_command(collection, query, projection, sort, limit, hint))
        if documents is not None:
            return documents
        cursor = self._database[collection].find(
            query, projection, sort=list(sort) or None, limit=limit, hint=hint, max_time_ms=MAX_TIME_MS
        )
        return await cursor.to_list(None)

    async def aggregate(self, collection: str, pipeline: Sequence[Document]) -> list[Document]:
        """Returns the results of a pipeline that writes nothing. Failures are handled as those of `find`."""
        command = {"aggregate": collection, "pipeline": list(pipeline), "cursor": {"batchSize": MAX_BATCH}}
        documents = await self._read(collection, command)
        if documents is not None:
            return documents
        cursor = await self._database[collection].aggregate(pipeline, maxTimeMS=MAX_TIME_MS)
        return await cursor.to_list(None)

    async def _read(self, collection: str, command: Document) -> list[Document] | None:
        """Returns all documents; None after a failure other than a timeout. Raises: PyMongoError."""
        # Outside of `try`: after a failed selection, the driver would wait for a primary a second time.
        server = await self._select_primary()
        command["readConcern"] = self._database.read_concern.document
        try:
            return await self._read_all(server, collection, command)
        except PyMongoError as error:
            if error.timeout:
                raise
        return None

    async def _read_all(self, server: Server, collection: str, command: Document) -> list[Document]:
        cursor = (await self._run(server, command))["cursor"]
        documents: list[Document] = cursor["firstBatch"]
        while cursor["id"]:
            cursor = (await self._run(server, {"getMore": cursor["id"], "collection": collection}))["cursor"]
            documents += cursor["nextBatch"]
        return documents

    async def _select_primary(self) -> Server:
        """Returns the primary. Selects it once per topology description.

        PyMongo creates a new description at every change of the topology. Raises: PyMongoError.
        """
        topology = await self._client._get_topology()
        description = topology.description
        if self._primary is not None and description is self._topology:
            return self._primary
        server = await self._client._select_server(ReadPreference.PRIMARY, None, "find")
        # If the topology changed during selection, the server may be the former primary: do not cache it.
        if topology.description is description:
            self._topology, self._primary = description, server
        return server

    async def _run(self, server: Server, command: Document) -> Document:
        """Runs a command on the server and returns the answer. Raises: PyMongoError."""
        async with self._client._checkout(server, None) as connection:
            answer = await self._exchange(connection, command)
        # Outside of the checkout, since PyMongo would clear the pool for an error that is raised inside.
        _check_command_response(answer, None)
        return answer

    async def _exchange(self, connection: AsyncConnection, command: Document) -> Document:
        """Sends a command and reads the answer. Raises: PyMongoError."""
        timeout_s = _csot.clamp_remaining(self._timeout_s)
        # MongoDB ends the command first. A getMore may use the rest of its find's limit.
        max_time_ms = min(max(1, int(timeout_s * 1000)), MAX_TIME_MS)
        limited_command = command if "getMore" in command else command | {"maxTimeMS": max_time_ms}
        request_id, message, _, _ = _op_msg(0, limited_command, self._database.name, None, DEFAULT_CODEC_OPTIONS)
        protocol = connection.conn.get_conn
        # A timer that closes the connection takes a quarter of the processor time of `asyncio.timeout`.
        close = partial(protocol.close, TimeoutError("MongoDB did not answer in time."))
        timer = asyncio.get_running_loop().call_later(timeout_s, close)
        try:
            await protocol.write(message)
            data, _ = await protocol.read(request_id, connection.max_message_size)
        except BaseException as error:
            # The answer may still arrive, so the connection must not return to the pool.
            await connection._raise_connection_failure(error)
        finally:
            timer.cancel()
        answer: Document = _OpMsg.unpack(data).command_response(self._database.codec_options)
        return answer


def _find_command(
    collection: str, query: Document, projection: Document | None, sort: SortOrder, limit: int, hint: str | None
) -> Document:
    # MongoDB takes the first key as the command's name.
    command: Document = {"find": collection, "filter": query, "batchSize": limit or MAX_BATCH}
    if projection:
        command["projection"] = projection
    if sort:
        command["sort"] = dict(sort)
    if limit:
        command["limit"] = limit
    if hint:
        command["hint"] = hint
    return command
