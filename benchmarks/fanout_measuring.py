"""One row of the fan-out benchmark: one way, served by one web process to so many sockets."""

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
from typing import Any

import orjson

from benchmarks.cpu import CpuTimes, cpu_times
from benchmarks.fanout_load import Job
from benchmarks.fanout_posting import FIELD, QUERY, Place, Poster, RawPlace
from benchmarks.fanout_targets import PRODUCT, Databases, Web, web

QUIET_RATE = 5.0
LATE_MS = 250.0
SAMPLED = 50
STEP_SHARE = 0.4
SEARCH_SHARE = 4
CLOSE_ENOUGH = 1.12
FIRST_RATE = 1000.0
PROGRESS_EVERY_S = 0.1
DRAIN_S = 8.0
BEHIND_S = 1.0
SETTLED_S = 0.3
LINE_BYTES = 1 << 28
PRODUCT_BY_ONE = "one-by-one"
RAW = ("asgi", "legacy", "library", "transport", "joined")


@dataclass(frozen=True)
class Way:
    """How it is done, and the deliveries a second to begin the search with."""

    name: str
    title: str
    start: float


WAYS = [
    Way(PRODUCT, "Noroshi", 500_000),
    Way(PRODUCT_BY_ONE, "Noroshi, frame by frame", 70_000),
    Way("ordinary", "(a) Strawberry, ordinary", 1_000),
    Way("asgi", "(b) no GraphQL, ASGI send a frame", 60_000),
    Way("legacy", "(e) as (b), uvicorn's `websockets`", 30_000),
    Way("library", "(f) no GraphQL, websockets' own server", 80_000),
    Way("transport", "(c) no GraphQL, a write a frame", 80_000),
    Way("joined", "(d) no GraphQL, joined", 1_000_000),
]


@dataclass(frozen=True)
class Step:
    """The result of posting at one rate for a while. CPU is in percent of one core."""

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


@dataclass
class Row:
    """One line of the table."""

    way: Way
    sockets: int
    connections_per_s: float = math.nan
    kib: float = math.nan
    quiet: Step | None = None
    best: Step | None = None
    most: float = 0.0
    limit: str = ""

    def cells(self) -> list[str]:
        """As the table shows it. Where everything was late, in brackets how many came at all."""
        best = self.best
        cpu = [f"{best.cpu[name]:.0f}" for name in ("web", "load", "mongod", "poster", "others")] if best else [""] * 5
        return [
            *(self.way.title, str(self.sockets), f"{self.connections_per_s:,.0f}", f"{self.kib:.1f}"),
            *(_latency(self.quiet, 50), _latency(self.quiet, 99)),
            f"{best.deliveries_per_s:,.0f}" if best else f"({self.most:,.0f})",
            f"{best.rate:,.0f}" if best else "",
            *(_latency(best, 99), *cpu, self.limit),
        ]


def _latency(step: Step | None, percent: int) -> str:
    return f"{step.latency_ms(percent):,.1f}" if step else ""


class Listeners:
    """The load generator."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.pid = process.pid
        assert process.stdin
        assert process.stdout
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
    """A load generator in a process of its own, with nothing connected yet; killed afterwards."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.fanout_load"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=LINE_BYTES,
        cwd=Path(__file__).parents[1],
    )
    load = Listeners(process)
    try:
        await load.ask(orjson.dumps(asdict(job)).decode())
        yield load
    finally:
        process.kill()
        await process.wait()


async def measure(way: Way, servers: Databases, place: Place, tokens: Sequence[str], seconds: float) -> Row:
    """The row of a way with a socket for each token."""
    post = RawPlace(place.stores.redis, place.topic.id).post if way.name in RAW else place.post
    async with web(way.name, servers) as target:
        job = Job(target.port, list(tokens), QUERY, FIELD, {"topicId": place.topic.id}, SAMPLED)
        await _warm_up(job, Poster(post))
        async with listeners(job) as load:
            measurement = Measurement(target, servers.mongod_pid, load, Poster(post), len(tokens))
            return await measurement.row(way, seconds)


async def _warm_up(job: Job, poster: Poster) -> None:
    """A few sockets and posts, so that what is done once is done."""
    async with listeners(replace(job, tokens=job.tokens[:20])) as load:
        await load.ask("connect")
        await poster.run(50, 0.5, lambda: True)
        await asyncio.sleep(SETTLED_S)


