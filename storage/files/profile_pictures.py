"""Avatars and banners: pictures that a user has chosen. A file stays until the user chooses another one."""

from typing import Any

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import NotFound
from storage.files.documents import FileDocument
from storage.files.records import UploadPurpose, file_record
from storage.files.uploads import FILES, NOT_DELETING, require_picture
from storage.identity.documents import UserDocument
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session

PROFILE_PICTURES = {UploadPurpose.AVATAR: "avatar", UploadPurpose.BANNER: "banner"}
"""The field of a user's document that holds the file, by the purpose of the upload. Also the kind of place."""


class ProfilePictures:
    """Sets and removes the avatars and banners of users. `purpose` says which of the two."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._files: AsyncCollection[FileDocument] = mongo[FILES]
        self._users: AsyncCollection[UserDocument] = mongo["users"]

    async def set(self, owner: UserKey, purpose: UploadPurpose, file_id: str) -> None:
        """Shows a picture that the owner has uploaded, and lets the earlier one expire. Idempotent.

        Raises: NotFound; BadUserInput for a file that is not ready, or was uploaded for another purpose.
        """
        field = PROFILE_PICTURES[purpose]

        async def work(session: Session) -> None:
            query: Document = {"_id": file_id, "org": owner.organization_id, "user": owner.user_id, **NOT_DELETING}
            change: list[Document] = [{"$set": {"places": [f"{field}:{owner.user_id}"]}}, {"$unset": "expires_at"}]
            document = await self._files.find_one_and_update(
                query, change, session=session, return_document=ReturnDocument.AFTER
            )
            if document is None:
                raise NotFound("upload", file_id)
            require_picture(file_record(document), purpose)
            await self._replace(owner, field, file_id, session)

        await self._mongo.transact(work)

    async def remove(self, owner: UserKey, purpose: UploadPurpose) -> None:
        """Removes the picture, and lets its file expire. Idempotent."""

        async def work(session: Session) -> None:
            await self._replace(owner, PROFILE_PICTURES[purpose], None, session)

        await self._mongo.transact(work)

    async def _replace(self, owner: UserKey, field: str, file_id: str | None, session: Session) -> None:
        """Changes the user's document, and lets the file of the earlier picture expire. Raises: NotFound if erased."""
        query: Document = {"_id": user_document_id(*owner), "erasing_at": {"$exists": False}}
        change: list[Document] = [{"$unset": field} if file_id is None else {"$set": {field: file_id}}]
        earlier: Any = await self._users.find_one_and_update(query, change, {field: 1}, session=session)
        if earlier is None:
            raise NotFound("user", owner.user_id)
        if (earlier_id := earlier.get(field)) is not None and earlier_id != file_id:
            expired: list[Document] = [{"$set": {"expires_at": "$$NOW"}}, {"$unset": "places"}]
            await self._files.update_one({"_id": earlier_id, **NOT_DELETING}, expired, session=session)
