"""Packs of stamps that administrators upload for their organization. Each stamp is also a reaction.

Changes of the packs also decide when workers next evaluate the people of the organization (`due`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.stamps.catalogue import Stamp, own_stamp
from storage.chat.stamps.documents import StampCatalogueDocument, StampPackDocument
from storage.chat.stamps.rules import StampPackAvailability, StampRule, stored_availability, stored_rule
from storage.errors import Conflict, NotFound, QuotaExceeded
from storage.files.stamp_files import StampFiles
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import AuditEntryDocument
from storage.identity.rights import lock_actor
from storage.ids import UserKey, new_id
from storage.mongo import Document, Mongo, Session

CATALOGUES = "stamp_catalogues"
MAX_PACKS = 20
MAX_STAMPS = 50
"""Stamps of one pack."""

CLEANING_DELAY = timedelta(minutes=1)
"""Workers delete the ownerships of a removed pack after this time. Commits that grant it have ended by then."""


@dataclass(frozen=True, slots=True)
class StampPack:
    """A pack of an organization's own stamps. `stamps` begins with the earliest."""

    id: str
    name: str
    stamps: Sequence[Stamp]
    availability: StampPackAvailability = StampPackAvailability.EVERYONE
    rule: StampRule | None = None
    """Present for EARNED."""


@dataclass(frozen=True, slots=True)
class _Catalogue:
    """The packs of an organization in the transaction that changes them."""

    actor: Actor
    packs: list[StampPackDocument]
    at: datetime
    session: Session
    new_fields: dict[str, Any]
    """Fields of the catalogue that the change sets besides the packs."""

    def schedule_walk(self, delay: timedelta) -> None:
        """Lets workers evaluate everybody of the organization from the first person on, after the delay."""
        self.new_fields["due"] = self.at + delay

    def pack(self, id_: str) -> StampPackDocument:
        """Returns a pack. Raises: NotFound."""
        for pack in self.packs:
            if pack["id"] == id_:
                return pack
        raise NotFound("pack of stamps", id_)

    def entry(self, action: AuditAction, pack: StampPackDocument, **details: str) -> AuditEntryDocument:
        """Returns the audit entry of a change to a pack."""
        kind = TargetKind.STAMP_PACK
        return audit_document(self.actor, action, kind, pack["id"], self.at, pack=pack["name"], **details)


_Planned = tuple[StampPackDocument, AuditEntryDocument | None]
"""The changed pack, and the entry of the audit log; None if nothing has changed."""


