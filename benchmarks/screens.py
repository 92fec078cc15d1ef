"""Lists of the web client's screens for one member: commands to MongoDB, round trips, processor time and latency.

The requests are those of the web client. They are sent one after the other, so that a request shares nothing with
others. With `--before`, the same requests are sent to another checkout as well, in interleaved slices on the same data.
The benchmark fails if the answers of the two checkouts differ.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.before_after import AFTER, BEFORE
from benchmarks.cpu import cpu_times
from benchmarks.load import post_request
from benchmarks.servers import ORGANIZATION, DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import percentile, print_table
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.product import NOROSHI
from tests.resolvers.people import SignIn
from tests.screens.data import ScreenSizes, fill_screens
from tests.screens.operations import SCREENS, document
from tests.screens.round_trips import RoundTrips

SIZES = ScreenSizes(
    communities=8,
    conversations=20,
    requests=3,
    threads=10,
    notifications=50,
    scheduled_posts=50,
    call_jobs=20,
    posts=30,
)
ROLES = ("MEMBER", "OPERATOR")
WARM_UP_REQUESTS = 5
CHANGING_FIELD = re.compile(rb'"estimatedEndAt":"[^"]*"')
"""An estimate from the current time."""

COLUMNS = ["list", "commands", "round trips", "kB", "checkout", "web CPU ms", "p50 ms"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Connection:
    """A connection that sends one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, request: bytes) -> bytes:
        """Sends a request, and returns the body of the answer. Raises: AssertionError for an answer with errors."""
        body = await self.answer(request)
        assert b'"errors"' not in body, body[:500]
        return body

    async def answer(self, request: bytes) -> bytes:
        """Sends a request, and returns the body of the answer, which may have errors."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        (length,) = re.findall(rb"content-length: (\d+)", head)
        return await self._reader.readexactly(int(length))


@asynccontextmanager
async def connection(web: WebProcesses) -> AsyncIterator[Connection]:
    """Opens a connection to a web process."""
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


@dataclass
class ListResult:
    """The figures of one list with one checkout, from all slices."""

    cpu_s: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    answer: bytes = b""

    def cells(self) -> list[str]:
        """Returns the processor time of the web process for each request, and the median latency."""
        return [f"{1000 * self.cpu_s / len(self.latencies_ms):.2f}", f"{percentile(self.latencies_ms, 50):.1f}"]


Results = Mapping[tuple[str, str], ListResult]
"""Figures by list and checkout."""


async def measure_slices(
    webs: Mapping[str, WebProcesses], servers: DatabaseServers, rounds: int, requests: int
) -> Results:
    """Sends the requests of each list to each checkout in turn."""
    results = defaultdict[tuple[str, str], ListResult](ListResult)
    async with AsyncExitStack() as stack:
        connections = {name: await stack.enter_async_context(connection(web)) for name, web in webs.items()}
        for number in range(rounds):
            for screen, request in screen_requests(servers.token("viewer", *ROLES)).items():
                for name in reversed([*webs]) if number % 2 else webs:
                    result = results[screen, name]
                    await _measure_slice(connections[name], webs[name], request, requests, result)
    return results


async def _measure_slice(
    sender: Connection, web: WebProcesses, request: bytes, requests: int, result: ListResult
) -> None:
    for _ in range(WARM_UP_REQUESTS):
        result.answer = await sender.send(request)
    before = cpu_times([web.pid])
    for _ in range(requests):
        began_s = time.perf_counter()
        await sender.send(request)
        result.latencies_ms.append(1000 * (time.perf_counter() - began_s))
    result.cpu_s += cpu_times([web.pid]).processes_s[str(web.pid)] - before.processes_s[str(web.pid)]


def screen_requests(token: str) -> Mapping[str, bytes]:
    """Returns the request of each list."""
    return {
        screen: post_request("/graphql", token, document(operation), dict(variables)).encode()
        for screen, (operation, variables) in SCREENS.items()
    }


def require_equal_answers(results: Results) -> None:
    """Raises AssertionError if two checkouts gave different answers."""
    answers = defaultdict[str, set[bytes]](set)
    for (screen, _), result in results.items():
        answers[screen].add(CHANGING_FIELD.sub(b"", result.answer))
    different = [screen for screen, each in answers.items() if len(each) > 1]
    assert not different, f"The checkouts gave different answers: {', '.join(different)}."


def rows(trips: Mapping[str, RoundTrips], results: Results) -> Iterator[list[str]]:
    """Yields a row for each list and checkout."""
    for (screen, name), result in sorted(results.items(), key=lambda each: [*SCREENS].index(each[0][0])):
        counted = trips[screen]
        own = [str(len(counted.commands)), str(len(counted.trips))] if name == AFTER else ["", ""]
        yield [screen, *own, f"{len(result.answer) / 1000:.1f}", name, *result.cells()]


async def measure(programs: Mapping[str, Sequence[str]], rounds: int, requests: int) -> list[list[str]]:
    """Returns the rows of the table. `programs` are the `noroshi` commands of the checkouts."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(database_servers())
        addresses = servers.mongodb_uri, servers.redis_url, servers.database
        stores = await stack.enter_async_context(open_stores(*addresses, credential_keys=CREDENTIAL_KEYS))
        data = await fill_screens(SignIn(stores), SIZES, ORGANIZATION)
        trips = {screen: await data.round_trips(screen) for screen in SCREENS}
        webs = {name: stack.enter_context(web_process(servers, program)) for name, program in programs.items()}
        results = await measure_slices(webs, servers, rounds, requests)
    require_equal_answers(results)
    return list(rows(trips, results))


@app.command()
def main(
    before: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of another checkout.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Slices of each list and checkout.")] = 8,
    requests: Annotated[int, typer.Option(min=1, help="Requests of a slice.")] = 40,
) -> None:
    """Measures the lists, and prints a table."""
    programs: dict[str, Sequence[str]] = {AFTER: NOROSHI}
    if before is not None:
        programs = {BEFORE: [str(before.absolute() / ".venv/bin/noroshi")], **programs}
    table = asyncio.run(measure(programs, rounds, requests))
    print_table(f"Lists of screens, {rounds} x {requests} requests one after the other", COLUMNS, table)


if __name__ == "__main__":
    app()
