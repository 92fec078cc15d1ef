"""Cost of a timeline page as pages, topics and the number of open sockets grow: one web process, alone on its core."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.fanout_targets import OTHER_PROCESSES_CORE, DatabaseServers, database_servers, pin_to_core
from benchmarks.timeline import CONNECTIONS, WARM_UP_S, TimelineWebProcess, percentile, run_load, web_process
from benchmarks.timeline_data import PAGE_SIZE, TimelineData, timeline_data
from benchmarks.timeline_load import TimelineLoadSpec
from storage.timeline import format_timestamp

REQUESTS = 2000
SUBSCRIBE = "subscription($topicId: ID!) { topicEvents(topicId: $topicId) { ... on Event { cursor } } }"
CONNECTING_AT_ONCE = 20
Cells = tuple[str, ...]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


async def _measure_pages(web: TimelineWebProcess, data: TimelineData, limit: int, seconds: float) -> list[str]:
    """Returns pages a second, latencies and processor time of random pages of the topics."""
    rng = random.Random(limit)
    pages = [(rng.choice(data.topics), rng.choice(data.timestamps[limit:])) for _ in range(REQUESTS)]
    requests = [data.request(topic, format_timestamp(latest), limit) for topic, latest in pages]
    report = await run_load(TimelineLoadSpec(web.port, requests, CONNECTIONS, limit, WARM_UP_S, seconds, [web.pid]))
    count, latencies = max(len(report.latencies_ms), 1), sorted(report.latencies_ms)
    assert not report.errors, report.errors
    cpu_ms = 10 * report.cpu_percent[str(web.pid)] * seconds / count
    figures = (
        f"{count / seconds:,.0f}",
        f"{percentile(latencies, 50):,.0f}",
        f"{percentile(latencies, 99):,.0f}",
        f"{cpu_ms:.2f}",
    )
    row = [*figures, f"{report.cpu_percent['others']:.0f}"]
    typer.echo(" | ".join(row), err=True)
    return row


@asynccontextmanager
async def _sockets(web: TimelineWebProcess, data: TimelineData, count: int) -> AsyncIterator[None]:
    """Opens `count` sockets that subscribe to a quiet topic."""
    connecting = asyncio.Semaphore(CONNECTING_AT_ONCE)
    async with AsyncExitStack() as stack:

        async def open_socket() -> None:
            async with connecting:
                url = f"ws://127.0.0.1:{web.port}/graphql"
                socket = await stack.enter_async_context(connect(url, subprotocols=["graphql-transport-ws"]))
                await _subscribe(socket, data)

        await asyncio.gather(*(open_socket() for _ in range(count)))
        yield


async def _subscribe(socket: ClientConnection, data: TimelineData) -> None:
    operation = {"query": SUBSCRIBE, "variables": {"topicId": data.topics[1].id}}
    await socket.send(_to_json({"type": "connection_init", "payload": {"authorization": f"Bearer {data.tokens[0]}"}}))
    await socket.send(_to_json({"type": "subscribe", "id": "1", "payload": operation}))
    types = [orjson.loads(await socket.recv())["type"] for _ in range(2)]
    assert types == ["connection_ack", "next"], types


def _to_json(message: object) -> str:
    return orjson.dumps(message).decode()


async def _rows(pages: Sequence[int], topics: Sequence[int], sockets: Sequence[int], seconds: float) -> list[Cells]:
    async with database_servers("pymongo") as servers, timeline_data(servers) as data:
        return [row async for row in _measure(servers, data, pages, topics, sockets, seconds)]


async def _measure(
    servers: DatabaseServers,
    data: TimelineData,
    pages: Sequence[int],
    topics: Sequence[int],
    sockets: Sequence[int],
    seconds: float,
) -> AsyncIterator[Cells]:
    quiet = replace(data, topics=data.topics[1:])
    async with web_process("Noroshi", servers) as web:
        # The first size is measured twice, since the first measurement warms up the process.
        for limit in [pages[0], *pages]:
            row = await _measure_pages(web, quiet, limit, seconds)
            yield f"pages of {limit}", *row
        for size in topics:
            row = await _measure_pages(web, await data.create_topic(size), PAGE_SIZE, seconds)
            yield f"a topic of {size:,}", *row
        for count in sockets:
            async with _sockets(web, data, count):
                row = await _measure_pages(web, quiet, PAGE_SIZE, seconds)
                yield f"{count:,} open sockets", *row


@app.command()
def main(
    pages: Annotated[str, typer.Option(help="Messages in a page.")] = "10,50,100,200",
    topics: Annotated[str, typer.Option(help="Messages in the topic.")] = "1000,100000",
    sockets: Annotated[str, typer.Option(help="Open sockets.")] = "0,1000",
    seconds: Annotated[float, typer.Option(min=0.5, help="Duration of each measurement.")] = 3.0,
) -> None:
    """Measures random pages and prints a table. Topics and sockets are measured with pages of 50 messages."""
    pin_to_core(OTHER_PROCESSES_CORE)
    table = Table("what grows", title=f"Random pages, {CONNECTIONS} connections")
    for name in ["pages/s", "p50 ms", "p99 ms", "web CPU ms a page", "others %"]:
        table.add_column(name, justify="right")
    for row in asyncio.run(_rows(_numbers(pages), _numbers(topics), _numbers(sockets), seconds))[1:]:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    app()
