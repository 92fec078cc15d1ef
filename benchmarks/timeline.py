"""Timeline pages of 50 messages with author and reactions: the product compared with ordinary Strawberry.

"Random" pages have a random topic and `latest`, and one viewer. The "newest" page is that of a hot topic, with a viewer
for each connection. The load is a closed loop of 32 connections, or of 256 in the last rows. The web process
runs on core 0. MongoDB, Redis and the load generator share core 1. The variants are interleaved, and the table shows
the median of the rounds. Linux only.
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
from benchmarks.fanout_targets import (
    DATABASE,
    OTHER_PROCESSES_CORE,
    SERVER_CORE,
    DatabaseServers,
    database_servers,
    end_process,
    pin_to_core,
)
from benchmarks.timeline_data import PAGE_SIZE, TimelineData, timeline_data
from benchmarks.timeline_load import TimelineLoadReport, TimelineLoadSpec
from server.web import listen
from storage.mongo import Driver
from tests.product import NOROSHI, eventually, processes

CONNECTIONS, MANY_CONNECTIONS = 32, 256
WARM_UP_S = 1.5
RANDOM_REQUESTS = 2000
LAYERS_S = 6.0
RANDOM, NEWEST, NEWEST_MANY = "random", "newest", f"newest, {MANY_CONNECTIONS}"
HOT_PAGE_HITS = re.compile(r'^noroshi_hot_page_reads_total\{outcome="hit"\} (\S+)$', re.MULTILINE)
VARIANTS = {
    "Noroshi": [*NOROSHI, "web", "--fd"],
    "Noroshi, not compiled": [sys.executable, "-m", "benchmarks.uncompiled"],
    "Strawberry, ordinary": [sys.executable, "-m", "benchmarks.timeline_apps"],
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class TimelineWebProcess:
    """A running web process."""

    pid: int
    port: int

    def get(self, path: str) -> str:
        """Returns the body of the answer, or "ready" if the body is empty. Returns "" on failure."""
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return str(answer.read().decode()) or "ready"
        return ""

    def hot_page_hits(self) -> float:
        """Returns the number of reads that hot pages answered."""
        match = HOT_PAGE_HITS.search(self.get("/metrics"))
        return float(match[1]) if match else 0.0


@dataclass(frozen=True)
class PageKindResult:
    """Figures of one variant with one kind of page.

    `hits_per_page` is the number of reads that a hot page answered, and `queries_per_page` the number of queries of the
    messages collection.
    """

    variant: str
    page_kind: str
    seconds: float
    hits_per_page: float
    queries_per_page: float
    pids: dict[str, int]
    report: TimelineLoadReport

    @property
    def rate(self) -> float:
        """Pages a second."""
        return len(self.report.latencies_ms) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Processor time of the web process for each page, in ms."""
        return (
            10 * self.report.cpu_percent[str(self.pids["web"])] * self.seconds / max(len(self.report.latencies_ms), 1)
        )

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        latencies = sorted(self.report.latencies_ms)
        percentiles = [percentile(latencies, percent) for percent in (50, 99)]
        cpu = {name: self.report.cpu_percent[str(pid)] for name, pid in self.pids.items()}
        cpu |= {"load": self.report.cpu_percent[str(self.report.pid)], "others": self.report.cpu_percent["others"]}
        return [
            *(self.page_kind, self.variant, f"{self.rate:,.0f}", *(f"{each:,.1f}" for each in percentiles)),
            *(
                f"{self.cpu_ms:.2f}",
                f"{self.hits_per_page:.2f}",
                f"{self.queries_per_page:.2f}",
                f"{self.report.answer_bytes / 1000:.1f}",
            ),
            *(f"{cpu[name]:.0f}" for name in ("web", "mongod", "redis", "load", "others")),
            str(sum(self.report.errors.values())),
        ]


def percentile(latencies: Sequence[float], percent: int) -> float:
    """Returns a percentile of sorted latencies by nearest rank."""
    return latencies[math.ceil(len(latencies) * percent / 100) - 1] if latencies else math.nan


@asynccontextmanager
async def web_process(variant: str, servers: DatabaseServers) -> AsyncIterator[TimelineWebProcess]:
    """Runs a web process of a variant alone on its core."""
    with listen("127.0.0.1", 0) as listener:
        fd = listener.fileno()
        command, port = [*VARIANTS[variant], str(fd)], listener.getsockname()[1]
        async with pinned_server_process(command, port, servers, [fd]) as web:
            yield web


@asynccontextmanager
async def pinned_server_process(
    command: Sequence[str], port: int, servers: DatabaseServers, fds: Sequence[int] = ()
) -> AsyncIterator[TimelineWebProcess]:
    """Runs a server process alone on its core."""
    root = Path(__file__).parents[1]
    process = subprocess.Popen(command, pass_fds=fds, env=servers.environment(), cwd=root, stdin=subprocess.DEVNULL)
    pin_to_core(SERVER_CORE, process.pid)
    web = TimelineWebProcess(process.pid, port)
    try:
        await asyncio.to_thread(eventually, lambda: web.get("/readyz") or process.poll() is not None)
        yield web
    finally:
        await end_process(process)


