"""Fan-out on write: the product's chunks compared with one arq job for each follower and the same insert.

Also measures one createPost and one homeFeed page as followers and posts grow.
"""

import asyncio
import math
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import idle_machine
from benchmarks.one_job_each import AT_ONCE, DEFAULTS, ITEMS, TUNED, pool
from benchmarks.servers import ORGANIZATION, Bench, bench
from storage.ids import post_key
from storage.mongo import Mongo, connect
from tests.client import Client, client
from tests.e2e.followers import add_followers

CHUNKS = "chunks of 500"
CREATE = "mutation ($text: String!) { createPost(input: {text: $text}) { id } }"
HOME = '{ homeFeed(latest: "now", limit: 50) { items { id text author { name } } hasOlder } }'
POLL_S = 0.01
SETTLE_S = 5.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Row:
    """One way's fan-out to so many followers."""

    way: str
    followers: int
    seconds: float

    @property
    def rate(self) -> float:
        """Followers reached a second."""
        return self.followers / self.seconds


@dataclass
class Ground:
    """A product, its database, and an author whose followers grow."""

    bench: Bench
    mongo: Mongo
    author: Client
    reader: Client

    async def grow(self, author: str, count: int) -> list[str]:
        """A new author's followers."""
        return await add_followers(self.mongo, ORGANIZATION, author, count)

    async def chunks(self, followers: int) -> Row:
        """The product's own: from the mutation's call until nobody is left."""
        began_at = time.perf_counter()
        posted = await self.author.run(CREATE, text="The beacon is lit.")
        key = post_key(ORGANIZATION, posted["createPost"]["id"])

        async def done() -> bool:
            row = await self.mongo["fan_outs"].find_one({"_id": key.document_id}, {"state": 1, "delivered": 1})
            return row is not None and row["state"] == "COMPLETED" and row["delivered"] == followers

        await until(done)
        return Row(CHUNKS, followers, time.perf_counter() - began_at)

    async def one_job_each(self, way: str, names: Sequence[str]) -> Row:
        """One job for each follower: from the first enqueue until the last feed has it."""
        timestamp = time.time_ns() // 1000
        redis = await pool(self.redis_url, way)
        before = await self.mongo[ITEMS].estimated_document_count()
        began_at = time.perf_counter()
        for start in range(0, len(names), AT_ONCE):
            jobs = (
                redis.enqueue_job("insert", ORGANIZATION, timestamp, name) for name in names[start : start + AT_ONCE]
            )
            await asyncio.gather(*jobs)

        async def done() -> bool:
            return await self.mongo[ITEMS].estimated_document_count() >= before + len(names)

        await until(done)
        seconds = time.perf_counter() - began_at
        await redis.aclose()
        return Row(way, len(names), seconds)

    async def latency_ms(self, who: Client, operation: str, times: int = 15, **variables: Any) -> float:
        """The median of one request after the other."""
        found = []
        for _ in range(times):
            began_at = time.perf_counter()
            await who.run(operation, **variables)
            found.append((time.perf_counter() - began_at) * 1000)
        return sorted(found)[math.ceil(times / 2) - 1]

    async def quiet(self) -> None:
        """Until no fan-out is open."""

        async def done() -> bool:
            return await self.mongo["fan_outs"].find_one({"open": True}) is None

        await until(done)

    @property
    def redis_url(self) -> str:
        return self.bench.environment()["REDIS_URL"]


async def until(done: Callable[[], Awaitable[bool]], deadline_s: float = 300.0) -> None:
    """Polls. Raises: TimeoutError."""
    async with asyncio.timeout(deadline_s):
        while not await done():
            await asyncio.sleep(POLL_S)


