"""Fan-out to many sockets on one topic: the product and its alternatives, one after the other.

The web process has core 0; MongoDB, Redis, the listeners and the poster share core 1. `best` is the
highest rate at which nothing was lost, order was kept and p99 stayed under 250 ms. Linux only.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_measuring import PRODUCT_BY_ONE, WAYS, Row, Way, measure
from benchmarks.fanout_posting import place
from benchmarks.fanout_targets import OTHERS_CORE, PRODUCT, databases, move_to
from storage.mongo import Driver

COLUMNS = [
    *("sockets", "connects/s", "KiB each", "p50 at 5/s", "p99 at 5/s"),
    *("best deliveries/s", "events/s", "p99", "web CPU", "load", "mongod", "poster", "others"),
]
WIDTH = 200

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _plan(ways: Sequence[Way], sockets: Sequence[int], all_sizes: bool) -> list[tuple[int, Way]]:
    """Returns the measurements: every variant with the middle number of sockets, then the product with the others."""
    middle = sorted(sockets)[len(sockets) // 2]
    sizes = [middle, *(count for count in sockets if count != middle)]
    return [(count, way) for count in sizes for way in ways if all_sizes or count == middle or way.name == PRODUCT]


async def _rows(plan: Sequence[tuple[int, Way]], seconds: float, driver: Driver) -> list[Row]:
    members = [f"u{number}" for number in range(max(count for count, _ in plan))]
    async with databases(driver) as servers, place(servers, members) as where:
        tokens = [servers.token(id_) for id_ in members]
        rows = []
        for count, way in plan:
            row = await measure(way, servers, where, tokens[:count], seconds)
            typer.echo(" | ".join(row.cells()), err=True)
            rows.append(row)
    return rows


def _table(rows: Sequence[Row]) -> Table:
    sizes = "/".join(map(str, sorted({row.quiet.frame_bytes for row in rows if row.quiet})))
    table = Table(title=f"One topic, `next` frames of {sizes} bytes; times in ms, CPU in percent of one core")
    table.add_column("way")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    table.add_column("why not more")
    for row in sorted(rows, key=lambda row: row.sockets):
        table.add_row(*row.cells())
    return table


def _ratios(rows: Sequence[Row]) -> list[str]:
    """Returns the product's rates relative to the others, by number of sockets."""
    best = {(row.sockets, row.way.name): row.best.deliveries_per_s if row.best else row.most for row in rows}
    compared = [
        (PRODUCT_BY_ONE, "transport", "frame by frame"),
        (PRODUCT_BY_ONE, "asgi", "frame by frame"),
        (PRODUCT, "joined", "joined"),
        (PRODUCT, "ordinary", "joined"),
    ]
    return [
        f"{count} sockets, {how}: {best[count, name] / best[count, other]:.2f} times {_title(other)}"
        for count in sorted({row.sockets for row in rows})
        for name, other, how in compared
        if (count, name) in best and (count, other) in best
    ]


def _title(name: str) -> str:
    return next(way.title for way in WAYS if way.name == name)


@app.command()
def main(
    sockets: Annotated[str, typer.Option(help="How many sockets.")] = "100,1000,5000",
    seconds: Annotated[float, typer.Option(min=1, help="How long latency is measured; a search takes 4 times.")] = 4,
    ways: Annotated[str, typer.Option(help=f"Of: {', '.join(way.name for way in WAYS)}. Default: all.")] = "",
    all_sizes: Annotated[bool, typer.Option("--all-sizes", help="Every way with every number of sockets.")] = False,
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "pymongo",
) -> None:
    """Measures fan-out, and prints a table."""
    move_to(OTHERS_CORE)
    chosen = [way for way in WAYS if not ways or way.name in ways.split(",")]
    plan = _plan(chosen, [int(part) for part in sockets.split(",")], all_sizes)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(_rows(plan, seconds, "pymongo" if driver == "pymongo" else "motor"))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(_table(rows))
    for line in _ratios(rows):
        console.print(line)


if __name__ == "__main__":
    app()
