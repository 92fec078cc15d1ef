"""Timeline pages: 50 messages with author and reactions, by the product and, in the same run, the ordinary way.

Closed loop, 32 connections where nothing else is said. The web process has core 0 to itself; MongoDB, Redis and the
load share core 1. B is a random topic and a random `latest` by one viewer, C the newest page of one hot topic by a
viewer a connection, and again by a crowd of them. The ways take turns, so that a machine that is faster for a minute
is so for all of them; of the rounds the median is shown. Linux only.
"""

import asyncio
import math
import os
import re
import subprocess
import sys
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import layers
from benchmarks.fanout_targets import DATABASE, OTHERS_CORE, SERVER_CORE, Databases, databases, end, move_to
from benchmarks.timeline_data import PAGE, Library, library
from benchmarks.timeline_load import Job, Report
from server.web import listen
from storage.mongo import Driver
from tests.product import NOROSHI, eventually, processes

CONNECTIONS, CROWD = 32, 256
WARM_UP_S = 1.5
PAGES = 2000
LAYERS_S = 6.0
HITS = re.compile(r'^noroshi_pool_reads_total\{outcome="hit"\} (\S+)$', re.MULTILINE)
WAYS = {
    "Noroshi": [*NOROSHI, "web", "--fd"],
    "Noroshi, not compiled": [sys.executable, "-m", "benchmarks.uncompiled"],
    "Strawberry, ordinary": [sys.executable, "-m", "benchmarks.timeline_apps"],
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Web:
    """A web process that serves."""

    pid: int
    port: int

    def get(self, path: str) -> str:
        """What it answers; empty when it doesn't."""
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return str(answer.read().decode()) or "ready"
        return ""

    def pool_hits(self) -> float:
        """Reads that pools answered so far."""
        found = HITS.search(self.get("/metrics"))
        return float(found[1]) if found else 0.0


@dataclass(frozen=True)
class Row:
    """One measurement. `hits` and `searches` (of the messages collection) are for each page."""

    way: str
    what: str
    seconds: float
    hits: float
    searches: float
    pids: dict[str, int]
    report: Report

    @property
    def rate(self) -> float:
        """Pages a second."""
        return len(self.report.latencies_ms) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """The web process's processor time for each page."""
        return (
            10 * self.report.cpu_percent[str(self.pids["web"])] * self.seconds / max(len(self.report.latencies_ms), 1)
        )

    def cells(self) -> list[str]:
        """As the table shows it."""
        latencies = sorted(self.report.latencies_ms)
        ranks = [rank(latencies, percent) for percent in (50, 99)]
        cpu = {name: self.report.cpu_percent[str(pid)] for name, pid in self.pids.items()}
        cpu |= {"load": self.report.cpu_percent[str(self.report.pid)], "others": self.report.cpu_percent["others"]}
        return [
            *(self.what, self.way, f"{self.rate:,.0f}", *(f"{each:,.1f}" for each in ranks)),
            *(
                f"{self.cpu_ms:.2f}",
                f"{self.hits:.2f}",
                f"{self.searches:.2f}",
                f"{self.report.answer_bytes / 1000:.1f}",
            ),
            *(f"{cpu[name]:.0f}" for name in ("web", "mongod", "redis", "load", "others")),
            str(sum(self.report.errors.values())),
        ]


def rank(latencies: Sequence[float], percent: int) -> float:
    return latencies[math.ceil(len(latencies) * percent / 100) - 1] if latencies else math.nan


@asynccontextmanager
async def web(way: str, servers: Databases) -> AsyncIterator[Web]:
    """A web process of that way, alone on its core; ended afterwards."""
    with listen("127.0.0.1", 0) as listener:
        fd = listener.fileno()
        async with serving([*WAYS[way], str(fd)], listener.getsockname()[1], servers, [fd]) as target:
            yield target


@asynccontextmanager
async def serving(command: Sequence[str], port: int, servers: Databases, fds: Sequence[int] = ()) -> AsyncIterator[Web]:
    """A process that serves at the port, alone on its core; ended afterwards."""
    root = Path(__file__).parents[1]
    process = subprocess.Popen(command, pass_fds=fds, env=servers.environment(), cwd=root, stdin=subprocess.DEVNULL)
    move_to(SERVER_CORE, process.pid)
    target = Web(process.pid, port)
    try:
        await asyncio.to_thread(eventually, lambda: target.get("/readyz") or process.poll() is not None)
        yield target
    finally:
        await end(process)


@dataclass(frozen=True)
class Bench:
    """A way to be measured."""

    way: str
    web: Web
    servers: Databases
    library: Library
    seconds: float

    async def row(self, what: str, requests: list[str], connections: int = CONNECTIONS) -> Row:
        """Loads it with these requests."""
        pids = {"web": self.web.pid, "mongod": self.servers.mongod_pid, "redis": _redis_pid()}
        job = Job(self.web.port, requests, connections, PAGE, WARM_UP_S, self.seconds, list(pids.values()))
        await run_load(Job(self.web.port, requests, connections, PAGE, 0.0, WARM_UP_S, []))
        hits, searches = self.web.pool_hits(), await self._searches()
        report = await run_load(job)
        # What was answered before the clock began counts too, so it is estimated.
        pages = max(len(report.latencies_ms) * (1 + WARM_UP_S / self.seconds), 1)
        hits, searches = self.web.pool_hits() - hits, await self._searches() - searches
        return Row(self.way, what, self.seconds, hits / pages, searches / pages, pids, report)

    async def layers(self, requests: list[str]) -> dict[str, float]:
        """Percent of the web process's samples by layer, under the same load."""
        job = Job(self.web.port, requests, CONNECTIONS, PAGE, 0.0, LAYERS_S + WARM_UP_S, [])
        shares = asyncio.create_task(asyncio.to_thread(layers.shares, self.web.pid, LAYERS_S))
        await run_load(job)
        return await shares

    async def _searches(self) -> int:
        """Commands that read the messages collection so far."""
        top = await self.library.stores.mongo.client.admin.command("top")
        return int(top["totals"][f"{DATABASE}.messages"]["queries"]["count"])


def _redis_pid() -> int:
    """The embedded one."""
    return next(pid for pid, (parent, command) in processes().items() if parent == os.getpid() and "valkey" in command)


async def run_load(job: Job) -> Report:
    """The report of a load generator in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.timeline_load"]
    run = partial(subprocess.run, command, input=orjson.dumps(job), stdout=subprocess.PIPE, check=True)
    return Report(**orjson.loads((await asyncio.to_thread(run)).stdout))


async def _measured(
    ways: Sequence[str], rounds: int, seconds: float, driver: Driver
) -> tuple[list[Row], dict[str, float]]:
    """The median rows, and the first way's layers on random pages."""
    rows, shares = defaultdict[tuple[str, str], list[Row]](list), dict[str, float]()
    async with databases(driver) as servers, library(servers) as books:
        for way in [*ways] * rounds:
            async with web(way, servers) as target:
                bench = Bench(way, target, servers, books, seconds)
                async for row in _rows(bench):
                    rows[row.what, way].append(row)
                    typer.echo(" | ".join(row.cells()), err=True)
                    if row.report.errors:
                        typer.echo(row.report.errors, err=True)
                shares = shares or await bench.layers(books.random_pages(PAGES))
    medians = [sorted(each, key=lambda row: row.rate)[len(each) // 2] for each in rows.values()]
    return sorted(medians, key=lambda row: row.what), shares


async def _rows(bench: Bench) -> AsyncIterator[Row]:
    books = bench.library
    yield await bench.row("B", books.random_pages(PAGES))
    yield await bench.row("C", books.newest_page(CONNECTIONS))
    yield await bench.row(f"C, {CROWD}", books.newest_page(CROWD), CROWD)


def _table(rows: Sequence[Row], rounds: int, seconds: float) -> Table:
    title = (
        f"Pages of {PAGE}, {CONNECTIONS} connections, median of {rounds} x {seconds:g} s; CPU in percent of one core"
    )
    table = Table(title=title)
    table.add_column("page")
    table.add_column("way")
    for name in [
        "pages/s",
        "p50 ms",
        "p99 ms",
        "web CPU ms a page",
        "pool hits a page",
        "message queries a page",
        "kB a page",
    ]:
        table.add_column(name, justify="right")
    for name in ["web CPU", "mongod", "redis", "load", "others", "errors"]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row.cells())
    return table


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often the ways take turns.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each row is measured in each round.")] = 3.0,
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "motor",
    ways: Annotated[str, typer.Option(help="Which, by comma; of the first one the layers are shown.")] = ",".join(WAYS),
) -> None:
    """Measures timeline pages, and prints tables."""
    move_to(OTHERS_CORE)
    chosen = [way for way in WAYS if way in re.split(r",(?! )", ways)]
    rows, shares = asyncio.run(_measured(chosen, rounds, seconds, "motor" if driver == "motor" else "pymongo"))
    console = Console(width=None if sys.stdout.isatty() else 210)
    console.print(_table(rows, rounds, seconds))
    title = f"Where the processor time of {rows[0].way}, page {rows[0].what}, goes"
    console.print(layers.table(shares, title, "page", rows[0].cpu_ms))


if __name__ == "__main__":
    app()
