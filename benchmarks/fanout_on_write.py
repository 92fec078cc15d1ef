"""Fan-out of a post to the home feeds of its author's followers, by the number of followers.

Also measures the latency of createPost and of a homeFeed page as the numbers of followers and posts grow.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from benchmarks.cpu import wait_for_idle_machine
from benchmarks.servers import ORGANIZATION, RunningDeployment, deployment
from benchmarks.tables import numbers, percentile, print_table
from storage.ids import post_key
from storage.mongo import Document, Mongo, connect
from tests.client import Client, client
from tests.e2e.followers import add_followers
from tests.waiting import until

CREATE = "mutation ($text: String!) { createPost(input: {text: $text}) { id } }"
HOME = '{ homeFeed(latest: "now", limit: 50) { items { id text author { name } } hasOlder } }'
READER = "follower-000000"
FEED_ITEMS = 800
"""Items of the reader's feed: as many as a feed holds, so that its pages are full."""

REQUESTS = 15
POLL_INTERVAL_S = 0.01
FAN_OUT_DEADLINE_S = 300.0
INSERTED_AT_ONCE = 10_000
COLUMNS = ["followers", "posts", "last feed after s", "followers/s", "createPost p50 ms", "homeFeed page p50 ms"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass
class FanOutBenchmark:
    """A running product with its database, and the client of a reader."""

    running: RunningDeployment
    mongo: Mongo
    reader: Client

    async def measure(self, followers: int) -> list[str]:
        """Returns the row of a new author with a number of followers."""
        name = f"author-{followers}"
        async with client(self.running.web_processes.url, self.running.servers.token(name)) as author:
            await author.run("{ viewer { id } }")
            if followers:
                await add_followers(self.mongo, ORGANIZATION, name, followers)
            latencies = await self.measure_latencies(author)
            seconds = await self.time_fan_out(author, followers) if followers else 0
            rate = [f"{seconds:.2f}", f"{followers / seconds:,.0f}"] if followers else ["", ""]
        return [f"{followers:,}", f"{await self.mongo['posts'].estimated_document_count():,}", *rate, *latencies]

    async def measure_latencies(self, author: Client) -> list[str]:
        """Returns the median latencies of createPost and of a page of the home feed, in ms."""
        create_ms = await measure_latency_ms(author, CREATE, text="Pass it on.")
        await until(self._has_no_open_fan_out, FAN_OUT_DEADLINE_S, POLL_INTERVAL_S)
        return [f"{create_ms:.1f}", f"{await measure_latency_ms(self.reader, HOME):.1f}"]

    async def time_fan_out(self, author: Client, followers: int) -> float:
        """Returns the seconds from the call of the mutation until the fan-out to all followers is completed."""
        began_at = time.perf_counter()
        posted = await author.run(CREATE, text="The beacon is lit.")
        key = post_key(ORGANIZATION, posted["createPost"]["id"])

        async def is_completed() -> bool:
            fan_out = await self.mongo["fan_outs"].find_one({"_id": key.document_id}, {"state": 1, "delivered": 1})
            return fan_out is not None and fan_out["state"] == "COMPLETED" and fan_out["delivered"] == followers

        await until(is_completed, FAN_OUT_DEADLINE_S, POLL_INTERVAL_S)
        return time.perf_counter() - began_at

    async def _has_no_open_fan_out(self) -> bool:
        return await self.mongo["fan_outs"].find_one({"open": True}) is None


async def measure_latency_ms(client: Client, operation: str, **variables: Any) -> float:
    """Sends a request repeatedly, one after the other. Returns the median latency."""
    latencies_ms = []
    for _ in range(REQUESTS):
        began_at = time.perf_counter()
        await client.run(operation, **variables)
        latencies_ms.append((time.perf_counter() - began_at) * 1000)
    return percentile(latencies_ms, 50)


async def measure(running: RunningDeployment, sizes: Sequence[int], others: int) -> list[list[str]]:
    """Returns a row for each number of followers, and one after `others` posts of other authors were inserted."""
    servers, url = running.servers, running.web_processes.url
    mongo = connect(servers.mongodb_uri, servers.database)
    async with client(url, servers.token(READER)) as reader:
        await reader.run("{ viewer { id } }")
        await fill_feed(mongo)
        benchmark = FanOutBenchmark(running, mongo, reader)
        rows = [await benchmark.measure(size) for size in [0, *sizes]]
        await insert_posts_of_others(mongo, others)
        async with client(url, servers.token("author-0")) as author:
            latencies = await benchmark.measure_latencies(author)
        rows.append(["0", f"{await mongo['posts'].estimated_document_count():,}", "", "", *latencies])
    await mongo.close()
    return rows


async def fill_feed(mongo: Mongo) -> None:
    """Fills the reader's feed with posts of a followed author."""
    first_timestamp = time.time_ns() // 1000 - 10**9
    follow = {"org": ORGANIZATION, "follower": READER, "followee": "author-0"}
    await mongo["follows"].insert_one({"_id": {"o": ORGANIZATION, "f": READER, "e": "author-0"}, **follow})
    timestamps = range(first_timestamp, first_timestamp + FEED_ITEMS)
    await mongo["posts"].insert_many([_post(timestamp, "author-0") for timestamp in timestamps])
    items = [{"_id": {"o": ORGANIZATION, "u": READER, "ts": ts}, "author": "author-0"} for ts in timestamps]
    await mongo["feed_items"].insert_many(items)


async def insert_posts_of_others(mongo: Mongo, count: int) -> None:
    """Inserts posts of authors whom the reader does not follow."""
    first = time.time_ns() // 1000 - count
    for start in range(0, count, INSERTED_AT_ONCE):
        new = range(start, min(start + INSERTED_AT_ONCE, count))
        await mongo["posts"].insert_many([_post(first + n, f"other-{n % 100}") for n in new], ordered=False)


def _post(timestamp: int, author: str) -> Document:
    return {"_id": {"o": ORGANIZATION, "ts": timestamp}, "author": author, "text": "Old.", "merged": False}


@app.command()
def main(
    followers: Annotated[str, typer.Option(help="Numbers of followers, separated by commas.")] = "1000,10000,50000",
    others: Annotated[int, typer.Option(help="Posts of other authors that are inserted in the end.")] = 100_000,
    idle_timeout_s: Annotated[float, typer.Option("--idle-timeout", help="Seconds to wait for an idle machine.")] = 60,
) -> None:
    """Measures fan-out and prints a table. Needs an otherwise idle machine."""
    sizes = numbers(followers)
    asyncio.run(wait_for_idle_machine(idle_timeout_s))
    with deployment(1, NOROSHI_FAN_OUT_MAX_FOLLOWERS=str(10 * max(sizes))) as running:
        rows = asyncio.run(measure(running, sizes, others))
    print_table("One post to the home feeds of its author's followers", COLUMNS, rows)


if __name__ == "__main__":
    app()
