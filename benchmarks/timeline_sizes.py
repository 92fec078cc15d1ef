"""Cost of a timeline page as pages, topics and the number of open sockets grow: one web process, alone on its core."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from benchmarks.servers import WebProcesses, database_servers, web_process
from benchmarks.tables import numbers, percentile, print_table
from benchmarks.timeline import CONNECTIONS, run_load
from benchmarks.timeline_data import PAGE_SIZE, TimelineData, timeline_data
from benchmarks.timeline_load import TimelineLoadSpec
from storage.timeline import format_timestamp
from tests.client import client

REQUESTS = 2000
SUBSCRIBE = "subscription($topicId: ID!) { topicEvents(topicId: $topicId) { ... on Event { cursor } } }"
CONNECTING_AT_ONCE = 20
COLUMNS = ["what grows", "pages/s", "p50 ms", "p99 ms", "web CPU ms a page", "others %"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class SizeBenchmark:
    """The measured web process, its data, and the durations of a measurement."""

    web: WebProcesses
    data: TimelineData
    seconds: float
    warm_up_s: float

    async def measure(self, name: str, limit: int = PAGE_SIZE) -> list[str]:
        """Returns the row of random pages of `limit` messages: pages a second, latencies and processor time."""
        rng, data = random.Random(limit), self.data
        pages = [(rng.choice(data.topics), rng.choice(data.timestamps[limit:])) for _ in range(REQUESTS)]
        requests = [data.request(topic, format_timestamp(latest), limit) for topic, latest in pages]
        durations = self.warm_up_s, self.seconds
        report = await run_load(
            TimelineLoadSpec(self.web.port, requests, CONNECTIONS, limit, *durations, [self.web.pid])
        )
        assert not report.errors, report.errors
        rate = len(report.latencies_ms) / self.seconds
        latencies = [f"{percentile(report.latencies_ms, percent):,.0f}" for percent in (50, 99)]
        cpu_ms = 10 * report.cpu_percent[str(self.web.pid)] / max(rate, 1 / self.seconds)
        row = [name, f"{rate:,.0f}", *latencies, f"{cpu_ms:.2f}", f"{report.cpu_percent['others']:.0f}"]
        typer.echo(" | ".join(row), err=True)
        return row

    @asynccontextmanager
    async def open_sockets(self, count: int) -> AsyncIterator[None]:
        """Keeps `count` subscriptions to a topic open during the block."""
        connecting = asyncio.Semaphore(CONNECTING_AT_ONCE)
        async with AsyncExitStack() as stack, client(self.web.url, self.data.tokens[0]) as viewer:

            async def open_socket() -> None:
                async with connecting:
                    socket = await stack.enter_async_context(viewer.socket())
                    await socket.subscribe(SUBSCRIBE, topicId=self.data.topics[0].id)
                    assert (await socket.next_frame())["type"] == "next"

            await asyncio.gather(*(open_socket() for _ in range(count)))
            yield


async def measure(
    pages: Sequence[int], topics: Sequence[int], sockets: Sequence[int], seconds: float, warm_up_s: float
) -> list[list[str]]:
    """Returns a row for each size of pages, of a topic, and for each number of open sockets."""
    async with database_servers() as servers, timeline_data(servers) as data:
        with web_process(servers) as web:
            benchmark = SizeBenchmark(web, replace(data, topics=data.topics[1:]), seconds, warm_up_s)
            # The first measurement warms up the process.
            await benchmark.measure(f"pages of {pages[0]}", pages[0])
            rows = [await benchmark.measure(f"pages of {limit}", limit) for limit in pages]
            for size in topics:
                topic = replace(benchmark, data=await data.create_topic(size))
                rows.append(await topic.measure(f"a topic of {size:,}"))
            for count in sockets:
                async with benchmark.open_sockets(count):
                    rows.append(await benchmark.measure(f"{count:,} open sockets"))
            return rows


@app.command()
def main(
    pages: Annotated[str, typer.Option(help="Messages in a page.")] = "10,50,100,200",
    topics: Annotated[str, typer.Option(help="Messages in the topic.")] = "1000,100000",
    sockets: Annotated[str, typer.Option(help="Open sockets.")] = "0,1000",
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of each measurement.")] = 3.0,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each measurement.")] = 1.5,
) -> None:
    """Measures random pages and prints a table. Topics and sockets are measured with pages of 50 messages."""
    rows = asyncio.run(measure(numbers(pages), numbers(topics), numbers(sockets), seconds, warm_up_s))
    print_table(f"Random pages, {CONNECTIONS} connections", COLUMNS, rows)


if __name__ == "__main__":
    app()
