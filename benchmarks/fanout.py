"""Delivery of a topic's events to many sockets of one web process: latency at five events a second, and the best rate.

The web process runs on core 0. MongoDB, Redis, the load generator and the poster share core 1. The best rate is the
highest rate at which no event was lost or out of order and p99 stayed under 250 ms. Linux only.
"""

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import uvloop

from benchmarks.cpu import CpuTimes, cpu_times, memory_mib
from benchmarks.fanout_load import SubscriptionLoadSpec
from benchmarks.fanout_posting import FIELD, QUERY, SteadyPoster, TopicWithMembers, topic_with_members
from benchmarks.servers import DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import numbers, percentile, print_table

QUIET_RATE = 5.0
"""Events a second at which latency is measured."""

FIRST_DELIVERIES_PER_S, MAX_FIRST_RATE = 500_000, 1000.0
"""Deliveries and events a second with which the search begins: the lower one."""

MAX_P99_MS = 250.0
SAMPLE_SIZE = 50
"""Number of sockets whose frames are parsed."""

RATE_DURATION_SHARE = 0.4
"""Duration of one try during the search, as a share of the duration of the measurement at the quiet rate."""

SEARCH_DURATION_FACTOR = 4
"""Maximum duration of the search, as a multiple of the duration of the measurement at the quiet rate."""

SEARCH_PRECISION = 1.12
"""The search ends when the lowest rate that failed is less than this factor above the best rate."""

PROGRESS_INTERVAL_S = 0.1
DRAIN_TIMEOUT_S = 8.0
MAX_BACKLOG_S = 1.0
"""The poster stops early when more events are missing at a socket than it posts in this time."""

PAUSE_S = 0.3
"""Pause after warming up and after connecting, so that the measurement does not begin amid that work."""

MAX_LINE_BYTES = 1 << 28
COLUMNS = [
    *("sockets", "connects/s", "KiB each", "p50 at 5/s", "p99 at 5/s", "frame bytes"),
    *("best deliveries/s", "events/s", "p99", "web CPU", "load", "mongod", "poster", "others", "limited by"),
]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class RateResult:
    """Measurements at one rate. `cpu` is in percent of one core.

    `fault` says why the rate is too high; it is empty if the rate succeeded.
    """

    rate: float
    fault: str
    latencies_ms: Sequence[float]
    deliveries_per_s: float
    slowest_post_ms: float
    frame_bytes: int
    cpu: dict[str, float]


@dataclass
class DeliveryResult:
    """A row of the table. `limit` says why the rate could not be higher."""

    sockets: int
    connections_per_s: float = math.nan
    kib_per_socket: float = math.nan
    quiet: RateResult | None = None
    best: RateResult | None = None
    most_deliveries_per_s: float = 0.0
    limit: str = ""

    def cells(self) -> list[str]:
        """Returns the cells of the table. If every rate failed, the highest deliveries a second are in brackets."""
        best, quiet = self.best, self.quiet
        cpu = [f"{best.cpu[name]:.0f}" for name in ("web", "load", "mongod", "poster", "others")] if best else [""] * 5
        return [
            *(f"{self.sockets:,}", f"{self.connections_per_s:,.0f}", f"{self.kib_per_socket:.1f}"),
            *(_latency(quiet, 50), _latency(quiet, 99), str(quiet.frame_bytes) if quiet else ""),
            f"{best.deliveries_per_s:,.0f}" if best else f"({self.most_deliveries_per_s:,.0f})",
            f"{best.rate:,.0f}" if best else "",
            *(_latency(best, 99), *cpu, self.limit),
        ]


def _latency(result: RateResult | None, percent: int) -> str:
    return f"{percentile(result.latencies_ms, percent):,.1f}" if result else ""


