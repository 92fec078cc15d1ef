"""Lookups of 1,000 addresses in an address book of a million: the product compared with ordinary Strawberry.

Requests are sent at a fixed rate. The web process runs on core 0. MongoDB and the load generator share core 1. Linux
only.
"""

import asyncio
import math
import random
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import layers
from benchmarks.fanout_targets import (
    DATABASE,
    ORGANIZATION,
    OTHER_PROCESSES_CORE,
    SERVER_CORE,
    DatabaseServers,
    database_servers,
    end_process,
    pin_to_core,
)
from benchmarks.load import post_request
from benchmarks.lookup_load import LookupLoadReport, LookupLoadSpec
from server.auth.tokens import mint
from server.web import listen
from storage.mail.aggregation import domain_id
from storage.mail.counters import new_address, new_domain, summarize, summarize_domain
from storage.stores import open_stores
from tests.keys import ADDRESS_KEYS, ADDRESS_KEYS_SETTING
from tests.product import NOROSHI, eventually

QUERY = """query ($addresses: [String!]!) { addressBook(addresses: $addresses) {
  address blocked verdict { rule } success softBounce hardBounce
} }"""
ADDRESSES_PER_REQUEST = 1000
REQUESTS = 40
"""Number of different requests. They are sent repeatedly."""

