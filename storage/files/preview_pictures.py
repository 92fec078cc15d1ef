"""Copies of the images that link previews show: one for each organization and remote address, kept for 30 days.

A copy is a file of the organization that is attached nowhere, so it expires and counts for the quota as such a file
does. It names no message and no person. A deleted copy is stored again when a message links to the page.
"""

import hashlib
from functools import partial

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import QuotaExceeded
from storage.files.documents import FileDocument
from storage.files.objects import FileObjects
from storage.files.pictures import DecodedPicture
from storage.files.records import FileState, StoredFile, StoredObject, file_record
from storage.files.uploads import DEFAULT_FILE_LIMITS, FILES, NOT_DELETING, UNATTACHED_KEPT_S, FileLimits
from storage.files.usage import FileUsage
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session, literals, seconds_from_now

KEPT_S = 30 * 86_400
"""How long a copy is kept after it was fetched."""

FRESH_S = 86_400
"""How long further previews use a copy. After that, the image is fetched again."""

MAX_PICTURES = 10_000
"""Number of copies that an organization keeps. Of more, the oldest expire."""

NOBODY = ""


def preview_picture_id(organization_id: str, url: str) -> str:
    """Returns the id of the organization's copy of the image at a remote address."""
    digest = hashlib.sha256(f"{len(organization_id)}:{organization_id}{url}".encode())
    return digest.hexdigest()[:32]


class PreviewPictures:
    """Finds and stores copies of images."""

    def __init__(self, mongo: Mongo, objects: FileObjects, limits: FileLimits = DEFAULT_FILE_LIMITS) -> None:
        self._mongo = mongo
        self._objects = objects
        self._limits = limits
        self._usage = FileUsage(mongo)
        self._files: AsyncCollection[FileDocument] = mongo[FILES]

    async def find(self, id_: str) -> StoredFile | None:
        """Returns a copy by its id, or None."""
        return await self._find({"_id": id_})

    async def find_fresh(self, organization_id: str, url: str) -> StoredFile | None:
        """Returns the copy of the image at an address if it is at most a day old, or None."""
        fresh = {"$expr": {"$gt": ["$at", {"$subtract": ["$$NOW", FRESH_S * 1000]}]}}
        return await self._find({"_id": preview_picture_id(organization_id, url), **fresh})

    async def store(self, organization_id: str, url: str, decoded: DecodedPicture) -> bool:
        """Stores the copy of an image, and replaces an earlier one.

        Returns False if the organization's quota is used up, or if the earlier copy is being deleted. Raises:
        Unavailable.
        """
        id_ = preview_picture_id(organization_id, url)
        # The document is written before the object, so that the object of a killed worker is deleted with it.
        await self._create(id_, organization_id)
        stored = await self._objects.put(id_, decoded.picture.data)
        try:
            earlier = await self._mongo.transact(partial(self._replace, id_, organization_id, decoded, stored))
        except QuotaExceeded:
            earlier = None
        await self._objects.delete([stored] if earlier is None else earlier.parts)
        await self._expire_oldest(organization_id)
        return earlier is not None

    async def _find(self, query: Document) -> StoredFile | None:
        # Only copies: a signed URL must never show a file that a person has uploaded.
        copies: Document = {"user": NOBODY, "places": {"$exists": False}}
        query = {**query, **copies, "state": FileState.READY.value, **NOT_DELETING}
        found = await self._mongo.find(FILES, query, limit=1)
        return file_record(found[0]) if found else None

    async def _create(self, id_: str, organization_id: str) -> None:
        fields = {
            **literals({"org": organization_id, "user": NOBODY, "name": "", "size": 0, "offset": 0, "parts": []}),
            "state": FileState.RECEIVING.value,
            "at": "$$NOW",
            "expires_at": seconds_from_now(UNATTACHED_KEPT_S),
        }
        is_new = {"$eq": [{"$type": "$org"}, "missing"]}
        change: list[Document] = [
            {"$replaceWith": {"$cond": [is_new, {"$mergeObjects": ["$$ROOT", fields]}, "$$ROOT"]}}
        ]
        await self._mongo.write_past_orphans(lambda: self._files.update_one({"_id": id_}, change, upsert=True))

    async def _replace(
        self, id_: str, organization_id: str, decoded: DecodedPicture, stored: StoredObject, session: Session
    ) -> StoredFile | None:
        """Makes `stored` the copy, and returns the file as it was, or None if it is being deleted."""
        picture = decoded.picture
        fields = {
            **literals(
                {
                    "state": FileState.READY.value,
                    "type": picture.content_type,
                    "size": stored.size,
                    "offset": stored.size,
                    "parts": [{"key": stored.key, "size": stored.size}],
                    "picture": {
                        "width": picture.width,
                        "height": picture.height,
                        "blurhash": decoded.blurhash,
                        "thumbnails": [],
                    },
                }
            ),
            "at": "$$NOW",
            "expires_at": seconds_from_now(KEPT_S),
        }
        query: Document = {"_id": id_, **NOT_DELETING}
        document = await self._files.find_one_and_update(query, [{"$set": fields}], session=session)
        if document is None:
            return None
        earlier = file_record(document)
        owner, limits = UserKey(organization_id, NOBODY), self._limits
        growth = stored.size - earlier.size
        await self._usage.add(owner, growth, limits.user_bytes, limits.organization_bytes, session)
        return earlier

    async def _expire_oldest(self, organization_id: str) -> None:
        """Lets the oldest copies of the organization expire, if it has more than 10,000."""
        query: Document = {
            "org": organization_id,
            "user": NOBODY,
            "state": FileState.READY.value,
            "expires_at": {"$exists": True},
        }
        count = await self._files.count_documents(query, limit=2 * MAX_PICTURES)
        if count > MAX_PICTURES:
            oldest = await self._mongo.find(
                FILES, query, {"_id": 1}, [("expires_at", 1)], count - MAX_PICTURES, hint="unattached"
            )
            expired: list[Document] = [{"$set": {"expires_at": "$$NOW"}}]
            await self._files.update_many({"_id": {"$in": [each["_id"] for each in oldest]}}, expired)
