"""Timeline pages of 50 messages with author and reactions: the product compared with ordinary Strawberry.

Closed loop with 32 connections, 256 in the last rows. The web process has core 0; MongoDB, Redis and the load share
core 1. B is a random topic and `latest` of one viewer. C is the newest page of one hot topic, by a viewer for each
connection. The variants are interleaved, and the table shows the median of the rounds. Linux only.
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
from benchmarks.fanout_targets import DATABASE, OTHERS_CORE, SERVER_CORE, Databases, databases, end, pin_to_core
from benchmarks.timeline_data import PAGE, TimelineData, timeline_data
from benchmarks.timeline_load import Job, Report
from server.web import listen
from storage.mongo import Driver
from tests.product import NOROSHI, eventually, processes

CONNECTIONS, MANY_CONNECTIONS = 32, 256
WARM_UP_S = 1.5
PAGES = 2000
LAYERS_S = 6.0
HITS = re.compile(r'^noroshi_pool_reads_total\{outcome="hit"\} (\S+)$', re.MULTILINE)
VARIANTS = {
    "Noroshi": [*NOROSHI, "web", "--fd"],
    "Noroshi, not compiled": [sys.executable, "-m", "benchmarks.uncompiled"],
    "Strawberry, ordinary": [sys.executable, "-m", "benchmarks.timeline_apps"],
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class WebProcess:
    """A web process that serves."""

    pid: int
    port: int

    def get(self, path: str) -> str:
        """Returns the answer, or an empty string on failure."""
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return str(answer.read().decode()) or "ready"
        return ""

    def hot_page_hits(self) -> float:
        """Returns the number of reads that hot pages answered."""
        found = HITS.search(self.get("/metrics"))
        return float(found[1]) if found else 0.0


@dataclass(frozen=True)
class Row:
    """One measurement. `hits` and `searches` (of the messages collection) are for each page."""

    variant: str
    what: str
    seconds: float
    hits: float
    searches: float
    pids: dict[str, int]
    report: Report

    @property
    def rate(self) -> float:
        """Returns pages a second."""
        return len(self.report.latencies_ms) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Returns the web process's processor time of a page, in ms."""
        return (
            10 * self.report.cpu_percent[str(self.pids["web"])] * self.seconds / max(len(self.report.latencies_ms), 1)
        )

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        latencies = sorted(self.report.latencies_ms)
        ranks = [rank(latencies, percent) for percent in (50, 99)]
        cpu = {name: self.report.cpu_percent[str(pid)] for name, pid in self.pids.items()}
        cpu |= {"load": self.report.cpu_percent[str(self.report.pid)], "others": self.report.cpu_percent["others"]}
        return [
            *(self.what, self.variant, f"{self.rate:,.0f}", *(f"{each:,.1f}" for each in ranks)),
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
async def web(variant: str, servers: Databases) -> AsyncIterator[WebProcess]:
    """Starts a web process of the variant, alone on its core, and ends it afterwards."""
    with listen("127.0.0.1", 0) as listener:
        fd = listener.fileno()
        async with serving([*VARIANTS[variant], str(fd)], listener.getsockname()[1], servers, [fd]) as target:
            yield target


@asynccontextmanager
async def serving(
    command: Sequence[str], port: int, servers: Databases, fds: Sequence[int] = ()
) -> AsyncIterator[WebProcess]:
    """Starts a server process, alone on its core, and ends it afterwards."""
    root = Path(__file__).parents[1]
    process = subprocess.Popen(command, pass_fds=fds, env=servers.environment(), cwd=root, stdin=subprocess.DEVNULL)
    pin_to_core(SERVER_CORE, process.pid)
    target = WebProcess(process.pid, port)
    try:
        await asyncio.to_thread(eventually, lambda: target.get("/readyz") or process.poll() is not None)
        yield target
    finally:
        await end(process)


@dataclass(frozen=True)
class Bench:
    """A variant with its web process and data."""

    variant: str
    web: WebProcess
    servers: Databases
    timeline_data: TimelineData
    seconds: float

    async def row(self, what: str, requests: list[str], connections: int = CONNECTIONS) -> Row:
        """Measures these requests."""
        pids = {"web": self.web.pid, "mongod": self.servers.mongod_pid, "redis": _redis_pid()}
        job = Job(self.web.port, requests, connections, PAGE, WARM_UP_S, self.seconds, list(pids.values()))
        await run_load(Job(self.web.port, requests, connections, PAGE, 0.0, WARM_UP_S, []))
        hits, searches = self.web.hot_page_hits(), await self._searches()
        report = await run_load(job)
        # The counters include the warm-up, so its pages are estimated.
        pages = max(len(report.latencies_ms) * (1 + WARM_UP_S / self.seconds), 1)
        hits, searches = self.web.hot_page_hits() - hits, await self._searches() - searches
        return Row(self.variant, what, self.seconds, hits / pages, searches / pages, pids, report)

    async def layers(self, requests: list[str]) -> dict[str, float]:
        """Returns percent of the web process's samples by layer, under the same load."""
        job = Job(self.web.port, requests, CONNECTIONS, PAGE, 0.0, LAYERS_S + WARM_UP_S, [])
        shares = asyncio.create_task(asyncio.to_thread(layers.shares, self.web.pid, LAYERS_S))
        await run_load(job)
        return await shares

    async def _searches(self) -> int:
        """Returns the number of commands that read the messages collection."""
        top = await self.timeline_data.stores.mongo.client.admin.command("top")
        return int(top["totals"][f"{DATABASE}.messages"]["queries"]["count"])


def _redis_pid() -> int:
    """Returns the process id of the embedded Valkey."""
    return next(pid for pid, (parent, command) in processes().items() if parent == os.getpid() and "valkey" in command)


async def run_load(job: Job) -> Report:
    """Runs the load generator in a separate process. Returns its report."""
    command = [sys.executable, "-m", "benchmarks.timeline_load"]
    run = partial(subprocess.run, command, input=orjson.dumps(job), stdout=subprocess.PIPE, check=True)
    return Report(**orjson.loads((await asyncio.to_thread(run)).stdout))


async def _measure(
    variants: Sequence[str], rounds: int, seconds: float, driver: Driver
) -> tuple[list[Row], dict[str, float]]:
    """Returns the median rows, and the layers of the first variant on random pages."""
    rows, shares = defaultdict[tuple[str, str], list[Row]](list), dict[str, float]()
    async with databases(driver) as servers, timeline_data(servers) as data:
        for variant in [*variants] * rounds:
            async with web(variant, servers) as target:
                bench = Bench(variant, target, servers, data, seconds)
                async for row in _rows(bench):
                    rows[row.what, variant].append(row)
                    typer.echo(" | ".join(row.cells()), err=True)
                    if row.report.errors:
                        typer.echo(row.report.errors, err=True)
                shares = shares or await bench.layers(data.random_pages(PAGES))
    medians = [sorted(each, key=lambda row: row.rate)[len(each) // 2] for each in rows.values()]
    return sorted(medians, key=lambda row: row.what), shares


async def _rows(bench: Bench) -> AsyncIterator[Row]:
    data = bench.timeline_data
    yield await bench.row("B", data.random_pages(PAGES))
    yield await bench.row("C", data.newest_page(CONNECTIONS))
    yield await bench.row(f"C, {MANY_CONNECTIONS}", data.newest_page(MANY_CONNECTIONS), MANY_CONNECTIONS)


def _table(rows: Sequence[Row], rounds: int, seconds: float) -> Table:
    title = (
        f"Pages of {PAGE}, {CONNECTIONS} connections, median of {rounds} x {seconds:g} s; CPU in percent of one core"
    )
    table = Table(title=title)
    table.add_column("page")
    table.add_column("variant")
    for name in [
        "pages/s",
        "p50 ms",
        "p99 ms",
        "web CPU ms a page",
        "hot page hits a page",
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
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each row is measured in each round.")] = 3.0,
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "pymongo",
    variants: Annotated[
        str, typer.Option(help="Variants, separated by commas. Layers are shown of the first.")
    ] = ",".join(VARIANTS),
) -> None:
    """Measures timeline pages, and prints tables."""
    pin_to_core(OTHERS_CORE)
    chosen = [variant for variant in VARIANTS if variant in re.split(r",(?! )", variants)]
    rows, shares = asyncio.run(_measure(chosen, rounds, seconds, "motor" if driver == "motor" else "pymongo"))
    console = Console(width=None if sys.stdout.isatty() else 210)
    console.print(_table(rows, rounds, seconds))
    title = f"Where the processor time of {rows[0].variant}, page {rows[0].what}, goes"
    console.print(layers.table(shares, title, "page", rows[0].cpu_ms))


if __name__ == "__main__":
    app()
