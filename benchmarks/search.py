"""Search in a million messages: one word, two words and a Japanese phrase at a fixed rate, beside posting.

The messages are inserted directly, as the documents that posting would write. Also measures the time of a post with and
without its terms, interleaved, and tantivy on the same texts if it is installed.
"""

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, ORGANIZATION, DatabaseServers, database_servers, web_process
from storage.chat import changes
from storage.chat.changes import NewMessage
from storage.chat.communities import NewCommunity
from storage.chat.search.terms import MESSAGE_TERMS, message_terms
from storage.identity.records import User
from storage.identity.roles import Role
from storage.indexes import INDEXES
from storage.mongo import Document, connect
from storage.mongo.text_index.tokenizer import terms
from storage.stores import Stores, open_stores
from storage.streams.changes import Batch
from tests.client import Client, client

COMMUNITIES, TOPICS, AUTHORS = 40, 200, 200
JOINED = 20
"""The people who search have joined half of the communities."""

SEARCHERS = [f"searcher{number}" for number in range(8)]

INSERTED_AT_ONCE = 5000
CACHE_MIB = 4096
"""The embedded server has 256 MiB, which is less than the index of a million messages."""

TIMEOUT_S = 30.0
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
console = Console(width=120)


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
    patient = connect(servers.mongodb_uri, DATABASE, command_timeout_s=None)
    await patient[MESSAGE_TERMS].create_indexes(INDEXES[MESSAGE_TERMS])
    await patient.close()
    console.print(f"index built in {time.perf_counter() - began:.0f} s")
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
        ordered = sorted(self.ms) or [0.0]
        percentile = (ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)])
        return [f"{len(self.ms):,}", *(f"{each:,.1f}" for each in percentile), str(self.failures)]


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


async def measure_searches(
    servers: DatabaseServers, corpus: SearchCorpus, rate: float, posts: float, seconds: float
) -> Table:
    """Returns the table of searches at a rate, beside posts at a rate."""
    table = Table(title=f"{rate:g} searches a second beside {posts:g} posts a second")
    for name in ("query", "requests", "p50 ms", "p99 ms", "failed", "posts", "p50 ms", "p99 ms", "failed"):
        table.add_column(name, justify="right")
    rng = random.Random(4)
    async with web_process("noroshi", servers) as web, AsyncExitStack() as stack:
        url = f"http://127.0.0.1:{web.port}"
        poster, *searchers = [
            await stack.enter_async_context(client(url, servers.token(each))) for each in ("owner", *SEARCHERS)
        ]
        for kind, query in corpus.queries(rng).items():
            await send_at_rate(searchers, 10, 3, SEARCH, lambda query=query: {"words": query()})
            searches, posted = await asyncio.gather(
                send_at_rate(searchers, rate, seconds, SEARCH, lambda query=query: {"words": query()}),
                send_at_rate(
                    [poster],
                    posts,
                    seconds,
                    POST,
                    lambda: {"input": {"topicId": rng.choice(corpus.topics)[0], "text": corpus.text(rng)}},
                ),
            )
            table.add_row(kind, *searches.cells(), *posted.cells())
    return table


@contextmanager
def without_terms() -> Iterator[None]:
    """Makes this process post messages without their terms."""
    put = Batch.put

    def put_others(batch: Batch, collection: str, document: Any) -> None:
        if collection != MESSAGE_TERMS:
            put(batch, collection, document)

    original = changes.message_terms
    Batch.put = put_others  # type: ignore[method-assign]
    changes.message_terms = lambda *_: {}  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        Batch.put = put  # type: ignore[method-assign]
        changes.message_terms = original


