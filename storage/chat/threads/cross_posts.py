"""Cross-posts: messages of a topic that show replies of its threads, for replies that were also sent to the topic.

A cross-post is a reference without content. Readers see the reply as it is now (`MessageStore`).
"""

from collections.abc import Sequence
from typing import Any

from storage.chat.changes import MESSAGES, EraseMessage, count_post_in_topic
from storage.chat.documents import MessageDocument
from storage.ids import MessageKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, document_key
from storage.streams.documents import OutboxDocument
from storage.streams.outbox import OutboxRelay


def cross_post_source(reply: MessageKey) -> str:
    """Returns the source of the cross-post of a reply. The unique index of sources allows one for each reply."""
    return f"reply:{reply.id}"


class CrossPostRelay(OutboxRelay):
    """Brings the cross-post of a reply up to date: creates it, tells its readers of an edit, or deletes it.

    The row names only the reply, so it does not matter how often, and in which order, rows are relayed.
    """

    def __init__(self) -> None:
        self._replies: dict[Any, MessageDocument] = {}
        self._parents: dict[str, int] = {}
        """Timestamp of the parent message of each thread."""

        self._cross_posts: dict[str, MessageKey | None] = {}
        """The cross-posts by their sources. None for one that this batch has created or brought up to date."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the replies, their threads, and their cross-posts."""
        refs = [row["ref"] for row in rows]
        for reply in await mongo.find(MESSAGES, {"_id": {"$in": refs}}, session=session):
            self._replies[document_key(MESSAGES, reply["_id"])] = reply
        threads = {"_id": {"$in": list({ref["t"] for ref in refs})}, "thread.topic": batch.stream.id}
        for topic in await mongo.find("topics", threads, {"thread": 1}, session=session):
            self._parents[topic["_id"]] = topic["thread"]["ts"]
        sources = [cross_post_source(MessageKey(ref["t"], ref["ts"])) for ref in refs]
        for cross_post in await mongo.find(MESSAGES, {"source": {"$in": sources}}, session=session):
            batch.add_loaded(MESSAGES, cross_post)
            self._cross_posts[cross_post["source"]] = MessageKey(cross_post["_id"]["t"], cross_post["_id"]["ts"])

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Plans the change of one cross-post. All rows of one reply together cause one change.

        A reply that does not exist is one that was deleted, so that no row fails its batch for ever.
        """
        reply = self._replies.get(document_key(MESSAGES, row["ref"]))
        source = cross_post_source(MessageKey(row["ref"]["t"], row["ref"]["ts"]))
        if source not in self._cross_posts:
            self._create(batch, reply, source)
        elif (key := self._cross_posts[source]) is not None:
            _update(batch, key, reply)
        self._cross_posts[source] = None
        return 0.0

    def _create(self, batch: Batch, reply: MessageDocument | None, source: str) -> None:
        """Puts the cross-post at the topic's next timestamp, unless the reply was deleted meanwhile."""
        if reply is None or "deleted_at" in reply:
            return
        id_, timestamp = reply["_id"], batch.take_timestamp()
        cross_post: MessageDocument = {
            "_id": MessageKey(batch.stream.id, timestamp).document_id,
            "author": reply["author"],
            "text": "",
            "source": source,
            "reply": {"t": id_["t"], "ts": id_["ts"], "parent": self._parents[id_["t"]]},
        }
        if "mentions" in reply:
            # These people have a notification of the reply, so they get none of the conversation.
            cross_post["mentions"] = reply["mentions"]
        batch.put(MESSAGES, cross_post)
        batch.emit("MessagePosted", timestamp)
        count_post_in_topic(batch, reply["author"])


def _update(batch: Batch, key: MessageKey, reply: MessageDocument | None) -> None:
    """Deletes the cross-post of a deleted reply, and tells the readers of others. Leaves a tombstone as it is."""
    removal = EraseMessage(key)
    if reply is None or "deleted_at" in reply:
        removal.plan(batch)
    elif "deleted_at" not in removal.copy_message(batch):
        removal.announce_new_text(batch)
        batch.emit("MessageEdited", key.timestamp)
