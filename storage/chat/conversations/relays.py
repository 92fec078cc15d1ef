"""Outbox relays of conversations: activity reaches the people who have joined, and their notifications follow it."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from storage.chat.changes import MESSAGES
from storage.chat.conversations.documents import DirectFields
from storage.chat.conversations.rules import (
    BLOCKS,
    CHANGED,
    conversations_stream,
    notification_content,
    people_of,
)
from storage.chat.documents import MessageDocument, TopicActivityDocument, TopicDocument
from storage.chat.relays import TopicActivityRelay
from storage.identity.mutes import MUTES, MUTES_IN_FORCE, MuteSubject
from storage.identity.records import stream_owner, user_document_id, user_stream
from storage.ids import MessageKey, UserKey
from storage.mongo import Document, Mongo, Session
from storage.mongo.joint_finds import Find, find_jointly
from storage.notifications import (
    NOTIFICATIONS,
    NotificationKind,
    TopicPlace,
    notification_ref,
    put_notification,
    remove_notification,
)
from storage.streams.changes import Batch
from storage.streams.documents import NotificationDocument, OutboxDocument
from storage.streams.outbox import EventRelay, OutboxRelay
from storage.timeline import MAX_TIMESTAMP

ACTIVE = "ConversationActive"
DIRECT_MESSAGE = NotificationKind.DIRECT_MESSAGE.value
MAX_NEW_MESSAGES = 100
"""Number of messages of which the authors are read, to spare the only author a row."""


class ConversationActivityRelay(TopicActivityRelay):
    """Notifies the people who have joined of new and changed last messages, at most once a second each.

    Their notifications of the conversation follow, except those that stay as they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._topics: dict[str, TopicDocument] = {}
        self._unaffected: dict[str, set[str]] = {}
        """The people of each conversation whose notifications stay as they are."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads who has joined the conversation and is notified, and when its activity was last announced."""
        await super().load(mongo, session, rows, batch)
        query, fields = {"_id": {"$in": [row["ref"] for row in rows]}}, {"org": 1, "last": 1, "direct.joined": 1}
        for topic in await mongo.find("topics", query, fields, session=session):
            self._topics[topic["_id"]] = topic
            activity: TopicActivityDocument | None = batch.get("activity", topic["_id"])
            announced = None if activity is None else activity.get("last")
            self._unaffected[topic["_id"]] = await _unaffected_people(mongo, session, topic, announced)

    def announce(self, batch: Batch, topic_id: str) -> None:
        """Adds outbox rows for each person who has joined, and records up to which message."""
        if (topic := self._topics.get(topic_id)) is None:
            return
        batch.put("activity", {"_id": topic_id, "at": batch.at, "last": topic["last"]})
        for user_id in topic["direct"]["joined"]:
            batch.add_outbox_row(conversations_stream(topic["org"], user_id), ACTIVE, topic_id)
            if user_id not in self._unaffected[topic_id]:
                batch.add_outbox_row(user_stream(topic["org"], user_id), "ConversationNotification", topic_id)


class ConversationActiveRelay(EventRelay):
    """Emits that a conversation of a person has a new or changed last message."""

    event_kind = CHANGED


class ConversationChangedRelay(EventRelay):
    """Emits that a conversation of a person has changed, and lets the person's notification follow."""

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits the event, and adds an outbox row for the person's notifications."""
        batch.add_outbox_row(user_stream(*stream_owner(batch.stream)), "ConversationNotification", row["ref"])
        return super().relay(row, batch)


class _NotifiedMessage(NamedTuple):
    """The message about which a person's notification of a conversation is, and its author."""

    kind: NotificationKind
    timestamp: int
    author_id: str