@dataclass
class Measurement:
    """A web process, and those who listen to it."""

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
            row.limit = f"{connected['open']} sockets after {connected['seconds']:.0f} s"
            return row
        row.connections_per_s = self.sockets / connected["seconds"]
        await asyncio.sleep(SETTLED_S)
        row.kib = (self.web.rss_kib() - before_kib) / self.sockets
        row.quiet = await self.step(QUIET_RATE, seconds)
        await self._search(row, min(way.start / self.sockets, FIRST_RATE), seconds)
        return row

    async def _search(self, row: Row, rate: float, seconds: float) -> None:
        """Doubles or halves the rate until one is good and one is bad, then halves the gap. Bad is twice bad."""
        ends_s = time.monotonic() + SEARCH_SHARE * seconds
        row.limit = "not reached"
        bad_rate: float | None = None
        failed_once = False
        while time.monotonic() < ends_s:
            step = await self.step(rate, STEP_SHARE * seconds)
            row.most = max(row.most, step.deliveries_per_s)
            if not step.fault:
                row.best = step
            elif not failed_once:
                failed_once = True
                continue
            else:
                bad_rate, row.limit = rate, step.fault
            failed_once = False
            if row.best and bad_rate and bad_rate / row.best.rate < CLOSE_ENOUGH:
                break
            rate = _next(row.best, bad_rate)

    async def step(self, rate: float, seconds: float) -> Step:
        """Posts at a rate, waits until everything has arrived, and sees to it that everybody is there again."""
        await self.listeners.ask("mark")
        before, began_s, over = self._cpu(), time.monotonic(), asyncio.Event()
        watch = asyncio.create_task(self._watch(rate, over))
        await self.poster.run(rate, seconds, lambda: not watch.done())
        cpu = self._cpu_since(before)
        over.set()
        await watch
        await self._drain()
        report = await self.listeners.ask("report")
        passed_s = max(report["last_s"] - began_s, seconds)
        if report["open"] < self.sockets:
            await self.listeners.ask("connect")
        step = Step(
            *(rate, "", report["latencies_ms"], report["frames"] / passed_s),
            *(self.poster.slowest_ms, report["frame_bytes"], cpu | {"load": report["cpu_percent"]}),
        )
        return replace(step, fault=self._fault(step, report, seconds))

    def _fault(self, step: Step, report: dict[str, Any], seconds: float) -> str:
        """Why this rate is too high; empty when it is not."""
        p99_ms = step.latency_ms(99)
        if report["faults"]:
            return ", ".join(f"{count} {what}" for what, count in report["faults"].items())[:60]
        if self.poster.posted < int(step.rate * seconds):
            return f"{BEHIND_S:g} s behind"
        if not self.poster.posted == report["least"] == report["most"]:
            return f"{self.poster.posted} posted, {report['least']} to {report['most']} arrived"
        if p99_ms > LATE_MS and step.commit_ms > LATE_MS / 2:
            return f"p99 {p99_ms:.0f} ms; commits up to {step.commit_ms:.0f}"
        return f"p99 {p99_ms:.0f} ms" if p99_ms > LATE_MS else ""

    async def _watch(self, rate: float, over: asyncio.Event) -> None:
        """Returns when it is over, or when the listeners are hopelessly behind or one of them is gone."""
        while not over.is_set():
            await asyncio.sleep(PROGRESS_EVERY_S)
            progress = await self.listeners.ask("progress")
            if progress["open"] < self.sockets or self.poster.posted - progress["least"] > max(rate * BEHIND_S, 10):
                return

    async def _drain(self) -> None:
        ends_s = time.monotonic() + DRAIN_S
        while time.monotonic() < ends_s:
            progress = await self.listeners.ask("progress")
            if progress["least"] >= self.poster.posted or progress["open"] < self.sockets:
                return
            await asyncio.sleep(PROGRESS_EVERY_S / 5)

    def _cpu(self) -> CpuTimes:
        return cpu_times([self.web.pid, self.mongod_pid, os.getpid(), self.listeners.pid])

    def _cpu_since(self, before: CpuTimes) -> dict[str, float]:
        names = {self.web.pid: "web", self.mongod_pid: "mongod", os.getpid(): "poster", self.listeners.pid: "load"}
        percent = self._cpu().percent_since(before)
        return {"others" if pid == "others" else names[int(pid)]: value for pid, value in percent.items()}


def _next(best: Step | None, bad_rate: float | None) -> float:
    if bad_rate is None:
        assert best
        return best.rate * 2
    return bad_rate / 2 if best is None else math.sqrt(best.rate * bad_rate)