class LoadProcess:
    """The process of the load generator."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.pid = process.pid
        assert process.stdin
        assert process.stdout
        self._input, self._output = process.stdin, process.stdout
        self._lock = asyncio.Lock()

    async def execute(self, command: str) -> dict[str, Any]:
        """Executes a command of the load generator. Returns its answer."""
        async with self._lock:
            self._input.write(command.encode() + b"\n")
            answer: dict[str, Any] = orjson.loads(await self._output.readline())
        return answer


@asynccontextmanager
async def load_process(spec: SubscriptionLoadSpec) -> AsyncIterator[LoadProcess]:
    """Runs a load generator, at first without connections, and kills it afterwards."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.fanout_load"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        cwd=Path(__file__).parents[1],
    )
    load = LoadProcess(process)
    try:
        await load.execute(orjson.dumps(asdict(spec)).decode())
        yield load
    finally:
        process.kill()
        await process.wait()


async def measure(
    servers: DatabaseServers, topic: TopicWithMembers, tokens: Sequence[str], seconds: float
) -> DeliveryResult:
    """Measures a new web process with a socket for each token."""
    with web_process(servers) as web:
        spec = SubscriptionLoadSpec(web.port, list(tokens), QUERY, FIELD, {"topicId": topic.topic.id}, SAMPLE_SIZE)
        await _warm_up(spec, SteadyPoster(topic.post))
        async with load_process(spec) as load:
            measured = MeasuredDelivery(web, servers.mongod_pid, load, SteadyPoster(topic.post), len(tokens))
            return await measured.run(seconds)


async def _warm_up(spec: SubscriptionLoadSpec, poster: SteadyPoster) -> None:
    """Posts to a few sockets, so that one-time work of the process is not measured."""
    async with load_process(replace(spec, tokens=spec.tokens[:20])) as load:
        await load.execute("connect")
        await poster.run(50, 0.5, lambda: True)
        await asyncio.sleep(PAUSE_S)


