"""What a timeline page costs as pages, topics and open sockets grow: one web process, alone on its core."""

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

from benchmarks.fanout_targets import OTHERS_CORE, Databases, databases, move_to
from benchmarks.timeline import CONNECTIONS, WARM_UP_S, Web, rank, run_load, web
from benchmarks.timeline_data import PAGE, Library, library
from benchmarks.timeline_load import Job
from storage.timeline import format_timestamp

REQUESTS = 2000
SUBSCRIBE = "subscription($topicId: ID!) { topicEvents(topicId: $topicId) { ... on Event { cursor } } }"
CONNECTING_AT_ONCE = 20
Row = tuple[str, ...]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


async def _row(target: Web, books: Library, limit: int, seconds: float) -> list[str]:
    """Pages a second, latencies, and processor time of random pages of the topics."""
    dice = random.Random(limit)
    places = [(dice.choice(books.topics), dice.choice(books.timestamps[limit:])) for _ in range(REQUESTS)]
    requests = [books.request(topic, format_timestamp(latest), limit) for topic, latest in places]
    report = await run_load(Job(target.port, requests, CONNECTIONS, limit, WARM_UP_S, seconds, [target.pid]))
    count, latencies = max(len(report.latencies_ms), 1), sorted(report.latencies_ms)
    assert not report.errors, report.errors
    cpu_ms = 10 * report.cpu_percent[str(target.pid)] * seconds / count
    figures = f"{count / seconds:,.0f}", f"{rank(latencies, 50):,.0f}", f"{rank(latencies, 99):,.0f}", f"{cpu_ms:.2f}"
    row = [*figures, f"{report.cpu_percent['others']:.0f}"]
    typer.echo(" | ".join(row), err=True)
    return row


@asynccontextmanager
async def _sockets(target: Web, books: Library, count: int) -> AsyncIterator[None]:
    """So many sockets that listen to a topic in which nothing happens."""
    turn = asyncio.Semaphore(CONNECTING_AT_ONCE)
    async with AsyncExitStack() as stack:

        async def listen() -> None:
            async with turn:
                url = f"ws://127.0.0.1:{target.port}/graphql"
                socket = await stack.enter_async_context(connect(url, subprotocols=["graphql-transport-ws"]))
                await _subscribe(socket, books)

        await asyncio.gather(*(listen() for _ in range(count)))
        yield


async def _subscribe(socket: ClientConnection, books: Library) -> None:
    operation = {"query": SUBSCRIBE, "variables": {"topicId": books.topics[1].id}}
    await socket.send(_text({"type": "connection_init", "payload": {"authorization": f"Bearer {books.tokens[0]}"}}))
    await socket.send(_text({"type": "subscribe", "id": "1", "payload": operation}))
    types = [orjson.loads(await socket.recv())["type"] for _ in range(2)]
    assert types == ["connection_ack", "next"], types


def _text(message: object) -> str:
    return orjson.dumps(message).decode()


async def _rows(pages: Sequence[int], topics: Sequence[int], sockets: Sequence[int], seconds: float) -> list[Row]:
    async with databases("motor") as servers, library(servers) as books:
        return [row async for row in _measured(servers, books, pages, topics, sockets, seconds)]


async def _measured(
    servers: Databases,
    books: Library,
    pages: Sequence[int],
    topics: Sequence[int],
    sockets: Sequence[int],
    seconds: float,
) -> AsyncIterator[Row]:
    quiet = replace(books, topics=books.topics[1:])
    async with web("Noroshi", servers) as target:
        # The first one is measured twice: the process is not warm yet.
        for limit in [pages[0], *pages]:
            row = await _row(target, quiet, limit, seconds)
            yield f"pages of {limit}", *row
        for size in topics:
            row = await _row(target, await books.grown(size), PAGE, seconds)
            yield f"a topic of {size:,}", *row
        for count in sockets:
            async with _sockets(target, books, count):
                row = await _row(target, quiet, PAGE, seconds)
                yield f"{count:,} open sockets", *row


@app.command()
def main(
    pages: Annotated[str, typer.Option(help="Messages a page.")] = "10,50,100,200",
    topics: Annotated[str, typer.Option(help="Messages in the topic.")] = "1000,100000",
    sockets: Annotated[str, typer.Option(help="Open sockets.")] = "0,1000",
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each row is measured.")] = 3.0,
) -> None:
    """Measures pages of 50 where nothing else is said, and prints a table."""
    move_to(OTHERS_CORE)
    table = Table("what grows", title=f"Random pages, {CONNECTIONS} connections")
    for name in ["pages/s", "p50 ms", "p99 ms", "web CPU ms a page", "others %"]:
        table.add_column(name, justify="right")
    for row in asyncio.run(_rows(_numbers(pages), _numbers(topics), _numbers(sockets), seconds))[1:]:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    app()
