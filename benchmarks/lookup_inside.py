"""Processor time of a lookup of 1,000 addresses below the API, in this process and in mongod.

One lookup after the other in a book of a million; half of the addresses are in it. This process is tuned like a web
process and has core 0; MongoDB has core 1. Linux only.
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
from benchmarks.fanout_targets import DATABASE, ORGANIZATION, OTHERS_CORE, SERVER_CORE, databases, pin_to_core
from benchmarks.lookup import ASKED, DOMAINS, address, fill
from server.web import GC_THRESHOLDS
from storage.mongo import Document, Mongo
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS

BOOKS = ("mail_addresses", "mail_domains")


async def look_up(stores: Stores, mongod_pid: int, requested: list[list[str]]) -> list[str]:
    """Returns milliseconds for each lookup: wall-clock, and processor time of this process and of mongod."""
    for each in requested[:20]:
        await stores.address_book.look_up(ORGANIZATION, each)
    pids = [os.getpid(), mongod_pid]
    before = cpu_times(pids)
    for each in requested:
        await stores.address_book.look_up(ORGANIZATION, each)
    after = cpu_times(pids)
    used_s = [after.processes_s[str(pid)] - before.processes_s[str(pid)] for pid in pids]
    return [f"{seconds * 1000 / len(requested):.2f}" for seconds in (after.at_s - before.at_s, *used_s)]


async def sizes(mongo: Mongo, addresses: int) -> list[list[str]]:
    """Returns for each collection the bytes of a document, in files and in each index, and the depth of the index."""
    rows = []
    for name, number in zip(BOOKS, (addresses, DOMAINS), strict=True):
        stats: Document = await mongo.database.command({"collStats": name, "indexDetails": True})
        depth = stats["indexDetails"]["told"]["btree"]["maximum tree depth"]
        indexes = ", ".join(f"{key} {size / number:.0f}" for key, size in stats["indexSizes"].items())
        rows.append([name, f"{stats['avgObjSize']}", f"{stats['storageSize'] / number:.0f}", indexes, str(depth)])
    return rows


async def measure(addresses: int, lookups: int, driver: str) -> None:
    """Fills a book, measures lookups, and prints two tables."""
    rng = random.Random(1)
    requested = [[address(rng.randrange(2 * addresses)) for _ in range(ASKED)] for _ in range(lookups)]
    costs = Table("addresses", "lookups", "ms wall-clock", "ms of this process", "ms of mongod")
    space = Table("collection", "bytes a document", "stored", "in indexes", "levels of told")
    pin_to_core(OTHERS_CORE)
    async with databases(driver) as servers:  # type: ignore[arg-type]
        began_s = time.perf_counter()
        await fill(servers, addresses)
        async with open_stores(
            servers.mongodb_uri, servers.redis_url, DATABASE, servers.driver, address_keys=ADDRESS_KEYS
        ) as stores:
            Console().print(f"{addresses:,} addresses after {time.perf_counter() - began_s:.0f} s")
            pin_to_core(SERVER_CORE)
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            for _ in range(3):
                costs.add_row(f"{addresses:,}", str(lookups), *await look_up(stores, servers.mongod_pid, requested))
            for row in await sizes(stores.mongo, addresses):
                space.add_row(*row)
    Console(width=120).print(costs, space)


def main(
    addresses: Annotated[int, typer.Option(help="Addresses in the book.")] = 1_000_000,
    lookups: Annotated[int, typer.Option(help="Lookups of 1,000 addresses in each of three rounds.")] = 200,
    driver: Annotated[str, typer.Option(help="motor or pymongo")] = "pymongo",
) -> None:
    """Measures and prints two tables."""
    uvloop.run(measure(addresses, lookups, driver))


if __name__ == "__main__":
    typer.run(main)