@dataclass
class MeasuredDelivery:
    """A web process under measurement, with its load generator and its poster."""

    web: WebProcesses
    mongod_pid: int
    load: LoadProcess
    poster: SteadyPoster
    sockets: int

    async def run(self, seconds: float) -> DeliveryResult:
        """Connects all sockets, measures at the quiet rate, and searches the highest rate."""
        result = DeliveryResult(self.sockets)
        before_mib = memory_mib(self.web.pid)
        connected = await self.load.execute("connect")
        if connected["open"] < self.sockets:
            result.limit = f"{connected['open']} sockets after {connected['seconds']:.0f} s"
            return result
        result.connections_per_s = self.sockets / connected["seconds"]
        await asyncio.sleep(PAUSE_S)
        result.kib_per_socket = 1024 * (memory_mib(self.web.pid) - before_mib) / self.sockets
        result.quiet = await self.measure_rate(QUIET_RATE, seconds)
        await self._search(result, min(FIRST_DELIVERIES_PER_S / self.sockets, MAX_FIRST_RATE), seconds)
        return result

    async def _search(self, result: DeliveryResult, rate: float, seconds: float) -> None:
        """Doubles or halves the rate until one succeeds and one fails, then narrows the gap.

        A rate fails when two consecutive tries fail.
        """
        ends_s = time.monotonic() + SEARCH_DURATION_FACTOR * seconds
        result.limit = "not reached"
        failed_rate: float | None = None
        has_failed_once = False
        while time.monotonic() < ends_s:
            tried = await self.measure_rate(rate, RATE_DURATION_SHARE * seconds)
            result.most_deliveries_per_s = max(result.most_deliveries_per_s, tried.deliveries_per_s)
            if not tried.fault:
                result.best = tried
            elif not has_failed_once:
                has_failed_once = True
                continue
            else:
                failed_rate, result.limit = rate, tried.fault
            has_failed_once = False
            if result.best and failed_rate and failed_rate / result.best.rate < SEARCH_PRECISION:
                break
            rate = _next_rate(result.best, failed_rate)

    async def measure_rate(self, rate: float, seconds: float) -> RateResult:
        """Posts at a rate, and waits until all events have arrived. Lost sockets are connected again."""
        await self.load.execute("reset")
        before, began_s, posting_ended = self._cpu(), time.monotonic(), asyncio.Event()
        watch = asyncio.create_task(self._watch(rate, posting_ended))
        await self.poster.run(rate, seconds, lambda: not watch.done())
        cpu = self._cpu_since(before)
        posting_ended.set()
        await watch
        await self._drain()
        report = await self.load.execute("report")
        passed_s = max(report["last_s"] - began_s, seconds)
        if report["open"] < self.sockets:
            await self.load.execute("connect")
        result = RateResult(
            *(rate, "", report["latencies_ms"], report["frames"] / passed_s),
            *(self.poster.slowest_ms, report["frame_bytes"], cpu | {"load": report["cpu_percent"]}),
        )
        return replace(result, fault=self._fault(result, report, seconds))

    def _fault(self, result: RateResult, report: dict[str, Any], seconds: float) -> str:
        """Returns why this rate is too high, or an empty string."""
        p99_ms = percentile(result.latencies_ms, 99)
        if report["faults"]:
            return ", ".join(f"{count} {fault}" for fault, count in report["faults"].items())[:60]
        if self.poster.posted < int(result.rate * seconds):
            return f"{MAX_BACKLOG_S:g} s behind"
        if not self.poster.posted == report["least"] == report["most"]:
            return f"{self.poster.posted} posted, {report['least']} to {report['most']} arrived"
        if p99_ms > MAX_P99_MS and result.slowest_post_ms > MAX_P99_MS / 2:
            return f"p99 {p99_ms:.0f} ms; posts up to {result.slowest_post_ms:.0f} ms"
        return f"p99 {p99_ms:.0f} ms" if p99_ms > MAX_P99_MS else ""

    async def _watch(self, rate: float, posting_ended: asyncio.Event) -> None:
        """Returns when `posting_ended` is set, a socket is lost, or the backlog exceeds `MAX_BACKLOG_S`."""
        while not posting_ended.is_set():
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            progress = await self.load.execute("progress")
            backlog = self.poster.posted - progress["least"]
            if progress["open"] < self.sockets or backlog > max(rate * MAX_BACKLOG_S, 10):
                return

    async def _drain(self) -> None:
        """Waits until every socket has received all events, at most `DRAIN_TIMEOUT_S`."""
        ends_s = time.monotonic() + DRAIN_TIMEOUT_S
        while time.monotonic() < ends_s:
            progress = await self.load.execute("progress")
            if progress["least"] >= self.poster.posted or progress["open"] < self.sockets:
                return
            await asyncio.sleep(PROGRESS_INTERVAL_S / 5)

    def _cpu(self) -> CpuTimes:
        return cpu_times([self.web.pid, self.mongod_pid, os.getpid(), self.load.pid])

    def _cpu_since(self, before: CpuTimes) -> dict[str, float]:
        names = {self.web.pid: "web", self.mongod_pid: "mongod", os.getpid(): "poster", self.load.pid: "load"}
        percent = self._cpu().percent_since(before)
        return {"others" if pid == "others" else names[int(pid)]: value for pid, value in percent.items()}


def _next_rate(best: RateResult | None, failed_rate: float | None) -> float:
    if failed_rate is None:
        assert best
        return best.rate * 2
    return failed_rate / 2 if best is None else math.sqrt(best.rate * failed_rate)


async def measure_sizes(sizes: Sequence[int], seconds: float) -> list[DeliveryResult]:
    """Measures each number of sockets."""
    members = [f"u{number}" for number in range(max(sizes))]
    async with database_servers() as servers, topic_with_members(servers, members) as topic:
        tokens = [servers.token(id_) for id_ in members]
        return [await measure(servers, topic, tokens[:count], seconds) for count in sizes]


@app.command()
def main(
    sockets: Annotated[str, typer.Option(help="Numbers of sockets, separated by commas.")] = "100,1000,5000",
    seconds: Annotated[
        float, typer.Option(min=0.1, help="Duration of the latency measurement; a search takes up to 4 times as long.")
    ] = 4,
) -> None:
    """Measures the delivery of events to sockets, and prints a table."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(measure_sizes(numbers(sockets), seconds))
    print_table("Sockets on one topic; times in ms, CPU in percent of one core", COLUMNS, (row.cells() for row in rows))


if __name__ == "__main__":
    app()
