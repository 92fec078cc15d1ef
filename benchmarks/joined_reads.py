"""Two levels of a screen's query: two finds one after the other, compared with one aggregate that joins the levels.

Both ways read the data of `benchmarks.screens`, must find the same documents, and are measured in interleaved slices.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import chain
from typing import Annotated, Any

import typer

from benchmarks.cpu import cpu_times
from benchmarks.screens import SIZES
from benchmarks.servers import ORGANIZATION, SERVER_CORE, database_servers, pin_to_core
from benchmarks.tables import percentile, print_table
from storage.chat.topics import TOPIC_FIELDS
from storage.mongo import Document, Mongo
from storage.stores import open_stores
from storage.timeline import MAX_TIMESTAMP
from tests.databases import CREDENTIAL_KEYS
from tests.resolvers.people import SignIn
from tests.screens.data import VIEWER, fill_screens

MEMBERSHIPS = {"org": ORGANIZATION, "user": VIEWER}
OWNER = {"o": ORGANIZATION, "u": VIEWER}
ITEMS = {"_id": {"$gte": {**OWNER, "ts": 0}, "$lte": {**OWNER, "ts": MAX_TIMESTAMP}}}
PAGE_SIZE = 41
COLUMNS = ["levels", "way", "p50 ms", "client CPU ms", "mongod CPU ms"]
Read = Callable[[Mongo], Awaitable[set[Any]]]
Slice = tuple[list[float], float, float]
"""Latencies, processor time of this process and processor time of mongod, in seconds."""


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def topics_by_finds(mongo: Mongo) -> set[Any]:
    """Reads the memberships, and then the topics of their communities."""
    rows = await mongo.find("memberships", MEMBERSHIPS, {"_id": 0, "community": 1})
    query = {"community": {"$in": [row["community"] for row in rows]}}
    return {topic["_id"] for topic in await mongo.find("topics", query, TOPIC_FIELDS)}


async def topics_by_join(mongo: Mongo) -> set[Any]:
    """Reads the memberships with the topics of their communities."""
    topics = {"localField": "community", "foreignField": "community", "pipeline": [{"$project": TOPIC_FIELDS}]}
    joined: list[Document] = [{"$lookup": {"from": "topics", "as": "topics", **topics}}, {"$project": {"topics": 1}}]
    rows = await mongo.aggregate("memberships", [{"$match": MEMBERSHIPS}, *joined])
    return {topic["_id"] for row in rows for topic in row["topics"]}


async def posts_by_finds(mongo: Mongo) -> set[Any]:
    """Reads the items of the home feed, and then their posts."""
    items = await mongo.find("feed_items", ITEMS, {"author": 1}, [("_id", -1)], PAGE_SIZE)
    ids = [{"o": ORGANIZATION, "ts": item["_id"]["ts"]} for item in items]
    return {post["_id"]["ts"] for post in await mongo.find("posts", {"_id": {"$in": ids}})}


async def posts_by_join(mongo: Mongo) -> set[Any]:
    """Reads the items of the home feed with their posts."""
    post = {"from": "posts", "localField": "post", "foreignField": "_id", "as": "posts"}
    newest: list[Document] = [{"$match": ITEMS}, {"$sort": {"_id": -1}}, {"$limit": PAGE_SIZE}]
    joined: list[Document] = [{"$set": {"post": {"o": "$_id.o", "ts": "$_id.ts"}}}, {"$lookup": post}]
    rows = await mongo.aggregate("feed_items", [*newest, *joined])
    return {each["_id"]["ts"] for row in rows for each in row["posts"]}


READS: dict[str, dict[str, Read]] = {
    "memberships, topics": {"two finds": topics_by_finds, "one aggregate": topics_by_join},
    "feed items, posts": {"two finds": posts_by_finds, "one aggregate": posts_by_join},
}


async def measure(rounds: int, queries: int) -> list[list[str]]:
    """Returns the rows of the table. Raises: AssertionError if the two ways find different documents."""
    slices = defaultdict[tuple[str, str], list[Slice]](list)
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(database_servers())
        pin_to_core(SERVER_CORE)
        opened = open_stores(servers.mongodb_uri, servers.redis_url, servers.database, credential_keys=CREDENTIAL_KEYS)
        stores = await stack.enter_async_context(opened)
        await fill_screens(SignIn(stores), SIZES, ORGANIZATION)
        for number in range(rounds):
            for levels, ways in READS.items():
                by_finds, by_join = [await read(stores.mongo) for read in ways.values()]
                assert by_finds == by_join != set(), levels
                for way in reversed(ways) if number % 2 else ways:
                    measured = await _measure_slice(stores.mongo, ways[way], servers.mongod_pid, queries)
                    slices[levels, way].append(measured)
    return [[*key, *_cells(each)] for key, each in sorted(slices.items())]


async def _measure_slice(mongo: Mongo, read: Read, mongod_pid: int, queries: int) -> Slice:
    mongod_s, client_s, latencies_s = _mongod_s(mongod_pid), time.process_time(), []
    for _ in range(queries):
        began_s = time.perf_counter()
        await read(mongo)
        latencies_s.append(time.perf_counter() - began_s)
    return latencies_s, time.process_time() - client_s, _mongod_s(mongod_pid) - mongod_s


def _mongod_s(pid: int) -> float:
    return cpu_times([pid]).processes_s[str(pid)]


def _cells(slices: list[Slice]) -> list[str]:
    latencies, client, mongod = zip(*slices, strict=True)
    each_s = list(chain.from_iterable(latencies))
    return [f"{1000 * s:.2f}" for s in (percentile(each_s, 50), sum(client) / len(each_s), sum(mongod) / len(each_s))]


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Slices of each way.")] = 8,
    queries: Annotated[int, typer.Option(min=1, help="Queries of a slice.")] = 300,
) -> None:
    """Measures the two ways, and prints a table."""
    print_table(f"{rounds} x {queries} queries one after the other", COLUMNS, asyncio.run(measure(rounds, queries)))


if __name__ == "__main__":
    app()
