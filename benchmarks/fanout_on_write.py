"""Fan-out on write: the product's chunks, compared with one arq job for each follower. A job inserts the same item.

Also measures the latency of createPost and of a homeFeed page as the numbers of followers and posts grow.
"""

import asyncio
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import wait_for_idle_machine
from benchmarks.one_job_each import DEFAULTS, ENQUEUED_AT_ONCE, ITEMS_COLLECTION, TUNED, connect_queue
from benchmarks.servers import ORGANIZATION, RunningDeployment, deployment
from storage.ids import post_key
from storage.mongo import Mongo, connect
from tests.client import Client, client
from tests.e2e.followers import add_followers
from tests.waiting import until

CHUNKS = "chunks of 500"
CREATE = "mutation ($text: String!) { createPost(input: {text: $text}) { id } }"
HOME = '{ homeFeed(latest: "now", limit: 50) { items { id text author { name } } hasOlder } }'
POLL_INTERVAL_S = 0.01
FAN_OUT_DEADLINE_S = 300.0
PAUSE_S = 5.0
"""Pause after inserting many posts, before latency is measured."""

WORKER_START_S = 1.5

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class FanOutTiming:
    """Duration of one variant's fan-out to a number of followers."""

    variant: str
    followers: int
    seconds: float

    @property
    def rate(self) -> float:
        """Number of followers reached in a second."""
        return self.followers / self.seconds


@dataclass
class FanOutBenchmark:
    """A running product with its database, and the clients of an author and of a reader."""

    deployment: RunningDeployment
    mongo: Mongo
    author: Client
    reader: Client

    async def time_chunks(self, followers: int) -> FanOutTiming:
        """Times the product, from the call of the mutation until the fan-out is completed."""
        began_at = time.perf_counter()
        posted = await self.author.run(CREATE, text="The beacon is lit.")
        key = post_key(ORGANIZATION, posted["createPost"]["id"])

        async def is_completed() -> bool:
            fan_out = await self.mongo["fan_outs"].find_one({"_id": key.document_id}, {"state": 1, "delivered": 1})
            return fan_out is not None and fan_out["state"] == "COMPLETED" and fan_out["delivered"] == followers

        await until(is_completed, FAN_OUT_DEADLINE_S, POLL_INTERVAL_S)
        return FanOutTiming(CHUNKS, followers, time.perf_counter() - began_at)

    async def time_jobs(self, variant: str, followers: Sequence[str]) -> FanOutTiming:
        """Times one job for each follower, from the first enqueue until the last feed has the post."""
        timestamp = time.time_ns() // 1000
        redis = await connect_queue(self.redis_url, variant)
        before = await self.mongo[ITEMS_COLLECTION].estimated_document_count()
        began_at = time.perf_counter()
        for start in range(0, len(followers), ENQUEUED_AT_ONCE):
            chunk = followers[start : start + ENQUEUED_AT_ONCE]
            await asyncio.gather(
                *(redis.enqueue_job("insert", ORGANIZATION, timestamp, follower) for follower in chunk)
            )

        async def is_completed() -> bool:
            return await self.mongo[ITEMS_COLLECTION].estimated_document_count() >= before + len(followers)

        await until(is_completed, FAN_OUT_DEADLINE_S, POLL_INTERVAL_S)
        seconds = time.perf_counter() - began_at
        await redis.aclose()
        return FanOutTiming(variant, len(followers), seconds)

    async def measure_latency_ms(self, client: Client, operation: str, times: int = 15, **variables: Any) -> float:
        """Sends a request `times` times, one after the other. Returns the median latency."""
        latencies_ms = []
        for _ in range(times):
            began_at = time.perf_counter()
            await client.run(operation, **variables)
            latencies_ms.append((time.perf_counter() - began_at) * 1000)
        return sorted(latencies_ms)[math.ceil(times / 2) - 1]

    async def wait_for_fan_outs(self) -> None:
        """Waits until no fan-out is open."""

        async def has_no_open_fan_out() -> bool:
            return await self.mongo["fan_outs"].find_one({"open": True}) is None

        await until(has_no_open_fan_out, FAN_OUT_DEADLINE_S, POLL_INTERVAL_S)

    @property
    def redis_url(self) -> str:
        return self.deployment.environment()["REDIS_URL"]