DOMAINS = 2000
INSERTED_AT_ONCE = 20_000
LAYERS_RATE, LAYERS_S = 50.0, 6.0
VARIANTS = {
    "Noroshi": [*NOROSHI, "web", "--fd"],
    "Noroshi, not compiled": [sys.executable, "-m", "benchmarks.uncompiled"],
    "Strawberry, ordinary": [sys.executable, "-m", "benchmarks.lookup_apps"],
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class LookupResult:
    """The result of one variant at one rate."""

    variant: str
    rate: float
    seconds: float
    web_pid: int
    mongod_pid: int
    report: LookupLoadReport

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        latencies = sorted(self.report.latencies_ms)
        served = len(latencies) / self.seconds
        cpu = self.report.cpu_percent
        failed = sum(count for status, count in self.report.statuses.items() if status not in ("200", "429"))
        return [
            *(self.variant, f"{self.rate:g}", f"{served:.0f}"),
            *(f"{_percentile(latencies, percent):,.0f}" for percent in (50, 95, 99)),
            *(str(self.report.statuses.get("429", 0)), str(failed)),
            *(f"{cpu[str(pid)]:.0f}" for pid in (self.web_pid, self.mongod_pid, self.report.pid)),
            f"{cpu['others']:.0f}",
        ]


def _percentile(latencies: list[float], percent: int) -> float:
    return latencies[math.ceil(len(latencies) * percent / 100) - 1] if latencies else math.nan


def address(number: int) -> str:
    """Returns the address with this number. The book holds the addresses with the lowest numbers."""
    return f"reader{number}@d{number % DOMAINS}.example"


async def fill_book(servers: DatabaseServers, addresses: int) -> None:
    """Inserts documents of addresses and domains as mail aggregation writes them."""
    async with open_stores(
        servers.mongodb_uri, servers.redis_url, DATABASE, servers.driver, address_keys=ADDRESS_KEYS
    ) as stores:
        for first in range(0, addresses, INSERTED_AT_ONCE):
            documents = [_document(number) for number in range(first, min(first + INSERTED_AT_ONCE, addresses))]
            documents.sort(key=lambda document: document["_id"])
            await stores.mongo["mail_addresses"].insert_many(documents, ordered=False)
        domains = [new_domain(ORGANIZATION, f"d{number}.example") for number in range(DOMAINS)]
        for domain in domains:
            summarize_domain(domain)
            domain["_id"] = domain_id(ORGANIZATION, domain["domain"])
        await stores.mongo["mail_domains"].insert_many(domains)


def _document(number: int) -> dict[str, object]:
    text = address(number)
    document = new_address(ORGANIZATION, text.partition("@")[2])
    entry = {"source": "mta", "success": 3, "ok": 1_763_000_000_000, "last": 1_763_000_000_000}
    if number % 20 == 0:
        entry |= {"hards": [[1_763_100_000_000, "550 5.1.1"]]}  # type: ignore[dict-item]
    document["by"].append(entry)
    summarize(document)
    return {"_id": ADDRESS_KEYS.id(ORGANIZATION, text), **document}


def requests(servers: DatabaseServers, addresses: int) -> list[str]:
    """Returns requests with 1,000 random addresses each. Half of them are in the book."""
    token = mint(servers.secret, user_id="mta", organization_id=ORGANIZATION, roles=("SERVICE",))
    rng = random.Random(1)
    batches = [[address(rng.randrange(2 * addresses)) for _ in range(ADDRESSES_PER_REQUEST)] for _ in range(REQUESTS)]
    return [post_request("/graphql", token, QUERY, {"addresses": batch}) for batch in batches]


@asynccontextmanager
async def web_process(variant: str, servers: DatabaseServers) -> AsyncIterator[tuple[int, int]]:
    """Runs a web process of a variant alone on its core. Yields its process id and port."""
    with listen("127.0.0.1", 0) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        variables = servers.environment() | {"NOROSHI_ADDRESS_KEYS": ADDRESS_KEYS_SETTING}
        root = Path(__file__).parents[1]
        process = subprocess.Popen(
            [*VARIANTS[variant], str(fd)], pass_fds=[fd], env=variables, cwd=root, stdin=subprocess.DEVNULL
        )
        pin_to_core(SERVER_CORE, process.pid)
        try:
            await asyncio.to_thread(eventually, lambda: _is_ready(port) or process.poll() is not None)
            yield process.pid, port
        finally:
            await end_process(process)


def _is_ready(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


async def run_load(spec: LookupLoadSpec) -> LookupLoadReport:
    """Runs the load generator in a separate process. Returns its report."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.lookup_load"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pin_to_core(OTHER_PROCESSES_CORE, process.pid)
    out, _ = await process.communicate(orjson.dumps(spec))
    return LookupLoadReport(**orjson.loads(out))


async def layers_of(variant: str, pid: int, port: int, http_requests: list[str]) -> Table:
    """Returns the processor time of a web process by layer, under moderate load."""
    spec = LookupLoadSpec(port, http_requests, LAYERS_RATE, LAYERS_S + 2, [pid])
    shares = asyncio.create_task(asyncio.to_thread(layers.measure_shares, pid, LAYERS_S))
    report = await run_load(spec)
    cpu_ms = 10 * report.cpu_percent[str(pid)] / LAYERS_RATE
    return layers.table(await shares, f"Processor time by layer: {variant}", "request", cpu_ms)


async def measure(addresses: int, rates: list[float], seconds: float, driver: str) -> tuple[list[LookupResult], Table]:
    """Measures every variant at every rate, and the layers of the first variant."""
    pin_to_core(OTHER_PROCESSES_CORE)
    results, layer_table = list[LookupResult](), None
    async with database_servers(driver) as servers:  # type: ignore[arg-type]
        await fill_book(servers, addresses)
        http_requests = requests(servers, addresses)
        for variant in VARIANTS:
            async with web_process(variant, servers) as (pid, port):
                await run_load(LookupLoadSpec(port, http_requests, 10, 2, [pid]))
                for rate in rates:
                    report = await run_load(
                        LookupLoadSpec(port, http_requests, rate, seconds, [pid, servers.mongod_pid])
                    )
                    results.append(LookupResult(variant, rate, seconds, pid, servers.mongod_pid, report))
                    _print_results(results[-1:])
                layer_table = layer_table or await layers_of(variant, pid, port, http_requests)
    assert layer_table is not None
    return results, layer_table


def _print_results(results: list[LookupResult]) -> None:
    names = (
        "variant",
        "requested/s",
        "served/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "429",
        "failed",
        "web %",
        "mongod %",
        "load %",
    )
    table = Table(*names, "others %")
    for result in results:
        table.add_row(*result.cells())
    Console(width=140).print(table)


@app.command()
def main(
    addresses: Annotated[int, typer.Option(help="Number of addresses in the book.")] = 1_000_000,
    rates: Annotated[str, typer.Option(help="Requests a second.")] = "20,50,100,200",
    seconds: Annotated[float, typer.Option(help="Duration of each rate.")] = 8,
    driver: Annotated[str, typer.Option(help="motor or pymongo")] = "pymongo",
) -> None:
    """Measures and prints a table."""
    results, layer_table = asyncio.run(measure(addresses, [float(each) for each in rates.split(",")], seconds, driver))
    _print_results(results)
    Console(width=None if sys.stdout.isatty() else 140).print(layer_table)


if __name__ == "__main__":
    app()
