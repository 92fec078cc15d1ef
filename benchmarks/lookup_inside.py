"""Times of a lookup of 1,000 addresses without GraphQL: wall-clock, and processor time here and in mongod.

The lookups run one after the other in a book of a million addresses. Half of the requested addresses are in the book.
This process is tuned like a web process and runs on core 0. MongoDB runs on core 1. Linux only.
"""

import gc
import os
import random
import time
from typing import Annotated

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import cpu_times
from benchmarks.fanout_targets import (
    DATABASE,
    ORGANIZATION,
    OTHER_PROCESSES_CORE,
    SERVER_CORE,
    database_servers,
    pin_to_core,
)
from benchmarks.lookup import ADDRESSES_PER_REQUEST, DOMAINS, address, fill_book
from server.web import GC_THRESHOLDS
from storage.mongo import Document, Mongo
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS

COLLECTIONS = ("mail_addresses", "mail_domains")


async def measure_lookups(stores: Stores, mongod_pid: int, batches: list[list[str]]) -> list[str]:
    """Returns the mean milliseconds of a lookup as three cells: wall-clock time, processor time here, and in mongod."""
    for batch in batches[:20]:
        await stores.address_book.look_up(ORGANIZATION, batch)
    pids = [os.getpid(), mongod_pid]
    before = cpu_times(pids)
    for batch in batches:
        await stores.address_book.look_up(ORGANIZATION, batch)
    after = cpu_times(pids)
    used_s = [after.processes_s[str(pid)] - before.processes_s[str(pid)] for pid in pids]
    return [f"{seconds * 1000 / len(batches):.2f}" for seconds in (after.at_s - before.at_s, *used_s)]


async def collection_sizes(mongo: Mongo, addresses: int) -> list[list[str]]:
    """Returns for each collection the bytes of a document in memory, in files and in indexes, and the index depth.

    The depth belongs to the index that answers lookups.
    """
    rows = []
    for name, number in zip(COLLECTIONS, (addresses, DOMAINS), strict=True):
        stats: Document = await mongo.database.command({"collStats": name, "indexDetails": True})
        depth = stats["indexDetails"]["summary"]["btree"]["maximum tree depth"]
        indexes = ", ".join(f"{key} {size / number:.0f}" for key, size in stats["indexSizes"].items())
        rows.append([name, f"{stats['avgObjSize']}", f"{stats['storageSize'] / number:.0f}", indexes, str(depth)])
    return rows


async def measure(addresses: int, lookups: int, driver: str) -> None:
    """Fills a book, measures lookups, and prints two tables."""
    rng = random.Random(1)
    batches = [[address(rng.randrange(2 * addresses)) for _ in range(ADDRESSES_PER_REQUEST)] for _ in range(lookups)]
    costs = Table("addresses", "lookups", "ms wall-clock", "ms of this process", "ms of mongod")
    space = Table("collection", "bytes a document", "in files", "in indexes", "levels of the lookup index")
    pin_to_core(OTHER_PROCESSES_CORE)
    async with database_servers(driver) as servers:  # type: ignore[arg-type]
        began_s = time.perf_counter()
        await fill_book(servers, addresses)
        async with open_stores(
            servers.mongodb_uri, servers.redis_url, DATABASE, servers.driver, address_keys=ADDRESS_KEYS
        ) as stores:
            Console().print(f"{addresses:,} addresses after {time.perf_counter() - began_s:.0f} s")
            pin_to_core(SERVER_CORE)
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            for _ in range(3):
                costs.add_row(
                    f"{addresses:,}", str(lookups), *await measure_lookups(stores, servers.mongod_pid, batches)
                )
            for row in await collection_sizes(stores.mongo, addresses):
                space.add_row(*row)
    Console(width=120).print(costs, space)


def main(
    addresses: Annotated[int, typer.Option(help="Number of addresses in the book.")] = 1_000_000,
    lookups: Annotated[int, typer.Option(help="Lookups of 1,000 addresses in each of three rounds.")] = 200,
    driver: Annotated[str, typer.Option(help="motor or pymongo")] = "pymongo",
) -> None:
    """Measures and prints two tables."""
    uvloop.run(measure(addresses, lookups, driver))


if __name__ == "__main__":
    typer.run(main)