class StampPackStore:
    """Reads and changes the packs of organizations."""

    def __init__(self, mongo: Mongo, audit: AuditLog) -> None:
        self._mongo = mongo
        self._audit = audit
        self._files = StampFiles(mongo)
        self._catalogues: AsyncCollection[StampCatalogueDocument] = mongo[CATALOGUES]

    async def list_packs(self, organization_id: str) -> list[StampPack]:
        """Returns the packs of an organization, the earliest first."""
        catalogue = await self._catalogues.find_one({"_id": organization_id})
        return [] if catalogue is None else [_record(pack) for pack in catalogue.get("packs", ())]

    async def find(self, organization_id: str, pack_id: str) -> StampPack | None:
        """Returns a pack of an organization, or None."""
        return await self._find(organization_id, {"id": pack_id})

    async def get(self, organization_id: str, pack_id: str) -> StampPack:
        """Returns a pack of an organization. Raises: NotFound."""
        pack = await self.find(organization_id, pack_id)
        if pack is None:
            raise NotFound("pack of stamps", pack_id)
        return pack

    async def find_by_stamp(self, organization_id: str, name: str) -> tuple[StampPack, Stamp] | None:
        """Returns the stamp of an organization with this name, and its pack, or None."""
        pack = await self._find(organization_id, {"stamps.name": name})
        if pack is None:
            return None
        return pack, next(stamp for stamp in pack.stamps if stamp.name == name)

    async def _find(self, organization_id: str, condition: Document) -> StampPack | None:
        """Returns the first pack that meets the condition, without reading the others."""
        selected: Document = {"packs": {"$elemMatch": condition}}
        found = await self._catalogues.find_one({"_id": organization_id}, selected)
        packs = [] if found is None else found.get("packs", [])
        return _record(packs[0]) if packs else None

    async def create(self, actor: Actor, name: str) -> StampPack:
        """Creates a pack, or returns the pack that has this name. Raises: Forbidden, QuotaExceeded."""

        async def plan(catalogue: _Catalogue) -> _Planned:
            for pack in catalogue.packs:
                if pack["name"] == name:
                    return pack, None
            if len(catalogue.packs) >= MAX_PACKS:
                raise QuotaExceeded(f"The organization has {MAX_PACKS} packs of stamps. Remove one of them first.")
            created: StampPackDocument = {"id": new_id(), "name": name, "at": catalogue.at, "stamps": []}
            catalogue.packs.append(created)
            return created, catalogue.entry(AuditAction.STAMP_PACK_CREATED, created)

        return await self._change(actor, plan)

    async def remove(self, actor: Actor, pack_id: str) -> StampPack:
        """Removes a pack, and lets the files of its stamps expire. Raises: Forbidden, NotFound."""

        async def plan(catalogue: _Catalogue) -> _Planned:
            pack = catalogue.pack(pack_id)
            catalogue.packs.remove(pack)
            catalogue.schedule_walk(CLEANING_DELAY)
            await self._files.release([stamp["file"] for stamp in pack["stamps"]], catalogue.session)
            return pack, catalogue.entry(AuditAction.STAMP_PACK_REMOVED, pack)

        return await self._change(actor, plan)

    async def set_availability(
        self, actor: Actor, pack_id: str, availability: StampPackAvailability, rule: StampRule | None
    ) -> StampPack:
        """Decides who may use a pack. EARNED needs a rule, which workers then evaluate for everybody. Idempotent.

        Raises: Forbidden, NotFound.
        """

        async def plan(catalogue: _Catalogue) -> _Planned:
            pack = catalogue.pack(pack_id)
            if (stored_availability(pack), stored_rule(pack)) == (availability, rule):
                return pack, None
            pack.pop("rule", None)
            pack["availability"] = availability.value
            details = {"availability": availability.value}
            if rule is not None:
                pack["rule"] = {"kind": rule.kind.value, "threshold": rule.threshold}
                details |= {"rule": rule.kind.value, "threshold": str(rule.threshold)}
                catalogue.schedule_walk(timedelta())
            return pack, catalogue.entry(AuditAction.STAMP_PACK_AVAILABILITY_SET, pack, **details)

        return await self._change(actor, plan)

    async def add_stamp(self, actor: Actor, pack_id: str, name: str, file_id: str) -> StampPack:
        """Adds to a pack a stamp with this name, whose picture the actor has uploaded. Idempotent.

        Raises: Forbidden; NotFound for the pack or the file; Conflict for a name that another stamp has; QuotaExceeded;
        BadUserInput for a file that cannot be a stamp.
        """

        async def plan(catalogue: _Catalogue) -> _Planned:
            pack = catalogue.pack(pack_id)
            if any((stamp["name"], stamp["file"]) == (name, file_id) for stamp in pack["stamps"]):
                return pack, None
            await self._files.take(UserKey(actor.organization_id, actor.user_id), file_id, catalogue.session)
            if any(stamp["name"] == name for each in catalogue.packs for stamp in each["stamps"]):
                raise Conflict(f"The organization has a stamp with the name {name}. Choose another name.")
            if len(pack["stamps"]) >= MAX_STAMPS:
                raise QuotaExceeded(f"The pack has {MAX_STAMPS} stamps. Remove one of them, or create another pack.")
            pack["stamps"].append({"name": name, "file": file_id, "at": catalogue.at})
            return pack, catalogue.entry(AuditAction.STAMP_ADDED, pack, stamp=name)

        return await self._change(actor, plan)

    async def remove_stamp(self, actor: Actor, pack_id: str, name: str) -> StampPack:
        """Removes a stamp from a pack, and lets its file expire. Idempotent. Raises: Forbidden, NotFound."""

        async def plan(catalogue: _Catalogue) -> _Planned:
            pack = catalogue.pack(pack_id)
            removed = [stamp for stamp in pack["stamps"] if stamp["name"] == name]
            if not removed:
                return pack, None
            pack["stamps"] = [stamp for stamp in pack["stamps"] if stamp["name"] != name]
            await self._files.release([stamp["file"] for stamp in removed], catalogue.session)
            return pack, catalogue.entry(AuditAction.STAMP_REMOVED, pack, stamp=name)

        return await self._change(actor, plan)

    async def _change(self, actor: Actor, plan: Callable[[_Catalogue], Awaitable[_Planned]]) -> StampPack:
        """Changes the packs in one transaction. Two changes at once conflict, and one of them runs again."""
        key = {"_id": actor.organization_id}

        async def work(session: Session) -> StampPack:
            at = await lock_actor(self._mongo, actor, session)
            stored: StampCatalogueDocument = await self._mongo.find_one_and_update(
                CATALOGUES, key, {"$set": {"at": at}}, session, upsert=True
            )
            catalogue = _Catalogue(actor, stored.get("packs", []), at, session, {})
            pack, entry = await plan(catalogue)
            if entry is not None:
                update: Document = {"$set": {"packs": catalogue.packs, **catalogue.new_fields}}
                if "due" in catalogue.new_fields:
                    update["$unset"] = {"after": ""}
                await self._catalogues.update_one(key, update, session=session)
                await self._audit.insert(entry, session)
            return _record(pack)

        return await self._mongo.transact(work)


def _record(pack: StampPackDocument) -> StampPack:
    stamps = [own_stamp(each["name"], each["file"]) for each in pack["stamps"]]
    return StampPack(pack["id"], pack["name"], stamps, stored_availability(pack), stored_rule(pack))
