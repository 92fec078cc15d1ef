"""Rules for bringing people into a conversation: strangers, blocks, and the number of people in 24 hours."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from storage.chat.conversations.documents import ContactCountDocument, ContactCountId
from storage.errors import Forbidden, RateLimited
from storage.identity.records import User
from storage.mongo import Document, Mongo
from storage.streams.changes import Batch, DocumentKey

CONTACT_COUNTS = "contact_counts"
CONTACTS_PER_DAY = 100
"""The default of how many people one person can bring into conversations in 24 hours."""

COUNTED_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Contacts:
    """People whom one person brings into a conversation."""

    actor_id: str
    """Id of the person who brings the others."""

    people: dict[str, User]
    """The people by id."""

    strangers: frozenset[str]
    """Ids of the people to whom the actor is a stranger."""

    max_a_day: int


async def find_contacts(mongo: Mongo, actor: User, people: Collection[User], max_a_day: int) -> Contacts:
    """Returns the people, and those of them to whom `actor` is a stranger.

    Raises: Forbidden if there is a block between the actor and one of the people, or if one is deactivated or erased.
    """
    ids = [person.id for person in people]
    blocks = {"$or": [{"user": actor.id, "blocked": {"$in": ids}}, {"blocked": actor.id, "user": {"$in": ids}}]}
    blocked = await mongo.find("blocks", {"org": actor.organization_id, **blocks}, {"_id": 1}, limit=1)
    if blocked or any(person.is_deactivated or person.is_erased for person in people):
        raise Forbidden(f"You cannot write to {'this person' if len(people) == 1 else 'one of these people'}.")
    known = await _people_of_own_communities(mongo, actor, ids) | await _followers_among(mongo, actor, ids)
    return Contacts(actor.id, {person.id: person for person in people}, frozenset(ids) - known, max_a_day)


async def _people_of_own_communities(mongo: Mongo, actor: User, ids: list[str]) -> set[str]:
    """Returns those of the people who share a community with the actor."""
    joined: Document = {"org": actor.organization_id, "user": actor.id, "conversation": {"$exists": False}}
    own = [row["community"] for row in await mongo.find("memberships", joined, {"community": 1})]
    shared = {"community": {"$in": own}, "user": {"$in": ids}}
    return {row["user"] for row in await mongo.find("memberships", shared, {"_id": 0, "user": 1})} if own else set()


async def _followers_among(mongo: Mongo, actor: User, ids: list[str]) -> set[str]:
    """Returns those of the people who follow the actor."""
    query = {"org": actor.organization_id, "followee": actor.id, "follower": {"$in": ids}}
    return {row["follower"] for row in await mongo.find("follows", query, {"_id": 0, "follower": 1})}


def contact_count_key(organization_id: str, user_id: str) -> DocumentKey:
    """Returns the key of the count of people whom a person has brought into conversations."""
    id_: ContactCountId = {"o": organization_id, "u": user_id}
    return CONTACT_COUNTS, id_


def count_contacts(batch: Batch, organization_id: str, contacts: Contacts, count: int) -> None:
    """Counts people whom the person brings into a conversation. Raises: RateLimited."""
    if count == 0:
        return
    collection, id_ = contact_count_key(organization_id, contacts.actor_id)
    stored: ContactCountDocument | None = batch.get(collection, id_)
    if stored is None or stored["ends_at"] <= batch.at:
        stored = {"_id": id_, "n": 0, "ends_at": batch.at + COUNTED_FOR}
    if stored["n"] + count > contacts.max_a_day:
        retry_after_ms = max(1, int((stored["ends_at"] - batch.at).total_seconds() * 1000))
        raise RateLimited(f"You can bring {contacts.max_a_day} people into conversations a day.", retry_after_ms)
    batch.put(collection, {**stored, "n": stored["n"] + count})
