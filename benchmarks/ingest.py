"""Rates at which delivery events become durable and are aggregated, for 1 and for 1,000 domains.

This process records events as a web process does, and a worker process aggregates them. MongoDB runs on the same
machine.
"""

import asyncio
import random
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.servers import FOLDER_PREFIX, database_servers
from benchmarks.tables import print_table
from storage.mail.records import DeliveryEvent
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS
from tests.serving import worker_process

BATCH = 1000
DOMAINS = (1, 1000)
# SMTP codes and enhanced status codes: 90 % delivered, 5 % hard and 5 % soft bounces.
ANSWERS = [(250, "2.0.0")] * 18 + [(550, "5.1.1"), (452, "4.2.2")]
POLL_INTERVAL_S = 0.02

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def measure_events(stores: Stores, org: str, count: int, domains: int, addresses: int) -> tuple[float, float]:
    """Returns the seconds until all events are durable, and until all are aggregated."""
    rng, now = random.Random(3), await stores.mongo.now()
    began_s = time.perf_counter()
    for first in range(0, count, BATCH):
        events = []
        for index in range(first, min(first + BATCH, count)):
            recipient = rng.randrange(addresses)
            code, status = rng.choice(ANSWERS)
            address = f"a{recipient}@d{recipient % domains}.example"
            events.append(DeliveryEvent(f"{org}{index}", address, now, smtp_code=code, enhanced_status=status))
        await stores.ledger.record(org, "benchmark", events)
    durable_s = time.perf_counter() - began_s
    while await stores.aggregator.pending_partitions():
        await asyncio.sleep(POLL_INTERVAL_S)
    return durable_s, time.perf_counter() - began_s


async def measure(count: int, addresses: int) -> list[list[str]]:
    """Returns a row for each number of domains."""
    rows = []
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        async with (
            database_servers() as servers,
            open_stores(servers.mongodb_uri, servers.redis_url, servers.database, address_keys=ADDRESS_KEYS) as stores,
        ):
            with worker_process(Path(folder), servers.mongodb_uri, servers.redis_url, servers.database):
                for domains in DOMAINS:
                    durations = await measure_events(stores, f"org{domains}", count, domains, addresses)
                    rates = [f"{count / seconds:,.0f}" for seconds in durations]
                    rows.append([f"{domains:,}", f"{addresses:,}", f"{count:,}", *rates])
    return rows


@app.command()
def main(
    count: Annotated[int, typer.Option("--events", help="Events for each number of domains.")] = 60_000,
    addresses: Annotated[int, typer.Option(help="Number of different addresses.")] = 20_000,
) -> None:
    """Measures and prints a table."""
    columns = ["domains", "addresses", "events", "recorded/s", "aggregated/s"]
    print_table("Delivery events", columns, asyncio.run(measure(count, addresses)))


if __name__ == "__main__":
    app()
