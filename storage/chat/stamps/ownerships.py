"""The packs that people own, because they earned them or were given them. Each person owns a pack at most once.

A commit to the person's stream stores the ownership together with the notification of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bson import MaxKey
from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.rights import load_members, require_rank, role_of_member
from storage.chat.roles import Moderator
from storage.chat.stamps.documents import StampOwnershipDocument, StampOwnershipDocumentId
from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampPackAvailability
from storage.errors import BadUserInput, Conflict, NotFound
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document, put_entry
from storage.identity.documents import UserDocument
from storage.identity.erased_people import USERS
from storage.identity.records import user_document_id, user_stream
from storage.identity.rights import HasRole, lock_actor
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session
from storage.notifications import NotificationKind, TopicPlace, notification_ref, put_notification
from storage.streams.changes import Batch, Change, DocumentKey, Right
from storage.streams.sequencer import Sequencer

OWNERSHIPS = "stamp_ownerships"


@dataclass(frozen=True, slots=True)
class StampPackOwnership:
    """A pack that a person owns. `giver_id` is None for a pack that was earned."""

    organization_id: str
    user_id: str
    pack_id: str
    owned_since: datetime
    giver_id: str | None


@dataclass(frozen=True, slots=True)
class StampPackGiver:
    """The moderator who gives a pack, and the community to whose members it is given. An ADMIN needs none."""

    moderator: Moderator
    community_id: str | None = None


@dataclass(frozen=True, slots=True)
class MayGivePack(Right):
    """The giver moderates the community, or is an ADMIN if no community is named."""

    person: UserKey
    giver: StampPackGiver

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the giver's account."""
        return [(USERS, user_document_id(self.person.organization_id, self.giver.moderator.user_id))]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships of the giver and the person, for a pack that is given in a community."""
        if self.giver.community_id is None:
            return
        ids = [self.giver.moderator.user_id, self.person.user_id]
        await load_members(mongo, session, batch, self.giver.community_id, ids)

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        moderator, community_id = self.giver.moderator, self.giver.community_id
        organization_id = self.person.organization_id
        if community_id is None:
            HasRole(moderator.actor_in(organization_id), Role.ADMIN).check(batch)
            return
        role = role_of_member(batch, community_id, moderator.user_id)
        require_rank(batch, organization_id, moderator, role, None)


@dataclass(slots=True)
class GrantStampPack(Change[bool]):
    """Makes a person the owner of a pack, and notifies the person. The result is whether the person is new. Idempotent.

    `giver` is None for a pack that was earned.
    """

    max_timestamps = 1
    person: UserKey
    pack_id: str
    pack_name: str
    giver: StampPackGiver | None = None

    def rights(self) -> Sequence[Right]:
        """Returns the giver's right; none for a pack that was earned."""
        return () if self.giver is None else (MayGivePack(self.person, self.giver),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the ownership and the person."""
        return [(OWNERSHIPS, ownership_id(self.person, self.pack_id)), (USERS, user_document_id(*self.person))]

    def plan(self, batch: Batch) -> bool:
        """Puts the ownership and the notification, unless the person owns the pack.

        Raises: NotFound; Conflict for a deactivated person; BadUserInput for a person who is no member of the giver's
        community.
        """
        user: UserDocument | None = batch.get(USERS, user_document_id(*self.person))
        if user is None:
            raise NotFound("user", self.person.user_id)
        if "deactivated_at" in user:
            raise Conflict("The account of this person is deactivated.")
        self._require_member(batch)
        id_ = ownership_id(self.person, self.pack_id)
        if batch.get(OWNERSHIPS, id_) is not None:
            return False
        ownership: StampOwnershipDocument = {"_id": id_, "at": batch.at}
        if self.giver is not None:
            ownership["by"] = self.giver.moderator.user_id
            self._audit(batch, self.giver)
        batch.put(OWNERSHIPS, ownership)
        self._notify(batch)
        return True

    def _require_member(self, batch: Batch) -> None:
        community_id = None if self.giver is None else self.giver.community_id
        if community_id is not None and role_of_member(batch, community_id, self.person.user_id) is None:
            raise BadUserInput("userId", "the id of a member of the community")

    def _audit(self, batch: Batch, giver: StampPackGiver) -> None:
        actor = giver.moderator.actor_in(self.person.organization_id)
        details = {"pack": self.pack_name, "packId": self.pack_id}
        if giver.community_id is not None:
            details["community"] = giver.community_id
        put_entry(batch, actor, AuditAction.STAMP_PACK_GIVEN, TargetKind.USER, self.person.user_id, **details)

    def _notify(self, batch: Batch) -> None:
        giver_id = None if self.giver is None else self.giver.moderator.user_id
        if giver_id == self.person.user_id:
            return
        timestamp, ref = batch.take_timestamp(), notification_ref(NotificationKind.STAMP_PACK_RECEIVED, giver_id)
        ref["pack"] = self.pack_id
        # A pack that was taken back and given again is a new notification.
        put_notification(batch, ref, f"{ref['kind']}/{self.pack_id}/{timestamp}", timestamp, TopicPlace(None))


class StampPackOwnerships:
    """Reads, grants and takes back packs."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, audit: AuditLog) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._audit = audit
        self._ownerships: AsyncCollection[StampOwnershipDocument] = mongo[OWNERSHIPS]

    async def owned_packs(self, person: UserKey) -> list[StampPackOwnership]:
        """Returns the packs that a person owns, by id of the pack."""
        rows: list[StampOwnershipDocument] = await self._mongo.find(
            OWNERSHIPS, owned_between(person.organization_id, person.user_id, person.user_id), sort=[("_id", 1)]
        )
        return [_record(row) for row in rows]

    async def owned_among(self, organization_id: str, user_ids: Collection[str]) -> Mapping[str, set[str]]:
        """Returns the ids of the packs of each person who owns one, by id of the person."""
        ranges = [owned_between(organization_id, user_id, user_id) for user_id in user_ids]
        rows: list[StampOwnershipDocument] = await self._mongo.find(OWNERSHIPS, {"$or": ranges}) if ranges else []
        owned: dict[str, set[str]] = {}
        for row in rows:
            owned.setdefault(row["_id"]["u"], set()).add(row["_id"]["p"])
        return owned

    async def may_use(self, person: UserKey, pack: StampPack) -> bool:
        """Returns whether a person may use the stamps of a pack."""
        if pack.availability is StampPackAvailability.EVERYONE:
            return True
        return bool(await self._mongo.find(OWNERSHIPS, {"_id": ownership_id(person, pack.id)}, {"_id": 1}, limit=1))

    async def grant_earned(self, person: UserKey, pack_id: str) -> bool:
        """Makes a person the owner of a pack that the person has earned. Returns whether the person is new. Idempotent.

        People who were deactivated or erased get none.
        """
        try:
            return await self._commit(GrantStampPack(person, pack_id, ""))
        except (Conflict, NotFound):
            return False

    async def give(self, person: UserKey, pack: StampPack, giver: StampPackGiver) -> bool:
        """Gives a pack to a person. Returns whether the person is a new owner. Idempotent.

        Raises: NotFound, Forbidden, BadUserInput; Conflict for a pack that is not GIVEN, and a deactivated person.
        """
        _require_given(pack, "given")
        return await self._commit(GrantStampPack(person, pack.id, pack.name, giver))

    async def take_back(self, actor: Actor, person: UserKey, pack: StampPack) -> bool:
        """Takes a pack back. Returns whether the person owned it. Idempotent.

        Raises: Forbidden for an actor who is no administrator; Conflict for a pack that is not GIVEN.
        """
        _require_given(pack, "taken back")

        async def work(session: Session) -> bool:
            at = await lock_actor(self._mongo, actor, session)
            deleted = await self._ownerships.delete_one({"_id": ownership_id(person, pack.id)}, session=session)
            if deleted.deleted_count:
                action, details = AuditAction.STAMP_PACK_TAKEN_BACK, {"pack": pack.name, "packId": pack.id}
                entry = audit_document(actor, action, TargetKind.USER, person.user_id, at, **details)
                await self._audit.insert(entry, session)
            return bool(deleted.deleted_count)

        return await self._mongo.transact(work)

    async def delete(self, ids: Sequence[StampOwnershipDocumentId]) -> None:
        """Deletes ownerships, for example of packs that were removed."""
        query: Document = {"_id": {"$in": list(ids)}}
        await self._mongo.write_past_orphans(lambda: self._ownerships.delete_many(query))

    async def _commit(self, change: GrantStampPack) -> bool:
        return await self._sequencer.commit(user_stream(*change.person), change)


def ownership_id(person: UserKey, pack_id: str) -> StampOwnershipDocumentId:
    """Returns the `_id` of the ownership of a person and a pack."""
    return {"o": person.organization_id, "u": person.user_id, "p": pack_id}


def owned_between(organization_id: str, first_user_id: str, last_user_id: str) -> Document:
    """Returns the filter for the ownerships of the people whose ids are in the closed range."""
    low = {"o": organization_id, "u": first_user_id, "p": ""}
    return {"_id": {"$gte": low, "$lt": {"o": organization_id, "u": last_user_id, "p": MaxKey()}}}


def _require_given(pack: StampPack, act: str) -> None:
    if pack.availability is not StampPackAvailability.GIVEN:
        raise Conflict(
            f"The pack {pack.name} is not {act}, because its availability is {pack.availability.value}. "
            "An ADMIN can change it to GIVEN."
        )


def _record(row: StampOwnershipDocument) -> StampPackOwnership:
    id_ = row["_id"]
    return StampPackOwnership(id_["o"], id_["u"], id_["p"], row["at"], row.get("by"))
