"""The product's application under several web servers: random pages of a timeline, 32 connections, one core.

Optional servers are measured if they can be imported:
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

from benchmarks.fanout_targets import OTHERS_CORE, Databases, databases, pin_to_core
from benchmarks.timeline import CONNECTIONS, PAGES, WARM_UP_S, percentile, run_load, running_web_process
from benchmarks.timeline_data import PAGE, TimelineData, timeline_data
from benchmarks.timeline_load import Job, Report
from tests.product import processes

APP = "benchmarks.transport_app:create"
UVICORN = ["uvicorn", "--factory", APP, "--no-access-log", "--log-level", "warning", "--ws", "none"]
COMMANDS: dict[str, list[str]] = {
    "uvicorn, httptools, uvloop": [*UVICORN, "--http", "httptools", "--loop", "uvloop"],
    "uvicorn, h11, uvloop": [*UVICORN, "--http", "h11", "--loop", "uvloop"],
    "uvicorn, httptools, asyncio": [*UVICORN, "--http", "httptools", "--loop", "asyncio"],
    "granian, uvloop": ["granian", "--interface", "asgi", "--factory", APP, "--loop", "uvloop", "--no-ws", "--no-log"],
    "hypercorn, uvloop": ["hypercorn", f"{APP}()", "--worker-class", "uvloop", "--workers", "0"],
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class ServerResult:
    """The rounds of one server, each with its process ids and its report."""

    server: str
    seconds: float
    reports: list[tuple[list[int], Report]]

    def cells(self) -> list[str]:
        """Returns the cells of the table: medians of the rounds."""
        rates = [len(report.latencies_ms) / self.seconds for _, report in self.reports]
        cpu_ms = [
            10 * sum(report.cpu_percent[str(pid)] for pid in pids) * self.seconds / max(len(report.latencies_ms), 1)
            for pids, report in self.reports
        ]
        latencies = sorted(each for _, report in self.reports for each in report.latencies_ms)
        others = statistics.median(report.cpu_percent["others"] for _, report in self.reports)
        errors = sum(sum(report.errors.values()) for _, report in self.reports)
        return [
            *(self.server, f"{statistics.median(rates):,.0f}", f"{statistics.median(cpu_ms):.2f}"),
            *(f"{percentile(latencies, percent):,.0f}" for percent in (50, 99)),
            *(f"{others:.0f}", str(errors)),
        ]


def _command(server: str, port: int) -> list[str]:
    name, *options = COMMANDS[server]
    address = ["--bind", f"127.0.0.1:{port}"] if name == "hypercorn" else ["--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", name, *options, *address]


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def _process_tree(pid: int) -> list[int]:
    """Returns a process and its descendants, since some servers serve in child processes."""
    children = [child for child, (parent, _) in processes().items() if parent == pid]
    return [pid, *(each for child in children for each in _process_tree(child))]


async def _measure_round(
    server: str, servers: Databases, data: TimelineData, seconds: float
) -> tuple[list[int], Report]:
    port = _free_port()
    async with running_web_process(_command(server, port), port, servers) as web:
        pids = _process_tree(web.pid)
        requests = data.random_pages(PAGES)
        await run_load(Job(port, requests, CONNECTIONS, PAGE, 0.0, WARM_UP_S, []))
        return pids, await run_load(Job(port, requests, CONNECTIONS, PAGE, WARM_UP_S, seconds, pids))


async def _measure_servers(names: Sequence[str], seconds: float, rounds: int) -> list[ServerResult]:
    rows = [ServerResult(server, seconds, []) for server in names]
    async with databases("pymongo") as servers, timeline_data(servers) as data:
        for number in range(rounds):
            # Alternates the order, so that no server is always measured first.
            for row in rows if number % 2 == 0 else reversed(rows):
                row.reports.append(await _measure_round(row.server, servers, data, seconds))
                typer.echo(" | ".join(row.cells()), err=True)
                if errors := row.reports[-1][1].errors:
                    typer.echo(errors, err=True)
    return rows


@app.command()
def main(
    seconds: Annotated[float, typer.Option(min=0.5, help="Duration of each round.")] = 4.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each server.")] = 2,
) -> None:
    """Measures the installed servers, and prints a table."""
    pin_to_core(OTHERS_CORE)
    installed = [server for server, command in COMMANDS.items() if find_spec(command[0])]
    names = sorted({COMMANDS[server][0] for server in installed})
    table = Table(title="Pages of 50 under " + ", ".join(f"{name} {version(name)}" for name in names))
    table.add_column("server")
    for name in ["pages/s", "CPU ms a page", "p50 ms", "p99 ms", "others %", "errors"]:
        table.add_column(name, justify="right")
    for row in asyncio.run(_measure_servers(installed, seconds, rounds)):
        table.add_row(*row.cells())
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    app()