async def measure_posts(stores: Stores, corpus: SearchCorpus, rounds: int, seconds: float) -> Table:
    """Returns the table of the time of a post with and without terms, measured alternately."""
    table = Table(title="milliseconds a post, medians of interleaved slices")
    for name in ("writers", "without terms", "with terms", "more"):
        table.add_column(name, justify="right")
    for writers in (1, 10, 50):
        results: dict[bool, list[float]] = {False: [], True: []}
        for number in range(2 * rounds):
            is_indexed = number % 2 == (number // 2) % 2
            if is_indexed:
                results[True].append(await _post_for(stores, corpus, writers, seconds))
            else:
                with without_terms():
                    results[False].append(await _post_for(stores, corpus, writers, seconds))
        without, with_terms = (statistics.median(results[each]) for each in (False, True))
        change = f"{100 * with_terms / without - 100:+.0f} %"
        table.add_row(str(writers), f"{without:.2f}", f"{with_terms:.2f}", change)
    return table


async def _post_for(stores: Stores, corpus: SearchCorpus, writers: int, seconds: float) -> float:
    """Posts to one topic with a number of writers. Returns the mean time of a post in milliseconds, by throughput."""
    rng, count = random.Random(5), 0
    topic, community = corpus.topics[0]
    began = time.perf_counter()

    async def write() -> None:
        nonlocal count
        while time.perf_counter() < began + seconds:
            await stores.messages.post(NewMessage(topic, community, "owner", corpus.text(rng), None, ()))
            count += 1

    await asyncio.gather(*(write() for _ in range(writers)))
    return (time.perf_counter() - began) * 1000 / count


async def measure_tantivy(stores: Stores, corpus: SearchCorpus, searches: int) -> Table:
    """Returns the table of tantivy on the same terms, in this process: single searches, and commits of one message."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="position")
    builder.add_text_field("place", tokenizer_name="raw")
    builder.add_unsigned_field("ts", fast=True, stored=True)
    table = Table(title="tantivy, one search at a time, without rights and texts")
    for name in ("query", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        index = tantivy.Index(builder.build(), folder)
        writer = index.writer(256_000_000, 1)
        began = time.perf_counter()
        async for entry in stores.mongo[MESSAGE_TERMS].find({}, batch_size=10_000, max_time_ms=600_000):
            text = " ".join(entry["terms"])
            writer.add_document(_document(text, entry["place"], entry["_id"]["ts"]))
        writer.commit()
        console.print(f"tantivy indexed in {time.perf_counter() - began:.0f} s")
        index.reload()
        rng = random.Random(4)
        places = sorted({community for _, community in corpus.topics})[:JOINED]
        any_place = tantivy.Query.term_set_query(index.schema, "place", places)
        for kind, query in corpus.queries(rng).items():
            times = []
            for _ in range(searches):
                must = [
                    tantivy.Query.term_query(index.schema, "terms", term) for term in terms(query()) if len(term) > 1
                ]
                began = time.perf_counter()
                combined = tantivy.Query.boolean_query([(tantivy.Occur.Must, each) for each in [*must, any_place]])
                index.searcher().search(combined, 21, order_by_field="ts")
                times.append((time.perf_counter() - began) * 1000)
            times.sort()
            table.add_row(kind, f"{times[len(times) // 2]:.2f}", f"{times[int(len(times) * 0.99)]:.2f}")
        times = []
        for number in range(30):
            began = time.perf_counter()
            writer.add_document(_document("one more message", places[0], number))
            writer.commit()
            index.reload()
            times.append((time.perf_counter() - began) * 1000)
        table.add_row("commit of one message", f"{statistics.median(times):.2f}", f"{max(times):.2f}")
    return table


def _document(text: str, place: str, timestamp: int) -> Any:
    """Returns a document of tantivy."""
    import tantivy

    document = tantivy.Document(terms=text, place=place)
    document.add_unsigned("ts", timestamp)
    return document


@app.command()
def main(
    messages: Annotated[int, typer.Option(min=1000, help="Number of messages.")] = 1_000_000,
    rate: Annotated[float, typer.Option(min=1, help="Searches a second.")] = 50,
    posts: Annotated[float, typer.Option(min=1, help="Posts a second beside the searches.")] = 20,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds of each kind of search.")] = 30,
    rounds: Annotated[int, typer.Option(min=1, help="Slices of 2 s with and without terms.")] = 6,
) -> None:
    """Prints the tables."""

    async def run() -> None:
        async with (
            database_servers("pymongo") as servers,
            open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as stores,
        ):
            cache = {"setParameter": 1, "wiredTigerEngineRuntimeConfig": f"cache_size={CACHE_MIB}M"}
            await stores.mongo.client.admin.command(cache)
            corpus = await fill(servers, stores, messages)
            stats = await stores.mongo.database.command("collStats", MESSAGE_TERMS, scale=2**20)
            sizes = {name: stats[name] for name in ("count", "size", "storageSize", "totalIndexSize")}
            console.print(f"{MESSAGE_TERMS} in MiB: {sizes}")
            console.print(await measure_searches(servers, corpus, rate, posts, seconds))
            console.print(await measure_posts(stores, corpus, rounds, 2.0))
            if find_spec("tantivy") is not None:
                console.print(await measure_tantivy(stores, corpus, 300))

    asyncio.run(run())


if __name__ == "__main__":
    app()
