"""The demo's operations by two web processes on the same databases: compiled, and with graphql-core's own executor.

One request after the other, a few to the one, a few to the other, by turns. What is shown is the web process's
processor time of a request, the median of the rounds, and how much more the compiled one takes, by pairs. Linux only.
"""

import asyncio
import os
import random
import statistics
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.demo_operations import JOBS, PLACES, Operation, Places, operations
from benchmarks.fanout_targets import OTHERS_CORE, Databases, databases, move_to
from benchmarks.lookup import web
from server.auth.tokens import mint
from server.demo.cast import DEMO_USERS, DemoUser
from server.demo.filling import fill

WARM_UP = 30
"""Requests of each operation to each process before it is measured."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Client:
    """Asks a web process in the name of demo users, and reads how much it worked."""

    def __init__(self, pid: int, port: int, servers: Databases) -> None:
        self.pid = pid
        self.url = f"http://127.0.0.1:{port}"
        self._servers = servers

    def token(self, who: DemoUser) -> str:
        """A token such as the demo's users have."""
        secret, org = self._servers.secret, who.organization_id
        return mint(secret, user_id=who.id, organization_id=org, roles=who.roles, name=who.name, handle=who.handle)

    def ask(self, operation: Operation) -> dict[str, Any]:
        """The data. Raises: AssertionError for errors."""
        return self._sent(self.request(operation))

    def request(self, operation: Operation) -> urllib.request.Request:
        """One to be sent as often as one likes."""
        (who,) = [each for each in DEMO_USERS if each.handle == operation.who]
        body = orjson.dumps({"query": operation.text, "variables": operation.variables})
        headers = {"Authorization": f"Bearer {self.token(who)}", "Content-Type": "application/json"}
        return urllib.request.Request(f"{self.url}/graphql", body, headers)

    def cpu_us(self, request: urllib.request.Request, count: int) -> float:
        """Processor time of one request, of so many."""
        before_ns = self._worked_ns()
        for _ in range(count):
            self._sent(request)
        return (self._worked_ns() - before_ns) / count / 1000

    def _sent(self, request: urllib.request.Request) -> dict[str, Any]:
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = orjson.loads(response.read())
        assert "errors" not in answer, answer
        data: dict[str, Any] = answer["data"]
        return data

    def _worked_ns(self) -> int:
        tasks = os.listdir(f"/proc/{self.pid}/task")
        return sum(int(Path(f"/proc/{self.pid}/task/{each}/schedstat").read_text().split()[0]) for each in tasks)


def _places(client: Client) -> Places:
    (community,) = client.ask(Operation("hana", PLACES))["communities"]
    (topic,) = community["topics"]
    (job,) = client.ask(Operation("ken", JOBS))["callJobs"]["items"]
    last = topic["lastMessage"]
    return Places(community["id"], topic["id"], last["id"], last["timestamp"], job["id"])


def _measured(
    general: Client, compiled: Client, asked: Mapping[str, Operation], count: int, rounds: int
) -> list[tuple[str, list[float], list[float]]]:
    rows = []
    for name, operation in asked.items():
        requests = {client: client.request(operation) for client in (general, compiled)}
        times: dict[Client, list[float]] = {general: [], compiled: []}
        for client, request in requests.items():
            client.cpu_us(request, WARM_UP)
        for _ in range(rounds):
            for client in random.sample([general, compiled], 2):
                times[client].append(client.cpu_us(requests[client], count))
        rows.append((name, times[general], times[compiled]))
    return rows


async def measure(count: int, rounds: int) -> list[tuple[str, list[float], list[float]]]:
    """Each operation's times without and with the compiler, in µs by round."""
    move_to(OTHERS_CORE)
    async with (
        databases("motor") as servers,
        web("Noroshi, not compiled", servers) as one,
        web("Noroshi", servers) as two,
    ):
        general, compiled = Client(*one, servers), Client(*two, servers)
        await fill(compiled.url, compiled.token)
        asked = operations(await asyncio.to_thread(_places, compiled))
        return await asyncio.to_thread(_measured, general, compiled, asked, count, rounds)


def _cells(general: Sequence[float], compiled: Sequence[float]) -> list[str]:
    pairs = [100 * (with_ / without - 1) for without, with_ in zip(general, compiled, strict=True)]
    low, middle, high = statistics.quantiles(pairs, n=4)
    medians = [f"{statistics.median(each):,.0f}" for each in (general, compiled)]
    return [*medians, f"{middle:+.1f}", f"{low:+.1f} to {high:+.1f}"]


@app.command()
def main(
    count: Annotated[int, typer.Option(min=1, help="Requests in turn.")] = 10,
    rounds: Annotated[int, typer.Option(min=4, help="Turns of each.")] = 60,
) -> None:
    """Measures each operation, and prints a table."""
    table = Table("operation", title="Processor time of a request, µs")
    for name in ["general", "compiled", "compiled takes %", "its quartiles"]:
        table.add_column(name, justify="right")
    for name, general, compiled in asyncio.run(measure(count, rounds)):
        table.add_row(name, *_cells(general, compiled))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    app()
