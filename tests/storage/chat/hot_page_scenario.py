"""Makes topics hot, reads through their hot pages, and runs the commands of the Lua script of hot pages."""

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import redis
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from storage.chat.hot_pages import _SCRIPT, MAX_MESSAGES, HotPages, decode, encode
from storage.chat.messages import MessageStore
from storage.chat.records import Message
from storage.streams.heads import HEAT_TAU_S
from storage.streams.sequencer import Sequencer
from storage.streams.write_leases import WriteLeases
from storage.timeline import MAX_TIMESTAMP, NOW, Timestamp, timeline_range
from tests.storage.topic_scenario import TopicScenario
from tests.waiting import poll_until_true

HOT_PER_MINUTE = 1000.0
TOPIC = "beacons"
LEASE_MS = 2000


def hit_count() -> float:
    """Returns the number of reads that hot pages answered so far, in all simulated processes."""
    return REGISTRY.get_sample_value("noroshi_hot_page_reads_total", {"outcome": "hit"}) or 0.0


async def newest_page(scenario: TopicScenario, limit: int = 50, blocked: frozenset[str] = frozenset()) -> list[Message]:
    """Returns the newest messages, read like a client of a hot topic."""
    newest = timeline_range(latest=NOW, limit=limit)
    page = await scenario.stores.messages.page(scenario.topic.id, newest, blocked, is_hot=True)
    return list(page.items)


async def is_hit(scenario: TopicScenario) -> bool:
    """Reads the newest page. Returns whether the hot page answered. Valid only without concurrent readers."""
    hits_before = hit_count()
    await newest_page(scenario)
    return hit_count() > hits_before


async def wait_for_hot_page(scenario: TopicScenario) -> None:
    """Reads until the hot page answers."""
    assert await poll_until_true(lambda: is_hit(scenario)), "No hot page was built."


async def make_hot(scenario: TopicScenario, per_minute: float = HOT_PER_MINUTE) -> TopicScenario:
    """Sets the topic's posting rate, in messages a minute."""
    heat = math.log(per_minute * HEAT_TAU_S / 60) + time.time() / HEAT_TAU_S
    await scenario.stores.mongo["topics"].update_one({"_id": scenario.topic.id}, {"$set": {"heat": heat}})
    return scenario


@asynccontextmanager
async def another_process(
    scenario: TopicScenario, size: int = MAX_MESSAGES, extends_pages: bool = True
) -> AsyncIterator[TopicScenario]:
    """Simulates another process, whose hot pages hold `size` messages.

    Without `extends_pages`, the process never extends a hot page, as if it were killed after each commit.
    """
    stores = scenario.stores
    hot_pages = HotPages(stores.redis, stores.keys, stores.mongo, size)
    sequencer = Sequencer(
        stores.mongo,
        WriteLeases(stores.redis, stores.keys),
        on_commit=lambda *_: None,
        on_outbox_rows=lambda _: None,
        before_answer=hot_pages.extend if extends_pages else None,
    )
    messages = MessageStore(stores.mongo, sequencer, hot_pages)
    yield scenario.with_stores(replace(stores, sequencer=sequencer, messages=messages))
    await sequencer.close()
    await hot_pages.close()


async def end_lease_in(client: Redis, meta_key: str, seconds: float) -> None:
    """Sets the page's lease to end in this number of seconds."""
    assert await client.exists(meta_key), "There is no hot page."
    await client.execute_command("HSET", meta_key, "lease_ms", int((time.time() + seconds) * 1000))  # type: ignore[no-untyped-call]


def new_message(timestamp: int, text: str = "hello") -> Message:
    """Returns a message of Ann with only a text."""
    return Message(TOPIC, Timestamp(timestamp), "ann", text, None, (), (), None, None, None)


@dataclass(frozen=True)
class HotPageAnswer:
    """An answer of a hot page: messages, and the lowest timestamp from which the page is complete."""

    floor: int
    messages: list[Message]


@dataclass
class HotPage:
    """One hot page on a real Redis, with the commands of storage/chat/hot_pages/hot_pages.lua as methods."""

    redis: "redis.Redis"
    keys: list[str]
    size: int = 500
    _script: Any = field(init=False)

    def __post_init__(self) -> None:
        self._script = self.redis.register_script(_SCRIPT)

    def run(self, *arguments: str | int | bytes) -> Any:
        """Runs a command. Returns its answer."""
        return self._script(keys=self.keys, args=arguments)

    def clock(self) -> int:
        return int(self.run("clock"))

    def begin(self, builder: str) -> bool:
        return bool(self.run("begin", builder))

    def install(self, builder: str, n: int, floor: int, t0: int, messages: list[Message]) -> bool:
        return bool(self.run("install", builder, n, floor, t0, self.size, *map(encode, messages)))

    def extend(self, first: int, last: int, messages: list[Message]) -> int:
        answer: int = self.run("extend", first, last, self.size, *map(encode, messages))
        return answer

    def require(self, n: int) -> None:
        """Makes the page answer only once it contains the events up to number n."""
        self.run("require", n)

    def renew(self, n: int, t0: int) -> bool:
        return bool(self.run("renew", n, t0))

    def read(
        self, low: int = 0, high: int = MAX_TIMESTAMP, ascending: bool = True, limit: int = 1000
    ) -> HotPageAnswer | None:
        """Returns the messages of a range, or None if the page cannot answer."""
        answer = self.run("read", low, high, int(ascending), limit)
        return HotPageAnswer(int(answer[0]), [decode(TOPIC, item) for item in answer[1:]]) if answer else None

    def texts(self) -> list[str] | None:
        """Returns the texts of all messages of the page, oldest first, or None if it cannot answer."""
        answer = self.read()
        return None if answer is None else [each.text for each in answer.messages]

    def build(self, n: int, messages: list[Message], floor: int = 0) -> None:
        """Replaces the page with one that contains the events up to number n."""
        self.run("drop")
        assert self.begin("first builder")
        assert self.install("first builder", n, floor, self.clock(), messages)

    def stored_number(self, name: str) -> int | None:
        """Returns a stored number of the page, or None."""
        value: Any = self.redis.hget(self.keys[0], name)
        return None if value is None else int(value)

    def set_fields(self, **fields: str | int) -> None:
        """Changes stored fields of the page if it exists."""
        if self.redis.exists(self.keys[0]):
            self.redis.hset(self.keys[0], mapping=fields)

    def pass_time(self, ms: int) -> None:
        """Simulates the passing of time; a negative value sets the clock back."""
        if (lease_ms := self.stored_number("lease_ms")) is not None:
            self.set_fields(lease_ms=lease_ms - ms)
