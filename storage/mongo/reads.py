"""Finds in one round trip (ADR 2). What fails is left to the driver, which reads again and tells what is wrong."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import PyMongoError

from storage.mongo.commands import Commands, Document

Sort = Sequence[tuple[str, int]]

MAX_BATCH = 100_000
"""Documents an answer may hold: as many as fit into 16 MB, as far as it goes."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Finds in a database. The read concern is the database's, or the transaction's."""

    commands: Commands

    async def find(
        self,
        collection: str,
        wanted: Document,
        fields: Document | None = None,
        sort: Sort = (),
        limit: int = 0,
        hint: str | None = None,
    ) -> list[Document]:
        """All documents that are wanted, at most `limit` unless that is 0. Raises: PyMongoError."""
        return await self.commands.to_its_end(self._find(collection, wanted, fields, sort, limit, hint))

    async def find_within(
        self,
        session: AsyncClientSession,
        collection: str,
        wanted: Document,
        fields: Document | None,
        sort: Sort,
        limit: int,
    ) -> list[Document]:
        """The same, as the session's transaction sees them. Raises: PyMongoError, as `Commands.ask_within` does."""
        return await _all(partial(self.commands.ask_within, session), _command(collection, wanted, fields, sort, limit))

    async def _find(
        self, collection: str, wanted: Document, fields: Document | None, sort: Sort, limit: int, hint: str | None
    ) -> list[Document]:
        # A primary that can't be found is waited for once, not here and then by the driver again.
        server = await self.commands.primary()
        command = _command(collection, wanted, fields, sort, limit, hint)
        command["readConcern"] = self.commands.database.read_concern.document
        try:
            return await _all(partial(self.commands.ask, server), command)
        except PyMongoError as error:
            if error.timeout:
                raise
        cursor = self.commands.database[collection].find(
            wanted, fields, sort=list(sort) or None, limit=limit, hint=hint
        )
        return await cursor.to_list(None)


async def _all(ask: Callable[[Document], Awaitable[Document]], command: Document) -> list[Document]:
    """All documents that a find gives. Raises: PyMongoError."""
    cursor = (await ask(command))["cursor"]
    found: list[Document] = cursor["firstBatch"]
    while cursor["id"]:
        cursor = (await ask({"getMore": cursor["id"], "collection": command["find"]}))["cursor"]
        found += cursor["nextBatch"]
    return found


def _command(
    collection: str, wanted: Document, fields: Document | None, sort: Sort, limit: int, hint: str | None = None
) -> Document:
    # The command's name comes first.
    command: Document = {"find": collection, "filter": wanted, "batchSize": limit or MAX_BATCH}
    if fields:
        command["projection"] = fields
    if sort:
        command["sort"] = dict(sort)
    if limit:
        command["limit"] = limit
    if hint:
        command["hint"] = hint
    return command
