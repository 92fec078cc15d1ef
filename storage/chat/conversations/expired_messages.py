"""Deletion of direct messages that are older than an organization keeps them (docs/semantics.md, 9)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from storage.chat.documents import MessageDocument
from storage.chat.messages import MessageStore
from storage.errors import NotFound
from storage.ids import MessageKey
from storage.mongo import Mongo

CONVERSATIONS_AT_ONCE = 100
MESSAGES_AT_ONCE = 100

RecordDeletionProgress = Callable[[datetime | None], Awaitable[None]]
"""Called with None after each batch, and at the end with the time before which all messages are deleted.

It raises to stop the deletion.
"""


class ExpiredDirectMessages:
    """Deletes the messages of conversations as their authors would: with events, and leaving tombstones."""

    def __init__(self, mongo: Mongo, messages: MessageStore) -> None:
        self._mongo = mongo
        self._messages = messages

    async def delete(
        self, organization_id: str, age: timedelta, since: datetime | None, progress: RecordDeletionProgress
    ) -> None:
        """Deletes the messages that were posted at `since` or later, but longer than `age` ago. May be repeated.

        If `since` is None, begins with the first message.
        """
        until = await self._mongo.now() - age
        low, high = 0 if since is None else _microseconds(since), _microseconds(until)
        for marker in ("direct", "thread.direct"):
            after = ""
            while ids := await self._conversations(organization_id, marker, low, after):
                for id_ in ids:
                    await self._delete_between(id_, low, high, progress)
                after = ids[-1]
        await progress(until)

    async def _conversations(self, organization_id: str, marker: str, low: int, after: str) -> list[str]:
        """Returns the next conversations, or threads in conversations, with a message since `low`, by id.

        `marker` is the field that only these topics have.
        """
        query = {"org": organization_id, marker: {"$exists": True}, "_id": {"$gt": after}, "last": {"$gte": low}}
        rows = await self._mongo.find("topics", query, {"_id": 1}, [("_id", 1)], CONVERSATIONS_AT_ONCE)
        return [row["_id"] for row in rows]

    async def _delete_between(self, topic_id: str, low: int, high: int, progress: RecordDeletionProgress) -> None:
        while low < high:
            bounds = {"$gte": {"t": topic_id, "ts": low}, "$lt": {"t": topic_id, "ts": high}}
            query = {"_id": bounds, "deleted_at": None}
            messages: list[MessageDocument] = await self._mongo.find(
                "messages", query, {"author": 1}, [("_id", 1)], MESSAGES_AT_ONCE
            )
            await asyncio.gather(*(self._delete(message) for message in messages))
            await progress(None)
            if len(messages) < MESSAGES_AT_ONCE:
                return
            low = messages[-1]["_id"]["ts"] + 1

    async def _delete(self, message: MessageDocument) -> None:
        try:
            await self._messages.erase(MessageKey(message["_id"]["t"], message["_id"]["ts"]))
        except NotFound:
            return


def _microseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000) * 1000