@dataclass(frozen=True)
class MeasuredWebProcess:
    """A variant's web process that is measured, and its data."""

    variant: str
    web: TimelineWebProcess
    servers: DatabaseServers
    timeline_data: TimelineData
    seconds: float

    async def measure(self, page_kind: str, requests: list[str], connections: int = CONNECTIONS) -> PageKindResult:
        """Warms the web process up and measures it. The connections send the requests repeatedly."""
        pids = {"web": self.web.pid, "mongod": self.servers.mongod_pid, "redis": _redis_pid()}
        spec = TimelineLoadSpec(
            self.web.port, requests, connections, PAGE_SIZE, WARM_UP_S, self.seconds, list(pids.values())
        )
        await run_load(TimelineLoadSpec(self.web.port, requests, connections, PAGE_SIZE, 0.0, WARM_UP_S, []))
        hits, queries = self.web.hot_page_hits(), await self._count_message_queries()
        report = await run_load(spec)
        # `run_load(spec)` begins with a warm-up, whose pages are in the counters but not in the report. Their number is
        # estimated from the measured rate.
        pages = max(len(report.latencies_ms) * (1 + WARM_UP_S / self.seconds), 1)
        hits, queries = self.web.hot_page_hits() - hits, await self._count_message_queries() - queries
        return PageKindResult(self.variant, page_kind, self.seconds, hits / pages, queries / pages, pids, report)

    async def layers(self, requests: list[str]) -> dict[str, float]:
        """Returns the percentage of the web process's samples by layer, while the connections send the requests."""
        spec = TimelineLoadSpec(self.web.port, requests, CONNECTIONS, PAGE_SIZE, 0.0, LAYERS_S + WARM_UP_S, [])
        shares = asyncio.create_task(asyncio.to_thread(layers.measure_shares, self.web.pid, LAYERS_S))
        await run_load(spec)
        return await shares

    async def _count_message_queries(self) -> int:
        """Returns the number of commands that read the messages collection."""
        top = await self.timeline_data.stores.mongo.client.admin.command("top")
        return int(top["totals"][f"{DATABASE}.messages"]["queries"]["count"])


def _redis_pid() -> int:
    """Returns the process id of the embedded Valkey."""
    return next(pid for pid, (parent, command) in processes().items() if parent == os.getpid() and "valkey" in command)


async def run_load(spec: TimelineLoadSpec) -> TimelineLoadReport:
    """Runs the load generator in a separate process. Returns its report."""
    command = [sys.executable, "-m", "benchmarks.timeline_load"]
    run = partial(subprocess.run, command, input=orjson.dumps(spec), stdout=subprocess.PIPE, check=True)
    return TimelineLoadReport(**orjson.loads((await asyncio.to_thread(run)).stdout))


async def _measure(
    variants: Sequence[str], rounds: int, seconds: float, driver: Driver
) -> tuple[list[PageKindResult], dict[str, float]]:
    """Returns the median result of each variant and kind of page, and the first variant's processor time by layer.

    The layers are sampled while random pages are read.
    """
    results, shares = defaultdict[tuple[str, str], list[PageKindResult]](list), dict[str, float]()
    async with database_servers(driver) as servers, timeline_data(servers) as data:
        for variant in [*variants] * rounds:
            async with web_process(variant, servers) as web:
                measured = MeasuredWebProcess(variant, web, servers, data, seconds)
                async for result in measure_page_kinds(measured):
                    results[result.page_kind, variant].append(result)
                    typer.echo(" | ".join(result.cells()), err=True)
                    if result.report.errors:
                        typer.echo(result.report.errors, err=True)
                shares = shares or await measured.layers(data.random_page_requests(RANDOM_REQUESTS))
    medians = [sorted(each, key=lambda result: result.rate)[len(each) // 2] for each in results.values()]
    return sorted(medians, key=lambda result: [RANDOM, NEWEST, NEWEST_MANY].index(result.page_kind)), shares


async def measure_page_kinds(measured: MeasuredWebProcess) -> AsyncIterator[PageKindResult]:
    """Measures each kind of page, and yields its result."""
    data = measured.timeline_data
    yield await measured.measure(RANDOM, data.random_page_requests(RANDOM_REQUESTS))
    yield await measured.measure(NEWEST, data.newest_page_requests(CONNECTIONS))
    yield await measured.measure(NEWEST_MANY, data.newest_page_requests(MANY_CONNECTIONS), MANY_CONNECTIONS)


def _table(rows: Sequence[PageKindResult], rounds: int, seconds: float) -> Table:
    title = (
        f"Pages of {PAGE_SIZE}, {CONNECTIONS} connections, "
        f"median of {rounds} x {seconds:g} s; CPU in percent of one core"
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
    seconds: Annotated[float, typer.Option(min=0.5, help="Duration of each measurement.")] = 3.0,
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "pymongo",
    variants: Annotated[
        str, typer.Option(help="Variants, separated by commas. The first one's layers are shown.")
    ] = ",".join(VARIANTS),
) -> None:
    """Measures timeline pages, and prints tables."""
    pin_to_core(OTHER_PROCESSES_CORE)
    chosen = [variant for variant in VARIANTS if variant in re.split(r",(?! )", variants)]
    rows, shares = asyncio.run(_measure(chosen, rounds, seconds, "motor" if driver == "motor" else "pymongo"))
    console = Console(width=None if sys.stdout.isatty() else 210)
    console.print(_table(rows, rounds, seconds))
    title = f"Processor time by layer: {rows[0].variant}, {rows[0].page_kind} page"
    console.print(layers.table(shares, title, "page", rows[0].cpu_ms))


if __name__ == "__main__":
    app()
