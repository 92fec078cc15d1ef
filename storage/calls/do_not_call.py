"""Numbers that an organization must not call. Each start checks them in its transaction, so entries apply at once."""

from collections.abc import Iterable, Sequence

from pymongo import UpdateOne
from pymongo.asynchronous.collection import AsyncCollection

from storage.calls.documents import DO_NOT_CALL, DoNotCallDocument, PhoneNumberId
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_operator
from storage.mongo import Mongo, Session


class DoNotCallStore:
    """Reads and changes the do-not-call list of each organization. Numbers are in E.164 form."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._audit = AuditLog(mongo)
        self._entries: AsyncCollection[DoNotCallDocument] = mongo[DO_NOT_CALL]

    async def add(self, organization_id: str, phone_numbers: Iterable[str], actor: Actor | None = None) -> int:
        """Adds the numbers. Returns how many of them were new. Raises: Forbidden if the actor is no operator now."""
        keep_first_time = [{"$set": {"at": {"$ifNull": ["$at", "$$NOW"]}}}]
        writes = [UpdateOne({"_id": id_}, keep_first_time, upsert=True) for id_ in _ids(organization_id, phone_numbers)]

        async def work(session: Session) -> int:
            await lock_operator(self._mongo, actor, session)
            added = (await self._entries.bulk_write(writes, ordered=False, session=session)).upserted_count
            await self._record(actor, AuditAction.DO_NOT_CALL_ADDED, added, session)
            return added

        return await self._mongo.transact(work) if writes else 0

    async def remove(self, organization_id: str, phone_numbers: Iterable[str], actor: Actor | None = None) -> int:
        """Removes the numbers. Returns how many of them were listed. Raises: Forbidden as in `add`."""
        listed = {"_id": {"$in": _ids(organization_id, phone_numbers)}}

        async def work(session: Session) -> int:
            await lock_operator(self._mongo, actor, session)
            removed = (await self._entries.delete_many(listed, session=session)).deleted_count
            await self._record(actor, AuditAction.DO_NOT_CALL_REMOVED, removed, session)
            return removed

        return await self._mongo.transact(work)

    async def _record(self, actor: Actor | None, action: AuditAction, count: int, session: Session) -> None:
        """Inserts an entry into the audit log if the list was changed. The entry has no phone numbers."""
        if actor is None or count == 0:
            return
        at, kind = await self._mongo.now(), TargetKind.DO_NOT_CALL_LIST
        entry = audit_document(actor, action, kind, actor.organization_id, at, count=str(count))
        await self._audit.insert(entry, session)

    async def listed_numbers(self, organization_id: str, phone_numbers: Sequence[str]) -> frozenset[str]:
        """Returns those of the numbers that are on the list."""
        cursor = self._entries.find({"_id": {"$in": _ids(organization_id, phone_numbers)}})
        return frozenset([entry["_id"]["phone"] async for entry in cursor])


def _ids(organization_id: str, phone_numbers: Iterable[str]) -> list[PhoneNumberId]:
    return [{"org": organization_id, "phone": number} for number in dict.fromkeys(phone_numbers)]