@contextmanager
def arq_worker(bench: Bench, way: str) -> Iterator[None]:
    """One worker process of the ordinary way on the product's servers."""
    variables = bench.environment()
    servers = [variables["MONGODB_URI"], variables["REDIS_URL"], "noroshi", bench.driver, way]
    command = [sys.executable, "-m", "benchmarks.one_job_each", *servers]
    process = subprocess.Popen(command, env=variables, cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


async def measure(bench: Bench, sizes: Sequence[int], most_jobs: int, console: Console) -> None:
    """All rows, and the latencies as everything grows."""
    mongo = connect(bench.environment()["MONGODB_URI"], "noroshi", "pymongo")
    rows: list[Row] = []
    flat = Table("followers", "posts", "createPost p50 ms", "homeFeed page p50 ms", title="One request as things grow")
    reader_token = bench.token("follower-000000")
    async with client(bench.product.url, reader_token) as reader:
        await reader.run("{ viewer { id } }")
        await fill_feed(mongo, "follower-000000")
        for size in [0, *sizes]:
            name = f"author-{size}"
            async with client(bench.product.url, bench.token(name)) as author:
                await author.run("{ viewer { id } }")
                ground = Ground(bench, mongo, author, reader)
                names = await ground.grow(name, size) if size else []
                create_ms = await ground.latency_ms(author, CREATE, 3, text="Pass it on.")
                await ground.quiet()
                posts = await mongo["posts"].estimated_document_count()
                home_ms = await ground.latency_ms(reader, HOME)
                flat.add_row(f"{size:,}", f"{posts:,}", f"{create_ms:.1f}", f"{home_ms:.1f}")
                if size:
                    rows += await compared(ground, names, most_jobs)
                    show(rows[-3:], console)
    await grown(mongo)
    await asyncio.sleep(SETTLE_S)
    async with (
        client(bench.product.url, bench.token("author-0")) as author,
        client(bench.product.url, reader_token) as who,
    ):
        ground = Ground(bench, mongo, author, who)
        create_ms = await ground.latency_ms(author, CREATE, 15, text="Pass it on.")
        home_ms = await ground.latency_ms(who, HOME)
        posts = await mongo["posts"].estimated_document_count()
        flat.add_row(f"{sizes[-1]:,}", f"{posts:,}", f"{create_ms:.1f}", f"{home_ms:.1f}")
    console.print(flat)
    await mongo.close()


async def compared(ground: Ground, names: Sequence[str], most_jobs: int) -> list[Row]:
    """The three ways, one after the other, to the same followers."""
    rows = [await ground.chunks(len(names))]
    for way in (TUNED, DEFAULTS):
        with arq_worker(ground.bench, way):
            await asyncio.sleep(1.5)  # it has started and reads its queue
            rows.append(await ground.one_job_each(way, names[:most_jobs]))
    return rows


async def fill_feed(mongo: Mongo, reader: str, count: int = 800) -> None:
    """As many posts of somebody whom the reader follows as a feed keeps, so that its pages are full from the start."""
    low = time.time_ns() // 1000 - 10**9
    follow = {"org": ORGANIZATION, "follower": reader, "followee": "author-0"}
    await mongo["follows"].insert_one({"_id": {"o": ORGANIZATION, "f": reader, "e": "author-0"}, **follow})
    stamps = range(low, low + count)
    posts = [
        {"_id": {"o": ORGANIZATION, "ts": ts}, "author": "author-0", "text": "Old.", "merged": False} for ts in stamps
    ]
    await mongo["posts"].insert_many(posts)
    items = [{"_id": {"o": ORGANIZATION, "u": reader, "ts": ts}, "author": "author-0"} for ts in stamps]
    await mongo["feed_items"].insert_many(items)


async def grown(mongo: Mongo, count: int = 100_000) -> None:
    """Many more posts of others."""
    low = time.time_ns() // 1000 - count
    for start in range(0, count, 10_000):
        posts = [
            {"_id": {"o": ORGANIZATION, "ts": low + n}, "author": f"other-{n % 100}", "text": "Old.", "merged": False}
            for n in range(start, start + 10_000)
        ]
        await mongo["posts"].insert_many(posts, ordered=False)


def show(rows: Sequence[Row], console: Console) -> None:
    """A table of the three ways for one number of followers."""
    table = Table("way", "followers", "last feed after s", "followers/s", "ours is faster by")
    for row in rows:
        factor = "" if row.way == CHUNKS else f"{rows[0].rate / row.rate:.1f}x"
        table.add_row(row.way, f"{row.followers:,}", f"{row.seconds:.2f}", f"{row.rate:,.0f}", factor)
    console.print(table)


@app.command()
def main(
    followers: Annotated[list[int], typer.Option(help="Numbers of followers.")] = [1_000, 10_000, 50_000],  # noqa: B006
    most_jobs: Annotated[
        int, typer.Option(help="At most so many jobs of the ordinary ways; the rate is theirs.")
    ] = 10_000,
    driver: Annotated[str, typer.Option(help="motor or pymongo, for all.")] = "pymongo",
) -> None:
    """Measures. Needs a machine that does nothing else."""
    console = Console(width=110)
    asyncio.run(idle_machine(60))
    with bench(1, driver, NOROSHI_FAN_OUT_MAX_FOLLOWERS=str(10 * max(followers))) as running:
        asyncio.run(measure(running, followers, most_jobs, console))


if __name__ == "__main__":
    app()
