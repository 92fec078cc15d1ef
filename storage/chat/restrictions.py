"""Restrictions of people in a community: bans, mutes and removals, which every write to a topic checks.

A write to a topic reads the restrictions of its writer in its own transaction. A ban is committed to another stream, so
the two transactions do not conflict. Therefore a ban or a kick first marks the person as removed. It commits when every
commit that may not have read the mark has ended (`wait_for_commits`). A mute and the archiving of a community commit
first, and then wait in the same way.
"""

from datetime import UTC, datetime, timedelta

from storage.chat.documents import CommunityUserId, RestrictionDocument
from storage.errors import Forbidden
from storage.mongo import Document, Mongo, seconds_from_now
from storage.streams.changes import Batch

RESTRICTIONS = "community_restrictions"

COMMUNITY = ""
"""The user id in the document that says that a whole community is archived."""

REMOVED_FOR = timedelta(seconds=60)
"""How long no write of a removed person is committed. Requests from before the removal have ended by then."""


def restriction_id(community_id: str, user_id: str) -> CommunityUserId:
    """Returns the `_id` of a person's restrictions in a community."""
    return {"c": community_id, "u": user_id}


def stored_restriction(batch: Batch, community_id: str, user_id: str) -> RestrictionDocument | None:
    """Returns a person's restriction, which was loaded, or None without one."""
    restriction: RestrictionDocument | None = batch.get(RESTRICTIONS, restriction_id(community_id, user_id))
    return restriction


def require_not_removed(restriction: RestrictionDocument | None, at: datetime) -> None:
    """Raises Forbidden for a person who is banned or was just removed from the community."""
    require_not_banned(restriction, at)
    if restriction is not None and restriction.get("removed_until", at) > at:
        raise Forbidden("You were removed from the community.")


def require_not_muted(restriction: RestrictionDocument | None, at: datetime) -> None:
    """Raises Forbidden for a person who is muted in the community."""
    muted_until = muted_at(restriction, at)
    if muted_until is not None:
        raise Forbidden(f"You are muted in this community until {iso(muted_until)}.", until=iso(muted_until))


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
    # A ban without an end counts as one that ends later.
    return ban is not None and ban.get("until", at + REMOVED_FOR) > at


def muted_at(restriction: RestrictionDocument | None, at: datetime) -> datetime | None:
    """Returns the end of the mute that is in force at the instant, or None without a mute."""
    until = None if restriction is None else restriction.get("muted_until")
    return until if until is not None and until > at else None


def put_restriction(batch: Batch, restriction: RestrictionDocument) -> None:
    """Puts a loaded or new restriction with its end. Removes it if it has no ban, and no mute or removal in force."""
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
    """Marks the person as removed for a minute, so that later commits refuse the person's writes."""
    until = seconds_from_now(REMOVED_FOR.total_seconds())
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

    Each topic's head is written, outside of a transaction. The write waits for a transaction that has written the head.
    A transaction that has read older restrictions and writes the head later conflicts with this write, and is repeated.
    """
    await mongo.write_past_orphans(
        lambda: mongo["topics"].update_many({"community": community_id}, {"$inc": {"fences": 1}})
    )


def iso(at: datetime) -> str:
    """Returns the instant as clients see it in errors."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
