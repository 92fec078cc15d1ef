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

from benchmarks.fanout_targets import OTHERS_CORE, Databases, databases, move_to
from benchmarks.timeline import CONNECTIONS, PAGES, WARM_UP_S, rank, run_load, serving
from benchmarks.timeline_data import PAGE, Library, library
from benchmarks.timeline_load import Job, Report
from tests.product import processes

APP = "benchmarks.transport_app:create"
UVICORN = ["uvicorn", "--factory", APP, "--no-access-log", "--log-level", "warning", "--ws", "none"]
WAYS: dict[str, list[str]] = {
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

    way: str
    seconds: float
    reports: list[tuple[list[int], Report]]

    def cells(self) -> list[str]:
        """As the table shows it: medians of the rounds."""
        rates = [len(report.latencies_ms) / self.seconds for _, report in self.reports]
        cpu_ms = [
            10 * sum(report.cpu_percent[str(pid)] for pid in pids) * self.seconds / max(len(report.latencies_ms), 1)
            for pids, report in self.reports
        ]
        latencies = sorted(each for _, report in self.reports for each in report.latencies_ms)
        others = statistics.median(report.cpu_percent["others"] for _, report in self.reports)
        errors = sum(sum(report.errors.values()) for _, report in self.reports)
        return [
            *(self.way, f"{statistics.median(rates):,.0f}", f"{statistics.median(cpu_ms):.2f}"),
            *(f"{rank(latencies, percent):,.0f}" for percent in (50, 99)),
            *(f"{others:.0f}", str(errors)),
        ]


def _command(way: str, port: int) -> list[str]:
    name, *options = WAYS[way]
    place = ["--bind", f"127.0.0.1:{port}"] if name == "hypercorn" else ["--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", name, *options, *place]


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def _family(pid: int) -> list[int]:
    """A process and those it started: some servers serve in those."""
    children = [child for child, (parent, _) in processes().items() if parent == pid]
    return [pid, *(each for child in children for each in _family(child))]


async def _round(way: str, servers: Databases, books: Library, seconds: float) -> tuple[list[int], Report]:
    port = _free_port()
    async with serving(_command(way, port), port, servers) as target:
        pids = _family(target.pid)
        requests = books.random_pages(PAGES)
        await run_load(Job(port, requests, CONNECTIONS, PAGE, 0.0, WARM_UP_S, []))
        return pids, await run_load(Job(port, requests, CONNECTIONS, PAGE, WARM_UP_S, seconds, pids))


async def _rows(ways: Sequence[str], seconds: float, rounds: int) -> list[Row]:
    rows = [Row(way, seconds, []) for way in ways]
    async with databases("motor") as servers, library(servers) as books:
        for number in range(rounds):
            # There and back, so that nobody is always measured first.
            for row in rows if number % 2 == 0 else reversed(rows):
                row.reports.append(await _round(row.way, servers, books, seconds))
                typer.echo(" | ".join(row.cells()), err=True)
                if errors := row.reports[-1][1].errors:
                    typer.echo(errors, err=True)
    return rows


@app.command()
def main(
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each round is measured.")] = 4.0,
    rounds: Annotated[int, typer.Option(min=1, help="How often each server is measured.")] = 2,
) -> None:
    """Measures the servers that are there, and prints a table."""
    move_to(OTHERS_CORE)
    ways = [way for way, command in WAYS.items() if find_spec(command[0])]
    names = sorted({WAYS[way][0] for way in ways})
    table = Table(title="Pages of 50 under " + ", ".join(f"{name} {version(name)}" for name in names))
    table.add_column("server")
    for name in ["pages/s", "CPU ms a page", "p50 ms", "p99 ms", "others %", "errors"]:
        table.add_column(name, justify="right")
    for row in asyncio.run(_rows(ways, seconds, rounds)):
        table.add_row(*row.cells())
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    app()
