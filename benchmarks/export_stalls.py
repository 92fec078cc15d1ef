"""How long the export of 200 long posts keeps its worker's loop, which also starts calls, from anything else.

The alternative compresses on the loop, a batch of documents at a time, as before.

    .venv/bin/python -m benchmarks.export_stalls
"""

import asyncio
import random
import statistics
import time
from unittest.mock import patch

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, database_servers
from storage.ids import UserKey
from storage.privacy import archives
from storage.stores import Stores, open_stores

PERSON = UserKey("acme", "ann")
POSTS, CHARACTERS = 200, 10_000
TICK_S = 0.001

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(width=120)


async def fill(stores: Stores) -> None:
    """Stores long posts of letters at random, which compress badly."""
    letters = random.Random(1)
    await stores.users.sign_in(*PERSON, [], "Ann", None)
    posts = [
        {
            "_id": {"o": PERSON.organization_id, "ts": number + 1},
            "author": PERSON.user_id,
            "text": "".join(letters.choices("abcdefghijklmnopqrstuvwxyz あいうえお", k=CHARACTERS)),
            "merged": False,
        }
        for number in range(POSTS)
    ]
    await stores.mongo["posts"].insert_many(posts)


async def longest_stall_ms(stores: Stores) -> float:
    """Returns the longest time between two turns of a task that sleeps 1 ms, while an archive is written."""
    stalls = [0.0]

    async def tick() -> None:
        while True:
            slept_at = time.perf_counter()
            await asyncio.sleep(TICK_S)
            stalls.append(time.perf_counter() - slept_at - TICK_S)

    ticking = asyncio.create_task(tick())
    async for _ in archives.archive(stores.mongo, stores.file_objects, PERSON):
        pass
    ticking.cancel()
    return 1000 * max(stalls)


async def measure(rounds: int) -> dict[str, list[float]]:
    """Returns the longest stall of each round, by variant. The variants are interleaved."""
    stalls: dict[str, list[float]] = {"in a thread, by 256 KiB": [], "on the loop, by 200 posts": []}

    async def on_loop(function: object, *arguments: object) -> object:
        return function(*arguments)  # type: ignore[operator]

    async with (
        database_servers("pymongo") as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as stores,
    ):
        await fill(stores)
        await longest_stall_ms(stores)
        for _ in range(rounds):
            stalls["in a thread, by 256 KiB"].append(await longest_stall_ms(stores))
            with (
                patch.object(archives, "PIECE_BYTES", 2**40),
                patch("storage.privacy.archives.asyncio.to_thread", on_loop),
            ):
                stalls["on the loop, by 200 posts"].append(await longest_stall_ms(stores))
    return stalls


@app.command()
def main(rounds: int = 10) -> None:
    """Prints the median and the maximum of the longest stalls."""
    table = Table("compression", "median, ms", "max, ms", title=f"Longest stall: {POSTS} posts of {CHARACTERS} letters")
    for variant, stalls in asyncio.run(measure(rounds)).items():
        table.add_row(variant, f"{statistics.median(stalls):.1f}", f"{max(stalls):.1f}")
    console.print(table)


if __name__ == "__main__":
    app()
