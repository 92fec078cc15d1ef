"""Timeline pages of 50 messages with author and reactions: the product compared with ordinary Strawberry.

"Random" pages have a random topic and `latest`, and one viewer, of whom a web process executes few operations at a
time. The same pages are also sent by a viewer for each connection, as the "newest" page of one topic is. The load is a
closed loop of 32 connections, or of 256 in the last rows. The web process runs on core 0. MongoDB, Redis and the load
generator share core 1. The variants are interleaved, and the table shows the median of the rounds. Linux only.
"""

import asyncio
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import orjson
import typer

from benchmarks.servers import DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import percentile, print_table
from benchmarks.timeline_data import PAGE_SIZE, TimelineData, timeline_data
from benchmarks.timeline_load import TimelineLoadReport, TimelineLoadSpec
from tests.product import NOROSHI

CONNECTIONS, MANY_CONNECTIONS = 32, 256
RANDOM_REQUESTS = 2000
RANDOM, RANDOM_VIEWERS, NEWEST, NEWEST_MANY = "random", "random, viewers", "newest", "newest, many"
PAGE_KINDS = [RANDOM, RANDOM_VIEWERS, NEWEST, NEWEST_MANY]
VARIANTS: dict[str, Sequence[str]] = {
    "Noroshi": NOROSHI,
    "Strawberry, ordinary": [sys.executable, "-m", "benchmarks.timeline_apps"],
}
COLUMNS = ["page", "variant", "pages/s", "p50 ms", "p99 ms", "web CPU ms a page", "kB a page"]
COLUMNS += ["web CPU %", "mongod", "load", "others", "errors"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class PageKindResult:
    """Figures of one variant with one kind of page."""

    variant: str
    page_kind: str
    seconds: float
    web_pid: int
    mongod_pid: int
    report: TimelineLoadReport

    @property
    def rate(self) -> float:
        """Pages a second."""
        return len(self.report.latencies_ms) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Processor time of the web process for each page, in ms."""
        return 10 * self._cpu(self.web_pid) / max(self.rate, 1 / self.seconds)

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        report = self.report
        latencies = [f"{percentile(report.latencies_ms, percent):,.1f}" for percent in (50, 99)]
        cpu = [f"{self._cpu(process):.0f}" for process in (self.web_pid, self.mongod_pid, report.pid, "others")]
        return [
            *(self.page_kind, self.variant, f"{self.rate:,.0f}", *latencies, f"{self.cpu_ms:.2f}"),
            *(f"{report.answer_bytes / 1000:.1f}", *cpu, str(sum(report.errors.values()))),
        ]

    def _cpu(self, process: int | str) -> float:
        return self.report.cpu_percent[str(process)]


@dataclass(frozen=True)
class MeasuredWebProcess:
    """A variant's web process that is measured, its data, and the durations of a measurement."""

    variant: str
    web: WebProcesses
    servers: DatabaseServers
    timeline_data: TimelineData
    seconds: float
    warm_up_s: float

    async def measure(self, page_kind: str, requests: list[str], connections: int) -> PageKindResult:
        """Warms the web process up and measures it. The connections send the requests repeatedly."""
        pids = [self.web.pid, self.servers.mongod_pid]
        report = await run_load(
            TimelineLoadSpec(self.web.port, requests, connections, PAGE_SIZE, self.warm_up_s, self.seconds, pids)
        )
        return PageKindResult(self.variant, page_kind, self.seconds, *pids, report)

    async def measure_page_kinds(self) -> AsyncIterator[PageKindResult]:
        """Measures each kind of page, and yields its result."""
        data = self.timeline_data
        yield await self.measure(RANDOM, data.random_page_requests(RANDOM_REQUESTS), CONNECTIONS)
        viewer_requests = data.random_page_requests(RANDOM_REQUESTS, CONNECTIONS)
        yield await self.measure(RANDOM_VIEWERS, viewer_requests, CONNECTIONS)
        yield await self.measure(NEWEST, data.newest_page_requests(CONNECTIONS), CONNECTIONS)
        yield await self.measure(NEWEST_MANY, data.newest_page_requests(MANY_CONNECTIONS), MANY_CONNECTIONS)


async def run_load(spec: TimelineLoadSpec) -> TimelineLoadReport:
    """Runs the load generator in a separate process. Returns its report."""
    command = [sys.executable, "-m", "benchmarks.timeline_load"]
    run = partial(subprocess.run, command, input=orjson.dumps(spec), stdout=subprocess.PIPE, check=True)
    return TimelineLoadReport(**orjson.loads((await asyncio.to_thread(run)).stdout))


async def measure(rounds: int, seconds: float, warm_up_s: float) -> list[PageKindResult]:
    """Returns the median result of each kind of page and variant."""
    results = defaultdict[tuple[str, str], list[PageKindResult]](list)
    async with database_servers() as servers, timeline_data(servers) as data:
        for variant in [*VARIANTS] * rounds:
            with web_process(servers, VARIANTS[variant]) as web:
                measured = MeasuredWebProcess(variant, web, servers, data, seconds, warm_up_s)
                async for result in measured.measure_page_kinds():
                    results[result.page_kind, variant].append(result)
                    typer.echo(" | ".join(result.cells()), err=True)
                    if result.report.errors:
                        typer.echo(result.report.errors, err=True)
    medians = [sorted(each, key=lambda result: result.rate)[len(each) // 2] for each in results.values()]
    return sorted(medians, key=lambda result: PAGE_KINDS.index(result.page_kind))


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of each measurement.")] = 3.0,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each measurement.")] = 3.0,
) -> None:
    """Measures timeline pages, and prints a table."""
    rows = asyncio.run(measure(rounds, seconds, warm_up_s))
    title = f"Pages of {PAGE_SIZE}, {CONNECTIONS} or {MANY_CONNECTIONS} connections, {rounds} x {seconds:g} s"
    print_table(title, COLUMNS, (row.cells() for row in rows))


if __name__ == "__main__":
    app()
