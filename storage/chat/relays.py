"""What other streams hear of a topic: activity for the community, reactions for the message's author."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from storage.identity.records import stream_owner
from storage.mongo import Document, Mongo, Session
from storage.notifications import NOTIFICATIONS, NotificationKind, notification_ref, put_notification
from storage.references import MessageKey
from storage.streams.changes import Batch
from storage.streams.outbox import OutboxRelay

ACTIVITY_EVERY_S = 1.0


class TopicActivityRelay(OutboxRelay):
    """Says "this topic has new messages", at most once a second for each topic."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._told: dict[str, datetime] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """When each topic's activity was last told."""
        topics = list({row["ref"] for row in rows})
        async for document in mongo["activity"].find({"_id": {"$in": topics}}, session=session):
            batch.add("activity", document)
            self._told[document["_id"]] = document["at"]

    def relay(self, row: Document, batch: Batch) -> float:
        """Rows of one topic become one event."""
        topic_id = row["ref"]
        told = self._told.get(topic_id)
        if told == batch.at:
            return 0.0
        if told is not None:
            since_s = (batch.at - told).total_seconds()
            # Told in the future: the clock fell back, and nobody knows by how much.
            if 0 <= since_s < ACTIVITY_EVERY_S:
                return ACTIVITY_EVERY_S - since_s
        self._told[topic_id] = batch.at
        batch.put("activity", {"_id": topic_id, "at": batch.at})
        batch.emit("TopicActivity", topic_id)
        return 0.0


class ReactionRelay(OutboxRelay):
    """Brings what a user received, and is notified of, in line with what is there.

    Adding and taking back may arrive in any order.
    """

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._there: set[tuple[Any, ...]] = set()
        self._gone: set[tuple[Any, ...]] = set()
        self._received: dict[tuple[Any, ...], Document] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """The reactions that the rows speak of, and what was received of them already."""
        refs = [row["ref"] for row in rows]
        async for document in mongo["reactions"].find({"_id": {"$in": refs}}, {"_id": 1}, session=session):
            self._there.add(tuple(document["_id"].values()))
        messages = [{"t": ref["t"], "ts": ref["ts"]} for ref in refs]
        gone = {"_id": {"$in": messages}, "deleted_at": {"$ne": None}}
        async for document in mongo["messages"].find(gone, {"_id": 1}, session=session):
            self._gone.add(tuple(document["_id"].values()))
        topics = {"topic": {"$in": [ref["t"] for ref in refs]}, "ts": {"$in": [ref["ts"] for ref in refs]}}
        async for document in mongo["received_reactions"].find({**topics, "owner": batch.stream.id}, session=session):
            batch.add("received_reactions", document)
            self._received[document["topic"], document["ts"], document["emoji"], document["from"]] = document

    def relay(self, row: Document, batch: Batch) -> float:
        """Adds or removes the row of the owner's timeline; of a deleted message all."""
        ref = row["ref"]
        if (ref["t"], ref["ts"]) in self._gone:
            for key in [key for key in self._received if key[:2] == (ref["t"], ref["ts"])]:
                _take_back(batch, self._received.pop(key)["_id"])
            return 0.0
        key = tuple(ref.values())
        received = self._received.get(key)
        if key in self._there and received is None:
            received = self._received[key] = _received_document(batch, ref)
            batch.put("received_reactions", received)
            notification = notification_ref(
                NotificationKind.REACTION, ref["u"], message=MessageKey(ref["t"], ref["ts"])
            )
            put_notification(batch, notification, str(key), received["_id"]["ts"])
        elif key not in self._there and received is not None:
            del self._received[key]
            _take_back(batch, received["_id"])
        return 0.0


def _take_back(batch: Batch, id_: Document) -> None:
    """What was received, and its notification, which has the same timestamp."""
    batch.remove("received_reactions", id_)
    batch.add(NOTIFICATIONS, {"_id": id_})
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
