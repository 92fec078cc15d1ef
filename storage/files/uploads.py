"""Uploads: their creation within the quotas, and their bytes, which arrive part by part.

A part is an object that is stored first, and then added to the file by compare-and-set on the offset. So the offset
says how many bytes are durable, after a lost connection and after a killed process. Of two requests that send the same
bytes at once, one adds its part, and the other deletes its object.
"""

from collections.abc import Collection
from dataclasses import dataclass

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import BadUserInput, Conflict, NotFound, QuotaExceeded
from storage.files.documents import FileDocument
from storage.files.objects import FileObjects
from storage.files.records import FileState, StoredFile, StoredObject, UploadPurpose, file_record
from storage.files.usage import FileUsage
from storage.ids import UserKey, new_id
from storage.mongo import Document, Mongo, Session, seconds_from_now

FILES = "files"
UNATTACHED_KEPT_S = 86_400
"""How long a file is kept that is not attached."""

MAX_PARTS = 2000
PART_BYTES = 4 * 1024 * 1024
"""Number of bytes after which a request stores a part."""

MIB = 1024 * 1024
NOT_DELETING: Document = {"deleting": {"$exists": False}}


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of uploads, in bytes, and of files of a user that are not attached."""

    file_bytes: int = 256 * MIB
    user_bytes: int = 2048 * MIB
    organization_bytes: int = 102_400 * MIB
    open_uploads: int = 100


DEFAULT_FILE_LIMITS = FileLimits()


class OffsetChanged(Conflict):
    """Another request has stored bytes of the upload, or the upload is complete."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"The upload continues at byte {offset}.", offset=offset)
        self.offset = offset


def require_picture(file: StoredFile, purpose: UploadPurpose) -> None:
    """Raises BadUserInput for a file that is no picture of this purpose."""
    if file.purpose is not purpose:
        raise BadUserInput("uploadId", f"an upload that was created with the purpose {purpose.value}")
    if file.state is not FileState.READY or file.picture is None:
        raise BadUserInput("uploadId", f"an upload in the state READY; this one is {file.state.value}")


class UploadStore:
    """Creates uploads and adds their bytes."""

    def __init__(self, mongo: Mongo, objects: FileObjects, limits: FileLimits = DEFAULT_FILE_LIMITS) -> None:
        self._mongo = mongo
        self._objects = objects
        self._limits = limits
        self._usage = FileUsage(mongo)
        self._files: AsyncCollection[FileDocument] = mongo[FILES]

    async def create(
        self, owner: UserKey, name: str, size: int, purpose: UploadPurpose = UploadPurpose.ATTACHMENT
    ) -> StoredFile:
        """Creates an upload of `size` bytes, which count for the quotas at once.

        Raises: BadUserInput for a size above the limit; QuotaExceeded.
        """
        if size > self._limits.file_bytes:
            raise BadUserInput("size", f"at most {self._limits.file_bytes} bytes")
        id_ = new_id()

        async def work(session: Session) -> FileDocument:
            await self._check_open_uploads(owner, session)
            await self._usage.add(owner, size, self._limits.user_bytes, self._limits.organization_bytes, session)
            fields = {
                "org": owner.organization_id,
                "user": owner.user_id,
                "name": {"$literal": name},
                "size": size,
                "at": "$$NOW",
                "state": FileState.RECEIVING.value,
                "offset": 0,
                "parts": [],
                "purpose": purpose.value,
                "expires_at": seconds_from_now(UNATTACHED_KEPT_S),
            }
            stored: FileDocument = await self._mongo.find_one_and_update(
                FILES, {"_id": id_}, [{"$set": fields}], session, upsert=True
            )
            return stored

        return file_record(await self._mongo.transact(work))

    async def _check_open_uploads(self, owner: UserKey, session: Session) -> None:
        """Raises QuotaExceeded if the user has too many files that are not attached.

        The transaction also changes the user's usage. So of two transactions at once, one sees the file of the other.
        """
        query = {"org": owner.organization_id, "user": owner.user_id, "expires_at": {"$exists": True}}
        limit = self._limits.open_uploads
        unattached = await self._mongo.find(FILES, query, {"_id": 1}, limit=limit, session=session)
        if len(unattached) >= limit:
            raise QuotaExceeded(
                f"You have {limit} files that are not attached. Attach or delete some of them, or wait a day."
            )

    async def find(self, owner: UserKey, id_: str) -> StoredFile | None:
        """Returns a file of the user, attached or not, or None."""
        file = await self.find_any(owner.organization_id, id_)
        return None if file is None or file.owner_id != owner.user_id else file

    async def find_any(self, organization_id: str, id_: str) -> StoredFile | None:
        """Returns a file of the organization, or None. The caller checks who may see the file."""
        query: Document = {"_id": id_, "org": organization_id, **NOT_DELETING}
        document = await self._files.find_one(query)
        return None if document is None else file_record(document)

    async def get(self, owner: UserKey, id_: str) -> StoredFile:
        """Returns a file of the user. Raises: NotFound."""
        file = await self.find(owner, id_)
        if file is None:
            raise NotFound("upload", id_)
        return file

    async def find_in_place(self, place: str, ids: Collection[str]) -> list[StoredFile]:
        """Returns those of the files that exist and are attached in a place, in any order."""
        query: Document = {"_id": {"$in": list(ids)}, "places": place, **NOT_DELETING}
        return [file_record(each) for each in await self._mongo.find(FILES, query)]

    async def require(self, owner: UserKey, ids: Collection[str]) -> None:
        """Raises NotFound unless all of the files are the user's."""
        query = {"_id": {"$in": list(ids)}, "org": owner.organization_id, "user": owner.user_id, **NOT_DELETING}
        found = {each["_id"] for each in await self._mongo.find(FILES, query, {"_id": 1})}
        for id_ in ids:
            if id_ not in found:
                raise NotFound("upload", id_)

    async def append(self, file: StoredFile, data: bytes) -> StoredFile:
        """Stores the bytes at the offset of `file`, and returns the file after that.

        Raises: OffsetChanged if other bytes were stored there meanwhile; NotFound for an upload that was deleted;
        Conflict for too many parts; Unavailable.
        """
        if len(file.parts) >= MAX_PARTS:
            raise Conflict(f"The upload has {MAX_PARTS} parts. Create a new upload, and send more bytes in a request.")
        part = await self._objects.put(file.id, data)
        document = await self._add_part(file, part)
        if document is not None:
            return file_record(document)
        await self._objects.delete([part])
        current = await self.get(file.owner, file.id)
        raise OffsetChanged(current.offset)

    async def _add_part(self, file: StoredFile, part: StoredObject) -> FileDocument | None:
        offset = file.offset + part.size
        fields: Document = {
            "offset": offset,
            "parts": {"$concatArrays": ["$parts", [{"key": part.key, "size": part.size}]]},
        }
        if offset == file.size:
            fields |= {"state": FileState.CHECKING.value, "due": "$$NOW"}
        query = {"_id": file.id, "offset": file.offset, "state": FileState.RECEIVING.value, **NOT_DELETING}
        added: FileDocument | None = await self._mongo.write_past_orphans(
            lambda: self._files.find_one_and_update(query, [{"$set": fields}], return_document=ReturnDocument.AFTER)
        )
        return added
