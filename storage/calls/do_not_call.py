"""Numbers that an organization must not call. Each start checks them in its transaction, so entries apply at once."""

from collections.abc import Iterable, Sequence

from pymongo import UpdateOne
from pymongo.asynchronous.collection import AsyncCollection

from storage.calls.documents import DO_NOT_CALL, DoNotCallDocument, PhoneNumberId
from storage.mongo import Mongo


class DoNotCallStore:
    """Reads and changes the do-not-call list of each organization. Numbers are in E.164 form."""

    def __init__(self, mongo: Mongo) -> None:
        self._entries: AsyncCollection[DoNotCallDocument] = mongo[DO_NOT_CALL]

    async def add(self, organization_id: str, phone_numbers: Iterable[str]) -> int:
        """Adds the numbers. Returns how many of them were new."""
        at = [{"$set": {"at": {"$ifNull": ["$at", "$$NOW"]}}}]
        writes = [UpdateOne({"_id": id_}, at, upsert=True) for id_ in _ids(organization_id, phone_numbers)]
        return (await self._entries.bulk_write(writes, ordered=False)).upserted_count if writes else 0

    async def remove(self, organization_id: str, phone_numbers: Iterable[str]) -> int:
        """Removes the numbers. Returns how many of them were listed."""
        removed = await self._entries.delete_many({"_id": {"$in": _ids(organization_id, phone_numbers)}})
        return removed.deleted_count

    async def listed_numbers(self, organization_id: str, phone_numbers: Sequence[str]) -> frozenset[str]:
        """Returns those of the numbers that are on the list."""
        cursor = self._entries.find({"_id": {"$in": _ids(organization_id, phone_numbers)}})
        return frozenset([entry["_id"]["phone"] async for entry in cursor])


def _ids(organization_id: str, phone_numbers: Iterable[str]) -> list[PhoneNumberId]:
    return [{"org": organization_id, "phone": number} for number in dict.fromkeys(phone_numbers)]
