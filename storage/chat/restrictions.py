"""Restrictions of people in a community: bans, mutes and removals, which every write to a topic checks.

A write to a topic reads the restrictions of its writer in its own transaction. A ban is committed to another stream, so
the two transactions do not conflict. Therefore a moderator's act first marks the person as removed, then waits with
`wait_for_commits` until every commit that may not have seen the mark has ended, and then commits.
"""

from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from storage.chat.documents import RestrictionDocument, RestrictionDocumentId
from storage.errors import Forbidden
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch, Change, Result

RESTRICTIONS = "community_restrictions"

COMMUNITY = ""
"""The user id in the document that restricts everybody in a community."""

REMOVED_FOR = timedelta(seconds=60)
"""How long no write of a removed person is committed. Requests that were admitted before have ended by then."""


class WriterChange(Change[Result]):
    """A change of a topic in the name of one person."""

    @property
    @abstractmethod
    def writer_id(self) -> str:
        """Id of the person."""

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the restrictions of the community and of all writers of the batch, with one query."""
        if RESTRICTIONS in batch.shared:
            return
        writers = {change.writer_id for change in batch.changes if isinstance(change, WriterChange)}
        ids = [restriction_id(batch.head["community"], writer) for writer in (*writers, COMMUNITY)]
        restrictions: list[RestrictionDocument] = await mongo.find(RESTRICTIONS, {"_id": {"$in": ids}}, session=session)
        batch.shared[RESTRICTIONS] = {restriction["_id"]["u"]: restriction for restriction in restrictions}


def restriction_id(community_id: str, user_id: str) -> RestrictionDocumentId:
    """Returns the `_id` of a person's restrictions in a community."""
    return {"c": community_id, "u": user_id}


def require_not_removed(batch: Batch, user_id: str) -> None:
    """Raises Forbidden for a person who is banned or was just removed from the topic's community."""
    restriction = _restriction(batch, user_id)
    if restriction is None:
        return
    require_not_banned(restriction, batch.at)
    if restriction.get("removed_until", batch.at) > batch.at:
        raise Forbidden("You were removed from the community.")


def require_may_write(batch: Batch, user_id: str) -> None:
    """Raises Forbidden in an archived community, and for a person who is banned, muted or was just removed."""
    require_not_archived(batch)
    require_not_removed(batch, user_id)
    restriction = _restriction(batch, user_id)
    muted_until = None if restriction is None else muted_at(restriction, batch.at)
    if muted_until is not None:
        raise Forbidden(f"You are muted in this community until {iso(muted_until)}.", until=iso(muted_until))


def require_not_archived(batch: Batch) -> None:
    """Raises Forbidden if the topic's community is archived."""
    if _restriction(batch, COMMUNITY) is not None:
        raise archived()


def archived() -> Forbidden:
    """Returns the error for changes of an archived community."""
    return Forbidden("The community is archived. It can only be read.")


def require_not_banned(restriction: RestrictionDocument | None, at: datetime) -> None:
    """Raises Forbidden if the person is banned at the instant."""
    if restriction is None or not is_banned(restriction, at):
        return
    until = restriction["ban"].get("until")
    if until is None:
        raise Forbidden("You are banned from this community.")
    raise Forbidden(f"You are banned from this community until {iso(until)}.", until=iso(until))


def is_banned(restriction: RestrictionDocument, at: datetime) -> bool:
    """Returns whether a ban is in force at the instant."""
    ban = restriction.get("ban")
    return ban is not None and ban.get("until", at + REMOVED_FOR) > at


def muted_at(restriction: RestrictionDocument | None, at: datetime) -> datetime | None:
    """Returns when the mute ends that is in force at the instant, or None."""
    until = None if restriction is None else restriction.get("muted_until")
    return until if until is not None and until > at else None


def put_restriction(batch: Batch, restriction: RestrictionDocument) -> None:
    """Puts a loaded or new restriction with its end, or removes it if nothing of it is in force."""
    ends = [end for end in (restriction.get("muted_until"), restriction.get("removed_until")) if end is not None]
    ban = restriction.get("ban")
    if ban is not None and "until" in ban:
        ends.append(ban["until"])
    restriction.pop("ends_at", None)
    if ban is None and not any(end > batch.at for end in ends):
        batch.remove(RESTRICTIONS, restriction["_id"])
        return
    if ban is None or "until" in ban:
        restriction["ends_at"] = max(ends)
    batch.put(RESTRICTIONS, restriction)


async def mark_removed(mongo: Mongo, community_id: str, user_id: str) -> None:
    """Refuses all further writes of the person for a minute, before the person is removed."""
    until = {"$add": ["$$NOW", int(REMOVED_FOR.total_seconds() * 1000)]}
    is_permanent = {"$and": [{"$ne": [{"$type": "$ban"}, "missing"]}, {"$eq": [{"$type": "$ban.until"}, "missing"]}]}
    latest = {"$max": ["$ban.until", "$muted_until", "$removed_until"]}
    update: list[Document] = [
        {"$set": {"removed_until": until}},
        {"$set": {"ends_at": {"$cond": [is_permanent, "$$REMOVE", latest]}}},
    ]
    await mongo.write_past_orphans(
        lambda: mongo[RESTRICTIONS].update_one({"_id": restriction_id(community_id, user_id)}, update, upsert=True)
    )


async def wait_for_commits(mongo: Mongo, community_id: str) -> None:
    """Waits for the commits in progress to topics of the community. Later commits see all restrictions stored before.

    Each topic's head is written, outside of a transaction. The write waits for a transaction that has written the head,
    and conflicts with one that has read older restrictions and will write the head.
    """
    await mongo.write_past_orphans(
        lambda: mongo["topics"].update_many({"community": community_id}, {"$inc": {"fences": 1}})
    )


def iso(at: datetime) -> str:
    """Returns the instant as clients see it in errors."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _restriction(batch: Batch, user_id: str) -> RestrictionDocument | None:
    restrictions: Mapping[str, Any] = batch.shared[RESTRICTIONS]
    return restrictions.get(user_id)
