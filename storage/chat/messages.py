"""Messages of topics: pages, lookups by key, and changes. The sequencer commits every change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.changes import (
    DeleteMessage,
    EditMessage,
    EraseMessage,
    MessageRemoval,
    NewMessage,
    PostMessage,
    SetPreview,
)
from storage.chat.documents import MESSAGES_BY_TIME, MessageDocument
from storage.chat.reactions.changes import AddReaction, RemoveReaction
from storage.chat.records import Message, message_record
from storage.chat.roles import Moderator
from storage.chat.topic_changes import PinMessage, UnpinMessage
from storage.errors import NotFound
from storage.files.link_previews import LinkPreview
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.ids import MessageKey, message_key
from storage.mongo import Document, Mongo, older_than
from storage.mongo.batch_loader import BatchLoader
from storage.streams.log import Event, Stream
from storage.streams.sequencer import Sequencer
from storage.timeline import MAX_TIMESTAMP, TimelinePage, TimelineRange, Timestamp, instant, read_page

NOBODY: frozenset[str] = frozenset()


class MessageStore:
    """Reads messages at majority, and commits changes together with their events."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._messages: AsyncCollection[MessageDocument] = mongo["messages"]
        self._by_key: BatchLoader[MessageKey, Message] = BatchLoader(self._load)

    async def find(self, key: MessageKey) -> Message | None:
        """Returns the message or its tombstone, or None."""
        return await self._by_key.get(key)

    async def find_many(self, keys: Sequence[MessageKey]) -> Mapping[MessageKey, Message]:
        """Returns those of the messages and tombstones that exist."""
        return await self._by_key.find(keys)

    async def get(self, key: MessageKey) -> Message:
        """Returns the message or its tombstone. Raises: NotFound."""
        message = await self.find(key)
        if message is None:
            raise NotFound("message", key.id)
        return message

    async def last_message(self, topic_id: str, last: int, blocked: frozenset[str] = NOBODY) -> Message | None:
        """Returns the topic's newest message (or tombstone) that no blocked user wrote, or None.

        `last` is the timestamp of the topic's head, read immediately before.
        """
        return (await self.last_messages([(topic_id, last)], blocked))[0]

    async def last_messages(
        self, heads: Sequence[tuple[str, int]], blocked: frozenset[str] = NOBODY
    ) -> list[Message | None]:
        """Returns for each topic the newest message (or tombstone) that no blocked user wrote, or None.

        `heads` are pairs of a topic's id and the timestamp of the topic's head, read immediately before.
        """
        keys = [MessageKey(topic_id, Timestamp(last)) for topic_id, last in heads]
        newest = await self.find_many(keys)
        return await self.last_visible([newest.get(key) for key in keys], blocked)

    async def last_visible(self, newest: Sequence[Message | None], blocked: frozenset[str]) -> list[Message | None]:
        """Returns the newest messages of topics. Replaces one of a blocked user by the newest of the other users."""
        hidden = [each.key for each in newest if each is not None and each.author_id in blocked]
        if not hidden:
            return list(newest)
        pipelines = [_newest_before(key, blocked) for key in dict.fromkeys(hidden)]
        rows = await self._mongo.aggregate_each("messages", pipelines)
        found = await self._with_replies([message_record(row) for row in rows])
        shown = {MessageKey(row["_id"]["t"], row["before"]): each for row, each in zip(rows, found, strict=True)}
        return [shown.get(each.key) if each is not None and each.author_id in blocked else each for each in newest]

    async def page(
        self, topic_id: str, range_: TimelineRange, blocked: frozenset[str] = NOBODY, *, last: int | None = None
    ) -> TimelinePage[Message]:
        """Returns a page of the topic's messages. It includes tombstones, and omits messages of blocked users.

        `last`, the timestamp of the topic's head, saves a lookup. Pass it only if it was read immediately before.
        """
        fetch = partial(self._fetch, topic_id, blocked)
        # If users are blocked, `last` may be the timestamp of a message that the viewer does not see.
        return await read_page(range_, fetch, lambda message: message.timestamp, None if blocked else last)

    async def around(
        self, topic_id: str, timestamp: int, limit: int, blocked: frozenset[str] = NOBODY
    ) -> TimelinePage[Message]:
        """Returns at most `limit` messages, ascending. At most half of them are before the timestamp."""
        fetch = partial(self._fetch, topic_id, blocked)
        older_limit = limit // 2
        older = await fetch(0, timestamp - 1, False, older_limit + 1)
        before = older[:older_limit][::-1]
        newer_limit = limit - len(before)
        newer = await fetch(timestamp, MAX_TIMESTAMP, True, newer_limit + 1)
        items = before + newer[:newer_limit]
        timestamps = [message.timestamp for message in items]
        ends = (timestamps[0], timestamps[-1]) if items else (None, None)
        return TimelinePage(items, timestamps, len(older) > older_limit, len(newer) > newer_limit, *ends)

    async def post(self, new: NewMessage, key: IdempotencyKey | None = None) -> Message:
        """Posts a message, which is durable when this returns. A repeated key returns the message that it posted.

        Raises: Forbidden; RateLimited in slow mode; Conflict for a key reused with other arguments; Unavailable if the
        outcome is unknown.
        """
        try:
            return await self._sequencer.commit(_stream(new.topic_id), PostMessage(new, key))
        except DuplicateRequest as duplicate:
            return await self.get(message_key(duplicate.result_id))

    async def edit(self, key: MessageKey, editor_id: str, text: str, mention_ids: Sequence[str]) -> Message:
        """Replaces the text. Raises: NotFound, Conflict for a tombstone, Forbidden, BadUserInput."""
        return await self._sequencer.commit(_stream(key.topic_id), EditMessage(key, editor_id, text, mention_ids))

    async def delete(self, key: MessageKey, deleter: Moderator) -> Message:
        """Replaces the message by a tombstone, and deletes its reactions. Idempotent. Raises: NotFound, Forbidden."""
        return await self._remove(DeleteMessage(key, deleter))

    async def erase(self, key: MessageKey) -> Message:
        """Deletes the message as `delete` does, for the system itself. Idempotent. Raises: NotFound."""
        return await self._remove(EraseMessage(key))

    async def _remove(self, change: MessageRemoval) -> Message:
        key = change.key
        tombstone = await self._sequencer.commit(_stream(key.topic_id), change)
        # Reactions of a tombstone are never shown, so they are deleted outside of the transaction.
        low, high = _reaction_bounds(key)
        await self._mongo["reactions"].delete_many({"_id": {"$gte": low, "$lt": high}})
        message = {"topic": key.topic_id, "ts": key.timestamp}
        await self._mongo["received_reactions"].delete_many(message)
        await self._mongo["notifications"].delete_many({**message, "kind": "REACTION"})
        return tombstone

    async def pin(self, key: MessageKey, moderator: Moderator) -> Message:
        """Pins a message above the earlier pins. Idempotent. Raises: NotFound, Conflict (deleted, 51st pin)."""
        pinned = await self._sequencer.commit(_stream(key.topic_id), PinMessage(moderator, key))
        return (await self._with_replies([pinned]))[0]

    async def unpin(self, key: MessageKey, moderator: Moderator) -> None:
        """Removes a pin. Idempotent."""
        await self._sequencer.commit(_stream(key.topic_id), UnpinMessage(moderator, key))

    async def add_reaction(
        self, organization_id: str, key: MessageKey, user_id: str, emoji: str, blocked: frozenset[str] = NOBODY
    ) -> Message:
        """Adds a reaction. Idempotent.

        Raises: NotFound, also if the author is among the `blocked`; Forbidden; Conflict for a tombstone or too many
        emojis.
        """
        change = AddReaction(key, organization_id, user_id, emoji, blocked)
        return await self._sequencer.commit(_stream(key.topic_id), change)

    async def remove_reaction(
        self, organization_id: str, key: MessageKey, user_id: str, emoji: str, blocked: frozenset[str] = NOBODY
    ) -> Message:
        """Removes a reaction. Idempotent. Raises: NotFound, also if the author is among the `blocked`; Forbidden."""
        change = RemoveReaction(key, organization_id, user_id, emoji, blocked)
        return await self._sequencer.commit(_stream(key.topic_id), change)

    async def set_preview(self, key: MessageKey, url: str, preview: LinkPreview | None) -> Message:
        """Stores the preview that a job fetched, if `url` is still the text's first link.

        `preview` is None for a page without a preview. Raises: NotFound.
        """
        return await self._sequencer.commit(_stream(key.topic_id), SetPreview(key, url, preview))

    async def awaiting_preview(self, for_s: float, limit: int) -> list[MessageKey]:
        """Returns messages that have waited longer than `for_s` seconds for their preview, longest wait first."""
        # The condition on existence makes MongoDB use the partial index.
        query = {"preview_due": {"$exists": True}, **older_than("preview_due", for_s)}
        cursor = self._messages.find(query, {"_id": 1}).sort("preview_due", 1).limit(limit)
        return [MessageKey(message["_id"]["t"], message["_id"]["ts"]) for message in await cursor.to_list(None)]

    async def of_events(self, topic_id: str, events: Sequence[Event]) -> dict[int, Message]:
        """Returns the messages that events of the topic refer to, by timestamp, with one read."""
        keys = [MessageKey(topic_id, timestamp) for timestamp in {event.ref for event in events}]
        return {key.timestamp: message for key, message in (await self._load(keys)).items()}

    async def _fetch(
        self, topic_id: str, blocked: frozenset[str], low: int, high: int, ascending: bool, limit: int
    ) -> list[Message]:
        query: Document = {"_id": {"$gte": {"t": topic_id, "ts": low}, "$lte": {"t": topic_id, "ts": high}}}
        if blocked:
            query["author"] = {"$nin": list(blocked)}
        order = [("_id", 1 if ascending else -1)]
        documents: list[MessageDocument] = await self._mongo.find(
            "messages", query, None, order, limit, hint=MESSAGES_BY_TIME
        )
        return await self._with_replies([message_record(document) for document in documents])

    async def _load(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        messages = await self._with_replies(await self._read(keys))
        return {message.key: message for message in messages}

    async def _with_replies(self, messages: list[Message]) -> list[Message]:
        """Gives cross-posts the content of their replies. Reads nothing if there are none.

        A cross-post whose reply does not exist is shown as a tombstone, so that it never fails a page.
        """
        keys = [message.thread_reply.key for message in messages if message.thread_reply is not None]
        if not keys:
            return messages
        replies = {reply.key: reply for reply in await self._read(keys)}
        return [_shown(each, replies.get(each.content_key)) if each.thread_reply else each for each in messages]

    async def _read(self, keys: Sequence[MessageKey]) -> list[Message]:
        query = {"_id": {"$in": [key.document_id for key in keys]}}
        documents: list[MessageDocument] = await self._mongo.find("messages", query)
        return [message_record(document) for document in documents]


def _stream(topic_id: str) -> Stream:
    return Stream("topic", topic_id)


def _shown(cross_post: Message, reply: Message | None) -> Message:
    """Returns a cross-post with the content of its reply. Without a reply, it was deleted at an unknown time."""
    if reply is not None:
        return cross_post.showing(reply)
    return replace(cross_post.without_content(), deleted_at=instant(cross_post.timestamp))


def _newest_before(key: MessageKey, blocked: frozenset[str]) -> list[Document]:
    """Returns the pipeline that finds the newest message before this one that no blocked user wrote.

    Its result has the timestamp of this message as `before`.
    """
    before = {"_id": {"$gte": {"t": key.topic_id, "ts": 0}, "$lt": {"t": key.topic_id, "ts": key.timestamp}}}
    # An expression uses no index, so that MongoDB considers only the index by time.
    is_shown = {"$expr": {"$not": {"$in": ["$author", {"$literal": list(blocked)}]}}}
    return [
        {"$match": {**before, **is_shown}},
        {"$sort": {"_id": -1}},
        {"$limit": 1},
        {"$set": {"before": key.timestamp}},
    ]


def _reaction_bounds(key: MessageKey) -> tuple[Document, Document]:
    return {"t": key.topic_id, "ts": key.timestamp}, {"t": key.topic_id, "ts": key.timestamp + 1}
