"""Outbox relays that add notifications to their owner's timeline, and remove those of deleted replies and quotes."""

from collections.abc import Collection, Iterable, Sequence

from storage.identity.erased_people import is_being_erased
from storage.identity.records import stream_owner
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.notifications.timeline import (
    ALWAYS_DELIVERED,
    NOTIFICATIONS,
    WITHDRAWN_KINDS,
    TopicPlace,
    content_key,
    put_notification,
    remove_notification,
)
from storage.streams.changes import Batch
from storage.streams.documents import NotificationDocument, OutboxDocument
from storage.streams.outbox import OutboxRelay


class NotificationRelay(OutboxRelay):
    """Adds notifications to the owner's timeline, each once. Erased people get none."""

    def __init__(self) -> None:
        self._is_owner_erased = False
        self._existing: set[str] = set()
        self._deleted_posts: set[int] = set()
        """Timestamps of replies and quotes that were deleted before they were notified."""

        self._places: dict[str, TopicPlace] = {}
        """Places of the topics that the owner may read, by topic."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads which notifications exist already, which posts were deleted, and which topics the owner may read."""
        organization_id, owner_id = stream_owner(batch.stream)
        self._is_owner_erased = await is_being_erased(mongo, UserKey(organization_id, owner_id), session)
        abouts = [content_key(row["ref"]) for row in rows]
        query = {"_id.o": organization_id, "_id.u": owner_id, "about": {"$in": abouts}}
        async for document in mongo[NOTIFICATIONS].find(query, {"about": 1}, session=session):
            self._existing.add(document["about"])
        answers = {row["ref"]["post"] for row in rows if row["ref"]["kind"] in WITHDRAWN_KINDS}
        self._deleted_posts = await _deleted_posts(mongo, session, organization_id, answers)
        topics = {row["ref"]["topic"] for row in rows} - {None}
        if topics:
            self._places = await readable_topics(mongo, session, owner_id, topics)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Adds the notification, unless it exists, the reply was deleted, or its owner may not read the topic."""
        ref = row["ref"]
        if self._is_owner_erased or (ref["kind"] in WITHDRAWN_KINDS and ref["post"] in self._deleted_posts):
            return 0.0
        about = content_key(ref)
        place = TopicPlace(ref.get("community")) if ref["topic"] is None else self._places.get(ref["topic"])
        is_delivered = place is not None or ref["kind"] in ALWAYS_DELIVERED
        if about not in self._existing and is_delivered:
            self._existing.add(about)
            put_notification(batch, ref, about, batch.take_timestamp(), place or TopicPlace(None))
        return 0.0


class NotificationWithdrawnRelay(OutboxRelay):
    """Removes the notification with the content of the row. `NotificationRelay` adds none for a deleted post."""

    def __init__(self) -> None:
        self._stored: dict[str, NotificationDocument] = {}
        """Notifications that are left, by their content."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the notifications."""
        organization_id, owner_id = stream_owner(batch.stream)
        contents = [content_key(row["ref"]) for row in rows]
        query = {"_id.o": organization_id, "_id.u": owner_id, "about": {"$in": contents}}
        for document in await mongo.find(NOTIFICATIONS, query, session=session):
            batch.add_loaded(NOTIFICATIONS, document)
            self._stored[document["about"]] = document

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Removes the notification, unless an earlier row of the batch did."""
        notification = self._stored.pop(content_key(row["ref"]), None)
        if notification is not None:
            remove_notification(batch, notification["_id"])
        return 0.0


async def _deleted_posts(mongo: Mongo, session: Session, organization_id: str, timestamps: Collection[int]) -> set[int]:
    """Returns which of the posts were deleted."""
    if not timestamps:
        return set()
    ids = [{"o": organization_id, "ts": timestamp} for timestamp in timestamps]
    query = {"_id": {"$in": ids}, "deleted_at": {"$ne": None}}
    found = await mongo.find("posts", query, {"_id": 1}, session=session)
    return {post["_id"]["ts"] for post in found}


async def readable_topics(
    mongo: Mongo, session: Session, user_id: str, topic_ids: Iterable[str]
) -> dict[str, TopicPlace]:
    """Returns the places of those of the topics whose communities the user is a member of.

    Leaves out conversations that wait for the user's acceptance.
    """
    fields = {"community": 1, "thread.topic": 1}
    cursor = mongo["topics"].find({"_id": {"$in": list(topic_ids)}}, fields, session=session)
    places = {
        topic["_id"]: TopicPlace(topic["community"], topic.get("thread", {}).get("topic"))
        for topic in await cursor.to_list(None)
    }
    joined = {"user": user_id, "conversation": {"$ne": "REQUESTED"}}
    query = {"community": {"$in": list({place.community_id for place in places.values()})}, **joined}
    cursor = mongo["memberships"].find(query, {"community": 1}, session=session)
    joined_communities = {membership["community"] for membership in await cursor.to_list(None)}
    return {topic: place for topic, place in places.items() if place.community_id in joined_communities}
