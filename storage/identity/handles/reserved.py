"""Old handles, which nobody else gets for a year after a change or an erasure: texts may still mention them.

Only a keyed hash of each handle is stored.
"""

import hmac
from collections.abc import Sequence

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.documents import ReservedHandleDocument
from storage.mongo import Mongo, Session
from storage.secrets.shared_secrets import shared_secret

RESERVED_HANDLES = "reserved_handles"


class ReservedHandles:
    """Reserves handles, and looks up which handles are reserved."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._reserved: AsyncCollection[ReservedHandleDocument] = mongo[RESERVED_HANDLES]
        self._key = b""

    async def reserve(self, organization_id: str, handle: str, session: Session) -> None:
        """Reserves a handle in the transaction that changes it, or that begins the erasure of its user."""
        update = [{"$set": {"at": "$$NOW"}}]
        query = {"_id": await self._digest(organization_id, handle)}
        await self._reserved.update_one(query, update, upsert=True, session=session)

    async def is_reserved(self, organization_id: str, handle: str, session: Session) -> bool:
        """Returns whether the handle is reserved."""
        return bool(await self.reserved_among(organization_id, [handle], session))

    async def reserved_among(self, organization_id: str, handles: Sequence[str], session: Session) -> set[str]:
        """Returns those of the handles that are reserved."""
        handles_by_digest = {await self._digest(organization_id, handle): handle for handle in handles}
        query = {"_id": {"$in": list(handles_by_digest)}}
        reserved: list[ReservedHandleDocument] = await self._mongo.find(
            RESERVED_HANDLES, query, {"_id": 1}, session=session
        )
        return {handles_by_digest[each["_id"]] for each in reserved}

    async def _digest(self, organization_id: str, handle: str) -> bytes:
        self._key = self._key or await shared_secret(self._mongo, "reserved_handles")
        return hmac.digest(self._key, f"{organization_id}\0{handle}".encode(), "sha256")
