"""Outbox relays of chat: activity and invited members to the community's stream, reactions to the author's stream."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from storage.chat.documents import CommunityDocument
from storage.chat.memberships import COMMUNITIES, JoinByInvitation
from storage.errors import Forbidden, NotFound
from storage.identity.records import User, stream_owner, user_document_id, user_record
from storage.ids import MessageKey, UserKey
from storage.mongo import Document, Mongo, Session
from storage.mongo.joint_finds import Find, find_jointly
from storage.notifications import (
    NOTIFICATIONS,
    NotificationKind,
    TopicPlace,
    notification_ref,
    put_notification,
    readable_topics,
)
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.outbox import EventRelay, OutboxRelay

ACTIVITY_EVERY_S = 1.0

MAX_JOINT_ROWS = 20
"""Maximum number of rows whose received reactions are read jointly with other documents, which may have 16 MB."""


class TopicActivityRelay(OutboxRelay):
    """Emits TopicActivity for a topic with a new or changed last message, at most once a second for each topic."""

    def __init__(self) -> None:
        self._emitted_at: dict[str, datetime] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads when each topic's activity was last emitted."""
        topics = list({row["ref"] for row in rows})
        async for document in mongo["activity"].find({"_id": {"$in": topics}}, session=session):
            batch.add_loaded("activity", document)
            self._emitted_at[document["_id"]] = document["at"]

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits one event for all rows of a topic."""
        topic_id = row["ref"]
        emitted_at = self._emitted_at.get(topic_id)
        if emitted_at == batch.at:
            return 0.0
        if emitted_at is not None:
            age_s = (batch.at - emitted_at).total_seconds()
            # A negative age means that the database's clock was set back. The event is then emitted at once.
            if 0 <= age_s < ACTIVITY_EVERY_S:
                return ACTIVITY_EVERY_S - age_s
        self._emitted_at[topic_id] = batch.at
        batch.put("activity", {"_id": topic_id, "at": batch.at})
        self.announce(batch, topic_id)
        return 0.0

    def announce(self, batch: Batch, topic_id: str) -> None:
        """Emits the event."""
        batch.emit("TopicActivity", topic_id)


class TopicChangedRelay(EventRelay):
    """Emits that a setting of a topic changed: title, archive or slow mode."""


class MemberRemovedRelay(EventRelay):
    """Emits that a person lost the membership of a community. The events have no GraphQL type."""


class InvitedMemberRelay(OutboxRelay):
    """Makes people who accepted an invitation members of the invitation's community, of any visibility.

    Skips banned and erased people, and communities that are archived or do not exist.
    """

    def __init__(self) -> None:
        self._joins: dict[str, JoinByInvitation] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the people, and the documents that their joins need."""
        community_id = batch.stream.id
        community: CommunityDocument | None = await mongo[COMMUNITIES].find_one({"_id": community_id}, session=session)
        if community is None:
            return
        for user_id in {row["ref"] for row in rows}:
            user = await mongo["users"].find_one({"_id": {"org": community["org"], "id": user_id}}, session=session)
            if user is not None:
                await self._load_join(mongo, session, batch, user_record(user))

    async def _load_join(self, mongo: Mongo, session: Session, batch: Batch, user: User) -> None:
        join = self._joins[user.id] = JoinByInvitation(batch.stream.id, user.id, user)
        for collection, id_ in join.needs():
            document = await mongo[collection].find_one({"_id": id_}, session=session)
            if document is not None:
                batch.add_loaded(collection, document)
        await join.load(mongo, session, batch)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Plans one join."""
        join = self._joins.get(row["ref"])
        if join is not None:
            with suppress(Forbidden, NotFound):
                join.plan(batch)
        return 0.0


class ReactionRelay(OutboxRelay):
    """Updates a user's received reactions and their notifications to match the reactions that exist.

    Rows of adding and removing a reaction may arrive in any order. People who have left the community are not notified.
    Erased people receive nothing.
    """

    def __init__(self) -> None:
        self._is_owner_erased = False
        self._existing: set[tuple[Any, ...]] = set()
        self._deleted_messages: set[tuple[Any, ...]] = set()
        self._received: dict[tuple[Any, ...], Document] = {}
        self._places: dict[str, TopicPlace] = {}
        """Place of each topic that the stream's owner, the author of the messages, may read."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the reactions, whether their messages were deleted, and which of them were received.

        Reads where the owner may be notified only if a reaction exists.
        """
        refs, owner = [row["ref"] for row in rows], UserKey(*stream_owner(batch.stream))
        head = batch.stream.head_collection, batch.stream.head_id
        finds, find = _finds_of_rows(refs, owner), _find_received(refs, batch.stream.id)
        if len(refs) <= MAX_JOINT_ROWS and _are_of_reactions(refs):
            existing, deleted, erased, received = await find_jointly(mongo, head, [*finds, find], session)
        else:
            existing, deleted, erased = await find_jointly(mongo, head, finds, session)
            received = await mongo.find(find.collection, find.query, session=session)
        self._existing = {tuple(each["_id"].values()) for each in existing}
        self._deleted_messages = {tuple(each["_id"].values()) for each in deleted}
        self._is_owner_erased = bool(erased)
        if self._existing:
            self._places = await readable_topics(mongo, session, owner.user_id, {ref["t"] for ref in refs})
        for document in received:
            batch.add_loaded("received_reactions", document)
            self._received[document["topic"], document["ts"], document["emoji"], document["from"]] = document

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Adds or removes one received reaction. If the message was deleted, removes those that the rows refer to."""
        ref = row["ref"]
        if (ref["t"], ref["ts"]) in self._deleted_messages:
            for key in [key for key in self._received if key[:2] == (ref["t"], ref["ts"])]:
                _remove_received(batch, self._received.pop(key)["_id"])
            return 0.0
        key = tuple(ref.values())
        received = self._received.get(key)
        if key in self._existing and received is None:
            if self._is_owner_erased:
                return 0.0
            received = self._received[key] = _received_document(batch, ref)
            batch.put("received_reactions", received)
            if ref["t"] in self._places:
                message = MessageKey(ref["t"], ref["ts"])
                notification = notification_ref(NotificationKind.REACTION, ref["u"], message=message)
                notification["emoji"] = ref["e"]
                timestamp, place = received["_id"]["ts"], self._places[ref["t"]]
                put_notification(batch, notification, str(key), timestamp, place)
        elif key not in self._existing and received is not None:
            del self._received[key]
            _remove_received(batch, received["_id"])
        return 0.0


