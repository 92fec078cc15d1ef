"""Notifications: one timeline for each user, with a read mark.

Other areas add an outbox row for the user's stream in their own transaction: with `notify` in a batch, otherwise with
`notification_ref` and `outbox.add_rows`. Rows with equal content become a single notification.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.mutes import HiddenSubjects
from storage.identity.records import stream_owner, user_stream
from storage.ids import MessageKey, PostKey, UserKey, post_key
from storage.mongo import Document, Mongo
from storage.streams.changes import Batch
from storage.streams.documents import (
    NotificationContent,
    NotificationDocument,
    NotificationDocumentId,
    NotificationMarkDocument,
)
from storage.streams.log import Stream
from storage.timeline import MAX_TIMESTAMP, TimelinePage, TimelineRange, Timestamp, move_mark, read_page

NOTIFICATIONS = "notifications"


class NotificationKind(Enum):
    """The kind of a notification: its reason."""

    MENTION = "MENTION"
    REACTION = "REACTION"
    FOLLOW = "FOLLOW"
    REPLY = "REPLY"
    REPOST = "REPOST"
    QUOTE = "QUOTE"
    PUBLICATION_FAILED = "PUBLICATION_FAILED"
    PUBLICATION_UNKNOWN = "PUBLICATION_UNKNOWN"
    PUBLICATION_NEEDS_ATTENTION = "PUBLICATION_NEEDS_ATTENTION"
    PUBLICATION_LATE = "PUBLICATION_LATE"
    ACCOUNT_CREDENTIALS_ENDING = "ACCOUNT_CREDENTIALS_ENDING"
    ACCOUNT_CREDENTIALS_ENDED = "ACCOUNT_CREDENTIALS_ENDED"
    ACCOUNT_NEEDS_ATTENTION = "ACCOUNT_NEEDS_ATTENTION"
    REPORT_DECIDED = "REPORT_DECIDED"
    WARNING = "WARNING"
    ADDED_TO_COMMUNITY = "ADDED_TO_COMMUNITY"
    THREAD_REPLY = "THREAD_REPLY"
    STAMP_PACK_RECEIVED = "STAMP_PACK_RECEIVED"
    CONVERSATION_REQUEST = "CONVERSATION_REQUEST"
    DIRECT_MESSAGE = "DIRECT_MESSAGE"


CONVERSATION_KINDS = {NotificationKind.CONVERSATION_REQUEST, NotificationKind.DIRECT_MESSAGE}
"""Kinds of which a user has at most one notification for each conversation. They are only shown in the list: pushes and
digests read the messages of conversations themselves."""

ALWAYS_DELIVERED = {NotificationKind.REPORT_DECIDED.value, NotificationKind.WARNING.value}
"""Kinds that also reach people who have left the message's community, or who have blocked or muted the subject."""


_ABOUT_OWN_POSTS = {NotificationKind.REACTION, NotificationKind.REPOST}
"""Kinds whose post is the owner's post that others responded to."""

WITHDRAWN_KINDS = {NotificationKind.REPLY.value, NotificationKind.QUOTE.value}
"""Kinds whose notification is removed when the reply or quote is deleted."""


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
    community_id: str | None = None
    """Community of the message, or community to which the owner was added.

    None also for notifications of an earlier release.
    """

    parent_topic_id: str | None = None
    """Topic of the parent message, for a message in a thread."""

    account_id: str | None = None
    """Connected account whose credentials end or were refused."""

    stamp_pack_id: str | None = None
    """Pack of stamps that the owner earned or was given."""

    emoji: str | None = None
    """The emoji of a reaction. None also for notifications of an earlier release."""

    subject: PostKey | None = None
    """The owner's post that others replied to, quoted, reposted or reacted to. It may have been deleted since.

    None also for replies and quotes of an earlier release.
    """

    root: PostKey | None = None
    """First post of the conversation of the owner's post, or of the post with the mention.

    None also for notifications of an earlier release.
    """

    @property
    def id(self) -> str:
        """The id, unique among the owner's notifications."""
        return notification_id(self.owner_id, self.timestamp)

    @property
    def subject_id(self) -> str | None:
        """The id of the owner's post that others responded to, or None."""
        return None if self.subject is None else self.subject.id

    def is_hidden(self, hidden: HiddenSubjects) -> bool:
        """Returns whether the owner has blocked or muted the subject of the notification."""
        if self.kind.value in ALWAYS_DELIVERED:
            return False
        topics = {self.parent_topic_id, self.message and self.message.topic_id}
        return (
            not topics.isdisjoint(hidden.topics)
            or self.actor_id in hidden.users
            or self.community_id in hidden.communities
            or (self.root is not None and self.root.id in hidden.posts)
        )


