"""Rates at which delivery events become durable and are aggregated, for 1 and for 1,000 domains.

One process records events and another aggregates them, as `noroshi web` and `noroshi worker` do. MongoDB runs on the
same machine.
"""

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, database_servers
from storage.mail.records import DeliveryEvent
from storage.stores import Stores, open_stores
from tests.keys import ADDRESS_KEYS
from tests.product import environment

BATCH = 1000
# SMTP codes and enhanced status codes: 90 % delivered, 5 % hard and 5 % soft bounces.
ANSWERS = [(250, "2.0.0")] * 18 + [(550, "5.1.1"), (452, "4.2.2")]


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
        await asyncio.sleep(0.02)
    return durable_s, time.perf_counter() - began_s


async def measure(count: int, addresses: int) -> None:
    """Measures with one domain and with 1,000 domains. Prints a table."""
    table = Table("domains", "addresses", "events", "recorded/s", "aggregated/s")
    async with database_servers("pymongo") as servers:
        command = [
            sys.executable,
            "-m",
            "tests.storage.mail.aggregation_process",
            servers.mongodb_uri,
            servers.redis_url,
        ]
        root = Path(__file__).parents[1]
        with subprocess.Popen([*command, DATABASE], cwd=root, env=environment()) as aggregator:
            try:
                async with open_stores(
                    servers.mongodb_uri, servers.redis_url, DATABASE, address_keys=ADDRESS_KEYS
                ) as stores:
                    for domains in (1, 1000):
                        durable_s, aggregated_s = await measure_events(
                            stores, f"org{domains}", count, domains, addresses
                        )
                        rates = (f"{count / durable_s:,.0f}", f"{count / aggregated_s:,.0f}")
                        table.add_row(str(domains), f"{addresses:,}", f"{count:,}", *rates)
            finally:
                aggregator.kill()
    Console(width=120).print(table)


def main(
    count: Annotated[int, typer.Option("--events", help="Events for each number of domains.")] = 60_000,
    addresses: Annotated[int, typer.Option(help="Number of different addresses.")] = 20_000,
) -> None:
    """Measures and prints a table."""
    asyncio.run(measure(count, addresses))


if __name__ == "__main__":
    typer.run(main)