@contextmanager
def arq_worker(deployment: RunningDeployment, variant: str) -> Iterator[None]:
    """Runs one arq worker process of a variant on the product's servers."""
    variables = deployment.environment()
    servers = [variables["MONGODB_URI"], variables["REDIS_URL"], "noroshi", deployment.driver, variant]
    command = [sys.executable, "-m", "benchmarks.one_job_each", *servers]
    process = subprocess.Popen(command, env=variables, cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


async def measure(deployment: RunningDeployment, sizes: Sequence[int], max_jobs: int, console: Console) -> None:
    """Prints a table of timings for each number of followers, and a table of latencies as the data grow."""
    url, mongo = deployment.product.url, connect(deployment.environment()["MONGODB_URI"], "noroshi", "pymongo")
    latencies = Table(
        "followers", "posts", "createPost p50 ms", "homeFeed page p50 ms", title="One request as the data grow"
    )
    reader_token = deployment.token("follower-000000")
    async with client(url, reader_token) as reader:
        await reader.run("{ viewer { id } }")
        await fill_feed(mongo, "follower-000000")
        for size in [0, *sizes]:
            name = f"author-{size}"
            async with client(url, deployment.token(name)) as author:
                await author.run("{ viewer { id } }")
                benchmark = FanOutBenchmark(deployment, mongo, author, reader)
                followers = await add_followers(mongo, ORGANIZATION, name, size) if size else []
                create_ms = await benchmark.measure_latency_ms(author, CREATE, 3, text="Pass it on.")
                await benchmark.wait_for_fan_outs()
                posts = await mongo["posts"].estimated_document_count()
                home_ms = await benchmark.measure_latency_ms(reader, HOME)
                latencies.add_row(f"{size:,}", f"{posts:,}", f"{create_ms:.1f}", f"{home_ms:.1f}")
                if size:
                    print_timings(await time_variants(benchmark, followers, max_jobs), console)
    await insert_posts_of_others(mongo)
    await asyncio.sleep(PAUSE_S)
    async with client(url, deployment.token("author-0")) as author, client(url, reader_token) as reader:
        benchmark = FanOutBenchmark(deployment, mongo, author, reader)
        create_ms = await benchmark.measure_latency_ms(author, CREATE, 15, text="Pass it on.")
        home_ms = await benchmark.measure_latency_ms(reader, HOME)
        posts = await mongo["posts"].estimated_document_count()
        latencies.add_row(f"{sizes[-1]:,}", f"{posts:,}", f"{create_ms:.1f}", f"{home_ms:.1f}")
    console.print(latencies)
    await mongo.close()


async def time_variants(benchmark: FanOutBenchmark, followers: Sequence[str], max_jobs: int) -> list[FanOutTiming]:
    """Times the three variants one after the other. arq gets at most `max_jobs` of the followers."""
    timings = [await benchmark.time_chunks(len(followers))]
    for variant in (TUNED, DEFAULTS):
        with arq_worker(benchmark.deployment, variant):
            await asyncio.sleep(WORKER_START_S)
            timings.append(await benchmark.time_jobs(variant, followers[:max_jobs]))
    return timings


async def fill_feed(mongo: Mongo, reader: str, count: int = 800) -> None:
    """Fills a reader's feed with posts of a followed author up to the feed's limit, so that its pages are full."""
    first_timestamp = time.time_ns() // 1000 - 10**9
    follow = {"org": ORGANIZATION, "follower": reader, "followee": "author-0"}
    await mongo["follows"].insert_one({"_id": {"o": ORGANIZATION, "f": reader, "e": "author-0"}, **follow})
    timestamps = range(first_timestamp, first_timestamp + count)
    posts = [
        {"_id": {"o": ORGANIZATION, "ts": ts}, "author": "author-0", "text": "Old.", "merged": False}
        for ts in timestamps
    ]
    await mongo["posts"].insert_many(posts)
    items = [{"_id": {"o": ORGANIZATION, "u": reader, "ts": ts}, "author": "author-0"} for ts in timestamps]
    await mongo["feed_items"].insert_many(items)


async def insert_posts_of_others(mongo: Mongo, count: int = 100_000) -> None:
    """Inserts posts of authors whom the reader does not follow."""
    first_timestamp = time.time_ns() // 1000 - count
    for start in range(0, count, 10_000):
        posts = [
            {
                "_id": {"o": ORGANIZATION, "ts": first_timestamp + n},
                "author": f"other-{n % 100}",
                "text": "Old.",
                "merged": False,
            }
            for n in range(start, start + 10_000)
        ]
        await mongo["posts"].insert_many(posts, ordered=False)


def print_timings(rows: Sequence[FanOutTiming], console: Console) -> None:
    """Prints a table of the three variants for one number of followers."""
    table = Table("variant", "followers", "last feed after s", "followers/s", "chunks are faster by")
    for row in rows:
        factor = "" if row.variant == CHUNKS else f"{rows[0].rate / row.rate:.1f}x"
        table.add_row(row.variant, f"{row.followers:,}", f"{row.seconds:.2f}", f"{row.rate:,.0f}", factor)
    console.print(table)


@app.command()
def main(
    followers: Annotated[list[int], typer.Option(help="Numbers of followers.")] = [1_000, 10_000, 50_000],  # noqa: B006
    max_jobs: Annotated[int, typer.Option(help="Maximum number of arq jobs; compare their rates.")] = 10_000,
    driver: Annotated[str, typer.Option(help="motor or pymongo, for all variants.")] = "pymongo",
) -> None:
    """Measures fan-out and prints tables. Needs an otherwise idle machine."""
    console = Console(width=110)
    asyncio.run(wait_for_idle_machine(60))
    with deployment(1, driver, NOROSHI_FAN_OUT_MAX_FOLLOWERS=str(10 * max(followers))) as running:
        asyncio.run(measure(running, followers, max_jobs, console))


if __name__ == "__main__":
    app()