@dataclass(frozen=True, slots=True)
class RemovedNotification:
    """The subject of an event about a notification that is gone."""

    notification_id: str


def notification_id(owner_id: str, timestamp: int) -> str:
    """Returns the id of a notification, unique among the owner's notifications."""
    return f"{owner_id}-{timestamp}"


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
    attempt: int | None = None,
    report_id: str | None = None,
    emoji: str | None = None,
    subject: int | None = None,
    root: int | None = None,
) -> None:
    """Notifies the user when the batch is committed, unless the user is the actor.

    `post`, `subject` and `root` are timestamps of posts, and `attempt` a number, as in `NotificationContent`.
    """
    if actor_id != user_id:
        ref = notification_ref(kind, actor_id, message=message, post=post, publication_id=publication_id)
        if subject is not None:
            ref["subject"] = subject
        if root is not None:
            ref["root"] = root
        if attempt is not None:
            ref["attempt"] = attempt
        if report_id is not None:
            ref["report"] = report_id
        if emoji is not None:
            ref["emoji"] = emoji
        batch.add_outbox_row(user_stream(organization_id, user_id), "Notify", ref)


def notify_new_member(
    batch: Batch, organization_id: str, user_id: str, actor_id: str | None, community_id: str, membership_id: str
) -> None:
    """Notifies a new member of a community when the batch is committed, unless the person is the actor.

    `actor_id` is None after an accepted invitation. Each membership has a notification of its own.
    """
    if actor_id != user_id:
        ref = notification_ref(NotificationKind.ADDED_TO_COMMUNITY, actor_id)
        ref["community"], ref["membership"] = community_id, membership_id
        batch.add_outbox_row(user_stream(organization_id, user_id), "Notify", ref)


def notification_ref(
    kind: NotificationKind,
    actor_id: str | None = None,
    *,
    message: MessageKey | None = None,
    post: int | None = None,
    publication_id: str | None = None,
) -> NotificationContent:
    """Returns the `ref` of an outbox row of kind "Notify" for the user's stream."""
    return {
        "kind": kind.value,
        "actor": actor_id,
        "topic": message and message.topic_id,
        "ts": message and message.timestamp,
        "post": post,
        "publication": publication_id,
    }


class TopicPlace(NamedTuple):
    """The community of a topic, and for a thread the topic of its parent message."""

    community_id: str | None
    parent_topic_id: str | None = None


def put_notification(batch: Batch, ref: NotificationContent, about: str, timestamp: int, place: TopicPlace) -> None:
    """Adds a notification in a batch of its owner's stream, and emits it. `place` is that of its message."""
    organization_id, owner_id = stream_owner(batch.stream)
    document: NotificationDocument = {
        "_id": {"o": organization_id, "u": owner_id, "ts": Timestamp(timestamp)},
        **ref,
        "about": about,
        "community": place.community_id,
    }
    if place.parent_topic_id is not None:
        document["parent_topic"] = place.parent_topic_id
    batch.put(NOTIFICATIONS, document)
    batch.emit("NotificationArrived", timestamp)


def remove_notification(batch: Batch, id_: NotificationDocumentId) -> None:
    """Removes a loaded notification in a batch of its owner's stream, and emits the removal."""
    batch.remove(NOTIFICATIONS, id_)
    batch.emit("NotificationRemoved", id_["ts"])


def content_key(ref: NotificationContent) -> str:
    """Returns the content of a notification as one string, by which repetitions are recognized."""
    parts = [ref["kind"], ref["actor"], ref["topic"], ref["ts"], ref["post"], ref["publication"]]
    names = ("report", "membership", "attempt", "account", "occasion")
    more = [part for part in (ref.get(name) for name in names) if part is not None]
    return "/".join(str(part) for part in (*parts, *more))


