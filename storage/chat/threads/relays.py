"""Outbox relay of threads. It updates the parent message after replies, and tells the readers of its topic."""

from collections.abc import Sequence

from storage.chat.changes import MESSAGES
from storage.chat.documents import MessageDocument, TopicDocument
from storage.chat.relays import TopicActivityRelay
from storage.chat.threads.documents import ReplierDocument, ThreadSummaryDocument
from storage.ids import MessageKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.timeline import MAX_TIMESTAMP

MAX_REPLIERS = 10
MAX_LAST_REPLIES = 100
"""How many of the last replies are read to find the last repliers, deleted replies included."""


class ThreadActivityRelay(TopicActivityRelay):
    """Makes the parent message show the present state of its thread, at most once a second for each thread.

    The row names only the thread, so it does not matter how often, and in which order, rows are relayed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parents: dict[str, MessageKey] = {}
        self._summaries: dict[str, ThreadSummaryDocument] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads the threads, their last repliers, and the parent messages."""
        await super().load(mongo, session, rows, batch)
        query = {"_id": {"$in": list({row["ref"] for row in rows})}, "thread.topic": batch.stream.id}
        threads: list[TopicDocument] = await mongo.find("topics", query, {"thread": 1}, session=session)
        for each in threads:
            thread = each["thread"]
            self._parents[each["_id"]] = MessageKey(thread["topic"], thread["ts"])
            repliers = await _last_repliers(mongo, session, each["_id"])
            self._summaries[each["_id"]] = {"replies": thread["replies"], "repliers": repliers}
        ids = [key.document_id for key in self._parents.values()]
        for message in await mongo.find(MESSAGES, {"_id": {"$in": ids}}, session=session):
            batch.add_loaded(MESSAGES, message)

    def announce(self, batch: Batch, topic_id: str) -> None:
        """Puts the parent message and emits the event, unless the message shows this state already."""
        parent = self._parents.get(topic_id)
        message: MessageDocument | None = None if parent is None else batch.get(MESSAGES, parent.document_id)
        if parent is None or message is None or message.get("thread") == self._summaries[topic_id]:
            return
        changed = message.copy()
        changed["thread"] = self._summaries[topic_id]
        batch.put(MESSAGES, changed)
        batch.emit("ThreadChanged", parent.timestamp)


async def _last_repliers(mongo: Mongo, session: Session, thread_id: str) -> list[ReplierDocument]:
    """Returns the authors of the last replies, each once, the latest first."""
    query = {"_id": {"$gte": {"t": thread_id, "ts": 0}, "$lte": {"t": thread_id, "ts": MAX_TIMESTAMP}}}
    fields, order = {"author": 1, "deleted_at": 1}, [("_id", -1)]
    replies: list[MessageDocument] = await mongo.find(MESSAGES, query, fields, order, MAX_LAST_REPLIES, session=session)
    repliers: dict[str, ReplierDocument] = {}
    for reply in replies:
        if "deleted_at" not in reply:
            repliers.setdefault(reply["author"], {"u": reply["author"], "ts": reply["_id"]["ts"]})
    return list(repliers.values())[:MAX_REPLIERS]
