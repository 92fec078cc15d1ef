"""What a lookup of 1,000 addresses costs below the API: processor time of this process and of mongod, for each lookup.

A book of a million, half of what is asked is in it, one lookup after the other, in a process that is set up as a web
process is and has core 0; MongoDB has core 1. Linux only.
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
from benchmarks.fanout_targets import DATABASE, ORGANIZATION, OTHERS_CORE, SERVER_CORE, databases, move_to
from benchmarks.lookup import ASKED, DOMAINS, address, fill
from server.web import GC_THRESHOLDS
from storage.mongo import Document, Mongo
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS

BOOKS = ("mail_addresses", "mail_domains")


async def look_up(stores: Stores, mongod_pid: int, asked: list[list[str]]) -> list[str]:
    """Milliseconds for each lookup: by the clock, processor time here, processor time of mongod."""
    for each in asked[:20]:
        await stores.address_book.look_up(ORGANIZATION, each)
    pids = [os.getpid(), mongod_pid]
    before = cpu_times(pids)
    for each in asked:
        await stores.address_book.look_up(ORGANIZATION, each)
    after = cpu_times(pids)
    used_s = [after.processes_s[str(pid)] - before.processes_s[str(pid)] for pid in pids]
    return [f"{seconds * 1000 / len(asked):.2f}" for seconds in (after.at_s - before.at_s, *used_s)]


async def sizes(mongo: Mongo, addresses: int) -> list[list[str]]:
    """Bytes for each address: of its document, in files, and in each index; and the depth of the tree that is read."""
    rows = []
    for name, number in zip(BOOKS, (addresses, DOMAINS), strict=True):
        stats: Document = await mongo.database.command({"collStats": name, "indexDetails": True})
        depth = stats["indexDetails"]["told"]["btree"]["maximum tree depth"]
        indexes = ", ".join(f"{key} {size / number:.0f}" for key, size in stats["indexSizes"].items())
        rows.append([name, f"{stats['avgObjSize']}", f"{stats['storageSize'] / number:.0f}", indexes, str(depth)])
    return rows


async def measure(addresses: int, lookups: int, driver: str) -> None:
    """Fills a book and asks it."""
    dice = random.Random(1)
    asked = [[address(dice.randrange(2 * addresses)) for _ in range(ASKED)] for _ in range(lookups)]
    costs = Table("addresses", "lookups", "ms by the clock", "ms of this process", "ms of mongod")
    space = Table("collection", "bytes a document", "stored", "in indexes", "levels of told")
    move_to(OTHERS_CORE)
    async with databases(driver) as servers:  # type: ignore[arg-type]
        began_s = time.perf_counter()
        await fill(servers, addresses)
        async with open_stores(
            servers.mongodb_uri, servers.redis_url, DATABASE, servers.driver, address_keys=ADDRESS_KEYS
        ) as stores:
            Console().print(f"{addresses:,} addresses after {time.perf_counter() - began_s:.0f} s")
            move_to(SERVER_CORE)
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            for _ in range(3):
                costs.add_row(f"{addresses:,}", str(lookups), *await look_up(stores, servers.mongod_pid, asked))
            for row in await sizes(stores.mongo, addresses):
                space.add_row(*row)
    Console(width=120).print(costs, space)


def main(
    addresses: Annotated[int, typer.Option(help="In the book.")] = 1_000_000,
    lookups: Annotated[int, typer.Option(help="Of 1,000 addresses each, three times.")] = 200,
    driver: Annotated[str, typer.Option(help="motor or pymongo")] = "motor",
) -> None:
    """Measures and prints two tables."""
    uvloop.run(measure(addresses, lookups, driver))


if __name__ == "__main__":
    typer.run(main)