class NotificationStore:
    """Reads notifications and keeps read marks. Pages and counts leave out blocked and muted subjects."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._notifications: AsyncCollection[NotificationDocument] = mongo[NOTIFICATIONS]
        self._marks: AsyncCollection[NotificationMarkDocument] = mongo["notification_marks"]

    async def page(
        self, organization_id: str, user_id: str, range_: TimelineRange, hidden: HiddenSubjects
    ) -> TimelinePage[Notification]:
        """Returns a page of the user's notifications by time."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Notification]:
            query = _query(organization_id, user_id, low, high, hidden)
            order = [("_id", 1 if ascending else -1)]
            documents = await self._mongo.find(NOTIFICATIONS, query, None, order, limit)
            return [_notification(document) for document in documents]

        return await read_page(range_, fetch, lambda notification: notification.timestamp)

    async def read_up_to(self, organization_id: str, user_id: str) -> Timestamp | None:
        """Returns the read mark; None before the first one."""
        marks = await self._mongo.find("notification_marks", {"_id": _owner(organization_id, user_id)}, limit=1)
        return Timestamp(marks[0]["ts"]) if marks else None

    async def unread_count(self, organization_id: str, user_id: str, hidden: HiddenSubjects) -> int:
        """Returns the number of notifications after the read mark."""
        mark = await self._marks.find_one({"_id": _owner(organization_id, user_id)})
        low = 0 if mark is None else mark["ts"] + 1
        query = _query(organization_id, user_id, low, MAX_TIMESTAMP, hidden)
        return await self._notifications.count_documents(query)

    async def unread_between(
        self, owner: UserKey, after: int, up_to: int, hidden: HiddenSubjects, limit: int
    ) -> list[Notification]:
        """Returns the unread notifications in the range (after, up_to], the newest first.

        Leaves out CONVERSATION_KINDS.
        """
        mark = await self._marks.find_one({"_id": _owner(*owner)})
        low = max(after, 0 if mark is None else mark["ts"]) + 1
        query = _query(*owner, low, up_to, hidden) | {"kind": {"$nin": [each.value for each in CONVERSATION_KINDS]}}
        cursor = self._notifications.find(query).sort("_id", -1).limit(limit)
        return [_notification(document) for document in await cursor.to_list(limit)]

    async def mark_read(self, organization_id: str, user_id: str, timestamp: int) -> None:
        """Moves the read mark forward, but not past the newest notification."""
        query = _query(organization_id, user_id, 0, MAX_TIMESTAMP, HiddenSubjects())
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


def _query(organization_id: str, user_id: str, low: int, high: int, hidden: HiddenSubjects) -> Document:
    """Returns the filter for a user's notifications in a closed range of timestamps, without hidden subjects."""
    owner = _owner(organization_id, user_id)
    query: Document = {"_id": {"$gte": {**owner, "ts": low}, "$lte": {**owner, "ts": high}}}
    hidden_values: dict[str, Collection[str | int]] = {
        "actor": hidden.users,
        "topic": hidden.topics,
        "parent_topic": hidden.topics,
        "community": hidden.communities,
        "root": [post_key(organization_id, id_).timestamp for id_ in hidden.posts],
    }
    conditions = [{field: {"$in": list(values)}} for field, values in hidden_values.items() if values]
    if conditions:
        query["$nor"] = [{"kind": {"$nin": list(ALWAYS_DELIVERED)}, "$or": conditions}]
    return query


def _notification(document: NotificationDocument) -> Notification:
    id_, topic, post = document["_id"], document["topic"], document["post"]
    kind = NotificationKind(document["kind"])
    subject = document.get("subject", post if kind in _ABOUT_OWN_POSTS else None)
    root = document.get("root")
    return Notification(
        owner_id=id_["u"],
        timestamp=id_["ts"],
        kind=kind,
        actor_id=document["actor"],
        message=None if topic is None or document["ts"] is None else MessageKey(topic, document["ts"]),
        post=None if post is None else PostKey(id_["o"], post),
        publication_id=document["publication"],
        report_id=document.get("report"),
        community_id=document.get("community"),
        parent_topic_id=document.get("parent_topic"),
        account_id=document.get("account"),
        stamp_pack_id=document.get("pack"),
        emoji=document.get("emoji"),
        subject=None if subject is None else PostKey(id_["o"], subject),
        root=None if root is None else PostKey(id_["o"], root),
    )
