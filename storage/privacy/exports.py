"""Exports of a person's data: requests, progress, and the parts of the archive, which are stored in MongoDB.

Every process reads and writes the same parts. The transaction that stores a part checks that the export
exists and that no later attempt has begun. So nothing is stored after an erasure.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.records import user_document_id
from storage.ids import UserKey, new_id
from storage.indexes.lifetimes import EXPORTS_KEPT_S
from storage.mongo import Document, Mongo, Session, due_filter, literals, seconds_from_now
from storage.privacy.documents import ExportChunkDocument, ExportDocument
from storage.streams.log import jobs_stream
from storage.streams.outbox import Outbox, add_rows

EXPORTS = "exports"
CHUNKS = "export_chunks"
KEPT_S = EXPORTS_KEPT_S
CHUNK_BYTES = 1024 * 1024
MAX_BYTES = 256 * 1024 * 1024
"""Maximum size of an archive."""

REUSED_S = 3600
"""A request within this time after the previous request returns the previous export, unless that export has failed."""

CLAIMED_S = 15
"""How long a worker's claim lasts. Each part and each file renew it."""


class ExportState(Enum):
    """State of an export."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class ExportFailure(Enum):
    """Why an export failed. The value is stored."""

    TOO_LARGE = "TOO_LARGE"


class ExportLost(Exception):
    """The export was erased or has expired, or another worker has claimed it."""


@dataclass(frozen=True, slots=True)
class DataExport:
    """An export as read from the database."""

    id: str
    person: UserKey
    state: ExportState
    requested_at: datetime
    files_done: int
    size_bytes: int
    chunks: int
    fence: int
    failure: ExportFailure | None

    @property
    def user_id(self) -> str:
        """Id of the person."""
        return self.person.user_id

    @property
    def expires_at(self) -> datetime:
        """When the export is deleted."""
        return self.requested_at + timedelta(seconds=KEPT_S)


class ExportStore:
    """Stores requests and archives. Workers claim requests."""

    def __init__(self, mongo: Mongo, outbox: Outbox) -> None:
        self._mongo = mongo
        self._outbox = outbox
        self._exports: AsyncCollection[ExportDocument] = mongo[EXPORTS]
        self._chunks: AsyncCollection[ExportChunkDocument] = mongo[CHUNKS]

    async def request(self, person: UserKey) -> DataExport:
        """Requests an export, and returns it. Returns the earlier export instead while that is pending or running.

        The earlier export is also returned for an hour after its request, unless it has failed.
        """
        key = {"_id": user_document_id(*person)}
        new = {"key": new_id(), "at": "$$NOW", "fence": 0, "files_done": 0, "chunks": 0, "bytes": 0, "due": "$$NOW"}
        is_recent = {"$gt": ["$at", {"$subtract": ["$$NOW", REUSED_S * 1000]}]}
        is_running = {"$ne": [{"$type": "$due"}, "missing"]}
        has_failed = {"$ne": [{"$type": "$failure"}, "missing"]}
        is_kept = {"$or": [is_running, {"$and": [is_recent, {"$not": [has_failed]}]}]}
        change = [{"$replaceWith": {"$cond": [is_kept, "$$ROOT", {"_id": "$_id", **new}]}}]

        async def work(session: Session) -> ExportDocument:
            stored: ExportDocument = await self._mongo.find_one_and_update(EXPORTS, key, change, session, upsert=True)
            if stored["key"] == new["key"]:
                await self._chunks.delete_many({"org": person.organization_id, "user": person.user_id}, session=session)
                await self._emit(person, session)
            return stored

        export = _record(await self._mongo.transact(work))
        self._outbox.nudge(jobs_stream(person.organization_id).name)
        return export

    async def find(self, person: UserKey) -> DataExport | None:
        """Returns the person's latest export, or None."""
        document = await self._exports.find_one({"_id": user_document_id(*person)})
        return None if document is None else _record(document)

    async def find_by_id(self, id_: str) -> DataExport | None:
        """Returns the export with this public id, or None."""
        document = await self._exports.find_one({"key": id_})
        return None if document is None else _record(document)

    async def by_user_id(self, organization_id: str, user_ids: Any) -> dict[str, DataExport]:
        """Returns exports by user id, which is also the `ref` of their events."""
        ids = [user_document_id(organization_id, user_id) for user_id in user_ids]
        rows: list[ExportDocument] = await self._mongo.find(EXPORTS, {"_id": {"$in": ids}})
        return {row["_id"]["id"]: _record(row) for row in rows}

    async def claim(self) -> DataExport | None:
        """Claims an export that is due, and sets its progress back to the beginning; returns None if none is due."""
        query = due_filter("due")
        begin = {"fence": {"$add": ["$fence", 1]}, "files_done": 0, "chunks": 0, "bytes": 0, "due": _CLAIM_END}
        # A worker that was killed may have left a transaction that locks the export.
        document = await self._mongo.write_past_orphans(
            lambda: self._exports.find_one_and_update(
                query, [{"$set": begin}], sort=[("due", 1)], return_document=ReturnDocument.AFTER
            )
        )
        return None if document is None else _record(document)

    async def add_chunk(self, export: DataExport, number: int, data: bytes) -> int:
        """Stores a part of the archive. Returns the size of the archive so far. Raises: ExportLost."""
        person = export.person
        id_ = {"e": export.id, "f": export.fence, "n": number}
        fields = {"org": person.organization_id, "user": person.user_id, "data": data}
        insert = [{"$set": {"at": "$$NOW", **literals(fields)}}]

        async def work(session: Session) -> int:
            counted = {"chunks": number + 1, "bytes": {"$add": ["$bytes", len(data)]}}
            stored = await self._update(export, counted, session)
            await self._chunks.update_one({"_id": id_}, insert, upsert=True, session=session)
            return stored["bytes"]

        return await self._mongo.transact(work)

    async def finish_file(self, export: DataExport) -> None:
        """Counts a file, and emits the progress. Raises: ExportLost."""
        await self._change(export, {"files_done": {"$add": ["$files_done", 1]}})

    async def complete(self, export: DataExport) -> None:
        """Ends the export: the archive can be downloaded. Raises: ExportLost."""
        await self._change(export, {"completed_at": "$$NOW"}, ends=True)
        await self._delete_chunks(export, {"$ne": export.fence})

    async def fail(self, export: DataExport, failure: ExportFailure) -> None:
        """Ends the export without an archive. Raises: ExportLost."""
        await self._change(export, {"failure": failure.value}, ends=True)
        await self._delete_chunks(export, {"$exists": True})

    async def read(self, export: DataExport) -> AsyncIterator[bytes]:
        """Yields the parts of the archive. Ends early if the export is erased meanwhile."""
        for number in range(export.chunks):
            chunk = await self._chunks.find_one({"_id": {"e": export.id, "f": export.fence, "n": number}})
            if chunk is None:
                return
            yield bytes(chunk["data"])

    async def _change(self, export: DataExport, fields: Document, ends: bool = False) -> None:
        async def work(session: Session) -> None:
            await self._update(export, fields, session, ends)
            await self._emit(export.person, session)

        await self._mongo.transact(work)
        self._outbox.nudge(jobs_stream(export.person.organization_id).name)

    async def _update(
        self, export: DataExport, fields: Document, session: Session, ends: bool = False
    ) -> ExportDocument:
        query = {"_id": user_document_id(*export.person), "key": export.id, "fence": export.fence}
        claim: list[Document] = [{"$unset": "due"}] if ends else [{"$set": {"due": _CLAIM_END}}]
        running = {**query, "due": {"$exists": True}}
        stored: ExportDocument | None = await self._mongo.find_one_and_update(
            EXPORTS, running, [{"$set": fields}, *claim], session
        )
        if stored is None:
            raise ExportLost
        return stored

    async def _emit(self, person: UserKey, session: Session) -> None:
        stream = jobs_stream(person.organization_id)
        await add_rows(self._mongo, stream, "DataExportChanged", [person.user_id], session)

    async def _delete_chunks(self, export: DataExport, fence: Document) -> None:
        owner = {"org": export.person.organization_id, "user": export.person.user_id}
        query = {**owner, "_id.e": export.id, "_id.f": fence}
        await self._mongo.write_past_orphans(lambda: self._chunks.delete_many(query))


_CLAIM_END = seconds_from_now(CLAIMED_S)


def _record(document: ExportDocument) -> DataExport:
    failure = document.get("failure")
    state = ExportState.RUNNING if document["fence"] else ExportState.PENDING
    if "completed_at" in document:
        state = ExportState.COMPLETED
    if failure is not None:
        state = ExportState.FAILED
    return DataExport(
        id=document["key"],
        person=UserKey(*document["_id"].values()),  # type: ignore[arg-type]
        state=state,
        requested_at=document["at"],
        files_done=document["files_done"],
        size_bytes=document["bytes"],
        chunks=document["chunks"],
        fence=document["fence"],
        failure=None if failure is None else ExportFailure(failure),
    )
