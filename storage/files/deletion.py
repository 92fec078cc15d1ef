"""Deletion of files: of those that are not attached, a day after their creation, and of those of an erased person."""

from functools import partial

from pymongo.asynchronous.collection import AsyncCollection

from storage.files.attachments import REMOVALS
from storage.files.documents import FileDocument, FileRemovalDocument
from storage.files.objects import FileObjects
from storage.files.records import StoredFile, file_record
from storage.files.uploads import FILES
from storage.files.usage import FileUsage
from storage.mongo import Document, Mongo, Session, due_filter

BATCH = 100


class FileDeletion:
    """Deletes files with their objects."""

    def __init__(self, mongo: Mongo, objects: FileObjects) -> None:
        self._mongo = mongo
        self._objects = objects
        self._usage = FileUsage(mongo)
        self._files: AsyncCollection[FileDocument] = mongo[FILES]

    async def delete_expired(self) -> int:
        """Deletes at most 100 files that have expired, the oldest first. Returns how many."""
        expired = due_filter("expires_at")
        documents: list[FileDocument] = await self._mongo.find(FILES, expired, None, [("expires_at", 1)], BATCH)
        for document in documents:
            await self._delete(file_record(document), expired)
        return len(documents)

    async def remove_places(self) -> int:
        """Removes at most 100 places of deleted messages and posts from their files, if it is time. Returns how many.

        A file that is then attached nowhere has expired.
        """
        removals: list[FileRemovalDocument] = await self._mongo.find(
            REMOVALS, due_filter("at"), None, [("at", 1)], BATCH
        )
        for removal in removals:
            await self._mongo.transact(partial(self._remove_place, removal))
        return len(removals)

    async def _remove_place(self, removal: FileRemovalDocument, session: Session) -> None:
        places = {"$setDifference": [{"$ifNull": ["$places", []]}, [removal["_id"]["p"]]]}
        has_expired = {"$and": [{"$eq": ["$places", []]}, {"$eq": [{"$type": "$expires_at"}, "missing"]}]}
        expires_at = {"$cond": [has_expired, "$$NOW", {"$ifNull": ["$expires_at", "$$REMOVE"]}]}
        change = [{"$set": {"places": places}}, {"$set": {"expires_at": expires_at}}]
        await self._files.update_one({"_id": removal["_id"]["f"]}, change, session=session)
        await self._mongo[REMOVALS].delete_one({"_id": removal["_id"]}, session=session)

    async def delay_s(self) -> float:
        """Returns for how many seconds the oldest file has been expired; 0 if none has."""
        rows: list[FileDocument] = await self._mongo.find(
            FILES, {"expires_at": {"$exists": True}}, {"expires_at": 1}, [("expires_at", 1)], 1
        )
        if not rows:
            return 0
        return max((await self._mongo.now() - rows[0]["expires_at"]).total_seconds(), 0)

    async def cancel(self, file: StoredFile) -> bool:
        """Deletes a file that is not attached. Returns False if it was attached meanwhile. Raises: Unavailable."""
        return await self._delete(file, {"expires_at": {"$exists": True}})

    async def erase(self, file_id: str) -> None:
        """Deletes a file, also if it is attached. Raises: Unavailable."""
        document = await self._files.find_one({"_id": file_id})
        if document is not None:
            await self._delete(file_record(document), {})

    async def _delete(self, file: StoredFile, condition: Document) -> bool:
        """Deletes a file that meets the condition: first the mark, then its objects, and its document last.

        After a crash, the file is deleted as an expired one.
        """
        change: list[Document] = [{"$set": {"deleting": True, "expires_at": "$$NOW"}}, {"$unset": ["due", "places"]}]
        marked = await self._mongo.write_past_orphans(
            lambda: self._files.find_one_and_update({"_id": file.id, **condition}, change)
        )
        if marked is None:
            return False
        await self._objects.delete_all(file.id)

        async def work(session: Session) -> None:
            deleted = await self._files.delete_one({"_id": file.id}, session=session)
            if deleted.deleted_count:
                await self._usage.subtract(file.owner, file.size, session)

        await self._mongo.transact(work)
        return True
