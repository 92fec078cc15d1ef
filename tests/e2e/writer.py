"""A process that posts messages to one topic, and repeats each message until it is acknowledged.

test_no_reader_misses.py starts it. The process prints "ready", and posts after it has read a line. At random it sleeps
between the allocation of a timestamp and the commit.
"""

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import orjson
from pymongo import ReturnDocument
from pymongo.errors import PyMongoError

from storage.chat.changes import NewMessage
from storage.chat.messages import MessageStore
from storage.errors import Unavailable
from storage.idempotency import idempotency_key
from storage.mongo import Driver, Mongo, Session
from storage.mongo.client import TRANSACTION_DEADLINE_S
from storage.stores import Stores, open_stores
from storage.streams.heads import head_update
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from tests.databases import with_class

MAX_DELAY_S = 0.05
CONCURRENT_POSTS = 10

Result = TypeVar("Result")


@dataclass(frozen=True)
class WriterArguments:
    """The arguments of the process."""

    mongodb_uri: str
    redis_url: str
    database: str
    driver: Driver
    topic_id: str
    writer: str
    count: int


class DelayedMongo(Mongo):
    """A MongoDB client that delays the commit of some transactions."""

    async def transact(
        self,
        work: Callable[[Session], Awaitable[Result]],
        deadline_s: float = TRANSACTION_DEADLINE_S,
        backoffs_s: Sequence[float] = (),
    ) -> Result:
        async def delayed_work(session: Session) -> Result:
            result = await work(session)
            await sleep_at_random()
            return result

        return await super().transact(delayed_work, deadline_s, backoffs_s)


async def sleep_at_random() -> None:
    if random.random() < 0.3:
        await asyncio.sleep(random.uniform(0, MAX_DELAY_S))


class MessageWriter:
    """A writer that posts messages as the product does."""

    def __init__(self, arguments: WriterArguments, stores: Stores) -> None:
        self.arguments = arguments
        mongo = with_class(stores.mongo, DelayedMongo)
        sequencer = Sequencer(mongo, lambda *_: None, lambda _: None)
        self._messages = MessageStore(mongo, sequencer)

    async def post(self, number: int) -> int:
        """Posts a message, and returns its timestamp. May be repeated. Raises: Unavailable, PyMongoError."""
        text = f"{self.arguments.writer}-{number}"
        key = idempotency_key("acme", self.arguments.writer, "postMessage", text, {"text": text})
        message = await self._messages.post(
            NewMessage(self.arguments.topic_id, "c", self.arguments.writer, text, None, ()), key
        )
        return message.timestamp


class UnsafeWriter(MessageWriter):
    """A writer that inserts a message some time after it has allocated the message's timestamp.

    Timestamps are unique, but a message may become visible after messages with larger timestamps.
    """

    def __init__(self, arguments: WriterArguments, stores: Stores) -> None:
        super().__init__(arguments, stores)
        self._mongo = stores.mongo

    async def post(self, number: int) -> int:
        topic_id = self.arguments.topic_id
        update = head_update(Stream("topic", topic_id), timestamp_count=1, event_count=1, epoch="e")
        head = await self._mongo["topics"].find_one_and_update(
            {"_id": topic_id}, update, return_document=ReturnDocument.AFTER
        )
        assert head is not None
        await sleep_at_random()
        document = {"_id": {"t": topic_id, "ts": head["last"]}, "author": self.arguments.writer, "text": f"{number}"}
        await self._mongo["messages"].insert_one(document)
        return int(head["last"])


async def post_all(writer: MessageWriter) -> None:
    """Posts every message, and prints a line for each acknowledged message."""
    numbers = iter(range(writer.arguments.count))

    async def post_remaining() -> None:
        for number in numbers:
            timestamp = await post_until_acknowledged(writer, number)
            print(writer.arguments.writer, number, timestamp, flush=True)

    await asyncio.gather(*(post_remaining() for _ in range(CONCURRENT_POSTS)))


async def post_until_acknowledged(writer: MessageWriter, number: int) -> int:
    while True:
        with suppress(Unavailable, PyMongoError):
            return await writer.post(number)
        await asyncio.sleep(0.05)


async def main(arguments: WriterArguments) -> None:
    async with open_stores(arguments.mongodb_uri, arguments.redis_url, arguments.database, arguments.driver) as stores:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await post_all(MessageWriter(arguments, stores))


if __name__ == "__main__":
    asyncio.run(main(WriterArguments(**orjson.loads(sys.argv[1]))))
