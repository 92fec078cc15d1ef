"""Time and memory to check and to launch a call list of 100,000 numbers, and the delay of other requests.

Compares requests to a web process with a check of the whole list at once by csv and phonenumbers.
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
from tests.serving import web_process

CHECK = """query ($input: LaunchCallJobInput!) {
  checkCallList(input: $input) { rows rowErrorCount rowErrors { row column message } }
}"""
LAUNCH = """mutation ($input: LaunchCallJobInput!) {
  launchCallJob(input: $input) { id state rowErrorCount }
}"""
EMPTY_QUERY_INTERVAL_S = 0.005


@dataclass(frozen=True, slots=True)
class ListCheckCost:
    """Duration of a check or launch, growth of the peak memory, and the longest latency of a concurrent request."""

    seconds: float
    peak_mib: float
    longest_other_ms: float


def good_row(number: int) -> str:
    """Returns a row with a number and two variables."""
    return f"+81 90-{1000 + number // 10_000}-{number % 10_000:04},name {number},some words about it\n"


def bad_row(number: int) -> str:
    """Returns a row whose number lacks the country code."""
    return f"090-{1000 + number // 10_000}-{number % 10_000:04},name {number},some words about it\n"


def check_at_once(text: str) -> tuple[int, int]:
    """Checks the whole list at once. Returns the counts of numbers and of bad rows."""
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


def measure_at_once(text: str, rows: int) -> ListCheckCost:
    """Measures `check_at_once` in this process. In a web process, other requests would wait for the whole check."""
    phonenumbers.parse("+819012345678")
    before_mib, began_s = reset_peak_mib(os.getpid()), time.perf_counter()
    assert sum(check_at_once(text)) == rows
    seconds = time.perf_counter() - began_s
    return ListCheckCost(seconds, peak_mib(os.getpid()) - before_mib, seconds * 1000)


def reset_peak_mib(pid: int) -> float:
    """Resets the peak memory of a process to its current memory. Returns the current memory in MiB."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_mib(pid)


def peak_mib(pid: int) -> float:
    """Returns the peak memory of a process since the last reset, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


async def measure_request(api: Client, pid: int, query: str, text: str) -> ListCheckCost:
    """Measures one request while the same client sends empty queries on other connections."""
    latencies_s: list[float] = []
    input_ = {"name": "List", "scenario": "Hello", "csv": text}
    # Serialized before the measurement, because serialization would delay the empty queries of this process.
    body = orjson.dumps({"query": query, "variables": {"input": input_}})
    headers = {"authorization": f"Bearer {api.token}", "content-type": "application/json"}
    empty_queries = asyncio.create_task(_send_empty_queries(api, latencies_s))
    before_mib, began_s = reset_peak_mib(pid), time.perf_counter()
    response = await api.http.post(f"{api.url}/graphql", content=body, headers=headers)
    seconds = time.perf_counter() - began_s
    empty_queries.cancel()
    await asyncio.gather(empty_queries, return_exceptions=True)
    assert "errors" not in orjson.loads(response.content), response.text
    return ListCheckCost(seconds, peak_mib(pid) - before_mib, max(latencies_s) * 1000)


async def _send_empty_queries(api: Client, latencies_s: list[float]) -> None:
    while True:
        began_s = time.perf_counter()
        await api.run("{ __typename }")
        latencies_s.append(time.perf_counter() - began_s)
        await asyncio.sleep(EMPTY_QUERY_INTERVAL_S)


@asynccontextmanager
async def operator_client() -> AsyncIterator[tuple[Client, int]]:
    """Runs a web process on embedded servers. Yields an operator's client, and the web process's id."""
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder:
        async with embedded_servers(Path(folder) / "data") as servers:
            web_context = web_process(Path(folder) / "web", servers.mongodb_uri, servers.redis_url)
            web = await asyncio.to_thread(web_context.__enter__)
            try:
                async with client(web.url, web.token("ann", "acme", ("OPERATOR",))) as api:
                    await api.run("{ __typename }")
                    yield api, web.process.pid
            finally:
                await asyncio.to_thread(web_context.__exit__, None, None, None)


async def measure_lists(rows: int) -> Table:
    """Returns a table with a row for each list and variant."""
    table = Table(title=f"{rows:,} rows")
    for column in ("list", "MB", "variant", "seconds", "peak growth, MiB", "longest other request, ms"):
        table.add_column(column, justify="left" if column in ("list", "variant") else "right")
    async with operator_client() as (api, pid):
        for name, row in {"all good": good_row, "all bad": bad_row}.items():
            text = "phone_number,name,note\n" + "".join(row(number) for number in range(rows))
            costs = {
                "checkCallList": await measure_request(api, pid, CHECK, text),
                "launchCallJob": await measure_request(api, pid, LAUNCH, text),
                "csv and phonenumbers at once": await asyncio.to_thread(_measure_in_process, text, rows),
            }
            for variant, cost in costs.items():
                cells = f"{cost.seconds:.1f}", f"{cost.peak_mib:.0f}", f"{cost.longest_other_ms:.0f}"
                table.add_row(name, f"{len(text) / 1e6:.1f}", variant, *cells)
    return table


def _measure_in_process(text: str, rows: int) -> ListCheckCost:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        return processes.submit(measure_at_once, text, rows).result()


def main(rows: Annotated[int, typer.Option(help="Rows of each list.")] = 100_000) -> None:
    """Measures and prints a table; takes about a minute."""
    Console(width=120).print(asyncio.run(measure_lists(rows)))


if __name__ == "__main__":
    typer.run(main)
