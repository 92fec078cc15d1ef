"""The product's application under several web servers: random pages of a timeline, 32 connections, one core.

Servers that are not part of the product are measured when they can be imported:
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
from benchmarks.timeline import CONNECTIONS, PAGES, WARM_UP_S, rank, run_load, serving
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
class Row:
    """One server's rounds."""

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
            *(f"{rank(latencies, percent):,.0f}" for percent in (50, 99)),
            *(f"{others:.0f}", str(errors)),
        ]


def _command(server: str, port: int) -> list[str]:
    name, *options = COMMANDS[server]
    place = ["--bind", f"127.0.0.1:{port}"] if name == "hypercorn" else ["--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", name, *options, *place]


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def _family(pid: int) -> list[int]:
    """Returns a process and its descendants, since some servers serve in child processes."""
    children = [child for child, (parent, _) in processes().items() if parent == pid]
    return [pid, *(each for child in children for each in _family(child))]


async def _round(server: str, servers: Databases, data: TimelineData, seconds: float) -> tuple[list[int], Report]:
    port = _free_port()
    async with serving(_command(server, port), port, servers) as target:
        pids = _family(target.pid)
        requests = data.random_pages(PAGES)
        await run_load(Job(port, requests, CONNECTIONS, PAGE, 0.0, WARM_UP_S, []))
        return pids, await run_load(Job(port, requests, CONNECTIONS, PAGE, WARM_UP_S, seconds, pids))


async def _rows(names: Sequence[str], seconds: float, rounds: int) -> list[Row]:
    rows = [Row(server, seconds, []) for server in names]
    async with databases("pymongo") as servers, timeline_data(servers) as data:
        for number in range(rounds):
            # Alternates the order, so that no server is always measured first.
            for row in rows if number % 2 == 0 else reversed(rows):
                row.reports.append(await _round(row.server, servers, data, seconds))
                typer.echo(" | ".join(row.cells()), err=True)
                if errors := row.reports[-1][1].errors:
                    typer.echo(errors, err=True)
    return rows


@app.command()
def main(
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each round is measured.")] = 4.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each server.")] = 2,
) -> None:
    """Measures the installed servers, and prints a table."""
    pin_to_core(OTHERS_CORE)
    present = [server for server, command in COMMANDS.items() if find_spec(command[0])]
    names = sorted({COMMANDS[server][0] for server in present})
    table = Table(title="Pages of 50 under " + ", ".join(f"{name} {version(name)}" for name in names))
    table.add_column("server")
    for name in ["pages/s", "CPU ms a page", "p50 ms", "p99 ms", "others %", "errors"]:
        table.add_column(name, justify="right")
    for row in asyncio.run(_rows(present, seconds, rounds)):
        table.add_row(*row.cells())
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    app()
