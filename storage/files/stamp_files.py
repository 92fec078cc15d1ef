"""Files of stamps. They belong to the organization, so that they stay when the person who uploaded them is erased."""

from collections.abc import Sequence

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import NotFound
from storage.files.documents import FileDocument
from storage.files.records import UploadPurpose, file_record
from storage.files.uploads import FILES, NOT_DELETING, require_picture
from storage.files.usage import FileUsage
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session

STAMP_PLACE = "stamp"


class StampFiles:
    """Gives files to organizations, and lets them expire, in the transaction that changes a pack."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._usage = FileUsage(mongo)
        self._files: AsyncCollection[FileDocument] = mongo[FILES]

    async def take(self, owner: UserKey, file_id: str, session: Session) -> None:
        """Gives a file of the owner to the organization.

        Raises: NotFound; BadUserInput for a file that is not ready, or was uploaded for another purpose.
        """
        query: Document = {"_id": file_id, "org": owner.organization_id, "user": owner.user_id, **NOT_DELETING}
        change: list[Document] = [
            {"$set": {"user": "", "places": [f"{STAMP_PLACE}:{owner.organization_id}"]}},
            {"$unset": "expires_at"},
        ]
        document = await self._files.find_one_and_update(query, change, session=session)
        if document is None:
            raise NotFound("upload", file_id)
        file = file_record(document)
        require_picture(file, UploadPurpose.STAMP)
        await self._usage.give_to_organization(owner, file.size, session)

    async def release(self, file_ids: Sequence[str], session: Session) -> None:
        """Lets files expire. A worker deletes them."""
        expired: list[Document] = [{"$set": {"expires_at": "$$NOW"}}, {"$unset": "places"}]
        await self._files.update_many({"_id": {"$in": list(file_ids)}, **NOT_DELETING}, expired, session=session)
