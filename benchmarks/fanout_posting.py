"""The workload of the fan-out benchmark: a topic with members, and posts at a steady rate."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import orjson
from redis.asyncio import Redis

from benchmarks.fanout_apps import RAW_CHANNEL
from benchmarks.fanout_targets import DATABASE, ORGANIZATION, Databases
from storage.chat.changes import NewMessage
from storage.chat.communities import NewCommunity
from storage.chat.records import Topic
from storage.identity.users import search_terms
from storage.stores import Stores, open_stores
from storage.streams.log import Position, Stream, format_cursor

AUTHOR = "ann"
FIELD = "topicEvents"
QUERY = """subscription($topicId: ID!) { topicEvents(topicId: $topicId) { __typename ... on Event { cursor at }
  ... on MessagePosted { message { id timestamp text author { id handle name } } } } }"""
# Number and clock, and as few more characters as make all of the same length.
TEXT_CHARS = 23
TURN_S = 0.002


class Post(Protocol):
    """Sends texts that were written this moment."""

    async def __call__(self, texts: list[str]) -> None: ...


@dataclass(slots=True)
class Poster:
    """Posts numbered texts that tell when they were written, evenly over time, whatever happened to those before."""

    post: Post
    number: int = 0
    posted: int = 0
    slowest_ms: float = 0.0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, rate: float, seconds: float, goes_on: Callable[[], bool]) -> None:
        """So many a second, until the time is over or `goes_on` says no; returns when all are posted."""
        began_s, self.posted, self.slowest_ms = time.perf_counter(), 0, 0.0
        total = max(round(rate * seconds), 1)
        while self.posted < total and goes_on():
            passed_s = time.perf_counter() - began_s
            due = min(int(passed_s * rate) + 1, total) - self.posted
            if due > 0:
                self._start(due)
            await asyncio.sleep(max(self.posted / rate - passed_s, TURN_S))
        await asyncio.gather(*self._tasks)

    def _start(self, count: int) -> None:
        texts = [self._text() for _ in range(count)]
        self.posted += count
        task = asyncio.create_task(self._post(texts))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _post(self, texts: list[str]) -> None:
        began_s = time.perf_counter()
        await self.post(texts)
        self.slowest_ms = max(self.slowest_ms, 1000 * (time.perf_counter() - began_s))

    def _text(self) -> str:
        self.number += 1
        return f"{self.number} {time.monotonic():.6f} ".ljust(TEXT_CHARS, ".")


@dataclass(frozen=True, slots=True)
class Place:
    """A topic whose community has members, and who posts there."""

    stores: Stores
    topic: Topic

    async def post(self, texts: list[str]) -> None:
        """Posts through storage: committed and published to every process when this returns."""
        place = self.topic.id, self.topic.community_id
        await asyncio.gather(*(self.stores.messages.post(NewMessage(*place, AUTHOR, text, None, [])) for text in texts))


@dataclass(frozen=True, slots=True)
class RawPlace:
    """For servers without GraphQL: the payloads that the product would send, over pub/sub."""

    redis: Redis
    topic_id: str
    _order: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def post(self, texts: list[str]) -> None:
        """Publishes what arrives together as one message."""
        async with self._order:
            await self.redis.publish(RAW_CHANNEL, b"\n".join(map(self._payload, texts)))

    def _payload(self, text: str) -> bytes:
        author = {"id": AUTHOR, "handle": AUTHOR, "name": AUTHOR}
        id_ = f"{self.topic_id}-1700000000000000"
        message = {"id": id_, "timestamp": "1700000000.000000", "text": text, "author": author}
        cursor = format_cursor(Stream("topic", self.topic_id), Position("12345678", 1000))
        at = "2026-11-21T12:00:00.000Z"
        return orjson.dumps(
            {"data": {FIELD: {"__typename": "MessagePosted", "cursor": cursor, "at": at, "message": message}}}
        )


@asynccontextmanager
async def place(servers: Databases, members: list[str]) -> AsyncIterator[Place]:
    """A topic that all of these users may listen to."""
    async with open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as stores:
        author = await stores.users.sign_in(ORGANIZATION, AUTHOR, [], AUTHOR, AUTHOR)
        community = await stores.communities.create(NewCommunity(ORGANIZATION, "Hilltops", ""), author, None)
        await _join(stores, community.id, members)
        topic = await stores.topics.create(community, author.id, "Smoke", None)
        yield Place(stores, topic)


async def _join(stores: Stores, community_id: str, members: list[str]) -> None:
    """All of them at once; one by one it takes a minute."""
    common = {"at": datetime.now(UTC)}
    users = [
        {
            "_id": {"org": ORGANIZATION, "id": id_},
            "handle": id_,
            "name": id_,
            "search": search_terms(id_, id_),
            "roles": ["MEMBER"],
            "followers": 0,
            "following": 0,
            **common,
        }
        for id_ in members
    ]
    memberships = [
        {"org": ORGANIZATION, "community": community_id, "user": id_, "handle": id_, "search": [id_], **common}
        for id_ in members
    ]
    await stores.mongo["users"].insert_many(users)
    await stores.mongo["memberships"].insert_many(memberships)
