"""Workload of the benchmark of event delivery: a topic with members, and posts at a steady rate."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from benchmarks.servers import ORGANIZATION, DatabaseServers
from storage.chat.changes import NewMessage
from storage.chat.communities import NewCommunity
from storage.chat.records import Topic
from storage.mongo.text_index.names import search_terms
from storage.stores import Stores, open_stores

AUTHOR = "ann"
FIELD = "topicEvents"
QUERY = """subscription($topicId: ID!, $since: Cursor) { topicEvents(topicId: $topicId, since: $since) {
  __typename ... on Event { cursor at }
  ... on MessagePosted { message { id timestamp text author { id handle name } } } } }"""
TEXT_CHARS = 23
"""Length of every text: a number, the time of writing, and padding."""

MIN_SLEEP_S = 0.002


class SendTexts(Protocol):
    """A function that posts texts. Each text holds the time at which it was written, just before the call."""

    async def __call__(self, texts: list[str]) -> None: ...


@dataclass(slots=True)
class SteadyPoster:
    """A sender of texts at a steady rate. It does not wait for earlier posts.

    Each text holds its number and the time at which it was written.
    """

    send: SendTexts
    number: int = 0
    posted: int = 0
    slowest_ms: float = 0.0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, rate: float, seconds: float, should_continue: Callable[[], bool]) -> None:
        """Posts `rate` texts a second for `seconds`, or until `should_continue` is false.

        Returns when all posts have finished.
        """
        began_s, self.posted, self.slowest_ms = time.perf_counter(), 0, 0.0
        total = max(round(rate * seconds), 1)
        while self.posted < total and should_continue():
            passed_s = time.perf_counter() - began_s
            due = min(int(passed_s * rate) + 1, total) - self.posted
            if due > 0:
                self._start(due)
            await asyncio.sleep(max(self.posted / rate - passed_s, MIN_SLEEP_S))
        await asyncio.gather(*self._tasks)

    def _start(self, count: int) -> None:
        texts = [self._text() for _ in range(count)]
        self.posted += count
        task = asyncio.create_task(self._send_timed(texts))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_timed(self, texts: list[str]) -> None:
        began_s = time.perf_counter()
        await self.send(texts)
        self.slowest_ms = max(self.slowest_ms, 1000 * (time.perf_counter() - began_s))

    def _text(self) -> str:
        self.number += 1
        return f"{self.number} {time.monotonic():.6f} ".ljust(TEXT_CHARS, ".")


@dataclass(frozen=True, slots=True)
class TopicWithMembers:
    """A topic of a community whose members are the benchmark's users."""

    stores: Stores
    topic: Topic

    async def post(self, texts: list[str]) -> None:
        """Posts messages through storage. On return, they are committed and published to every process."""
        ids = self.topic.id, self.topic.community_id
        await asyncio.gather(*(self.stores.messages.post(NewMessage(*ids, AUTHOR, text, None, [])) for text in texts))


@asynccontextmanager
async def topic_with_members(servers: DatabaseServers, members: list[str]) -> AsyncIterator[TopicWithMembers]:
    """Creates the members, and a topic to which all of them may subscribe."""
    async with open_stores(servers.mongodb_uri, servers.redis_url, servers.database) as stores:
        author = await stores.users.sign_in(ORGANIZATION, AUTHOR, [], AUTHOR, AUTHOR)
        community = await stores.communities.create(NewCommunity(ORGANIZATION, "Hilltops", ""), author, None)
        await _insert_members(stores, community.id, members)
        topic = await stores.topics.create(community, author.id, "Smoke", None)
        yield TopicWithMembers(stores, topic)


async def _insert_members(stores: Stores, community_id: str, members: list[str]) -> None:
    """Inserts users and memberships directly, since thousands of single sign-ins take a minute."""
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
