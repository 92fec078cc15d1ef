"""Mutes: subjects that a person wants to hear nothing of, for good or until an instant.

A subject is a user, a topic, a community, or the conversation of a post, by its first post.

Each read checks mutes, as it checks blocks. So a mute takes effect at once in every process, also for open
subscriptions.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import BadUserInput, Conflict, NotFound
from storage.identity.documents import MuteDocument, MuteDocumentId, UserDocument
from storage.identity.records import user_document_id
from storage.ids import PostKey, UserKey
from storage.mongo import Document, Mongo, Session
from storage.mongo.batch_loader import BatchLoader

MUTES = "mutes"
MAX_MUTES = 1000
MUTERS_PER_QUERY = 1000

MUTES_IN_FORCE = {"$or": [{"until": {"$exists": False}}, {"$expr": {"$gt": ["$until", "$$NOW"]}}]}
"""The filter for mutes that have not ended, by the database's clock. The TTL index deletes ended mutes later."""


class MuteSubject(Enum):
    """Kind of a muted object."""

    USER = "USER"
    TOPIC = "TOPIC"
    COMMUNITY = "COMMUNITY"
    POST = "POST"


@dataclass(frozen=True, slots=True)
class Mute:
    """A mute that is in force. `until` is None if it does not end by itself."""

    subject: MuteSubject
    subject_id: str
    muted_at: datetime
    until: datetime | None

    @property
    def id(self) -> str:
        """The id, unique among the person's mutes."""
        return f"{self.subject.value}:{self.subject_id}"


class HiddenSubjects(NamedTuple):
    """Ids of the users, topics, communities and posts that a person has blocked or muted."""

    users: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    communities: frozenset[str] = frozenset()
    posts: frozenset[str] = frozenset()
    """First posts of conversations."""


