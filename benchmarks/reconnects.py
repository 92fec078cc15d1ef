"""Sockets that are cut at once and resume by cursor while posting goes on: time to the first event, and memory."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_load import SubscriptionLoadSpec
from benchmarks.fanout_measuring import LoadProcess, load_process
from benchmarks.fanout_posting import FIELD, SteadyPoster, topic_with_members
from benchmarks.fanout_targets import (
    OTHER_PROCESSES_CORE,
    PRODUCT,
    DatabaseServers,
    FanOutWebProcess,
    database_servers,
    pin_to_core,
    web_process,
)

QUERY = """subscription($topicId: ID!, $since: Cursor) { topicEvents(topicId: $topicId, since: $since) {
  __typename ... on Event { cursor at } ... on MessagePosted { message { id text author { id name } } } } }"""
POSTS_A_SECOND = 1.0
MEMORY_INTERVAL_S = 0.1
REST_S = 30.0
"""Time from the last socket's first event until memory is read again."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class CutResult:
    """Measurements of one cut. `first_ms` has an entry for each socket that received an event after the cut."""

    sockets: int
    resumed: int
    connect_s: float
    first_ms: Sequence[float]
    slowest_post_ms: float
    before_mib: float
    peak_mib: float
    after_mib: float
    faults: dict[str, int]

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        return [
            *(f"{self.sockets:,}", f"{self.resumed:,}", f"{self.connect_s:.1f}"),
            *(f"{self._first_s(percent):.1f}" for percent in (50, 99, 100)),
            *(f"{self.slowest_post_ms:.0f}", f"{self.before_mib:.0f}", f"{self.peak_mib:.0f}", f"{self.after_mib:.0f}"),
            ", ".join(f"{count} {fault}" for fault, count in self.faults.items()) or "none",
        ]

    def _first_s(self, percent: int) -> float:
        count = len(self.first_ms)
        return self.first_ms[math.ceil(count * percent / 100) - 1] / 1000 if count else math.nan


async def measure(servers: DatabaseServers, sockets: int, cuts: int) -> list[CutResult]:
    """Cuts all sockets of one web process several times. Returns a result for each cut."""
    members = [f"m{number}" for number in range(sockets)]
    async with topic_with_members(servers, members) as topic, web_process(PRODUCT, servers) as web:
        tokens = [servers.token(member) for member in members]
        spec = SubscriptionLoadSpec(web.port, tokens, QUERY, FIELD, {"topicId": topic.topic.id}, len(tokens))
        async with load_process(spec, "benchmarks.reconnects_load") as load:
            pin_to_core(OTHER_PROCESSES_CORE, load.pid)
            await load.execute("connect")
            poster = SteadyPoster(topic.post)
            posting = asyncio.create_task(poster.run(POSTS_A_SECOND, 3600, lambda: True))
            await asyncio.sleep(5)
            results = [await cut(web, load, poster, sockets) for _ in range(cuts)]
            posting.cancel()
            return results


async def cut(web: FanOutWebProcess, load: LoadProcess, poster: SteadyPoster, sockets: int) -> CutResult:
    """Cuts all sockets once. Waits until each connected socket has received an event, at most 240 s, then `REST_S`."""
    await load.execute("reset")
    poster.slowest_ms = 0.0
    before_kib = web.rss_kib()
    reconnect = asyncio.create_task(load.execute("cut"))
    peak_kib = before_kib
    while not reconnect.done():
        await asyncio.sleep(MEMORY_INTERVAL_S)
        peak_kib = max(peak_kib, web.rss_kib())
    answer: dict[str, Any] = await reconnect
    await asyncio.sleep(REST_S)
    faults = (await load.execute("report"))["faults"]
    return CutResult(
        sockets=sockets,
        resumed=answer["open"],
        connect_s=answer["connect_s"],
        first_ms=answer["first_ms"],
        slowest_post_ms=poster.slowest_ms,
        before_mib=before_kib / 1024,
        peak_mib=peak_kib / 1024,
        after_mib=web.rss_kib() / 1024,
        faults=faults,
    )


async def run(sizes: Sequence[int], cuts: int, console: Console) -> None:
    """Measures each number of sockets, and prints the table."""
    table = Table(title=f"Sockets cut at once, {POSTS_A_SECOND:g} post a second")
    names = ["sockets", "reconnected", "connected s", "first event s p50", "p99", "max", "slowest post ms"]
    for name in [*names, "MiB before", "peak", "after"]:
        table.add_column(name, justify="right")
    table.add_column("faults")
    for sockets in sizes:
        async with database_servers("pymongo") as servers:
            for result in await measure(servers, sockets, cuts):
                table.add_row(*result.cells())
    console.print(table)


@app.command()
def main(
    sockets: Annotated[str, typer.Option(help="Numbers of sockets, separated by commas.")] = "1000,10000",
    cuts: Annotated[int, typer.Option(min=1, help="Number of cuts for each number of sockets.")] = 3,
) -> None:
    """Measures how long sockets take to reconnect, and prints a table."""
    pin_to_core(OTHER_PROCESSES_CORE)
    uvloop.run(run([int(size) for size in sockets.split(",")], cuts, Console(width=140)))


if __name__ == "__main__":
    app()
