"""Delivery of a topic's events to many sockets: the product and its alternatives, one after the other.

The web process runs on core 0. MongoDB, Redis, the load generator and the poster share core 1. The best rate is the
highest rate at which no event was lost or out of order and p99 stayed under 250 ms. Linux only.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_measuring import PRODUCT_ONE_BY_ONE, VARIANTS, DeliveryVariant, VariantResult, measure
from benchmarks.fanout_posting import topic_with_members
from benchmarks.fanout_targets import OTHER_PROCESSES_CORE, PRODUCT, database_servers, pin_to_core
from storage.mongo import Driver

COLUMNS = [
    *("sockets", "connects/s", "KiB each", "p50 at 5/s", "p99 at 5/s"),
    *("best deliveries/s", "events/s", "p99", "web CPU", "load", "mongod", "poster", "others"),
]
WIDTH = 200

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _plan(
    variants: Sequence[DeliveryVariant], sockets: Sequence[int], all_sizes: bool
) -> list[tuple[int, DeliveryVariant]]:
    """Returns the measurements: every variant with the middle number of sockets, then those with the other numbers.

    With the other numbers, only the product is measured unless `all_sizes` is set.
    """
    middle = sorted(sockets)[len(sockets) // 2]
    sizes = [middle, *(count for count in sockets if count != middle)]
    return [
        (count, variant)
        for count in sizes
        for variant in variants
        if all_sizes or count == middle or variant.name == PRODUCT
    ]


async def _measure_plan(
    plan: Sequence[tuple[int, DeliveryVariant]], seconds: float, driver: Driver
) -> list[VariantResult]:
    members = [f"u{number}" for number in range(max(count for count, _ in plan))]
    async with database_servers(driver) as servers, topic_with_members(servers, members) as topic:
        tokens = [servers.token(id_) for id_ in members]
        rows = []
        for count, variant in plan:
            row = await measure(variant, servers, topic, tokens[:count], seconds)
            typer.echo(" | ".join(row.cells()), err=True)
            rows.append(row)
    return rows


def _table(rows: Sequence[VariantResult]) -> Table:
    sizes = "/".join(map(str, sorted({row.quiet.frame_bytes for row in rows if row.quiet})))
    table = Table(title=f"One topic, `next` frames of {sizes} bytes; times in ms, CPU in percent of one core")
    table.add_column("variant")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    table.add_column("limited by")
    for row in sorted(rows, key=lambda row: row.sockets):
        table.add_row(*row.cells())
    return table


def _ratios(rows: Sequence[VariantResult]) -> list[str]:
    """Returns the product's rates relative to other variants, by number of sockets."""
    best = {
        (row.sockets, row.variant.name): row.best.deliveries_per_s if row.best else row.most_deliveries_per_s
        for row in rows
    }
    compared = [
        (PRODUCT_ONE_BY_ONE, "transport", "frame by frame"),
        (PRODUCT_ONE_BY_ONE, "asgi", "frame by frame"),
        (PRODUCT, "joined", "joined"),
        (PRODUCT, "ordinary", "joined"),
    ]
    return [
        f"{count} sockets, {writes}: {best[count, name] / best[count, other]:.2f} times {_title(other)}"
        for count in sorted({row.sockets for row in rows})
        for name, other, writes in compared
        if (count, name) in best and (count, other) in best
    ]


def _title(name: str) -> str:
    return next(variant.title for variant in VARIANTS if variant.name == name)


@app.command()
def main(
    sockets: Annotated[str, typer.Option(help="Numbers of sockets, separated by commas.")] = "100,1000,5000",
    seconds: Annotated[
        float, typer.Option(min=1, help="Duration of the latency measurement; a search takes up to 4 times as long.")
    ] = 4,
    variants: Annotated[
        str, typer.Option(help=f"Some of {', '.join(variant.name for variant in VARIANTS)}. Default: all.")
    ] = "",
    all_sizes: Annotated[bool, typer.Option("--all-sizes", help="Every variant with every number of sockets.")] = False,
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "pymongo",
) -> None:
    """Measures the delivery of events to sockets, and prints a table."""
    pin_to_core(OTHER_PROCESSES_CORE)
    chosen = [variant for variant in VARIANTS if not variants or variant.name in variants.split(",")]
    plan = _plan(chosen, [int(part) for part in sockets.split(",")], all_sizes)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(_measure_plan(plan, seconds, "pymongo" if driver == "pymongo" else "motor"))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(_table(rows))
    for line in _ratios(rows):
        console.print(line)


if __name__ == "__main__":
    app()
