"""Sockets that connect, are cut at once, and resume by cursor while posting goes on: times, and memory."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import uvloop

from benchmarks.cpu import memory_mib
from benchmarks.fanout import LoadProcess, load_process
from benchmarks.fanout_load import SubscriptionLoadSpec
from benchmarks.fanout_posting import FIELD, QUERY, SteadyPoster, topic_with_members
from benchmarks.servers import DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import numbers, percentile, print_table
from tests.waiting import until

MEMORY_INTERVAL_S = 0.1
COLUMNS = ["sockets", "connects/s", "KiB a socket"]
COLUMNS += ["reconnected", "connected s", "first event s p50", "p99", "max", "slowest post ms"]
COLUMNS += ["MiB before", "peak", "after", "faults"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class ConnectResult:
    """Measurements of the first connects of all sockets, each with a token that the process has not seen."""

    sockets: int
    rate: float
    """Connects a second, each up to the confirmation of its subscription."""

    kib: float
    """Memory of a socket with one subscription, in KiB."""

    def cells(self) -> list[str]:
        """Returns the first cells of each row of the table."""
        return [f"{self.sockets:,}", f"{self.rate:,.0f}", f"{self.kib:.0f}"]


@dataclass(frozen=True)
class CutResult:
    """Measurements of one cut, and the load generator's answer to it. Memory is in MiB."""

    connected: ConnectResult
    answer: dict[str, Any]
    slowest_post_ms: float
    memory_mib: tuple[float, float, float]
    """Before the cut, at the peak, and after the rest."""

    faults: dict[str, int]

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        first_s = [f"{percentile(self.answer['first_ms'], percent) / 1000:.1f}" for percent in (50, 99, 100)]
        return [
            *(*self.connected.cells(), f"{self.answer['open']:,}", f"{self.answer['connect_s']:.1f}", *first_s),
            *(f"{self.slowest_post_ms:.0f}", *(f"{each:.0f}" for each in self.memory_mib)),
            ", ".join(f"{count} {fault}" for fault, count in self.faults.items()) or "none",
        ]


@dataclass(frozen=True)
class CutBenchmark:
    """The measured web process with its load generator and its poster, and the time from a cut to the next one."""

    web: WebProcesses
    load: LoadProcess
    poster: SteadyPoster
    rest_s: float

    async def cut(self, connected: ConnectResult) -> CutResult:
        """Cuts all sockets once. Waits until each has received an event, at most 240 s, then for `rest_s`."""
        await self.load.execute("reset")
        self.poster.slowest_ms = 0.0
        before_mib = peak_mib = memory_mib(self.web.pid)
        reconnect = asyncio.create_task(self.load.execute("cut"))
        while not reconnect.done():
            await asyncio.sleep(MEMORY_INTERVAL_S)
            peak_mib = max(peak_mib, memory_mib(self.web.pid))
        await asyncio.sleep(self.rest_s)
        faults = (await self.load.execute("report"))["faults"]
        memory = before_mib, peak_mib, memory_mib(self.web.pid)
        return CutResult(connected, await reconnect, self.poster.slowest_ms, memory, faults)

    async def have_events(self) -> bool:
        """Returns whether every socket has received an event."""
        return bool((await self.load.execute("progress"))["least"])


async def connect_all(web: WebProcesses, load: LoadProcess, sockets: int) -> ConnectResult:
    """Connects all sockets."""
    before_mib = memory_mib(web.pid)
    seconds = (await load.execute("connect"))["seconds"]
    return ConnectResult(sockets, sockets / seconds, 1024 * (memory_mib(web.pid) - before_mib) / sockets)


async def measure(servers: DatabaseServers, sockets: int, cuts: int, rest_s: float, rate: float) -> list[CutResult]:
    """Cuts all sockets of one web process several times, beside posts at a rate. Returns a result for each cut."""
    members = [f"m{number}" for number in range(sockets)]
    async with topic_with_members(servers, members) as topic:
        with web_process(servers) as web:
            tokens = [servers.token(member) for member in members]
            specs = [
                SubscriptionLoadSpec(web.port, tokens[-count:], QUERY, FIELD, {"topicId": topic.topic.id}, count)
                for count in (1, sockets)
            ]
            # What the first subscription of a process takes is no memory of a socket.
            async with load_process(specs[0]) as first_load:
                await first_load.execute("connect")
            async with load_process(specs[1]) as load:
                connected = await connect_all(web, load, sockets)
                benchmark = CutBenchmark(web, load, SteadyPoster(topic.post), rest_s)
                ended = asyncio.Event()
                posting = asyncio.create_task(benchmark.poster.run(rate, 3600, lambda: not ended.is_set()))
                await until(benchmark.have_events)
                results = [await benchmark.cut(connected) for _ in range(cuts)]
                ended.set()
                await posting
                return results


async def measure_sizes(sizes: Sequence[int], cuts: int, rest_s: float, rate: float) -> list[CutResult]:
    """Measures each number of sockets, on new database servers."""
    results = []
    for sockets in sizes:
        async with database_servers() as servers:
            results += await measure(servers, sockets, cuts, rest_s, rate)
    return results


@app.command()
def main(
    sockets: Annotated[str, typer.Option(help="Numbers of sockets, separated by commas.")] = "1000,10000",
    cuts: Annotated[int, typer.Option(min=1, help="Number of cuts for each number of sockets.")] = 3,
    rest_s: Annotated[float, typer.Option("--rest", help="Seconds before memory is read again.")] = 30.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Posts a second.")] = 1.0,
) -> None:
    """Measures how long sockets take to reconnect, and prints a table."""
    results = uvloop.run(measure_sizes(numbers(sockets), cuts, rest_s, rate))
    print_table(f"Sockets cut at once, {rate:g} posts a second", COLUMNS, (each.cells() for each in results))


if __name__ == "__main__":
    app()
