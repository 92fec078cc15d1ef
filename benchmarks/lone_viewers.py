"""Pages of a hot topic for viewers whose query is not coalesced: alone, with blocks, and around a timestamp.

One process serves all variants through the GraphQL endpoint, without sockets, a few requests at a time and interleaved.
The first table shows the processor time of a page and the reads of MongoDB for it. The second table shows a page of 32
readers of whom some have blocked an author. Processor times are little disturbed by other programs. Linux only.
"""

import asyncio
import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, database_servers
from benchmarks.timeline_data import QUERY
from storage.chat.communities import CommunityStore
from storage.chat.messages import MessageStore
from storage.chat.reactions.store import ReactionStore
from storage.chat.records import Message
from storage.chat.topics import TopicStore
from storage.identity.relations import RelationStore
from storage.identity.users import UserStore
from storage.mongo import Mongo
from storage.stores import open_stores
from storage.timeline import format_timestamp
from tests.server.graphql.graphql_server import GraphQLServer, serve_graphql
from tests.storage.chat.hot_page_scenario import make_hot, wait_for_hot_page
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

PRODUCT, MONGODB = "product", "from MongoDB"
RIGHTS, AUTHORS, REACTIONS = "rights cached", "and authors cached", "and reactions cached"
CACHED: dict[str, Sequence[tuple[type, str]]] = {
    RIGHTS: [(TopicStore, "find"), (RelationStore, "blocked_users_of"), (CommunityStore, "members_among")],
    AUTHORS: [(UserStore, "get_all")],
    REACTIONS: [(ReactionStore, "of_messages")],
}
"""The reads that each variant caches, in addition to those of the variants before it."""

REQUESTS = 10
"""Requests of a variant in a row."""

READERS = 32
MESSAGES, PEOPLE = 600, 40
TEXT = "The beacon on the next hill is lit: pass it on, and keep yours burning until the one after it answers."
AROUND_QUERY = QUERY.replace("messages(", "messagesAround(").replace("latest: $latest", "timestamp: $latest")

Read = Callable[..., Awaitable[Any]]
Measurements = defaultdict[tuple[str, str], dict[str, list[float]]]
"""Lists of measured values by kind of page and variant, then by column."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass
class Variants:
    """The variant that is measured at the moment. `install` replaces methods of stores, which then obey it."""

    current: str = PRODUCT
    finds: int = 0
    answers: dict[Hashable, Any] = field(default_factory=dict)

    def install(self) -> None:
        """Replaces the methods."""
        for variant, methods in CACHED.items():
            for store, name in methods:
                setattr(store, name, self._cached(variant, getattr(store, name)))
        for store, name, replace in (
            (Mongo, "find", self._counted),
            (MessageStore, "_fetch_hot", self._from_mongodb),
        ):
            setattr(store, name, replace(getattr(store, name)))

    def _cached(self, since: str, read: Read) -> Read:
        """Returns the read with a cache that no change invalidates. A correct cache saves at most as much."""

        @wraps(read)
        async def read_cached(store: Any, *arguments: Any) -> Any:
            variants = list(CACHED)
            if self.current not in variants or variants.index(self.current) < variants.index(since):
                return await read(store, *arguments)
            key = read.__qualname__, *map(_hashable, arguments)
            if key not in self.answers:
                self.answers[key] = await read(store, *arguments)
            return self.answers[key]

        return read_cached

    def _counted(self, find: Read) -> Read:
        @wraps(find)
        async def find_counted(mongo: Mongo, *arguments: Any, **more: Any) -> Any:
            self.finds += 1
            return await find(mongo, *arguments, **more)

        return find_counted

    def _from_mongodb(self, fetch: Read) -> Read:
        @wraps(fetch)
        async def fetch_hot(store: MessageStore, *arguments: Any) -> Any:
            return await (store._fetch if self.current == MONGODB else fetch.__get__(store))(*arguments)

        return fetch_hot


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(each.key if isinstance(each, Message) else _hashable(each) for each in value)
    return frozenset(value) if isinstance(value, set) else value


def process_s(pid: int) -> float:
    """Returns the processor time of a process so far, exact to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((tasks / each / "schedstat").read_text().split()[0]) for each in os.listdir(tasks)) / 1e9


