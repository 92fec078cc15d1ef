"""Checks of complete uploads. A worker claims an upload, reads its content, and stores what it is."""

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.files.documents import FileDocument, ObjectDocument, PictureDocument
from storage.files.objects import FileObjects
from storage.files.pictures import DecodedPicture, EncodedPicture, FileRefusal
from storage.files.records import FileState, StoredFile, StoredObject, file_record
from storage.files.uploads import FILES, NOT_DELETING
from storage.mongo import Document, Mongo, due_filter, seconds_from_now

CLAIMED_S = 60
"""How long a worker's claim lasts. A check takes less."""

CHECKING = FileState.CHECKING.value


class FileChecks:
    """Claims complete uploads, and stores the results of their checks."""

    def __init__(self, mongo: Mongo, objects: FileObjects) -> None:
        self._mongo = mongo
        self._objects = objects
        self._files: AsyncCollection[FileDocument] = mongo[FILES]

    async def claim(self) -> StoredFile | None:
        """Claims an upload whose check is due, or returns None."""
        query = due_filter("due")
        document = await self._mongo.write_past_orphans(
            lambda: self._files.find_one_and_update(
                query,
                [{"$set": {"due": seconds_from_now(CLAIMED_S)}}],
                sort=[("due", 1)],
                return_document=ReturnDocument.AFTER,
            )
        )
        return None if document is None else file_record(document)

    async def accept(self, file: StoredFile, content_type: str) -> None:
        """Stores that the file is ready, with the type of its content."""
        await self._finish(file, {"state": FileState.READY.value, "type": content_type})

    async def accept_picture(self, file: StoredFile, decoded: DecodedPicture) -> None:
        """Replaces the bytes of the upload by those of the decoded picture, and stores that the file is ready."""
        picture = await self._objects.put(file.id, decoded.picture.data)
        thumbnails = [(each, await self._objects.put(file.id, each.data)) for each in decoded.thumbnails]
        fields: Document = {
            "state": FileState.READY.value,
            "type": decoded.picture.content_type,
            "parts": [_object_document(picture)],
            "picture": _picture_document(decoded, thumbnails),
        }
        stored = [picture, *(each for _, each in thumbnails)]
        if await self._finish(file, fields):
            await self._objects.delete_all(file.id, stored)
        else:
            await self._objects.delete(stored)

    async def refuse(self, file: StoredFile, reason: FileRefusal) -> None:
        """Stores that the file was refused, and deletes its bytes."""
        if await self._finish(file, {"state": FileState.REFUSED.value, "refusal": reason.value, "parts": []}):
            await self._objects.delete_all(file.id)

    async def _finish(self, file: StoredFile, fields: Document) -> bool:
        """Ends the check, and returns True, unless the file was deleted or another worker has ended the check."""
        update: list[Document] = [{"$set": _literal(fields)}, {"$unset": "due"}]
        result = await self._mongo.write_past_orphans(
            lambda: self._files.update_one({"_id": file.id, "state": CHECKING, **NOT_DELETING}, update)
        )
        return result.modified_count == 1


def _literal(fields: Document) -> Document:
    return {name: {"$literal": value} for name, value in fields.items()}


def _object_document(stored: StoredObject) -> ObjectDocument:
    return {"key": stored.key, "size": stored.size}


def _picture_document(
    decoded: DecodedPicture, thumbnails: list[tuple[EncodedPicture, StoredObject]]
) -> PictureDocument:
    return {
        "width": decoded.picture.width,
        "height": decoded.picture.height,
        "blurhash": decoded.blurhash,
        "thumbnails": [
            {
                "key": stored.key,
                "size": stored.size,
                "type": encoded.content_type,
                "width": encoded.width,
                "height": encoded.height,
            }
            for encoded, stored in thumbnails
        ],
    }