class ConversationNotificationRelay(OutboxRelay):
    """Makes a person's notification of a conversation match the conversation, the read mark and the person's state.

    A person has at most one notification of a conversation: a request as long as it waits for the person, or the
    newest unread message. The row names only the conversation, so it does not matter how often, and in which order,
    rows are relayed.
    """

    def __init__(self) -> None:
        self._stored: dict[str, NotificationDocument] = {}
        """The notification of each conversation that has one."""
        self._notified: dict[str, _NotifiedMessage] = {}
        """The message about which the notification of each conversation should be."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the notifications, and the messages about which they should be. Nobody who is erased gets one."""
        owner, ids = UserKey(*stream_owner(batch.stream)), list({row["ref"] for row in rows})
        head = batch.stream.head_collection, batch.stream.head_id
        erased, topics, marks, stored = await find_jointly(mongo, head, _finds(owner, ids), session)
        for notification in stored:
            batch.add_loaded(NOTIFICATIONS, notification)
            self._stored[notification["topic"]] = notification
        read_up_to = {mark["_id"]["t"]: mark["ts"] for mark in marks}
        for topic in () if erased else topics:
            newest = await _message_to_notify(mongo, session, owner, topic, read_up_to.get(topic["_id"], 0))
            if newest is not None:
                self._notified[topic["_id"]] = newest

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Puts, replaces or removes one notification. A deleted message does not make an older one arrive again."""
        topic_id: str = row["ref"]
        stored, newest = self._stored.pop(topic_id, None), self._notified.pop(topic_id, None)
        if stored is not None and newest is not None and _is_current(stored, newest):
            if stored["ts"] != newest.timestamp and newest.kind is NotificationKind.DIRECT_MESSAGE:
                batch.put(NOTIFICATIONS, {**stored, "ts": newest.timestamp, "actor": newest.author_id})
            return 0.0
        if stored is not None:
            remove_notification(batch, stored["_id"])
        if newest is not None:
            message = MessageKey(topic_id, newest.timestamp)
            ref = notification_ref(newest.kind, newest.author_id, message=message)
            put_notification(batch, ref, notification_content(topic_id), batch.take_timestamp(), TopicPlace(topic_id))
        return 0.0


async def _unaffected_people(mongo: Mongo, session: Session, topic: TopicDocument, announced: int | None) -> set[str]:
    """Returns the people whose notifications of the conversation the new messages do not change.

    These are people with an unread notification, except the author of the last message. People without a notification
    are unaffected if they have read everything, or are the only author of the messages after `announced`: all earlier
    messages had rows of their own. If the last message was deleted, returns nobody.
    """
    finds, last = _activity_finds(topic, announced), topic["last"]
    messages, notifications, *marks = await find_jointly(mongo, ("topics", topic["_id"]), finds, session)
    newest = [each for each in messages if each["_id"]["ts"] == last and each.get("deleted_at") is None]
    if not newest:
        return set()
    author, (in_list, in_topic) = newest[0]["author"], [_by_person(each) for each in marks]
    readers = {person for person, timestamp in in_topic.items() if timestamp >= last}
    if announced is not None and _only_author(messages) == author:
        readers.add(author)
    readers -= {each["_id"]["u"] for each in notifications}
    return readers | (_people_with_unread(notifications, in_list, in_topic) - {author})


def _activity_finds(topic: TopicDocument, announced: int | None) -> list[Find]:
    """Returns the finds of the messages after `announced`, and of all people's notifications and their two read marks.

    The read marks are those of the people's lists of notifications, and those of the conversation.
    """
    org, people, id_, last = topic["org"], topic["direct"]["joined"], topic["_id"], topic["last"]
    after = last - 1 if announced is None else min(announced, last - 1)
    new = {"_id": {"$gt": {"t": id_, "ts": after}, "$lte": {"t": id_, "ts": last}}}
    of_people = {"_id.o": org, "_id.u": {"$in": people}, "about": notification_content(id_), "kind": DIRECT_MESSAGE}
    return [
        Find(MESSAGES, new, {"author": 1, "deleted_at": 1}, MAX_NEW_MESSAGES),
        Find(NOTIFICATIONS, of_people, {"ts": 1}),
        Find("notification_marks", {"_id": {"$in": [{"o": org, "u": each} for each in people]}}),
        Find("read_marks", {"_id": {"$in": [{"t": id_, "u": each} for each in people]}}),
    ]


def _by_person(marks: Sequence[Document]) -> dict[str, int]:
    return {mark["_id"]["u"]: mark["ts"] for mark in marks}


def _only_author(messages: Sequence[MessageDocument]) -> str | None:
    """Returns the author of all these messages. None if there are several, or may be more messages."""
    authors = {each["author"] for each in messages}
    return authors.pop() if len(authors) == 1 and len(messages) < MAX_NEW_MESSAGES else None


def _people_with_unread(
    notifications: Sequence[NotificationDocument], in_list: Mapping[str, int], in_topic: Mapping[str, int]
) -> set[str]:
    """Returns the people whose notification is read neither in their list nor in the conversation."""
    return {
        each["_id"]["u"]
        for each in notifications
        if each["_id"]["ts"] > in_list.get(each["_id"]["u"], 0)
        and (each["ts"] or 0) > in_topic.get(each["_id"]["u"], 0)
    }


def _is_current(stored: NotificationDocument, newest: _NotifiedMessage) -> bool:
    """Returns whether the notification stays at its place in the list, because nothing newer has happened."""
    if stored["kind"] != newest.kind.value:
        return False
    return newest.kind is NotificationKind.CONVERSATION_REQUEST or newest.timestamp <= (stored["ts"] or 0)


def _finds(owner: UserKey, topic_ids: Sequence[str]) -> list[Find]:
    """Returns the finds of the owner if erased, and of the owner's conversations, read marks and notifications."""
    abouts = [notification_content(each) for each in topic_ids]
    return [
        Find("users", {"_id": user_document_id(*owner), "erasing_at": {"$exists": True}}, {"_id": 1}),
        Find("topics", {"_id": {"$in": list(topic_ids)}, "direct": {"$exists": True}}, {"direct": 1}),
        Find("read_marks", {"_id": {"$in": [{"t": each, "u": owner.user_id} for each in topic_ids]}}),
        Find(NOTIFICATIONS, {"_id.o": owner.organization_id, "_id.u": owner.user_id, "about": {"$in": abouts}}),
    ]


