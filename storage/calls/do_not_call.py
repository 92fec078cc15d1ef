"""Numbers that an organization must not call. Looked at in the transaction that dials, so an entry holds at once."""

from collections.abc import Iterable, Sequence

from pymongo import UpdateOne

from storage.calls.call_changes import DO_NOT_CALL
from storage.mongo import Document, Mongo


class DoNotCallStore:
    """One list for each organization, of numbers in E.164 spelling."""

    def __init__(self, mongo: Mongo) -> None:
        self._rows = mongo[DO_NOT_CALL]

    async def add(self, organization_id: str, phone_numbers: Iterable[str]) -> int:
        """How many of the numbers were new."""
        at = [{"$set": {"at": {"$ifNull": ["$at", "$$NOW"]}}}]
        writes = [UpdateOne({"_id": id_}, at, upsert=True) for id_ in _ids(organization_id, phone_numbers)]
        return (await self._rows.bulk_write(writes, ordered=False)).upserted_count if writes else 0

    async def remove(self, organization_id: str, phone_numbers: Iterable[str]) -> int:
        """How many of the numbers were there."""
        gone = await self._rows.delete_many({"_id": {"$in": _ids(organization_id, phone_numbers)}})
        return gone.deleted_count

    async def among(self, organization_id: str, phone_numbers: Sequence[str]) -> frozenset[str]:
        """Those of the numbers that must not be called."""
        cursor = self._rows.find({"_id": {"$in": _ids(organization_id, phone_numbers)}})
        return frozenset([row["_id"]["phone"] async for row in cursor])


def _ids(organization_id: str, phone_numbers: Iterable[str]) -> list[Document]:
    return [{"org": organization_id, "phone": number} for number in dict.fromkeys(phone_numbers)]
