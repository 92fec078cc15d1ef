"""A process that posts to one topic until everything is acknowledged, whatever happens to the database meanwhile.

Started by test_no_reader_misses.py: it says "ready", and begins when it gets a line. It hesitates at random between
taking a message's place and making it visible. With `careless` it does what must not be done: it takes the place first
and inserts the message afterwards.
"""

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import orjson
from pymongo import ReturnDocument
from pymongo.errors import PyMongoError

from storage.chat.changes import NewMessage
from storage.chat.hot_pages import HotPages
from storage.chat.messages import MessageStore
from storage.errors import Unavailable
from storage.idempotency import idempotency_key
from storage.mongo import Driver, Mongo, Session
from storage.mongo.client import TRANSACTION_DEADLINE_S
from storage.stores import Stores, open_stores
from storage.streams.heads import head_update
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from storage.streams.write_leases import WriteLeases

HESITATION_S = 0.05
AT_A_TIME = 10

Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """The writer's arguments."""

    mongodb_uri: str
    redis_url: str
    database: str
    driver: Driver
    topic_id: str
    writer: str
    count: int
    careless: bool


class Hesitant(Mongo):
    """A client that sleeps in some transactions before they commit."""

    async def transact(
        self, work: Callable[[Session], Awaitable[Result]], deadline_s: float = TRANSACTION_DEADLINE_S
    ) -> Result:
        async def slowly(session: Session) -> Result:
            result = await work(session)
            await hesitate()
            return result

        return await super().transact(slowly, deadline_s)


async def hesitate() -> None:
    if random.random() < 0.3:
        await asyncio.sleep(random.uniform(0, HESITATION_S))


class Writer:
    """Posts as the product does."""

    def __init__(self, task: Task, stores: Stores) -> None:
        self.task = task
        mongo = Hesitant(stores.mongo.client, stores.mongo.database, stores.mongo.reads)
        leases = WriteLeases(stores.redis, stores.keys)
        sequencer = Sequencer(mongo, leases, lambda *_: None, lambda _: None)
        self._messages = MessageStore(mongo, sequencer, HotPages(stores.redis, stores.keys, mongo))

    async def post(self, number: int) -> int:
        """Posts a message, and returns its timestamp. Raises: Unavailable, PyMongoError; it may be posted again."""
        text = f"{self.task.writer}-{number}"
        key = idempotency_key("acme", self.task.writer, "postMessage", text, {"text": text})
        message = await self._messages.post(NewMessage(self.task.topic_id, "c", self.task.writer, text, None, ()), key)
        return message.timestamp


class CarelessWriter(Writer):
    """Allocates a timestamp, waits, then inserts: timestamps are unique, but a smaller one may appear later."""

    def __init__(self, task: Task, stores: Stores) -> None:
        super().__init__(task, stores)
        self._mongo = stores.mongo

    async def post(self, number: int) -> int:
        topic_id = self.task.topic_id
        scenario = head_update(Stream("topic", topic_id), timestamps=1, events=1, epoch="e")
        head = await self._mongo["topics"].find_one_and_update(
            {"_id": topic_id}, scenario, return_document=ReturnDocument.AFTER
        )
        assert head is not None
        await hesitate()
        document = {"_id": {"t": topic_id, "ts": head["last"]}, "author": self.task.writer, "text": f"{number}"}
        await self._mongo["messages"].insert_one(document)
        return int(head["last"])


async def post_all(writer: Writer) -> None:
    """Posts every number until it is acknowledged, and prints a line for each."""
    numbers = iter(range(writer.task.count))

    async def lane() -> None:
        for number in numbers:
            timestamp = await acknowledged(writer, number)
            print(writer.task.writer, number, timestamp, flush=True)

    await asyncio.gather(*(lane() for _ in range(AT_A_TIME)))


async def acknowledged(writer: Writer, number: int) -> int:
    while True:
        with suppress(Unavailable, PyMongoError):
            return await writer.post(number)
        await asyncio.sleep(0.05)


async def main(task: Task) -> None:
    async with open_stores(task.mongodb_uri, task.redis_url, task.database, task.driver) as stores:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await post_all(CarelessWriter(task, stores) if task.careless else Writer(task, stores))


if __name__ == "__main__":
    asyncio.run(main(Task(**orjson.loads(sys.argv[1]))))
