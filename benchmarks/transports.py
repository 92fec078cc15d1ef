"""The product's application under several web servers: random pages of a timeline, 32 connections, one core.

uvicorn is always measured, granian and hypercorn only if they can be imported:
`pip install --target DIR granian hypercorn`, then `PYTHONPATH=DIR .venv/bin/python -m benchmarks.transports`.
"""

import asyncio
import socket
import statistics
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import OTHER_PROCESSES_CORE, DatabaseServers, database_servers, pin_to_core
from benchmarks.timeline import CONNECTIONS, RANDOM_REQUESTS, WARM_UP_S, percentile, pinned_server_process, run_load
from benchmarks.timeline_data import PAGE_SIZE, TimelineData, timeline_data
from benchmarks.timeline_load import TimelineLoadReport, TimelineLoadSpec
from tests.product import processes

APP = "benchmarks.transport_app:create"
UVICORN = ["uvicorn", "--factory", APP, "--no-access-log", "--log-level", "warning", "--ws", "none"]
COMMANDS_BY_SERVER: dict[str, list[str]] = {
    "uvicorn, httptools, uvloop": [*UVICORN, "--http", "httptools", "--loop", "uvloop"],
    "uvicorn, h11, uvloop": [*UVICORN, "--http", "h11", "--loop", "uvloop"],
    "uvicorn, httptools, asyncio": [*UVICORN, "--http", "httptools", "--loop", "asyncio"],
    "granian, uvloop": ["granian", "--interface", "asgi", "--factory", APP, "--loop", "uvloop", "--no-ws", "--no-log"],
    "hypercorn, uvloop": ["hypercorn", f"{APP}()", "--worker-class", "uvloop", "--workers", "0"],
}
"""Arguments of `python -m` for each web server with its options. With 0 workers, hypercorn serves in one process."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class ServerResult:
    """The results of one server: for each round, the ids of its processes and the report of the load generator."""

    server: str
    seconds: float
    rounds: list[tuple[list[int], TimelineLoadReport]]

    def cells(self) -> list[str]:
        """Returns the cells of the table: medians of the rounds, percentiles over all rounds, and the sum of errors."""
        rates = [len(report.latencies_ms) / self.seconds for _, report in self.rounds]
        # One percent of a core is 10 ms of processor time a second.
        cpu_ms_per_page = [
            10 * sum(report.cpu_percent[str(pid)] for pid in pids) * self.seconds / max(len(report.latencies_ms), 1)
            for pids, report in self.rounds
        ]
        latencies = sorted(latency_ms for _, report in self.rounds for latency_ms in report.latencies_ms)
        others = statistics.median(report.cpu_percent["others"] for _, report in self.rounds)
        errors = sum(sum(report.errors.values()) for _, report in self.rounds)
        return [
            *(self.server, f"{statistics.median(rates):,.0f}", f"{statistics.median(cpu_ms_per_page):.2f}"),
            *(f"{percentile(latencies, percent):,.0f}" for percent in (50, 99)),
            *(f"{others:.0f}", str(errors)),
        ]


def _command(server: str, port: int) -> list[str]:
    module, *options = COMMANDS_BY_SERVER[server]
    address = ["--bind", f"127.0.0.1:{port}"] if module == "hypercorn" else ["--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", module, *options, *address]


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def _process_tree(pid: int) -> list[int]:
    """Returns a process and its descendants, since some servers serve in child processes."""
    children = [child for child, (parent, _) in processes().items() if parent == pid]
    return [pid, *(descendant for child in children for descendant in _process_tree(child))]


async def _measure_round(
    server: str, servers: DatabaseServers, data: TimelineData, seconds: float
) -> tuple[list[int], TimelineLoadReport]:
    port = _free_port()
    async with pinned_server_process(_command(server, port), port, servers) as web:
        pids = _process_tree(web.pid)
        requests = data.random_page_requests(RANDOM_REQUESTS)
        warm_up = TimelineLoadSpec(port, requests, CONNECTIONS, PAGE_SIZE, warm_up_s=0.0, seconds=WARM_UP_S, pids=[])
        await run_load(warm_up)
        # This load warms up too, because it opens new connections.
        measurement = TimelineLoadSpec(port, requests, CONNECTIONS, PAGE_SIZE, WARM_UP_S, seconds, pids)
        return pids, await run_load(measurement)


async def _measure_servers(web_servers: Sequence[str], seconds: float, rounds: int) -> list[ServerResult]:
    results = [ServerResult(server, seconds, []) for server in web_servers]
    async with database_servers("pymongo") as servers, timeline_data(servers) as data:
        for number in range(rounds):
            # Alternates the order, so that no server is always measured first.
            for result in results if number % 2 == 0 else reversed(results):
                pids, report = await _measure_round(result.server, servers, data, seconds)
                result.rounds.append((pids, report))
                typer.echo(" | ".join(result.cells()), err=True)
                if report.errors:
                    typer.echo(report.errors, err=True)
    return results


@app.command()
def main(
    seconds: Annotated[float, typer.Option(min=0.5, help="Duration of each round.")] = 4.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each server.")] = 2,
) -> None:
    """Measures the installed servers, and prints a table."""
    pin_to_core(OTHER_PROCESSES_CORE)
    installed = [server for server, (module, *_) in COMMANDS_BY_SERVER.items() if find_spec(module)]
    packages = sorted({COMMANDS_BY_SERVER[server][0] for server in installed})
    table = Table(
        title=f"Pages of {PAGE_SIZE} under " + ", ".join(f"{package} {version(package)}" for package in packages)
    )
    table.add_column("server")
    for column in ["pages/s", "CPU ms a page", "p50 ms", "p99 ms", "others %", "errors"]:
        table.add_column(column, justify="right")
    for result in asyncio.run(_measure_servers(installed, seconds, rounds)):
        table.add_row(*result.cells())
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    app()
