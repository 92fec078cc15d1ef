"""Pruning of expired events: the product's batches, compared with one update and one deletion for each stream.

The variants are interleaved on one database, with 1, 10 and 1,000 events a stream. Each measurement inserts expired
events and prunes until none is left. The target is 20,000 events a second.
"""

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, database_servers
from storage.mongo import older_than
from storage.stores import Stores, open_stores
from storage.streams.log import KEPT_S, Stream, parse_stream_name

EVENTS_A_STREAM = (1, 10, 1000)
BATCH = 1000

PruneVariant = Callable[[Stores], Awaitable[int]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def prune_in_batches(stores: Stores) -> int:
    """Prunes a batch of events as the product does."""
    return await stores.events.prune()


async def prune_stream_by_stream(stores: Stores) -> int:
    """Prunes a batch of events, with one update and one deletion for each stream."""
    mongo = stores.mongo
    expired = mongo["events"].find(older_than("at", KEPT_S), {"_id": 1}).sort("at", 1).limit(BATCH)
    ids = [document["_id"] for document in await expired.to_list(None)]
    for name, floor in {id_["s"]: id_["n"] for id_ in sorted(ids, key=lambda id_: int(id_["n"]))}.items():
        stream = parse_stream_name(name)
        await mongo[stream.head_collection].update_one({"_id": stream.head_id}, {"$max": {"floor": floor}})
        low, high = {"s": name, "n": 0}, {"s": name, "n": floor}
        await mongo["events"].delete_many({"_id": {"$gte": low, "$lte": high}})
    return len(ids)


VARIANTS: dict[str, PruneVariant] = {"batches": prune_in_batches, "stream by stream": prune_stream_by_stream}


async def fill(stores: Stores, streams: int, events_a_stream: int, run: int) -> None:
    """Inserts streams and their expired events. The streams' names hold `run`, so that runs share no stream."""
    names = [Stream("user", f"o/{run}-{number}").name for number in range(streams)]
    heads = [{"_id": name, "n": events_a_stream, "epoch": "e"} for name in names]
    at = datetime.now(UTC) - timedelta(hours=25)
    events = [
        {"_id": {"s": name, "n": n + 1}, "kind": "Notify", "ref": n, "at": at + timedelta(microseconds=1000 * n)}
        for n in range(events_a_stream)
        for name in names
    ]
    await stores.mongo["streams"].insert_many(heads, ordered=False)
    for start in range(0, len(events), 10_000):
        await stores.mongo["events"].insert_many(events[start : start + 10_000], ordered=False)


async def prune_all(stores: Stores, prune: PruneVariant) -> float:
    """Prunes until no expired event is left. Returns the duration in seconds."""
    began_s = time.perf_counter()
    while await prune(stores):
        pass
    return time.perf_counter() - began_s


async def measure(events: int, rounds: int) -> dict[tuple[int, str], list[float]]:
    """Returns the events pruned a second, by the number of events of a stream and by variant."""
    rates = defaultdict[tuple[int, str], list[float]](list)
    async with (
        database_servers("pymongo") as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as stores,
    ):
        for run in range(rounds):
            for size in EVENTS_A_STREAM:
                for variant, prune in VARIANTS.items():
                    await fill(stores, events // size, size, 10 * run + list(VARIANTS).index(variant))
                    rates[size, variant].append(events // size * size / await prune_all(stores, prune))
                    await stores.mongo["streams"].delete_many({"_id": {"$regex": "^user:o"}})
    return rates


@app.command()
def main(
    events: Annotated[int, typer.Option(help="Expired events of each measurement.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each variant.")] = 3,
) -> None:
    """Measures both variants and prints a table of the medians."""
    rates: dict[tuple[int, str], Any] = asyncio.run(measure(events, rounds))
    table = Table(title=f"Pruning of {events:,} expired events, median of {rounds}, events a second")
    table.add_column("events a stream", justify="right")
    for variant in VARIANTS:
        table.add_column(variant, justify="right")
    for size in EVENTS_A_STREAM:
        table.add_row(f"{size:,}", *(f"{statistics.median(rates[size, variant]):,.0f}" for variant in VARIANTS))
    Console().print(table)


if __name__ == "__main__":
    app()
