"""Lookups of 1,000 addresses in an address book of a million, at fixed rates.

Requests do not wait for earlier answers, and latency counts from the time when a request was due. The web process runs
on core 0. MongoDB and this process, which sends the requests, share core 1. Linux only.
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
import uvloop

from benchmarks.cpu import cpu_times
from benchmarks.load import post_request
from benchmarks.servers import ORGANIZATION, DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import numbers, percentile, print_table
from storage.mail.aggregation import domain_id
from storage.mail.counters import new_address, new_domain, summarize, summarize_domain
from storage.mail.decisions.policies import DEFAULT_POLICY, MailPolicy
from storage.mail.decisions.policy_versions import POLICY_TTL_S, MailPolicies
from storage.stores import open_stores
from tests.keys import ADDRESS_KEYS

QUERY = """query ($addresses: [String!]!) { addressBook(addresses: $addresses) {
  address blocked verdict { rule } success softBounce hardBounce
} }"""
ADDRESSES_PER_REQUEST = 1000
REQUESTS = 40
"""Number of different requests. They are sent repeatedly."""

DOMAINS = 2000
INSERTED_AT_ONCE = 20_000
WARM_UP_RATE = 10
LAST_ANSWER_TIMEOUT_S = 8.0
HEAD_END = b"\r\n\r\n"
CONTENT_LENGTH = b"\r\ncontent-length: "
POLICIES = [
    ("version 0", DEFAULT_POLICY),
    ("own", MailPolicy(hard_bounces=2, soft_bounce_days=2, soft_window_days=30, soft_block_days=90)),
]
COLUMNS = ["policy", "requested/s", "served/s", "p50 ms", "p95 ms", "p99 ms", "429", "failed"]
COLUMNS += ["web CPU %", "mongod", "load", "others"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def address(number: int) -> str:
    """Returns the address with this number. The book holds the addresses with the lowest numbers."""
    return f"reader{number}@d{number % DOMAINS}.example"


async def fill_book(servers: DatabaseServers, addresses: int) -> None:
    """Inserts documents of addresses and domains as mail aggregation writes them."""
    async with open_stores(
        servers.mongodb_uri, servers.redis_url, servers.database, address_keys=ADDRESS_KEYS
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


def random_requests(servers: DatabaseServers, addresses: int) -> list[bytes]:
    """Returns requests with 1,000 random addresses each. Half of them are in the book."""
    token, rng = servers.token("mta", "SERVICE"), random.Random(1)
    batches = [[address(rng.randrange(2 * addresses)) for _ in range(ADDRESSES_PER_REQUEST)] for _ in range(REQUESTS)]
    return [post_request("/graphql", token, QUERY, {"addresses": batch}).encode() for batch in batches]


@dataclass
class LookupLoad:
    """Requests at a fixed rate for some seconds, in the given order and repeatedly, and the answers to them."""

    port: int
    requests: Sequence[bytes]
    rate: float
    seconds: float
    latencies_ms: list[float] = field(default_factory=list)
    """Latencies of answers with status 200."""

    statuses: Counter[str] = field(default_factory=Counter)
    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def run(self) -> None:
        """Sends the requests, and waits for the last answers."""
        began_s, tasks = time.perf_counter(), []
        for number in range(max(int(self.rate * self.seconds), 1)):
            due_s = began_s + number / self.rate
            await asyncio.sleep(max(due_s - time.perf_counter(), 0))
            tasks.append(asyncio.create_task(self._send(self.requests[number % len(self.requests)], due_s)))
        _, unanswered = await asyncio.wait(tasks, timeout=LAST_ANSWER_TIMEOUT_S)
        for task in unanswered:
            task.cancel()
        self.statuses["none"] += len(unanswered)
        for _, writer in self._idle:
            writer.close()

    async def _send(self, request: bytes, due_s: float) -> None:
        try:
            reader, writer = self._idle.pop() if self._idle else await self._connect()
            writer.write(request)
            head = await reader.readuntil(HEAD_END)
            start = head.index(CONTENT_LENGTH) + len(CONTENT_LENGTH)
            await reader.readexactly(int(head[start : head.index(b"\r", start)]))
        except (OSError, asyncio.IncompleteReadError):
            self.statuses["broken"] += 1
            return
        self._idle.append((reader, writer))
        status = head[9:12].decode()
        self.statuses[status] += 1
        if status == "200":
            self.latencies_ms.append(1000 * (time.perf_counter() - due_s))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)


async def measure_rate(
    servers: DatabaseServers, web: WebProcesses, requests: Sequence[bytes], rate: float, seconds: float
) -> list[str]:
    """Returns the row of one rate."""
    pids = [web.pid, servers.mongod_pid, os.getpid()]
    load, before = LookupLoad(web.port, requests, rate, seconds), cpu_times(pids)
    await load.run()
    cpu = cpu_times(pids).percent_since(before)
    failed = sum(count for status, count in load.statuses.items() if status not in ("200", "429"))
    return [
        *(f"{rate:g}", f"{len(load.latencies_ms) / seconds:.0f}"),
        *(f"{percentile(load.latencies_ms, percent):,.0f}" for percent in (50, 95, 99)),
        *(str(load.statuses["429"]), str(failed), *(f"{cpu[str(process)]:.0f}" for process in (*pids, "others"))),
    ]


async def measure(
    addresses: int, rates: Sequence[float], seconds: float, warm_up_s: float, rounds: int
) -> list[list[str]]:
    """Returns a row for each round, policy and rate. Each round has every rate under both policies."""
    rows: list[list[str]] = []
    async with database_servers() as servers:
        await fill_book(servers, addresses)
        requests = random_requests(servers, addresses)
        with web_process(servers) as web:
            await LookupLoad(web.port, requests, WARM_UP_RATE, warm_up_s).run()
            for number, (name, policy) in enumerate(POLICIES * rounds):
                await set_policy(servers, policy, number)
                rows += [[name, *await measure_rate(servers, web, requests, rate, seconds)] for rate in rates]
    return rows


async def set_policy(servers: DatabaseServers, policy: MailPolicy, after_version: int) -> None:
    """Sets the policy, and waits until the web process applies it."""
    async with open_stores(servers.mongodb_uri, servers.redis_url, servers.database) as stores:
        await MailPolicies(stores.mongo).set(ORGANIZATION, policy, after_version, "op", "benchmark", None)
    await asyncio.sleep(POLICY_TTL_S)


@app.command()
def main(
    addresses: Annotated[int, typer.Option(help="Number of addresses in the book.")] = 1_000_000,
    rates: Annotated[str, typer.Option(help="Requests a second, separated by commas.")] = "20,50,100,200",
    seconds: Annotated[float, typer.Option(help="Duration of each rate.")] = 8,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before the first rate.")] = 2,
    rounds: Annotated[int, typer.Option(help="Number of rounds, each with both policies.")] = 1,
) -> None:
    """Measures lookups and prints a table."""
    rows = uvloop.run(measure(addresses, numbers(rates), seconds, warm_up_s, rounds))
    print_table(f"Lookups of {ADDRESSES_PER_REQUEST:,} of {addresses:,} addresses", COLUMNS, rows)


if __name__ == "__main__":
    app()