@dataclass(frozen=True)
class PageRequest:
    """A request of one reader for a page, sent to the endpoint without a socket."""

    server: GraphQLServer
    token: str
    query: str
    variables: dict[str, Any]

    async def send(self) -> None:
        """Sends the request. Raises: AssertionError if the answer has no page."""
        body = orjson.dumps({"query": self.query, "variables": self.variables})
        headers = [(b"content-type", b"application/json"), (b"authorization", f"Bearer {self.token}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/graphql", "raw_path": b"/graphql", "query_string": b""}
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http"}
        chunks: list[bytes] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            chunks.append(message.get("body", b""))

        await self.server.endpoint(scope, receive, send)
        assert b"".join(chunks).startswith(b'{"data":{"messages'), b"".join(chunks)[:300]


@dataclass
class LoneViewersBenchmark:
    """A hot topic, and the values that were measured so far."""

    server: GraphQLServer
    mongod_pid: int
    variants: Variants
    first: Message
    measurements: Measurements = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def request(self, reader: str, query: str = QUERY, latest: str = "now") -> PageRequest:
        """Returns a reader's request."""
        variables = {"topicId": self.server.scenario.topic.id, "latest": latest}
        return PageRequest(self.server, self.server.token(reader), query, variables)

    async def measure_alone(self, rounds: int) -> None:
        """Measures lone viewers."""
        await self.server.stores.relations.block(self.server.scenario.organization_id, "reader1", "user7")
        requests = {
            "newest": self.request("reader0"),
            "newest, with a block": self.request("reader1"),
            "around": self.request("reader0", AROUND_QUERY, format_timestamp(self.first.timestamp)),
        }
        for number in range(rounds + 1):
            for kind, request in requests.items():
                for variant in random.sample([PRODUCT, MONGODB, *CACHED], 2 + len(CACHED)):
                    await self._measure_slice(kind, variant, [request], REQUESTS, is_warm_up=number == 0)

    async def measure_readers(self, rounds: int) -> None:
        """Measures 32 readers at once, of whom some have a block."""
        readers = [f"reader{number}" for number in range(2, 2 + READERS)]
        requests = [self.request(reader) for reader in readers]
        relations, organization_id, blockers = (
            self.server.stores.relations,
            self.server.scenario.organization_id,
            0,
        )
        for more in (0, 1, 4, 16):
            for reader in readers[blockers:more]:
                await relations.block(organization_id, reader, "user7")
            blockers = more
            for number in range(rounds + 1):
                for variant in random.sample([PRODUCT, MONGODB], 2):
                    kind = f"{blockers} of {READERS}"
                    await self._measure_slice(kind, variant, requests, REQUESTS, is_warm_up=number == 0)

    async def _measure_slice(
        self, kind: str, variant: str, requests: Sequence[PageRequest], count: int, *, is_warm_up: bool
    ) -> None:
        """Lets each reader send the request `count` times. Stores the values for one page."""
        self.variants.current = variant
        await requests[0].send()
        finds, mongod_s, own_s = self.variants.finds, process_s(self.mongod_pid), time.process_time()

        async def read(request: PageRequest) -> None:
            for _ in range(count):
                await request.send()

        await asyncio.gather(*map(read, requests))
        own_s, mongod_s = time.process_time() - own_s, process_s(self.mongod_pid) - mongod_s
        if is_warm_up:
            return
        pages, columns = count * len(requests), self.measurements[kind, variant]
        columns["process, ms"].append(1000 * own_s / pages)
        columns["mongod, ms"].append(1000 * mongod_s / pages)
        columns["finds"].append((self.variants.finds - finds) / pages)


async def fill(scenario: TopicScenario) -> Message:
    """Lets many people post and react. Returns a message near the end."""
    people = [f"user{number}" for number in range(PEOPLE)]
    for person in (*people, *(f"reader{number}" for number in range(READERS + 2))):
        user = await scenario.stores.users.sign_in(scenario.organization_id, person, (), person, None)
        await scenario.stores.communities.join(scenario.community, user)
    rng, posted = random.Random(7), list[Message]()
    for start in range(0, MESSAGES, 50):
        posted += await asyncio.gather(*(scenario.post(f"{TEXT} {start + n}", rng.choice(people)) for n in range(50)))
    messages = scenario.stores.messages
    for message in rng.sample(posted[-100:], 30):
        await messages.add_reaction(scenario.organization_id, message.key, rng.choice(people), "🔥")
    return posted[-20]


async def measure(rounds: int) -> tuple[Measurements, Measurements]:
    """Returns the values of lone viewers and of 32 readers."""
    async with (
        database_servers("pymongo") as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as stores,
    ):
        scenario = await create_topic_scenario(stores)
        first = await fill(scenario)
        await wait_for_hot_page(await make_hot(scenario))
        variants = Variants()
        variants.install()
        async with serve_graphql(scenario) as server:
            alone = LoneViewersBenchmark(server, servers.mongod_pid, variants, first)
            await alone.measure_alone(rounds)
            many = LoneViewersBenchmark(server, servers.mongod_pid, variants, first)
            await many.measure_readers(max(1, rounds // 4))
    return alone.measurements, many.measurements


def table(title: str, measurements: Measurements) -> Table:
    """Returns a table of medians, with a row for each kind of page and variant."""
    columns = list(next(iter(measurements.values())))
    medians = Table("page", "variant", *columns, title=title)
    for (kind, variant), values in measurements.items():
        medians.add_row(kind, variant, *(f"{statistics.median(values[column]):.3f}" for column in columns))
    return medians


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Slices of each variant and kind of page.")] = 40,
) -> None:
    """Prints both tables."""
    alone, many = asyncio.run(measure(rounds))
    Console(width=120).print(table("One viewer, a page", alone))
    Console(width=120).print(table("32 readers, some of whom have a block, a page", many))


if __name__ == "__main__":
    app()
