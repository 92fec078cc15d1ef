"""Fan-out: many sockets on one topic. The product, and in the same run what it is compared with, one after the other.

The web process has core 0 to itself; MongoDB, Redis, the listeners and whoever posts share core 1. `best` is the
highest rate at which nothing was lost, order was kept and p99 stayed under 250 ms. Linux only.
"""

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import CpuTimes, cpu_times
from benchmarks.fanout_load import Job
from benchmarks.fanout_posting import FIELD, QUERY, Place, Poster, RawPlace, place
from benchmarks.fanout_targets import OTHERS_CORE, PRODUCT, Databases, Web, databases, move_to, web
from storage.mongo import Driver

QUIET_RATE = 5.0
LATE_MS = 250.0
SAMPLED = 50
STEPS = 7
CLOSE_ENOUGH = 1.12
DRAIN_S = 8.0
BEHIND_S = 1.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Way:
    """How it is done, and the deliveries a second to begin the search with."""

    name: str
    title: str
    start: float

    @property
    def is_raw(self) -> bool:
        return self.name in ("asgi", "transport", "joined")


WAYS = [
    Way(PRODUCT, "Noroshi", 300_000),
    Way("one-by-one", "Noroshi, frame by frame", 80_000),
    Way("ordinary", "(a) Strawberry, ordinary", 1_000),
    Way("asgi", "(b) no GraphQL, ASGI send a frame", 50_000),
    Way("transport", "(c) no GraphQL, a write a frame", 80_000),
    Way("joined", "(d) no GraphQL, joined", 500_000),
]


@dataclass(frozen=True)
class Step:
    """What came of posting at one rate for a while."""

    rate: float
    fault: str
    latencies_ms: Sequence[float]
    deliveries_per_s: float
    commit_ms: float
    frame_bytes: int
    cpu: dict[str, float]

    def latency_ms(self, percent: int) -> float:
        """By nearest rank."""
        count = len(self.latencies_ms)
        return self.latencies_ms[math.ceil(count * percent / 100) - 1] if count else math.nan


