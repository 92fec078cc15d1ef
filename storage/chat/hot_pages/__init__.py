"""Hot pages: the newest messages of hot topics in Redis, which are served without reading MongoDB.

After a mutation has returned, no reader gets a page without its change (docs/semantics.md, 2). ADR 9 explains how.
"""

import asyncio
import secrets
import time
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from storage.chat.documents import MessageDocument
from storage.chat.records import Message, Quote, ThreadSummary, message_record
from storage.files.attachments import Attachment
from storage.files.link_previews import LinkPreview, PreviewPicture
from storage.ids import MessageKey
from storage.metrics import HOT_PAGE_READS
from storage.mongo import Mongo, Session
from storage.redis.keys import RedisKeys
from storage.streams.changes import Batch
from storage.streams.heads import messages_per_minute
from storage.timeline import MAX_TIMESTAMP, Timestamp

MAX_MESSAGES = 500
LEASE_S = 2.0
REDIS_TIMEOUT_S = LEASE_S
"""Equal to the lease, since a poster waits until all leases have ended if Redis fails. With a shorter timeout, busy
processes would often fall back to MongoDB."""

RETRY_AFTER_S = 2.0
"""Interval at which one reader of the process tries Redis again after a failure. All other readers use MongoDB."""

ALL = -1
"""The limit of a read of all messages of a range."""

NOBODY: frozenset[str] = frozenset()

RENEW_EVERY_S = 0.7
BUILD_EVERY_S = 1.0

HOT_PER_MINUTE = 10.0
"""Minimum number of messages per minute, by the database's clock, at which a topic's hot page gets leases."""

MAYBE_HOT_PER_MINUTE = HOT_PER_MINUTE / 2
"""Minimum number of messages per minute at which posters extend the hot page.

Below it, no lease is left. The rate has been below HOT_PER_MINUTE for minutes, so no lease was granted, and a lease
lasts for seconds.
"""

_SCRIPT = Path(__file__).with_name("hot_pages.lua").read_text()
_FAILURES = (RedisError, OSError, TimeoutError)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CachedRange:
    """Visible messages of a range, in the order of the range. The hot page has all messages from `floor` on."""

    floor: int
    messages: list[Message]


