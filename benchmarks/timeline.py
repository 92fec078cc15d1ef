"""Measures a web process with timeline pages of 50 messages, each with its author and reactions.

"Random" pages have a random topic and `latest`, and one of 8 viewers. The "newest" page is that of one topic, with a
viewer for each connection. The load is a closed loop of 32 connections, or of 256 for the last kind.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

import orjson

from benchmarks.servers import DatabaseServers, WebProcesses
from benchmarks.tables import percentile
from benchmarks.timeline_data import PAGE_SIZE, TimelineData
from benchmarks.timeline_load import TimelineLoadReport, TimelineLoadSpec

CONNECTIONS, MANY_CONNECTIONS = 32, 256
RANDOM_REQUESTS = 2000
RANDOM, NEWEST, NEWEST_MANY = "random", "newest", "newest, many"
COLUMNS = ["page", "variant", "pages/s", "p50 ms", "p99 ms", "web CPU ms a page", "bytes a page"]
COLUMNS += ["web CPU %", "mongod", "load", "others", "errors"]


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

    @property
    def mean_bytes(self) -> float:
        """Mean size of the bodies."""
        return self.report.answer_bytes / max(len(self.report.latencies_ms), 1)

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        report = self.report
        latencies = [f"{percentile(report.latencies_ms, percent):,.1f}" for percent in (50, 99)]
        cpu = [f"{self._cpu(process):.0f}" for process in (self.web_pid, self.mongod_pid, report.pid, "others")]
        return [
            *(self.page_kind, self.variant, f"{self.rate:,.0f}", *latencies, f"{self.cpu_ms:.2f}"),
            *(f"{self.mean_bytes:,.0f}", *cpu, str(sum(report.errors.values()))),
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
        yield await self.measure(NEWEST, data.newest_page_requests(CONNECTIONS), CONNECTIONS)
        yield await self.measure(NEWEST_MANY, data.newest_page_requests(MANY_CONNECTIONS), MANY_CONNECTIONS)


async def run_load(spec: TimelineLoadSpec) -> TimelineLoadReport:
    """Runs the load generator in a separate process. Returns its report."""
    command = [sys.executable, "-m", "benchmarks.timeline_load"]
    run = partial(subprocess.run, command, input=orjson.dumps(spec), stdout=subprocess.PIPE, check=True)
    return TimelineLoadReport(**orjson.loads((await asyncio.to_thread(run)).stdout))
