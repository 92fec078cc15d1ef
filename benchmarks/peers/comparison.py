"""Timeline pages of Noroshi, mercurius, GraphQL Yoga and ordinary Strawberry: the same work, and the same bytes.

Each server verifies the bearer token, checks topic, membership and blocks, loads authors and the viewer's reactions by
loaders, and reads MongoDB at majority. Before the measurement, a sample of answers must be the same in every byte. The
web process runs on core 0. MongoDB, Redis and the load generator share core 1. The servers are interleaved, and the
table shows the median of the rounds. Linux only.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from benchmarks.peers.node_packages import FOLDER, NodePackagesMissing, install_node_packages
from benchmarks.peers.same_answers import DifferentAnswer, check_same_answers
from benchmarks.servers import database_servers, web_process
from benchmarks.tables import print_table
from benchmarks.timeline import (
    COLUMNS,
    CONNECTIONS,
    MANY_CONNECTIONS,
    NEWEST,
    NEWEST_MANY,
    RANDOM,
    MeasuredWebProcess,
    PageKindResult,
)
from benchmarks.timeline_data import PAGE_SIZE, timeline_data
from tests.product import NOROSHI

NODE = ["env", "NODE_ENV=production", "node"]
VARIANTS: dict[str, Sequence[str]] = {
    "Noroshi": NOROSHI,
    "mercurius": [*NODE, str(FOLDER / "mercurius.mjs")],
    "GraphQL Yoga": [*NODE, str(FOLDER / "yoga.mjs")],
    "Strawberry, ordinary": [sys.executable, "-m", "benchmarks.peers.ordinary_strawberry"],
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def measure(rounds: int, seconds: float, warm_up_s: float) -> list[PageKindResult]:
    """Returns the median result of each kind of page and variant. Raises: DifferentAnswer."""
    results = defaultdict[tuple[str, str], list[PageKindResult]](list)
    async with database_servers() as servers, timeline_data(servers) as data:
        await check_same_answers(VARIANTS, servers, data)
        for variant in [*VARIANTS] * rounds:
            with web_process(servers, VARIANTS[variant]) as web:
                measured = MeasuredWebProcess(variant, web, servers, data, seconds, warm_up_s)
                async for result in measured.measure_page_kinds():
                    results[result.page_kind, variant].append(result)
                    typer.echo(" | ".join(result.cells()), err=True)
                    if result.report.errors:
                        typer.echo(result.report.errors, err=True)
    return median_results(results.values())


def median_results(results: Iterable[Sequence[PageKindResult]]) -> list[PageKindResult]:
    """Returns the result with the median rate of each sequence, in the order of the kinds of pages."""
    medians = [sorted(each, key=lambda result: result.rate)[len(each) // 2] for each in results]
    return sorted(medians, key=lambda result: [RANDOM, NEWEST, NEWEST_MANY].index(result.page_kind))


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of each measurement.")] = 3.0,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each measurement.")] = 3.0,
) -> None:
    """Measures timeline pages, and prints a table."""
    try:
        install_node_packages()
        rows = asyncio.run(measure(rounds, seconds, warm_up_s))
    except (NodePackagesMissing, DifferentAnswer) as error:
        sys.exit(str(error))
    title = f"Pages of {PAGE_SIZE}, {CONNECTIONS} or {MANY_CONNECTIONS} connections, {rounds} x {seconds:g} s"
    print_table(title, COLUMNS, (row.cells() for row in rows))
