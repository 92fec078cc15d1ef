"""Notifications: one timeline for each user, with a read mark.

Other areas add an outbox row for the user's stream in their own transaction: with `notify` in a batch, otherwise with
`notification_ref` and `outbox.add_rows`. Rows with equal content become a single notification.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.records import stream_owner, user_stream
from storage.ids import MessageKey, PostKey
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import NotificationDocument, NotificationMarkDocument, NotificationRef, OutboxDocument
from storage.streams.log import Stream
from storage.streams.outbox import OutboxRelay
from storage.timeline import MAX_TIMESTAMP, Page, Range, Timestamp, move_mark, read_page

NOTIFICATIONS = "notifications"


class NotificationKind(Enum):
    """The kind of a notification: its reason."""

    MENTION = "MENTION"
    REACTION = "REACTION"
    FOLLOW = "FOLLOW"
    PUBLICATION_FAILED = "PUBLICATION_FAILED"
    PUBLICATION_UNKNOWN = "PUBLICATION_UNKNOWN"
    REPORT_DECIDED = "REPORT_DECIDED"
    WARNING = "WARNING"


ALWAYS_TOLD = {NotificationKind.REPORT_DECIDED.value, NotificationKind.WARNING.value}
"""Kinds of which also people who have left the message's community are notified."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification. Fields that its kind does not have are None."""

    owner_id: str
    timestamp: Timestamp
    kind: NotificationKind
    actor_id: str | None
    message: MessageKey | None
    post: PostKey | None
    publication_id: str | None
    report_id: str | None = None

    @property
    def id(self) -> str:
        """The id, unique among the owner's notifications."""
        return f"{self.owner_id}-{self.timestamp}"


def notify(
    batch: Batch,
    organization_id: str,
    user_id: str,
    kind: NotificationKind,
    actor_id: str | None = None,
    *,
    message: MessageKey | None = None,
    post: int | None = None,
    publication_id: str | None = None,
    report_id: str | None = None,
) -> None:
    """Notifies the user when the batch is committed, unless the user is the actor. `post` is the post's timestamp."""
    if actor_id != user_id:
        ref = notification_ref(kind, actor_id, message=message, post=post, publication_id=publication_id)
        if report_id is not None:
            ref["report"] = report_id
        batch.add_outbox_row(user_stream(organization_id, user_id), "Notify", ref)


def notification_ref(
    kind: NotificationKind,
    actor_id: str | None = None,
    *,
    message: MessageKey | None = None,
    post: int | None = None,
    publication_id: str | None = None,
) -> NotificationRef:
    """Returns the `ref` of an outbox row of kind "Notify" for the user's stream."""
    return {
        "kind": kind.value,
        "actor": actor_id,
        "topic": message and message.topic_id,
        "ts": message and message.timestamp,
        "post": post,
        "publication": publication_id,
    }


class NotificationRelay(OutboxRelay):
    """Adds notifications to the owner's timeline, each once."""

    def __init__(self) -> None:
        self._existing: set[str] = set()
        self._unreadable_topics: set[str | None] = set()

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads which notifications exist already, and which topics the owner may not read."""
        organization_id, owner_id = stream_owner(batch.stream)
        abouts = [_about(row["ref"]) for row in rows]
        query = {"_id.o": organization_id, "_id.u": owner_id, "about": {"$in": abouts}}
        async for document in mongo[NOTIFICATIONS].find(query, {"about": 1}, session=session):
            self._existing.add(document["about"])
        topics = {row["ref"]["topic"] for row in rows} - {None}
        if topics:
            self._unreadable_topics = topics - await readable_topics(mongo, session, owner_id, topics)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Adds the notification, unless it exists or its owner may not read the topic."""
        ref = row["ref"]
        about = _about(ref)
        is_told = ref["topic"] not in self._unreadable_topics or ref["kind"] in ALWAYS_TOLD
        if about not in self._existing and is_told:
            self._existing.add(about)
            put_notification(batch, ref, about, batch.take_timestamp())
        return 0.0


def put_notification(batch: Batch, ref: NotificationRef, about: str, timestamp: int) -> None:
    """Adds a notification in a batch of its owner's stream, and emits it."""
    organization_id, owner_id = stream_owner(batch.stream)
    document: NotificationDocument = {
        "_id": {"o": organization_id, "u": owner_id, "ts": Timestamp(timestamp)},
        **ref,
        "about": about,
    }
    batch.put(NOTIFICATIONS, document)
    batch.emit("NotificationArrived", timestamp)


