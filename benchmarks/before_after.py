"""Pages, posts and reactions of this checkout, compared with another one, such as the commit before a change.

The web processes of both checkouts run at the same time on the same data. They are measured in short interleaved
slices, so that a slow minute of the machine affects both. The other checkout needs its own `make setup`.
"""

import asyncio
import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.posting import Action, PostingBenchmark, RunOptions
from benchmarks.servers import WebProcesses, database_servers, web_process
from benchmarks.tables import numbers, print_table
from benchmarks.timeline import MeasuredWebProcess
from benchmarks.timeline_data import timeline_data
from tests.client import client
from tests.product import NOROSHI

BEFORE, AFTER = "before", "after"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class SliceOptions:
    """The number of slices of each checkout, their lengths, and the numbers of clients that post."""

    rounds: int
    seconds: float
    warm_up_s: float
    clients: Sequence[int]

    def order(self) -> Iterator[str]:
        """Yields the checkouts in the order of their slices: each round begins with the other one."""
        for number in range(self.rounds):
            yield from (BEFORE, AFTER) if number % 2 else (AFTER, BEFORE)


class Measurements:
    """Rates, and processor times of the web process in ms, by workload and checkout."""

    def __init__(self) -> None:
        self.rates = defaultdict[tuple[str, str], list[float]](list)
        self.cpu_ms = defaultdict[tuple[str, str], list[float]](list)

    def add(self, workload: str, variant: str, rate: float, cpu_ms: float) -> None:
        """Adds the figures of one slice."""
        self.rates[workload, variant].append(rate)
        self.cpu_ms[workload, variant].append(cpu_ms)


async def measure(programs: dict[str, Sequence[str]], options: SliceOptions) -> Measurements:
    """Measures pages, posts and reactions of both checkouts, interleaved. `programs` are their `noroshi` commands."""
    found = Measurements()
    async with database_servers() as servers, timeline_data(servers) as data, AsyncExitStack() as stack:
        webs = {variant: stack.enter_context(web_process(servers, programs[variant])) for variant in programs}
        founder = await stack.enter_async_context(client(webs[AFTER].url, servers.token("founder")))
        run_options = RunOptions([1], options.clients, options.seconds, 0, warm_up_s=options.warm_up_s)
        posting = PostingBenchmark(servers, founder, run_options)
        await posting.prepare()
        for variant in options.order():
            web = webs[variant]
            pages = MeasuredWebProcess(variant, web, servers, data, options.seconds, options.warm_up_s)
            async for result in pages.measure_page_kinds():
                found.add(f"{result.page_kind} page", variant, result.rate, result.cpu_ms)
            for action, count in itertools.product(Action, options.clients):
                await _measure_writes(found, posting, action, variant, web, count)
    return found


async def _measure_writes(
    found: Measurements, posting: PostingBenchmark, action: Action, variant: str, web: WebProcesses, clients: int
) -> None:
    result = await posting.measure(action, variant, web, clients)
    cpu_ms = 10 * result.report.cpu_percent[str(web.pid)] / max(result.rate, 1)
    found.add(f"{action}, {clients} clients", variant, result.rate, cpu_ms)


def medians(figures: dict[tuple[str, str], list[float]]) -> Iterator[list[str]]:
    """Yields a row for each workload: the medians before and after, and the change in percent."""
    for workload in dict.fromkeys(workload for workload, _ in figures):
        before, after = (statistics.median(figures[workload, variant]) for variant in (BEFORE, AFTER))
        change = f"{100 * after / before - 100:+.1f} %" if before else ""
        yield [workload, f"{before:,.3f}", f"{after:,.3f}", change]


@app.command()
def main(
    before: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Folder of the other checkout.")],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of a slice in seconds.")] = 1.5,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each slice.")] = 0.5,
    clients: Annotated[str, typer.Option(help="Numbers of clients that post, separated by commas.")] = "1,10,100",
) -> None:
    """Prints two tables of medians."""
    programs = {BEFORE: [str(before.absolute() / ".venv/bin/noroshi")], AFTER: NOROSHI}
    options = SliceOptions(rounds, seconds, warm_up_s, numbers(clients))
    found = asyncio.run(measure(programs, options))
    columns = ["workload", BEFORE, AFTER, "change"]
    print_table(f"Pages or writes a second, median of {rounds} slices of {seconds:g} s", columns, medians(found.rates))
    print_table("Processor time of the web process for each page or write, ms", columns, medians(found.cpu_ms))


if __name__ == "__main__":
    app()
