"""Outbox relay of conversations. It relays activity in a conversation to the streams of the people who have joined."""

from collections.abc import Sequence

from storage.chat.conversations.rules import conversations_stream
from storage.chat.relays import TopicActivityRelay
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.log import Stream


class ConversationActivityRelay(TopicActivityRelay):
    """Notifies the people who have joined of new and changed last messages, at most once a second each."""

    def __init__(self) -> None:
        super().__init__()
        self._streams_by_id: dict[str, list[Stream]] = {}

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads who has joined the conversation, and when its activity was last announced."""
        await super().load(mongo, session, rows, batch)
        query, fields = {"_id": {"$in": [row["ref"] for row in rows]}}, {"org": 1, "direct.joined": 1}
        self._streams_by_id = {
            topic["_id"]: [conversations_stream(topic["org"], each) for each in topic["direct"]["joined"]]
            for topic in await mongo.find("topics", query, fields, session=session)
        }

    def announce(self, batch: Batch, topic_id: str) -> None:
        """Adds an outbox row for each person who has joined."""
        for stream in self._streams_by_id.get(topic_id, ()):
            batch.add_outbox_row(stream, "ConversationChanged", topic_id)