class HotPages:
    """Reads, extends, builds and renews hot pages. One instance per process."""

    def __init__(self, redis: Redis, keys: RedisKeys, mongo: Mongo, size: int = MAX_MESSAGES) -> None:
        """Takes the maximum number of messages of a hot page as `size`."""
        self._script = redis.register_script(_SCRIPT)
        self._keys = keys
        self._mongo = mongo
        self._size = size
        self._unavailable_until = 0.0
        self._maintenance_tasks: dict[str, asyncio.Task[None]] = {}
        self._renewed_at: dict[str, float] = {}
        self._built_at: dict[str, float] = {}

    async def read(
        self, topic_id: str, low: int, high: int, ascending: bool, limit: int, blocked: frozenset[str] = NOBODY
    ) -> list[Message] | None:
        """Returns the messages with low <= timestamp <= high, or None if they must be read from MongoDB.

        Messages of blocked users are left out, and do not count towards the limit.
        """
        cached = await self._read_cached(topic_id, low, high, ascending, limit, blocked)
        is_complete = cached is not None and _is_complete(cached, low, ascending, limit)
        HOT_PAGE_READS.labels("hit" if is_complete else "miss").inc()
        self._maintain(topic_id, is_missing=cached is None)
        return cached.messages if cached is not None and is_complete else None

    async def extend(self, batch: Batch) -> None:
        """Adds a committed batch to the topic's hot page. Returns when no reader can get a page without the batch.

        A batch without events may repeat a change of a process that died before it extended the hot page. The hot page
        must then contain every change up to the stream's last event before it is read again.
        """
        committed_at = time.monotonic()
        if messages_per_minute(batch.head.get("heat"), batch.at.timestamp()) < MAYBE_HOT_PER_MINUTE:
            return
        try:
            await self._run(batch.stream.id, *self._extension(batch))
        except Exception as error:
            # Until every lease has ended, readers may get a page without the batch.
            log.warning("hot_page_extension_failed", topic=batch.stream.id, error=repr(error))
            await asyncio.sleep(committed_at + LEASE_S - time.monotonic())

    async def require(self, topic_id: str, n: int) -> None:
        """Returns when no reader can get a page without all changes up to event n."""
        called_at = time.monotonic()
        try:
            await self._run(topic_id, "require", n)
        except Exception as error:
            log.warning("hot_page_extension_failed", topic=topic_id, error=repr(error))
            await asyncio.sleep(called_at + LEASE_S - time.monotonic())

    async def close(self) -> None:
        """Cancels background tasks."""
        tasks = list(self._maintenance_tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _extension(self, batch: Batch) -> list[str | bytes | int]:
        """Returns the command of hot_pages.lua for a committed batch, with its arguments."""
        if not batch.events:
            return ["require", batch.next_n - 1]
        messages = [message_record(document) for document in batch.changed_documents("messages")]
        return ["extend", batch.events[0].n, batch.events[-1].n, self._size, *map(encode, messages)]

    async def _read_cached(
        self, topic_id: str, low: int, high: int, ascending: bool, limit: int, blocked: frozenset[str]
    ) -> CachedRange | None:
        if not self._may_try_redis():
            return None
        try:
            cached = await self._read_visible(topic_id, low, high, ascending, limit, blocked)
            self._unavailable_until = 0.0
            return cached
        except _FAILURES:
            self._unavailable_until = time.monotonic() + RETRY_AFTER_S
        except (ValueError, TypeError) as error:
            log.warning("hot_page_corrupted", topic=topic_id, error=repr(error))
            await self._drop(topic_id)
        return None

    async def _read_visible(
        self, topic_id: str, low: int, high: int, ascending: bool, limit: int, blocked: frozenset[str]
    ) -> CachedRange | None:
        """Returns the cached messages of a range that no blocked user wrote, at most `limit`.

        With blocked users, reads twice as many messages as requested. If too few of these are visible, reads all.
        """
        cached = None
        for count in (2 * limit, ALL) if blocked else (limit,):
            reply = await self._run(topic_id, "read", low, high, int(ascending), count)
            if not reply:
                return None
            messages = (decode(topic_id, item) for item in reply[1:])
            visible = (message for message in messages if message.author_id not in blocked)
            cached = CachedRange(int(reply[0]), list(islice(visible, limit)))
            if len(cached.messages) == limit or len(reply) - 1 < count:
                break
        return cached

    def _may_try_redis(self) -> bool:
        now = time.monotonic()
        if now < self._unavailable_until:
            return False
        if self._unavailable_until:
            self._unavailable_until = now + RETRY_AFTER_S
        return True

    def _maintain(self, topic_id: str, is_missing: bool) -> None:
        """Builds or renews the hot page in the background, at a limited rate."""
        now = time.monotonic()
        last_at = self._built_at if is_missing else self._renewed_at
        every_s = BUILD_EVERY_S if is_missing else RENEW_EVERY_S
        if topic_id in self._maintenance_tasks or now - last_at.get(topic_id, -every_s) < every_s:
            return
        last_at[topic_id] = now
        task = asyncio.create_task(self._renew_or_build(topic_id), name=f"hot page {topic_id}")
        self._maintenance_tasks[topic_id] = task
        task.add_done_callback(lambda _: self._maintenance_tasks.pop(topic_id, None))

    async def _renew_or_build(self, topic_id: str) -> None:
        try:
            if not await self._renew(topic_id):
                await self._build(topic_id)
        except Exception as error:
            # No caller awaits this task. Readers are served from MongoDB until a later attempt succeeds.
            log.warning("hot_page_maintenance_failed", topic=topic_id, error=repr(error))

    async def _renew(self, topic_id: str) -> bool:
        started_ms = await self._clock_ms(topic_id)
        n, has_high_rate = await self._head(topic_id)
        return has_high_rate and bool(await self._run(topic_id, "renew", n, started_ms))

    async def _build(self, topic_id: str) -> None:
        builder = secrets.token_hex(8)
        if not await self._run(topic_id, "begin", builder):
            return
        started_ms = await self._clock_ms(topic_id)
        n, has_high_rate, messages = await self._mongo.transact(lambda session: self._newest(topic_id, session))
        if has_high_rate:
            # A hot page with all messages of the topic has the floor 0.
            floor = messages[0].timestamp if len(messages) == self._size else 0
            arguments = (builder, n, floor, started_ms, self._size)
            await self._run(topic_id, "install", *arguments, *map(encode, messages))

    async def _newest(self, topic_id: str, session: Session) -> tuple[int, bool, list[Message]]:
        """Reads a snapshot of a topic.

        Returns the number of its stream's last event, whether the topic is hot, and its newest messages, ascending.
        """
        n, has_high_rate = await self._head(topic_id, session)
        query = {"_id": {"$gte": {"t": topic_id, "ts": 0}, "$lte": {"t": topic_id, "ts": MAX_TIMESTAMP}}}
        cursor = self._mongo["messages"].find(query, session=session).sort("_id", -1).limit(self._size)
        documents: list[MessageDocument] = await cursor.to_list(None)
        return n, has_high_rate, [message_record(document) for document in reversed(documents)]

    async def _head(self, topic_id: str, session: Session | None = None) -> tuple[int, bool]:
        """Returns the number of the stream's last event, and whether the topic is hot by the database's clock.

        Posters also decide by the database's clock.
        """
        projection = {"n": 1, "heat": 1, "now": "$$NOW"}
        head = await self._mongo["topics"].find_one({"_id": topic_id}, projection, session=session)
        if head is None:
            return 0, False
        return head["n"], messages_per_minute(head.get("heat"), head["now"].timestamp()) >= HOT_PER_MINUTE

    async def _drop(self, topic_id: str) -> None:
        with suppress(*_FAILURES):
            await self._run(topic_id, "drop")

    async def _clock_ms(self, topic_id: str) -> int:
        return int(await self._run(topic_id, "clock"))

    async def _run(self, topic_id: str, command: str | bytes | int, *arguments: str | bytes | int) -> Any:
        async with asyncio.timeout(REDIS_TIMEOUT_S):
            return await self._script(keys=self._keys.hot_page(topic_id), args=[command, *arguments])


def may_be_hot(heat: float | None, now_s: float) -> bool:
    """Returns whether a lease may still be valid for a topic with this heat. `now_s` is in Unix seconds."""
    return messages_per_minute(heat, now_s) >= MAYBE_HOT_PER_MINUTE


def _is_complete(cached: CachedRange, low: int, ascending: bool, limit: int) -> bool:
    """Returns whether a read of MongoDB would return the same messages as the hot page."""
    if low >= cached.floor:
        return True
    # A descending page that is full ends above the floor. An ascending page begins at `low`, which is below the floor.
    return not ascending and len(cached.messages) >= limit


def encode(message: Message) -> bytes:
    """Returns a message as an item of a hot page: a JSON array, whose first element is the timestamp."""
    preview = message.link_preview
    return orjson.dumps(
        [
            str(message.timestamp),
            message.author_id,
            message.text,
            message.stamp_id,
            message.mention_ids,
            message.reaction_counts,
            preview and [preview.url, preview.title, preview.description, preview.image_url, preview.site_name],
            message.edited_at,
            message.deleted_at,
            *_later_fields(message),
        ]
    )


def _later_fields(message: Message) -> list[Any]:
    """Returns the fields that earlier releases did not have: the files, the replies, the quote, and the copy of the
    preview's image.

    An item ends with the last field that has a value, so most items have the form of earlier releases.
    """
    fields: list[Any] = [
        [astuple(each) for each in message.attachments],
        message.thread_summary and astuple(message.thread_summary),
        message.quote and [*message.quote.key, message.quote.community_id],
        message.link_preview and message.link_preview.picture and astuple(message.link_preview.picture),
    ]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def decode(topic_id: str, item: bytes) -> Message:
    """Returns the message of an item. Raises: ValueError, TypeError, since other programs may write to Redis."""
    timestamp, author, text, stamp, mentions, reactions, preview, edited_at, deleted_at, *more = orjson.loads(item)
    if not (
        timestamp.__class__ is author.__class__ is text.__class__ is str
        and (stamp is None or stamp.__class__ is str)
        and mentions.__class__ is reactions.__class__ is list
    ):
        raise ValueError("The item is not an encoded message.")
    return Message(
        topic_id,
        Timestamp(int(timestamp)),
        author,
        text,
        stamp,
        tuple([str(user_id) for user_id in mentions]),
        tuple([(str(emoji), int(count)) for emoji, count in reactions]),
        None if preview is None else _preview(preview, more[3] if len(more) > 3 else None),
        _instant(edited_at),
        _instant(deleted_at),
        tuple([Attachment(*each) for each in more[0]]) if more else (),
        _thread_summary(*more[1]) if len(more) > 1 and more[1] else None,
        _quote(*more[2]) if len(more) > 2 and more[2] else None,
    )


def _preview(preview: list[Any], picture: list[Any] | None) -> LinkPreview:
    url, title, description, image_url, site_name = preview
    copy = PreviewPicture(*picture) if picture else None
    return LinkPreview(url, title, description, image_url, site_name, copy)


def _thread_summary(replies: int, repliers: list[tuple[str, int]]) -> ThreadSummary:
    return ThreadSummary(int(replies), tuple([(str(user_id), int(timestamp)) for user_id, timestamp in repliers]))


def _quote(topic_id: str, timestamp: int, community_id: str) -> Quote:
    return Quote(MessageKey(str(topic_id), int(timestamp)), str(community_id))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