def _about(ref: NotificationRef) -> str:
    """Returns the content of a notification as one string, by which repetitions are recognized."""
    parts = [ref["kind"], ref["actor"], ref["topic"], ref["ts"], ref["post"], ref["publication"]]
    return "/".join(str(part) for part in (*parts, *([ref["report"]] if "report" in ref else [])))


async def readable_topics(mongo: Mongo, session: Session, user_id: str, topic_ids: Iterable[str]) -> set[str]:
    """Returns those of the topics whose community the user is a member of."""
    cursor = mongo["topics"].find({"_id": {"$in": list(topic_ids)}}, {"community": 1}, session=session)
    communities = {topic["_id"]: topic["community"] for topic in await cursor.to_list(None)}
    query = {"community": {"$in": list(set(communities.values()))}, "user": user_id}
    cursor = mongo["memberships"].find(query, {"community": 1}, session=session)
    joined_communities = {membership["community"] for membership in await cursor.to_list(None)}
    return {topic for topic, community in communities.items() if community in joined_communities}


class NotificationStore:
    """Reads notifications and keeps read marks. Notifications that blocked users caused are left out."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._notifications: AsyncCollection[NotificationDocument] = mongo[NOTIFICATIONS]
        self._marks: AsyncCollection[NotificationMarkDocument] = mongo["notification_marks"]

    async def page(
        self, organization_id: str, user_id: str, range_: Range, blocked: frozenset[str]
    ) -> Page[Notification]:
        """Returns a page of the user's notifications by time."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Notification]:
            query = _query(organization_id, user_id, low, high, blocked)
            cursor = self._notifications.find(query).sort("_id", 1 if ascending else -1).limit(limit)
            return [_notification(document) for document in await cursor.to_list(limit)]

        return await read_page(range_, fetch, lambda notification: notification.timestamp)

    async def unread_count(self, organization_id: str, user_id: str, blocked: frozenset[str]) -> int:
        """Returns the number of notifications after the read mark."""
        mark = await self._marks.find_one({"_id": _owner(organization_id, user_id)})
        low = 0 if mark is None else mark["ts"] + 1
        query = _query(organization_id, user_id, low, MAX_TIMESTAMP, blocked)
        return await self._notifications.count_documents(query)

    async def mark_read(self, organization_id: str, user_id: str, timestamp: int) -> None:
        """Moves the read mark forward, but not past the newest notification."""
        query = _query(organization_id, user_id, 0, MAX_TIMESTAMP, frozenset())
        newest = await self._notifications.find_one(query, {"_id": 1}, sort=[("_id", -1)])
        update = move_mark(timestamp, newest["_id"]["ts"] if newest else 0)
        await self._marks.update_one({"_id": _owner(organization_id, user_id)}, update, upsert=True)

    async def of_events(self, stream: Stream, refs: Sequence[int]) -> dict[Any, Notification]:
        """Returns the notifications that events of the user's stream refer to, by timestamp, with one read."""
        owner = _owner(*stream_owner(stream))
        cursor = self._notifications.find({"_id": {"$in": [{**owner, "ts": ref} for ref in set(refs)]}})
        return {document["_id"]["ts"]: _notification(document) for document in await cursor.to_list(None)}


def _owner(organization_id: str, user_id: str) -> Document:
    return {"o": organization_id, "u": user_id}


def _query(organization_id: str, user_id: str, low: int, high: int, blocked: frozenset[str]) -> Document:
    """Returns the filter for a user's notifications in a closed range of timestamps, without blocked actors."""
    owner = _owner(organization_id, user_id)
    query: Document = {"_id": {"$gte": {**owner, "ts": low}, "$lte": {**owner, "ts": high}}}
    if blocked:
        query["actor"] = {"$nin": list(blocked)}
    return query


def _notification(document: NotificationDocument) -> Notification:
    id_, topic, post = document["_id"], document["topic"], document["post"]
    return Notification(
        owner_id=id_["u"],
        timestamp=id_["ts"],
        kind=NotificationKind(document["kind"]),
        actor_id=document["actor"],
        message=None if topic is None or document["ts"] is None else MessageKey(topic, document["ts"]),
        post=None if post is None else PostKey(id_["o"], post),
        publication_id=document["publication"],
        report_id=document.get("report"),
    )
