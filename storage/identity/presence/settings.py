"""The switches of presence, which MongoDB stores: one of each person, and one of each organization."""

from collections.abc import Sequence

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import OrganizationSettingsDocument, UserDocument
from storage.identity.records import user_document_id
from storage.identity.rights import lock_actor
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.mongo.batch_loader import BatchLoader

SETTINGS = "organization_settings"


class PresenceSettingsStore:
    """Reads and changes the switches. `UserStore` reads those of people."""

    def __init__(self, mongo: Mongo, audit: AuditLog) -> None:
        self._mongo = mongo
        self._audit = audit
        self._users: AsyncCollection[UserDocument] = mongo["users"]
        self._settings: AsyncCollection[OrganizationSettingsDocument] = mongo[SETTINGS]
        self._off: BatchLoader[str, bool] = BatchLoader(self._load)

    async def is_enabled(self, organization_id: str) -> bool:
        """Returns whether the organization has presence, which is the default."""
        return not await self._off.get(organization_id)

    async def set_shown(self, person: UserKey, is_shown: bool) -> None:
        """Shows or hides whether the person is online and typing. Idempotent."""
        query = {"_id": user_document_id(*person), "erasing_at": {"$exists": False}}
        change = "$unset" if is_shown else "$set"
        await self._users.update_one(query, {change: {"presence_hidden": True}})

    async def set_enabled(self, actor: Actor, is_enabled: bool) -> None:
        """Turns presence on or off for the organization. Idempotent.

        Raises: Forbidden if the actor is no administrator any more.
        """
        id_ = actor.organization_id

        async def work(session: Session) -> None:
            at = await lock_actor(self._mongo, actor, session)
            stored = await self._settings.find_one({"_id": id_}, session=session)
            if (stored is None or not stored["presence_off"]) == is_enabled:
                return
            settings: OrganizationSettingsDocument = {
                "_id": id_,
                "presence_off": not is_enabled,
                "by": actor.user_id,
                "at": at,
            }
            await self._settings.replace_one({"_id": id_}, settings, upsert=True, session=session)
            action, after = AuditAction.PRESENCE_SET, "on" if is_enabled else "off"
            entry = audit_document(actor, action, TargetKind.ORGANIZATION, id_, at, after=after)
            await self._audit.insert(entry, session)

        await self._mongo.transact(work)

    async def _load(self, organization_ids: Sequence[str]) -> dict[str, bool]:
        query = {"_id": {"$in": list(organization_ids)}}
        found: list[OrganizationSettingsDocument] = await self._mongo.find(SETTINGS, query, {"presence_off": 1})
        return {each["_id"]: each["presence_off"] for each in found}
