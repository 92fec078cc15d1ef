"""Lists of 100,000 numbers: how long it takes to check and to launch one, with how much memory, and who waits for it.

A web process of the product, over HTTP; beside it the ordinary way, the whole list at once by csv and phonenumbers.
"""

import asyncio
import csv
import io
import multiprocessing
import os
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import phonenumbers
import typer
from rich.console import Console
from rich.table import Table

from server.embedded import embedded_servers
from tests.client import Client, client
from tests.serving import serving

CHECK = """query ($input: LaunchCallJobInput!) {
  checkCallList(input: $input) { rows rowErrorCount rowErrors { row column message } }
}"""
LAUNCH = """mutation ($input: LaunchCallJobInput!) {
  launchCallJob(input: $input) { id state rowErrorCount }
}"""
AGAIN_S = 0.005


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one list: seconds, memory at most beyond what there was before, and the longest that somebody else waited."""

    seconds: float
    peak_mib: float
    others_ms: float


def good(number: int) -> str:
    """A row with a number and two variables."""
    return f"+81 90-{1000 + number // 10_000}-{number % 10_000:04},name {number},some words about it\n"


def bad(number: int) -> str:
    """A row without the country."""
    return f"090-{1000 + number // 10_000}-{number % 10_000:04},name {number},some words about it\n"


def in_one_go(text: str) -> tuple[int, int]:
    """The ordinary way: how many numbers and bad rows."""
    numbers: dict[str, dict[str, str]] = {}
    errors: list[str] = []
    for row in list(csv.DictReader(io.StringIO(text))):
        try:
            number = phonenumbers.parse(row["phone_number"])
            if not phonenumbers.is_possible_number(number):
                raise ValueError("There can be no such number.")
            numbers[phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)] = row
        except (phonenumbers.NumberParseException, ValueError) as error:
            errors.append(str(error))
    return len(numbers), len(errors)


def ordinary(text: str, rows: int) -> Cost:
    """In a process of its own, where everybody waits until it is over."""
    phonenumbers.parse("+819012345678")
    before_mib, begun = start_peak(os.getpid()), time.perf_counter()
    assert sum(in_one_go(text)) == rows
    seconds = time.perf_counter() - begun
    return Cost(seconds, peak_mib(os.getpid()) - before_mib, seconds * 1000)


def start_peak(pid: int) -> float:
    """The process's memory now, from which on its peak is counted; in MiB."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_mib(pid)


def peak_mib(pid: int) -> float:
    """The most memory that it had since then."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


async def over_http(api: Client, pid: int, query: str, text: str) -> Cost:
    """One request, while somebody else asks for nothing, again and again."""
    waits_s: list[float] = []
    given = {"name": "List", "scenario": "Hello", "csv": text}
    # Made beforehand: who asks lives in this process, too.
    body = orjson.dumps({"query": query, "variables": {"input": given}})
    headers = {"authorization": f"Bearer {api.token}", "content-type": "application/json"}
    asking = asyncio.create_task(_ask(api, waits_s))
    before_mib, begun = start_peak(pid), time.perf_counter()
    response = await api.http.post(f"{api.url}/graphql", content=body, headers=headers)
    seconds = time.perf_counter() - begun
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert "errors" not in orjson.loads(response.content), response.text
    return Cost(seconds, peak_mib(pid) - before_mib, max(waits_s) * 1000)


async def _ask(api: Client, waits_s: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await api.run("{ __typename }")
        waits_s.append(time.perf_counter() - begun)
        await asyncio.sleep(AGAIN_S)


@asynccontextmanager
async def product() -> AsyncIterator[tuple[Client, int]]:
    """Somebody who may call, and the web process's id."""
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder:
        async with embedded_servers(Path(folder) / "data") as servers:
            made = serving(Path(folder) / "web", servers.mongodb_uri, servers.redis_url)
            web = await asyncio.to_thread(made.__enter__)
            try:
                async with client(web.url, web.token("ann", "acme", ("OPERATOR",))) as api:
                    await api.run("{ __typename }")
                    yield api, web.process.pid
            finally:
                await asyncio.to_thread(made.__exit__, None, None, None)


async def measured(rows: int) -> Table:
    """A row for each list and way."""
    table = Table(title=f"{rows:,} rows")
    for column in ("list", "MB", "way", "seconds", "MiB more at most", "others wait at most, ms"):
        table.add_column(column, justify="left" if column in ("list", "way") else "right")
    async with product() as (api, pid):
        for name, row in {"all good": good, "all bad": bad}.items():
            text = "phone_number,name,note\n" + "".join(row(number) for number in range(rows))
            costs = {
                "checkCallList": await over_http(api, pid, CHECK, text),
                "launchCallJob": await over_http(api, pid, LAUNCH, text),
                "csv and phonenumbers at once": await asyncio.to_thread(_apart, text, rows),
            }
            for way, cost in costs.items():
                cells = f"{cost.seconds:.1f}", f"{cost.peak_mib:.0f}", f"{cost.others_ms:.0f}"
                table.add_row(name, f"{len(text) / 1e6:.1f}", way, *cells)
    return table


def _apart(text: str, rows: int) -> Cost:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        return processes.submit(ordinary, text, rows).result()


def main(rows: Annotated[int, typer.Option(help="Rows of each list.")] = 100_000) -> None:
    """Measures and prints a table; takes about a minute."""
    Console(width=120).print(asyncio.run(measured(rows)))


if __name__ == "__main__":
    typer.run(main)
