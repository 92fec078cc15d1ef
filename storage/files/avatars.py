"""Avatars: the picture that a user has chosen. Its file stays until the user chooses another one."""

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import BadUserInput, NotFound
from storage.files.documents import FileDocument
from storage.files.records import FileState, StoredFile, UploadPurpose, file_record
from storage.files.uploads import FILES, NOT_DELETING
from storage.identity.documents import UserDocument
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session


class AvatarStore:
    """Sets and removes avatars."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._files: AsyncCollection[FileDocument] = mongo[FILES]
        self._users: AsyncCollection[UserDocument] = mongo["users"]

    async def set(self, owner: UserKey, file_id: str) -> None:
        """Makes a picture of the owner the avatar, and lets the earlier one expire. Idempotent.

        Raises: NotFound; BadUserInput for a file that is not ready, or was uploaded for another purpose.
        """

        async def work(session: Session) -> None:
            query: Document = {"_id": file_id, "org": owner.organization_id, "user": owner.user_id, **NOT_DELETING}
            change: list[Document] = [{"$set": {"places": [f"avatar:{owner.user_id}"]}}, {"$unset": "expires_at"}]
            document = await self._files.find_one_and_update(
                query, change, session=session, return_document=ReturnDocument.AFTER
            )
            if document is None:
                raise NotFound("upload", file_id)
            _check_avatar(file_record(document))
            await self._replace(owner, [{"$set": {"avatar": file_id}}], file_id, session)

        await self._mongo.transact(work)

    async def remove(self, owner: UserKey) -> None:
        """Removes the avatar of a user, and lets its file expire. Idempotent."""

        async def work(session: Session) -> None:
            await self._replace(owner, [{"$unset": "avatar"}], None, session)

        await self._mongo.transact(work)

    async def _replace(self, owner: UserKey, change: list[Document], file_id: str | None, session: Session) -> None:
        """Changes the user's document, and lets the file of the earlier avatar expire. Raises: NotFound if erased."""
        query: Document = {"_id": user_document_id(*owner), "erasing_at": {"$exists": False}}
        earlier = await self._users.find_one_and_update(query, change, {"avatar": 1}, session=session)
        if earlier is None:
            raise NotFound("user", owner.user_id)
        if (earlier_id := earlier.get("avatar")) is not None and earlier_id != file_id:
            expired: list[Document] = [{"$set": {"expires_at": "$$NOW"}}, {"$unset": "places"}]
            await self._files.update_one({"_id": earlier_id, **NOT_DELETING}, expired, session=session)


def _check_avatar(file: StoredFile) -> None:
    """Raises BadUserInput for a file that cannot be an avatar."""
    if file.purpose is not UploadPurpose.AVATAR:
        raise BadUserInput("uploadId", "an upload that was created with the purpose AVATAR")
    if file.state is not FileState.READY or file.picture is None:
        raise BadUserInput("uploadId", f"an upload in the state READY; this one is {file.state.value}")
