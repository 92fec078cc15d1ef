"""Search in a million messages: one word, two words and a Japanese phrase at a fixed rate, beside posting.

The messages are inserted directly, as the documents that posting would write.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from benchmarks.servers import ORGANIZATION, DatabaseServers, database_servers, web_process
from benchmarks.tables import percentile, print_table
from storage.chat.communities import NewCommunity
from storage.chat.search.terms import MESSAGE_TERMS, message_terms
from storage.identity.records import User
from storage.identity.roles import Role
from storage.indexes import INDEXES
from storage.mongo import Document, connect
from storage.stores import Stores, open_stores
from tests.client import Client, client

COMMUNITIES, TOPICS, AUTHORS = 40, 200, 200
JOINED = 20
"""The people who search have joined half of the communities."""

SEARCHERS = [f"searcher{number}" for number in range(8)]

INSERTED_AT_ONCE = 5000
CACHE_MIB = 4096
"""The embedded server has 256 MiB, which is less than the index of a million messages."""

TIMEOUT_S = 30.0
WARM_UP_RATE = 10.0
SEARCH = """query ($words: String!) {
  searchMessages(query: $words, latest: "now", limit: 20) {
    items { message { id text author { id name } } topic { id title } excerpt { text isMatch } } hasOlder oldest
  }
}"""
POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
SYLLABLES = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
PLACES = "東西南北京山川海空町村島橋駅港市場道森林"
THINGS = "花火祭会話題新旧朝昼夜雨雪風光音色水木金土日月星空車船本字絵歌声手足目耳心"
ENDINGS = ("です", "でした", "ますか", "ましょう", "ません", "でしょうか", "はどうですか", "に行きます", "を見ました")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class SearchCorpus:
    """Topics, and words of different frequency."""

    topics: Sequence[tuple[str, str]]
    """Ids of topics, each with the id of its community."""

    vocabulary: Sequence[str]
    """English words, the most common first. The n-th word is about n times rarer than the first."""

    weights: Sequence[float]

    def text(self, rng: random.Random) -> str:
        """Returns a sentence in English or, in four of ten cases, in Japanese."""
        if rng.random() < 0.4:
            return "。".join(_japanese_sentence(rng) for _ in range(rng.randint(1, 3)))
        return " ".join(rng.choices(self.vocabulary, cum_weights=self.weights, k=rng.randint(4, 18)))

    def queries(self, rng: random.Random) -> dict[str, Callable[[], str]]:
        """Returns a function that makes random queries, for each kind."""

        def word() -> str:
            return self.vocabulary[int(10 ** rng.uniform(0, 4))]

        def phrase() -> str:
            sentence = _japanese_sentence(rng)
            start = rng.randrange(max(1, len(sentence) - 4))
            return sentence[start : start + 4]

        return {"one word": word, "two words": lambda: f"{word()} {word()}", "Japanese phrase": phrase}


def _japanese_sentence(rng: random.Random) -> str:
    parts = ["".join(rng.choices(PLACES, k=2)), "の", "".join(rng.choices(THINGS, k=rng.randint(2, 4))), "は"]
    return "".join(parts) + "".join(rng.choices(THINGS, k=2)) + rng.choice(ENDINGS)


def _vocabulary() -> tuple[list[str], list[float]]:
    rng = random.Random(1)
    words = list(dict.fromkeys("".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(40_000)))
    weights, total = [], 0.0
    for rank in range(len(words)):
        total += 1 / (rank + 10)
        weights.append(total)
    return words, weights


async def fill(servers: DatabaseServers, stores: Stores, count: int) -> SearchCorpus:
    """Stores the messages and their terms, then builds the index."""
    searchers = [await stores.users.sign_in(ORGANIZATION, each, [Role.MEMBER], each, each) for each in SEARCHERS]
    owner = await stores.users.sign_in(ORGANIZATION, "owner", [Role.MEMBER], "owner", "owner")
    for number in range(AUTHORS):
        await stores.users.sign_in(ORGANIZATION, f"user{number}", [Role.MEMBER], f"user{number}", f"user{number}")
    topics = [topic async for topic in _create_topics(stores, owner, searchers)]
    corpus = SearchCorpus(topics, *_vocabulary())
    await stores.mongo[MESSAGE_TERMS].drop_indexes()
    rng, now_us = random.Random(2), int(time.time() * 1e6)
    for start in range(0, count, INSERTED_AT_ONCE):
        messages: list[Document] = []
        entries: list[Any] = []
        for number in range(start, min(start + INSERTED_AT_ONCE, count)):
            topic, community = rng.choice(topics)
            key = {"t": topic, "ts": now_us - 1_000_000 * (count - number)}
            message: Any = {"_id": key, "author": f"user{rng.randrange(AUTHORS)}", "text": corpus.text(rng)}
            messages.append(message)
            entries.append(message_terms(message, community))
        await asyncio.gather(
            stores.mongo["messages"].insert_many(messages, ordered=False),
            stores.mongo[MESSAGE_TERMS].insert_many(entries, ordered=False),
        )
    began = time.perf_counter()
    # The build takes longer than a command of the product may.
    patient = connect(servers.mongodb_uri, servers.database, command_timeout_s=None)
    await patient[MESSAGE_TERMS].create_indexes(INDEXES[MESSAGE_TERMS])
    await patient.close()
    typer.echo(f"index built in {time.perf_counter() - began:.0f} s")
    return corpus


async def _create_topics(stores: Stores, owner: User, searchers: Sequence[User]) -> AsyncIterator[tuple[str, str]]:
    for number in range(COMMUNITIES):
        community = await stores.communities.create(NewCommunity(ORGANIZATION, f"Hill {number}", ""), owner, None)
        for searcher in searchers if number < JOINED else ():
            await stores.communities.join(community, searcher)
        for topic in range(TOPICS // COMMUNITIES):
            yield (await stores.topics.create(community, owner.id, f"Smoke {topic}", None)).id, community.id


@dataclass
class RequestLatencies:
    """Latencies of one kind of request, and the number of failures."""

    ms: list[float] = field(default_factory=list)
    failures: int = 0

    def cells(self) -> list[str]:
        """Returns the number, p50, p99 and the failures."""
        latencies = [f"{percentile(self.ms, percent):,.1f}" for percent in (50, 99)]
        return [f"{len(self.ms):,}", *latencies, str(self.failures)]


async def send_at_rate(
    apis: Sequence[Client], rate: float, seconds: float, operation: str, variables: Callable[[], Document]
) -> RequestLatencies:
    """Sends requests at random moments, at this rate, without waiting for answers. Counts from the planned moment."""
    rng, latencies, tasks = random.Random(3), RequestLatencies(), set[asyncio.Task[None]]()
    planned = time.perf_counter()
    ends_at = planned + seconds

    async def send(began: float) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await rng.choice(apis).run(operation, **variables())
        except Exception:
            latencies.failures += 1
        else:
            latencies.ms.append((time.perf_counter() - began) * 1000)

    while (planned := planned + rng.expovariate(rate)) < ends_at:
        await asyncio.sleep(planned - time.perf_counter())
        tasks.add(asyncio.create_task(send(planned)))
    await asyncio.gather(*tasks)
    return latencies


@dataclass(frozen=True)
class SearchOptions:
    """Searches and posts a second, and the durations of each kind of search."""

    rate: float
    posts: float
    seconds: float
    warm_up_s: float


async def measure_searches(servers: DatabaseServers, corpus: SearchCorpus, options: SearchOptions) -> list[list[str]]:
    """Returns a row for each kind of search at a rate, beside posts at a rate."""
    rng, rows = random.Random(4), []

    def new_post() -> Document:
        return {"input": {"topicId": rng.choice(corpus.topics)[0], "text": corpus.text(rng)}}

    async with AsyncExitStack() as stack:
        web = stack.enter_context(web_process(servers))
        poster, *searchers = [
            await stack.enter_async_context(client(web.url, servers.token(each))) for each in ("owner", *SEARCHERS)
        ]
        for kind, query in corpus.queries(rng).items():

            def words(query: Callable[[], str] = query) -> Document:
                return {"words": query()}

            await send_at_rate(searchers, WARM_UP_RATE, options.warm_up_s, SEARCH, words)
            searches, posted = await asyncio.gather(
                send_at_rate(searchers, options.rate, options.seconds, SEARCH, words),
                send_at_rate([poster], options.posts, options.seconds, POST, new_post),
            )
            rows.append([kind, *searches.cells(), *posted.cells()])
    return rows


async def measure(messages: int, options: SearchOptions) -> list[list[str]]:
    """Fills the database, prints the size of the terms, and returns the rows of the table."""
    async with (
        database_servers() as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, servers.database) as stores,
    ):
        cache = {"setParameter": 1, "wiredTigerEngineRuntimeConfig": f"cache_size={CACHE_MIB}M"}
        await stores.mongo.client.admin.command(cache)
        corpus = await fill(servers, stores, messages)
        stats = await stores.mongo.database.command("collStats", MESSAGE_TERMS, scale=2**20)
        sizes = {name: stats[name] for name in ("count", "size", "storageSize", "totalIndexSize")}
        typer.echo(f"{MESSAGE_TERMS} in MiB: {sizes}")
        return await measure_searches(servers, corpus, options)


@app.command()
def main(
    messages: Annotated[int, typer.Option(min=100, help="Number of messages.")] = 1_000_000,
    rate: Annotated[float, typer.Option(min=1, help="Searches a second.")] = 50,
    posts: Annotated[float, typer.Option(min=1, help="Posts a second beside the searches.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of each kind of search.")] = 30,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each kind of search.")] = 3,
) -> None:
    """Measures searches beside posts, and prints a table."""
    rows = asyncio.run(measure(messages, SearchOptions(rate, posts, seconds, warm_up_s)))
    columns = ["query", "requests", "p50 ms", "p99 ms", "failed", "posts", "p50 ms", "p99 ms", "failed"]
    print_table(f"{rate:g} searches a second beside {posts:g} posts a second", columns, rows)


if __name__ == "__main__":
    app()
