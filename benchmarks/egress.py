"""The product's guarded HTTP client, compared with httpcore2's connection pool.

The pool uses a network backend that checks addresses as the product does. A thousand webhook requests to one receiver
start at once, as when a thousand scheduled posts are due at the same time. Each round measures both clients, one after
the other. The table shows the time until the last request arrived, and the processor time of the sender.

    .venv/bin/python -m benchmarks.egress [--rounds 7] [--count 1000]
"""

import argparse
import asyncio
import ipaddress
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import httpcore2
import httpx2
import orjson
import uvloop

from jobs.providers.egress import GuardedTransport, check_addresses

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
KEEP_ALIVE_S = 1.0
"""How long the pool keeps idle connections: as long as the product does."""


class AddressCheckingBackend(httpcore2.AnyIOBackend):
    """A network backend that resolves a name in a thread pool, checks all its addresses and connects to the first."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(8)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        results = await loop.run_in_executor(self._threads, socket.getaddrinfo, host, port)
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in results))
        check_addresses(addresses, port, LOOPBACK)
        return await super().connect_tcp(addresses[0], port, timeout, local_address, socket_options)


class HttpcorePoolTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport on httpcore2's connection pool, with a backend that checks addresses."""

    def __init__(self, max_connections: int) -> None:
        super().__init__()
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=max_connections, keepalive_expiry=KEEP_ALIVE_S, network_backend=AddressCheckingBackend()
        )


async def send_all(transport: httpx2.AsyncBaseTransport, port: int, count: int) -> tuple[float, float]:
    """Sends `count` requests at once.

    Returns the time until the last request arrived, and the processor time of this process, both in ms.
    """
    url = f"http://127.0.0.1:{port}/post"

    async def send(number: int) -> None:
        content = orjson.dumps({"publicationId": str(number), "text": "The beacon is lit " * 5})
        headers = {"webhook-id": str(number), "content-type": "application/json"}
        response = await transport.handle_async_request(httpx2.Request("POST", url, headers=headers, content=content))
        await response.aread()
        await response.aclose()

    started_s, cpu_before_s = time.time(), time.process_time()
    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(send, number)
    cpu_ms = (time.process_time() - cpu_before_s) * 1000
    async with httpx2.AsyncClient() as client:
        arrivals = (await client.get(f"http://127.0.0.1:{port}/ledger")).json()
    assert len(arrivals) == count, "A request did not arrive."
    return (max(arrived_s for _, arrived_s in arrivals) - started_s) * 1000, cpu_ms


async def measure_clients(rounds: int, count: int) -> None:
    """Measures both clients and prints the medians."""
    command = [sys.executable, "-m", "benchmarks.receiver"]
    receiver = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
    assert receiver.stdout is not None
    port = int(receiver.stdout.readline())
    results: dict[str, list[tuple[float, float]]] = {"guarded client": [], "httpcore2's pool": []}
    try:
        for _ in range(rounds):
            guarded = GuardedTransport(LOOPBACK)
            results["guarded client"].append(await send_all(guarded, port, count))
            await guarded.aclose()
            pooled = HttpcorePoolTransport(count)
            results["httpcore2's pool"].append(await send_all(pooled, port, count))
            await pooled.aclose()
    finally:
        receiver.terminate()
        receiver.wait()
    print(f"{count} requests at once; medians of {rounds} rounds, each of which measures both clients")
    print("| client | last request arrived, ms | processor time, ms |\n| --- | --- | --- |")
    for client, durations in results.items():
        arrival_ms, cpu_ms = (statistics.median(column) for column in zip(*durations, strict=True))
        print(f"| {client} | {arrival_ms:.0f} | {cpu_ms:.0f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="Number of rounds.")
    parser.add_argument("--count", type=int, default=1000, help="Requests that start at once.")
    arguments = parser.parse_args()
    uvloop.run(measure_clients(arguments.rounds, arguments.count))