def _are_of_reactions(refs: Sequence[Document]) -> bool:
    """Returns whether each row is of one reaction. The row of a deleted message is of all reactions to the message."""
    return all("u" in ref for ref in refs)


def _finds_of_rows(refs: Sequence[Document], owner: UserKey) -> list[Find]:
    """Returns the finds of the reactions, of their deleted messages, and of the owner if erased."""
    messages = [{"t": ref["t"], "ts": ref["ts"]} for ref in refs]
    erased = {"_id": user_document_id(*owner), "erasing_at": {"$exists": True}}
    return [
        Find("reactions", {"_id": {"$in": refs}}, {"_id": 1}),
        Find("messages", {"_id": {"$in": messages}, "deleted_at": {"$ne": None}}, {"_id": 1}),
        Find("users", erased, {"_id": 1}),
    ]


def _find_received(refs: Sequence[Document], stream_id: str) -> Find:
    """Returns the find of the received reactions of the rows. It may also find others."""
    fields = {"topic": "t", "ts": "ts"}
    if _are_of_reactions(refs):
        fields |= {"emoji": "e", "from": "u"}
    # An `$or` of the rows would be planned once for each row.
    filter_ = {field: {"$in": list({ref[key] for ref in refs})} for field, key in fields.items()}
    return Find("received_reactions", filter_ | {"owner": stream_id})


def _remove_received(batch: Batch, id_: Document) -> None:
    """Removes a received reaction and its notification, which has the same timestamp."""
    batch.remove("received_reactions", id_)
    batch.add_loaded(NOTIFICATIONS, {"_id": id_})
    batch.remove(NOTIFICATIONS, id_)


def _received_document(batch: Batch, ref: Document) -> Document:
    organization_id, user_id = stream_owner(batch.stream)
    return {
        "_id": {"o": organization_id, "u": user_id, "ts": batch.take_timestamp()},
        "owner": batch.stream.id,
        "topic": ref["t"],
        "ts": ref["ts"],
        "emoji": ref["e"],
        "from": ref["u"],
    }
