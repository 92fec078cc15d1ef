"""Pages and posts a second of this checkout, compared with another checkout, such as the commit before a change.

The web processes of both checkouts run at the same time on the same data. They are measured in short interleaved
slices, so that a slow minute of the machine affects both. The other checkout needs its own `make setup`.
"""

import asyncio
import statistics
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import posting, timeline
from benchmarks.fanout_targets import database_servers
from benchmarks.servers import WebProcesses
from benchmarks.timeline_data import timeline_data
from tests.client import client

BEFORE, AFTER = "before", "after"
CLIENTS = (1, 10, 100)

Measurements = dict[tuple[str, str], list[float]]
"""Measured values by workload, such as "random page", and variant."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def measure(rounds: int, seconds: float) -> tuple[Measurements, Measurements]:
    """Returns pages and posts a second, and the processor time of the web process for each page or post in ms."""
    rates, cpu_ms = defaultdict[tuple[str, str], list[float]](list), defaultdict[tuple[str, str], list[float]](list)
    async with database_servers("pymongo") as servers, timeline_data(servers) as data, AsyncExitStack() as stack:
        webs = {
            variant: await stack.enter_async_context(timeline.web_process(variant, servers))
            for variant in (BEFORE, AFTER)
        }
        founder = await stack.enter_async_context(
            client(f"http://127.0.0.1:{webs[AFTER].port}", servers.token("founder"))
        )
        options = posting.RunOptions([1], CLIENTS, seconds, 1.0, "pymongo")
        posting_benchmark = posting.PostingBenchmark(servers, founder, options)
        await posting_benchmark.prepare()
        for number in range(rounds):
            for variant in (BEFORE, AFTER) if number % 2 else (AFTER, BEFORE):
                web = webs[variant]
                measured = timeline.MeasuredWebProcess(variant, web, servers, data, seconds)
                async for result in timeline.measure_page_kinds(measured):
                    rates[f"{result.page_kind} page", variant].append(result.rate)
                    cpu_ms[f"{result.page_kind} page", variant].append(result.cpu_ms)
                for clients in CLIENTS:
                    posting_result = await posting_benchmark.measure_posts(
                        variant, WebProcesses(web.port, [web.pid]), clients
                    )
                    rates[f"post, {clients} clients", variant].append(posting_result.rate)
                    cpu_ms_per_s = 10 * posting_result.report.cpu_percent[str(web.pid)]
                    cpu_ms[f"post, {clients} clients", variant].append(cpu_ms_per_s / max(posting_result.rate, 1))
    return rates, cpu_ms


def table(title: str, measurements: Measurements) -> Table:
    """Returns a table of the medians before and after, and of the change in percent."""
    medians = Table(title=title)
    medians.add_column("workload")
    for name in (BEFORE, AFTER, "change"):
        medians.add_column(name, justify="right")
    for workload in dict.fromkeys(workload for workload, _ in measurements):
        before, after = (statistics.median(measurements[workload, variant]) for variant in (BEFORE, AFTER))
        medians.add_row(workload, f"{before:,.3f}", f"{after:,.3f}", f"{100 * after / before - 100:+.1f} %")
    return medians


@app.command()
def main(
    before: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Folder of the other checkout.")],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.5, help="Length of a slice in seconds.")] = 1.5,
) -> None:
    """Prints two tables of medians."""
    timeline.VARIANTS[BEFORE] = [str(before.absolute() / ".venv/bin/noroshi"), "web", "--fd"]
    timeline.VARIANTS[AFTER] = timeline.VARIANTS["Noroshi"]
    timeline.WARM_UP_S = posting.WARM_UP_S = 0.5
    rates, cpu_ms = asyncio.run(measure(rounds, seconds))
    Console().print(table(f"Pages or posts a second, median of {rounds} slices of {seconds:g} s", rates))
    Console().print(table("Processor time of the web process for each page or post, ms", cpu_ms))


if __name__ == "__main__":
    app()