class Listeners:
    """The load generator."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.pid = process.pid
        assert process.stdin and process.stdout
        self._input, self._output = process.stdin, process.stdout
        self._asking = asyncio.Lock()

    async def ask(self, command: str) -> dict[str, Any]:
        """The answer to a command."""
        async with self._asking:
            self._input.write(command.encode() + b"\n")
            answer: dict[str, Any] = orjson.loads(await self._output.readline())
        return answer


@asynccontextmanager
async def listeners(job: Job) -> AsyncIterator[Listeners]:
    """A load generator in a process of its own, which ends with its input."""
    command = [sys.executable, "-m", "benchmarks.fanout_load"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, limit=1 << 28, cwd=Path(__file__).parents[1], **pipes)
    load = Listeners(process)
    try:
        await load.ask(orjson.dumps(asdict(job)).decode())
        yield load
    finally:
        process.kill()
        await process.wait()


@dataclass
class Row:
    """One line of the table."""

    way: Way
    sockets: int
    connections_per_s: float = math.nan
    kib: float = math.nan
    quiet: Step | None = None
    best: Step | None = None
    limit: str = ""

    def cells(self) -> list[str]:
        """As the table shows it."""
        best = self.best
        found = f"{best.deliveries_per_s:,.0f}" if best else "none"
        rate = f"{best.rate:,.0f}" if best else ""
        cpu = [f"{best.cpu[name]:.0f}" for name in ("web", "load", "mongod", "poster", "others")] if best else [""] * 5
        return [
            *(self.way.title, str(self.sockets), f"{self.connections_per_s:,.0f}", f"{self.kib:.1f}"),
            *(_latency(self.quiet, 50), _latency(self.quiet, 99)),
            *(found, rate, _latency(best, 99), *cpu, self.limit),
        ]


def _latency(step: Step | None, percent: int) -> str:
    return f"{step.latency_ms(percent):,.1f}" if step else ""


@dataclass
class Measurement:
    """One way, served by one web process to so many sockets."""

    web: Web
    mongod_pid: int
    listeners: Listeners
    poster: Poster
    sockets: int

    async def row(self, way: Way, seconds: float) -> Row:
        """Connects everybody, posts slowly, then finds the highest rate."""
        row = Row(way, self.sockets)
        before_kib = self.web.rss_kib()
        connected = await self.listeners.ask("connect")
        if connected["open"] < self.sockets:
            row.limit = f"{connected['open']} sockets open after {connected['seconds']:.0f} s"
            return row
        row.connections_per_s = self.sockets / connected["seconds"]
        await asyncio.sleep(0.3)
        row.kib = (self.web.rss_kib() - before_kib) / self.sockets
        row.quiet = await self.step(QUIET_RATE, seconds)
        row.best, row.limit = await self._search(way.start / self.sockets, seconds / 2)
        return row

    async def _search(self, rate: float, seconds: float) -> tuple[Step | None, str]:
        """Doubles or quarters the rate until one is good and one is bad, then halves the gap."""
        best: Step | None = None
        bad: Step | None = None
        for _ in range(STEPS):
            step = await self.step(rate, seconds)
            print(f"    {step.rate:,.0f}/s {step.deliveries_per_s:,.0f} p99 {step.latency_ms(99):.0f} commit {step.commit_ms:.0f} {step.fault} {step.cpu}", file=sys.stderr)
            if step.fault:
                bad = step
            else:
                best = step
            if best and bad and bad.rate / best.rate < CLOSE_ENOUGH:
                break
            rate = _next(best, bad)
        return best, bad.fault if bad else "not reached"

    async def step(self, rate: float, seconds: float) -> Step:
        """Posts at a rate, waits until everything has arrived, and sees to it that everybody is there again."""
        await self.listeners.ask("mark")
        before, began_s = self._cpu(), time.monotonic()
        over = asyncio.Event()
        watch = asyncio.create_task(self._watch(rate, over))
        await self.poster.run(rate, seconds, lambda: not watch.done())
        cpu = self._cpu_since(before)
        over.set()
        await watch
        await self._drain()
        report = await self.listeners.ask("report")
        step = self._judge(rate, seconds, report, began_s, cpu)
        if report["open"] < self.sockets:
            await self.listeners.ask("connect")
        return step

    def _judge(self, rate: float, seconds: float, report: dict[str, Any], began_s: float, cpu: dict[str, float]) -> Step:
        latencies = report["latencies_ms"]
        passed_s = max(report["last_s"] - began_s, seconds)
        cpu["load"] = report["cpu_percent"]
        step = Step(
            *(rate, "", latencies, report["frames"] / passed_s),
            *(self.poster.slowest_ms, report["frame_bytes"], cpu),
        )
        return Step(**{**vars(step), "fault": self._fault(step, report, seconds)})

    def _fault(self, step: Step, report: dict[str, Any], seconds: float) -> str:
        if report["faults"]:
            return ", ".join(f"{count} {what}" for what, count in report["faults"].items())[:60]
        if self.poster.posted < int(step.rate * seconds):
            return f"{BEHIND_S:g} s behind"
        if not self.poster.posted == report["least"] == report["most"]:
            return f"{self.poster.posted} posted, {report['least']} to {report['most']} arrived"
        if step.latency_ms(99) > LATE_MS and step.commit_ms > LATE_MS / 2:
            return f"posting: commits took {step.commit_ms:.0f} ms"
        return f"p99 {step.latency_ms(99):.0f} ms" if step.latency_ms(99) > LATE_MS else ""

    async def _watch(self, rate: float, over: asyncio.Event) -> None:
        """Returns when the listeners are hopelessly behind, or one of them is gone."""
        while not over.is_set():
            await asyncio.sleep(0.1)
            progress = await self.listeners.ask("progress")
            if progress["open"] < self.sockets or self.poster.posted - progress["least"] > max(rate * BEHIND_S, 10):
                return

    async def _drain(self) -> None:
        ends_s = time.monotonic() + DRAIN_S
        while time.monotonic() < ends_s:
            progress = await self.listeners.ask("progress")
            if progress["least"] >= self.poster.posted or progress["open"] < self.sockets:
                return
            await asyncio.sleep(0.02)

    def _cpu(self) -> CpuTimes:
        return cpu_times([self.web.pid, self.mongod_pid, os.getpid(), self.listeners.pid])

    def _cpu_since(self, before: CpuTimes) -> dict[str, float]:
        names = {self.web.pid: "web", self.mongod_pid: "mongod", os.getpid(): "poster", self.listeners.pid: "load"}
        percent = self._cpu().percent_since(before)
        return {names[int(pid)] if pid != "others" else pid: value for pid, value in percent.items()}


def _next(best: Step | None, bad: Step | None) -> float:
    if bad is None:
        assert best
        return best.rate * 2
    return bad.rate / 4 if best is None else math.sqrt(best.rate * bad.rate)


async def _measure(way: Way, servers: Databases, place: Place, tokens: list[str], seconds: float) -> Row:
    post = RawPlace(place.stores.redis, place.topic.id).post if way.is_raw else place.post
    async with web(way.name, servers) as target:
        job = Job(target.port, tokens, QUERY, FIELD, {"topicId": place.topic.id}, SAMPLED)
        await _warm_up(job, Poster(post))
        async with listeners(job) as load:
            return await Measurement(target, servers.mongod_pid, load, Poster(post), len(tokens)).row(way, seconds)


async def _warm_up(job: Job, poster: Poster) -> None:
    """A few sockets and posts, so that what is done once is done."""
    few = Job(**{**asdict(job), "tokens": job.tokens[:20]})
    async with listeners(few) as load:
        await load.ask("connect")
        await poster.run(50, 0.5, lambda: True)
        await asyncio.sleep(0.2)


async def _rows(ways: Sequence[Way], sockets: Sequence[int], all_sizes: bool, seconds: float, driver: Driver) -> list[Row]:
    rows = []
    members = [f"u{number}" for number in range(max(sockets))]
    middle = sorted(sockets)[len(sockets) // 2]
    async with databases(driver) as servers, place(servers, members) as where:
        tokens = [servers.token(id_) for id_ in members]
        for count in sockets:
            for way in ways:
                if way.name == PRODUCT or count == middle or all_sizes:
                    row = await _measure(way, servers, where, tokens[:count], seconds)
                    typer.echo(" | ".join(row.cells()), err=True)
                    rows.append(row)
    return rows


def _table(rows: Sequence[Row]) -> Table:
    sizes = {row.quiet.frame_bytes for row in rows if row.quiet}
    table = Table(title=f"One topic, `next` frames of {'/'.join(map(str, sorted(sizes)))} bytes; CPU in percent of a core")
    table.add_column("way")
    names = ["sockets", "connects/s", "KiB each", "p50 at 5/s", "p99 at 5/s", "best deliveries/s", "events/s", "p99"]
    for name in [*names, "web CPU", "load", "mongod", "poster", "others"]:
        table.add_column(name, justify="right")
    table.add_column("why not more")
    for row in rows:
        table.add_row(*row.cells())
    return table


@app.command()
def main(
    sockets: Annotated[str, typer.Option(help="How many sockets.")] = "100,1000,5000",
    seconds: Annotated[float, typer.Option(min=0.5, help="How long latency is measured; a step takes half of it.")] = 4,
    ways: Annotated[str, typer.Option(help=", ".join(way.name for way in WAYS))] = "",
    all_sizes: Annotated[bool, typer.Option("--all-sizes", help="Every way with every number of sockets.")] = False,
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "motor",
) -> None:
    """Measures fan-out, and prints a table."""
    move_to(OTHERS_CORE)
    chosen = [way for way in WAYS if not ways or way.name in ways.split(",")]
    counts = [int(part) for part in sockets.split(",")]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(_rows(chosen, counts, all_sizes, seconds, "motor" if driver == "motor" else "pymongo"))
    Console(width=None if sys.stdout.isatty() else 200).print(_table(rows))


if __name__ == "__main__":
    app()