async def _message_to_notify(
    mongo: Mongo, session: Session, owner: UserKey, topic: TopicDocument, read_up_to: int
) -> _NotifiedMessage | None:
    """Returns the newest message of another person that is unread, or that belongs to a request; None without one.

    Mentions, and replies of threads that the owner follows, have a notification of their own, so that a cross-post of
    such a reply causes none. People whom the owner hides in a group cause none. A request waits for the owner also when
    its message was read or deleted.
    """
    direct, user_id = topic["direct"], owner.user_id
    conditions: Document = {}
    if user_id in direct["requested"]:
        kind, after = NotificationKind.CONVERSATION_REQUEST, 0
    elif user_id in direct["joined"]:
        kind, after = NotificationKind.DIRECT_MESSAGE, read_up_to
        conditions = {"mentions": {"$ne": user_id}, "deleted_at": None}
    else:
        return None
    hidden = await _hidden_people(mongo, session, owner, direct)
    query = {
        "_id": {"$gt": {"t": topic["_id"], "ts": after}, "$lte": {"t": topic["_id"], "ts": MAX_TIMESTAMP}},
        "author": {"$nin": [user_id, *hidden]},
        **conditions,
    }
    newest = await _newest(mongo, session, query)
    if newest is not None and "reply" in newest and kind is NotificationKind.DIRECT_MESSAGE:
        followed = {"thread.topic": topic["_id"], "thread.followers": user_id}
        threads = await mongo.find("topics", followed, {"_id": 1}, session=session)
        newest = await _newest(mongo, session, query | {"reply.t": {"$nin": [each["_id"] for each in threads]}})
    return None if newest is None else _NotifiedMessage(kind, newest["_id"]["ts"], newest["author"])


async def _newest(mongo: Mongo, session: Session, query: Document) -> MessageDocument | None:
    fields, order = {"author": 1, "reply.t": 1}, [("_id", -1)]
    found: list[MessageDocument] = await mongo.find(MESSAGES, query, fields, order, 1, session=session, hint="_id_")
    return found[0] if found else None


async def _hidden_people(mongo: Mongo, session: Session, owner: UserKey, direct: DirectFields) -> Collection[str]:
    """Returns the people of a group whom the owner has blocked or muted.

    Between two people the notification of a hidden person is not shown anyway.
    """
    if direct["pair"]:
        return ()
    people = {"$in": people_of(direct)}
    blocked = {"org": owner.organization_id, "user": owner.user_id, "blocked": people}
    blocks = await mongo.find(BLOCKS, blocked, {"blocked": 1}, session=session)
    muted = {"_id.o": owner.organization_id, "_id.u": owner.user_id, "_id.k": MuteSubject.USER.value, "_id.s": people}
    mutes = await mongo.find(MUTES, {"$and": [muted, MUTES_IN_FORCE]}, {"_id": 1}, session=session)
    return {*(each["blocked"] for each in blocks), *(each["_id"]["s"] for each in mutes)}
