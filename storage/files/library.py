"""Media libraries: files that people keep, to attach them again and again (ADR 98).

A file of a library has a place for the library. So it stays while it is attached nowhere else, and counts once for the
quotas.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from storage.errors import BadUserInput, Conflict, NotFound
from storage.files.attachments import Attachment, NewAttachment, attachment_document, attachment_record
from storage.files.documents import FileDocument
from storage.files.records import FileState, UploadPurpose
from storage.files.uploads import FILES, NOT_DELETING, UNATTACHED_KEPT_S
from storage.files.usage import FileUsage
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session, seconds_from_now

LIBRARY_PLACE = "library"
MAX_FILES = 500
"""Number of files in a person's library."""


@dataclass(frozen=True, slots=True)
class MediaLibrary:
    """Adds, lists and removes the files of people's libraries."""

    mongo: Mongo

    async def add(self, owner: UserKey, new: NewAttachment) -> Attachment:
        """Adds a file of the owner, or changes its alternative text. Idempotent.

        Raises: NotFound, Conflict, BadUserInput; QuotaExceeded for a full library.
        """
        return attachment_record(await self.mongo.transact(partial(self._add, owner, new)))

    async def _add(self, owner: UserKey, new: NewAttachment, session: Session) -> Any:
        files: list[FileDocument] = await self.mongo.find(FILES, _own(owner, new.file_id), session=session)
        if not files:
            raise NotFound("upload", new.file_id)
        file = files[0]
        _check(file, new)
        if "library_alt" not in file:
            await FileUsage(self.mongo).add_to_library(owner, MAX_FILES, session)
        places = {"$setUnion": [{"$ifNull": ["$places", []]}, [LIBRARY_PLACE]]}
        change: list[Document] = [
            {"$set": {"places": places, "library_alt": {"$literal": new.alt_text}}},
            {"$unset": "expires_at"},
        ]
        await self.mongo[FILES].update_one({"_id": file["_id"]}, change, session=session)
        return attachment_document(file, new)

    async def remove(self, owner: UserKey, file_id: str) -> None:
        """Removes a file, which is deleted a day later unless it is attached. Raises: NotFound."""
        await self.mongo.transact(partial(self._remove, owner, file_id))

    async def _remove(self, owner: UserKey, file_id: str, session: Session) -> None:
        places = {"$setDifference": ["$places", [LIBRARY_PLACE]]}
        expires_at = {"$cond": [{"$eq": ["$places", []]}, seconds_from_now(UNATTACHED_KEPT_S), "$$REMOVE"]}
        change: list[Document] = [
            {"$set": {"places": places}},
            {"$set": {"expires_at": expires_at}},
            {"$unset": "library_alt"},
        ]
        in_library = {**_own(owner, file_id), **_IN_LIBRARY}
        if not (await self.mongo[FILES].update_one(in_library, change, session=session)).matched_count:
            raise NotFound("file of the library", file_id)
        await FileUsage(self.mongo).remove_from_library(owner, session)

    async def list_files(self, owner: UserKey, after: str | None, limit: int) -> list[Attachment]:
        """Returns the files, those that were uploaded last first; with `after`, those that follow this file."""
        query: Document = {"org": owner.organization_id, "user": owner.user_id, **_IN_LIBRARY, **NOT_DELETING}
        if after is not None:
            query["_id"] = {"$lt": after}
        files: list[FileDocument] = await self.mongo.find(FILES, query, None, [("_id", -1)], limit)
        return [
            attachment_record(attachment_document(file, NewAttachment(file["_id"], file.get("library_alt", ""))))
            for file in files
        ]


_IN_LIBRARY: Document = {"library_alt": {"$exists": True}}


def _own(owner: UserKey, file_id: str) -> Document:
    return {"_id": file_id, "org": owner.organization_id, "user": owner.user_id, **NOT_DELETING}


def _check(file: FileDocument, new: NewAttachment) -> None:
    if file.get("purpose", UploadPurpose.ATTACHMENT.value) != UploadPurpose.ATTACHMENT.value:
        raise BadUserInput("uploadId", "an upload that was created with the purpose ATTACHMENT")
    if file["state"] != FileState.READY.value:
        raise Conflict(f"The file {file['_id']} is {file['state']}. Add it when its state is READY.")
    if "picture" in file and not new.alt_text:
        raise BadUserInput("altText", "a text that describes the picture")
