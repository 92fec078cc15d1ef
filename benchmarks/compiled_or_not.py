"""Operations in which little is compiled, with the compiled executor and with graphql-core's own, in one process.

Both take turns, first the one, then the other; what is shown is processor time, the median of the rounds and the least.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import strawberry
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import ORGANIZATION, databases
from benchmarks.timeline_data import VIEWER, Library, library
from resolvers.context import Context
from schema.root import build_schema
from server.compiled import CompiledExecutor
from server.limits import DocumentLimitsExtension
from storage.identity import Role

OPERATIONS = {
    "one number": "query($t: ID!) { topic(id: $t) { unreadCount } }",
    "one topic": "query($t: ID!) { topic(id: $t) { id title createdAt lastActivity } }",
    "a topic and its community": "query($t: ID!) { topic(id: $t) { title community { name memberCount joined } } }",
    "one message": "query($t: ID!) { topic(id: $t) { lastMessage { id text author { handle } } } }",
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def _cpu_us(schema: strawberry.Schema, books: Library, query: str, count: int) -> float:
    """Processor time of one execution, one after the other."""
    viewer = await books.stores.users.get(ORGANIZATION, VIEWER)
    variables = {"t": books.topics[1].id}
    began_s = time.process_time()
    for _ in range(count):
        context = Context(books.stores, str, viewer, frozenset({Role.MEMBER}))
        result = await schema.execute(query, variables, context)
        assert not result.errors, result.errors
    return 1e6 * (time.process_time() - began_s) / count


async def _measured(count: int, rounds: int) -> list[tuple[str, list[float], list[float]]]:
    general, compiled = (
        build_schema(DocumentLimitsExtension, executor=executor) for executor in (None, CompiledExecutor)
    )
    async with databases("motor") as servers, library(servers) as books:
        rows = []
        for name, query in OPERATIONS.items():
            times: dict[strawberry.Schema, list[float]] = {general: [], compiled: []}
            for number in range(rounds + 1):
                for schema in (general, compiled) if number % 2 else (compiled, general):
                    times[schema].append(await _cpu_us(schema, books, query, count))
            # The first round warms up.
            rows.append((name, times[general][1:], times[compiled][1:]))
    return rows


def _cells(general: Sequence[float], compiled: Sequence[float]) -> list[str]:
    figures = [figure(values) for figure in (statistics.median, min) for values in (general, compiled)]
    ratios = 100 * (figures[1] / figures[0] - 1), 100 * (figures[3] / figures[2] - 1)
    return [
        *(f"{each:,.0f}" for each in figures[:2]),
        f"{ratios[0]:+.1f}",
        *(f"{each:,.0f}" for each in figures[2:]),
        f"{ratios[1]:+.1f}",
    ]


@app.command()
def main(
    count: Annotated[int, typer.Option(min=1, help="Executions a round.")] = 300,
    rounds: Annotated[int, typer.Option(min=2, help="Rounds of each.")] = 10,
) -> None:
    """Measures each operation, and prints a table."""
    table = Table("operation", title="Processor time of one execution, µs")
    for name in ["median, general", "compiled", "%", "least, general", "compiled", "%"]:
        table.add_column(name, justify="right")
    run = partial(asyncio.Runner, loop_factory=uvloop.new_event_loop)
    with run() as runner:
        for name, general, compiled in runner.run(_measured(count, rounds)):
            table.add_row(name, *_cells(general, compiled))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    app()
