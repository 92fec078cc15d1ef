"""Pages, posts and reactions of this checkout, compared with another one, such as the commit before a change.

The web processes of both checkouts run at the same time on the same data. They are measured in short interleaved
slices, so that a slow minute of the machine affects both. The other checkout needs its own `make setup`.

With `--web 2`, each checkout has two web processes, and the clients write to one topic on both. Pages are not measured.
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

from benchmarks.posting import Action, PostingBenchmark, PostingResult, RunOptions
from benchmarks.servers import database_servers, web_processes
from benchmarks.tables import numbers, percentile, print_table
from benchmarks.timeline import MeasuredWebProcess, PageKindResult
from benchmarks.timeline_data import timeline_data
from tests.client import client
from tests.product import NOROSHI

BEFORE, AFTER = "before", "after"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class SliceOptions:
    """The numbers of web processes and of slices of each checkout, their lengths, and the numbers of clients."""

    web: int
    rounds: int
    seconds: float
    warm_up_s: float
    clients: Sequence[int]

    def order(self) -> Iterator[str]:
        """Yields the checkouts in the order of their slices: each round begins with the other one."""
        for number in range(self.rounds):
            yield from (BEFORE, AFTER) if number % 2 else (AFTER, BEFORE)


class Measurements:
    """Rates, processor times of the web processes, and latencies in ms, by workload and checkout."""

    def __init__(self) -> None:
        self.rates = defaultdict[tuple[str, str], list[float]](list)
        self.cpu_ms = defaultdict[tuple[str, str], list[float]](list)
        self.p50_ms = defaultdict[tuple[str, str], list[float]](list)
        self.p99_ms = defaultdict[tuple[str, str], list[float]](list)

    def add(self, workload: str, variant: str, result: PageKindResult | PostingResult) -> None:
        """Adds the figures of one slice."""
        self.rates[workload, variant].append(result.rate)
        self.cpu_ms[workload, variant].append(result.cpu_ms)
        self.p50_ms[workload, variant].append(percentile(result.report.latencies_ms, 50))
        self.p99_ms[workload, variant].append(percentile(result.report.latencies_ms, 99))


async def measure(programs: dict[str, Sequence[str]], options: SliceOptions) -> Measurements:
    """Measures pages, posts and reactions of both checkouts, interleaved. `programs` are their `noroshi` commands."""
    found = Measurements()
    async with database_servers() as servers, timeline_data(servers) as data, AsyncExitStack() as stack:
        webs = {
            variant: stack.enter_context(web_processes(servers, program, options.web))
            for variant, program in programs.items()
        }
        founder = await stack.enter_async_context(client(webs[AFTER].url, servers.token("founder")))
        run_options = RunOptions([options.web], options.clients, options.seconds, 0, warm_up_s=options.warm_up_s)
        posting = PostingBenchmark(servers, founder, run_options)
        await posting.prepare()
        for variant in options.order():
            web = webs[variant]
            if options.web == 1:
                pages = MeasuredWebProcess(variant, web, servers, data, options.seconds, options.warm_up_s)
                async for result in pages.measure_page_kinds():
                    found.add(f"{result.page_kind} page", variant, result)
            for action, count in itertools.product(Action, options.clients):
                written = await posting.measure(action, variant, web, count)
                found.add(f"{action}, {count} clients", variant, written)
    return found


def medians(figures: dict[tuple[str, str], list[float]]) -> Iterator[list[str]]:
    """Yields a row for each workload: the medians before and after, and the change in percent."""
    for workload in dict.fromkeys(workload for workload, _ in figures):
        before, after = (statistics.median(figures[workload, variant]) for variant in (BEFORE, AFTER))
        change = f"{100 * after / before - 100:+.1f} %" if before else ""
        yield [workload, f"{before:,.3f}", f"{after:,.3f}", change]


@app.command()
def main(
    before: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Folder of the other checkout.")],
    web: Annotated[int, typer.Option(min=1, help="Web processes of each checkout.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of a slice in seconds.")] = 1.5,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each slice.")] = 0.5,
    clients: Annotated[str, typer.Option(help="Numbers of clients that post, separated by commas.")] = "1,10,100",
) -> None:
    """Prints tables of medians."""
    programs = {BEFORE: [str(before.absolute() / ".venv/bin/noroshi")], AFTER: NOROSHI}
    options = SliceOptions(web, rounds, seconds, warm_up_s, numbers(clients))
    found = asyncio.run(measure(programs, options))
    columns = ["workload", BEFORE, AFTER, "change"]
    print_table(f"Pages or writes a second, median of {rounds} slices of {seconds:g} s", columns, medians(found.rates))
    print_table("Processor time of the web processes for each page or write, ms", columns, medians(found.cpu_ms))
    print_table("Latency, median of the slices' p50, ms", columns, medians(found.p50_ms))
    print_table("Latency, median of the slices' p99, ms", columns, medians(found.p99_ms))


if __name__ == "__main__":
    app()