class MuteStore:
    """Reads and changes mutes."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._mutes: AsyncCollection[MuteDocument] = mongo[MUTES]
        self._muted_by_user: BatchLoader[UserKey, HiddenSubjects] = BatchLoader(self._load_muted)

    async def muted_by(self, organization_id: str, user_id: str) -> HiddenSubjects:
        """Returns the subjects that the user has muted."""
        return await self._muted_by_user.get(UserKey(organization_id, user_id)) or HiddenSubjects()

    async def muters_among(
        self, organization_id: str, subject: MuteSubject, subject_id: str, user_ids: Collection[str]
    ) -> set[str]:
        """Returns those of the users who have muted the subject."""
        owners = [UserKey(organization_id, user_id) for user_id in user_ids]
        chunks = [owners[start : start + MUTERS_PER_QUERY] for start in range(0, len(owners), MUTERS_PER_QUERY)]
        finds = [self._find_muters(chunk, subject, subject_id) for chunk in chunks]
        return {document["_id"]["u"] for found in await asyncio.gather(*finds) for document in found}

    async def _find_muters(
        self, owners: Sequence[UserKey], subject: MuteSubject, subject_id: str
    ) -> list[MuteDocument]:
        ids = [_id(owner, subject, subject_id) for owner in owners]
        return await self._mongo.find(MUTES, {"$and": [{"_id": {"$in": ids}}, MUTES_IN_FORCE]}, {"_id": 1})

    async def mute(self, owner: UserKey, subject: MuteSubject, subject_id: str, until: datetime | None) -> Mute:
        """Mutes a subject until the instant, or for good. Replaces the end of a mute that exists.

        Raises: BadUserInput for an instant that is not in the future; Conflict for a person who has MAX_MUTES mutes.
        """
        key = _id(owner, subject, subject_id)

        async def work(session: Session) -> MuteDocument:
            at = await self._lock_owner(owner, session)
            if until is not None and until <= at:
                raise BadUserInput("until", "an instant in the future")
            await self._require_room(owner, key, session)
            document: MuteDocument = {"_id": key, "at": at}
            if until is not None:
                document["until"] = until
            await self._mutes.replace_one({"_id": key}, document, upsert=True, session=session)
            return document

        return _record(await self._mongo.transact(work))

    async def unmute(self, owner: UserKey, subject: MuteSubject, subject_id: str) -> bool:
        """Ends a mute. Idempotent. Returns whether there was one."""
        deleted = await self._mutes.delete_one({"_id": _id(owner, subject, subject_id)})
        return deleted.deleted_count == 1

    async def list_mutes(
        self, owner: UserKey, subject: MuteSubject | None, after: str | None, limit: int
    ) -> list[Mute]:
        """Returns mutes ordered by kind and id of the subject: those after the mute `after`, or from the first.

        Raises: NotFound if `after` does not exist.
        """
        between = _range(owner) if subject is None else _range(owner, subject)
        query: Document = {"$and": [between, MUTES_IN_FORCE]}
        if after is not None:
            query["$and"].append({"_id": {"$gt": await self._existing_id(owner, after)}})
        found: list[MuteDocument] = await self._mongo.find(MUTES, query, sort=[("_id", 1)], limit=limit, hint="_id_")
        return [_record(document) for document in found]

    async def _existing_id(self, owner: UserKey, mute_id: str) -> MuteDocumentId:
        kind, _, subject_id = mute_id.partition(":")
        key: MuteDocumentId = {"o": owner.organization_id, "u": owner.user_id, "k": kind, "s": subject_id}
        if await self._mutes.find_one({"_id": key}, {"_id": 1}) is None:
            raise NotFound("mute", mute_id)
        return key

    async def _lock_owner(self, owner: UserKey, session: Session) -> datetime:
        """Locks the owner's document, so that mutes of one person are counted one after the other. Returns the time."""
        key = {"_id": user_document_id(*owner)}
        update = {"$currentDate": {"muted_at": True}}
        user: UserDocument | None = await self._mongo.find_one_and_update("users", key, update, session)
        if user is None:
            raise NotFound("user", owner.user_id)
        return user["muted_at"]

    async def _require_room(self, owner: UserKey, key: MuteDocumentId, session: Session) -> None:
        others = {"$and": [_range(owner), MUTES_IN_FORCE, {"_id": {"$ne": key}}]}
        found = await self._mongo.find(MUTES, others, {"_id": 1}, limit=MAX_MUTES, session=session)
        if len(found) >= MAX_MUTES:
            raise Conflict(f"A person has at most {MAX_MUTES} mutes. End one first.")

    async def _load_muted(self, owners: Sequence[UserKey]) -> dict[UserKey, HiddenSubjects]:
        query = {"$and": [{"$or": [_range(owner) for owner in owners]}, MUTES_IN_FORCE]}
        found: list[MuteDocument] = await self._mongo.find(MUTES, query, {"_id": 1})
        ids: defaultdict[UserKey, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for document in found:
            key = document["_id"]
            ids[UserKey(key["o"], key["u"])][key["k"]].add(key["s"])
        return {
            owner: HiddenSubjects(*(frozenset(ids_by_kind[each.value]) for each in MuteSubject))
            for owner, ids_by_kind in ids.items()
        }


async def end_mutes_of_post(mongo: Mongo, key: PostKey) -> None:
    """Ends everybody's mutes of the conversation that a post began. Idempotent."""
    query = {"_id.o": key.organization_id, "_id.s": key.id, "_id.k": MuteSubject.POST.value}
    await mongo[MUTES].delete_many(query)


def _id(owner: UserKey, subject: MuteSubject, subject_id: str) -> MuteDocumentId:
    return {"o": owner.organization_id, "u": owner.user_id, "k": subject.value, "s": subject_id}


def _range(owner: UserKey, subject: MuteSubject | None = None) -> Document:
    """Returns the filter for the owner's mutes, of one kind of subject or of all."""
    low, high = ("", "\U0010ffff") if subject is None else (subject.value, f"{subject.value}\0")
    key = {"o": owner.organization_id, "u": owner.user_id}
    return {"_id": {"$gte": {**key, "k": low}, "$lt": {**key, "k": high}}}


def _record(document: MuteDocument) -> Mute:
    key = document["_id"]
    return Mute(MuteSubject(key["k"]), key["s"], document["at"], document.get("until"))
