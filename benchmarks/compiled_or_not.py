"""Processor time of the demo's operations, compiled and with graphql-core's executor.

Two web processes on the same databases get a few requests each, interleaved. The table shows the median processor time
of a request, and the median and quartiles of the difference between the two processes in one round. Linux only.
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

from benchmarks.demo_operations import FIRST_CALL_JOB, FIRST_TOPIC, DemoIds, DemoOperation, operations
from benchmarks.fanout_targets import OTHER_PROCESSES_CORE, DatabaseServers, database_servers, pin_to_core
from benchmarks.lookup import web_process
from server.auth.tokens import mint
from server.demo.cast import DEMO_USERS, DemoUser
from server.demo.filling import fill

WARM_UP = 30
"""Requests of each operation to each process before it is measured."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class DemoUserClient:
    """A client of a web process. It sends requests of demo users and measures the processor time of the process."""

    def __init__(self, pid: int, port: int, servers: DatabaseServers) -> None:
        self.pid = pid
        self.url = f"http://127.0.0.1:{port}"
        self._servers = servers

    def token(self, user: DemoUser) -> str:
        """Returns a token of a demo user."""
        secret, org = self._servers.secret, user.organization_id
        return mint(secret, user_id=user.id, organization_id=org, roles=user.roles, name=user.name, handle=user.handle)

    def execute(self, operation: DemoOperation) -> dict[str, Any]:
        """Executes an operation and returns its data. Raises: AssertionError if the answer has errors."""
        return self._send(self.request(operation))

    def request(self, operation: DemoOperation) -> urllib.request.Request:
        """Returns a request that can be sent repeatedly."""
        (user,) = [each for each in DEMO_USERS if each.handle == operation.handle]
        body = orjson.dumps({"query": operation.text, "variables": operation.variables})
        headers = {"Authorization": f"Bearer {self.token(user)}", "Content-Type": "application/json"}
        return urllib.request.Request(f"{self.url}/graphql", body, headers)

    def measure_cpu_us(self, request: urllib.request.Request, count: int) -> float:
        """Sends a request `count` times. Returns the mean processor time of a request in µs."""
        before_ns = self._cpu_ns()
        for _ in range(count):
            self._send(request)
        return (self._cpu_ns() - before_ns) / count / 1000

    def _send(self, request: urllib.request.Request) -> dict[str, Any]:
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = orjson.loads(response.read())
        assert "errors" not in answer, answer
        data: dict[str, Any] = answer["data"]
        return data

    def _cpu_ns(self) -> int:
        tasks = os.listdir(f"/proc/{self.pid}/task")
        return sum(int(Path(f"/proc/{self.pid}/task/{each}/schedstat").read_text().split()[0]) for each in tasks)


def _demo_ids(client: DemoUserClient) -> DemoIds:
    (community,) = client.execute(DemoOperation("hana", FIRST_TOPIC))["communities"]
    (topic,) = community["topics"]
    (job,) = client.execute(DemoOperation("ken", FIRST_CALL_JOB))["callJobs"]["items"]
    last = topic["lastMessage"]
    return DemoIds(community["id"], topic["id"], last["id"], last["timestamp"], job["id"])


def _measure_operations(
    graphql_core: DemoUserClient,
    compiled: DemoUserClient,
    demo_operations: Mapping[str, DemoOperation],
    count: int,
    rounds: int,
) -> list[tuple[str, list[float], list[float]]]:
    rows = []
    for name, operation in demo_operations.items():
        requests = {client: client.request(operation) for client in (graphql_core, compiled)}
        times: dict[DemoUserClient, list[float]] = {graphql_core: [], compiled: []}
        for client, request in requests.items():
            client.measure_cpu_us(request, WARM_UP)
        for _ in range(rounds):
            for client in random.sample([graphql_core, compiled], 2):
                times[client].append(client.measure_cpu_us(requests[client], count))
        rows.append((name, times[graphql_core], times[compiled]))
    return rows


async def measure(count: int, rounds: int) -> list[tuple[str, list[float], list[float]]]:
    """Returns for each operation its times in µs by round: with graphql-core's executor, and compiled."""
    pin_to_core(OTHER_PROCESSES_CORE)
    async with (
        database_servers("pymongo") as servers,
        web_process("Noroshi, not compiled", servers) as uncompiled_process,
        web_process("Noroshi", servers) as compiled_process,
    ):
        graphql_core, compiled = (
            DemoUserClient(*uncompiled_process, servers),
            DemoUserClient(*compiled_process, servers),
        )
        await fill(compiled.url, compiled.token)
        demo_operations = operations(await asyncio.to_thread(_demo_ids, compiled))
        return await asyncio.to_thread(_measure_operations, graphql_core, compiled, demo_operations, count, rounds)


def _cells(graphql_core: Sequence[float], compiled: Sequence[float]) -> list[str]:
    percent = [
        100 * (compiled_us / graphql_core_us - 1)
        for graphql_core_us, compiled_us in zip(graphql_core, compiled, strict=True)
    ]
    low, middle, high = statistics.quantiles(percent, n=4)
    medians = [f"{statistics.median(each):,.0f}" for each in (graphql_core, compiled)]
    return [*medians, f"{middle:+.1f}", f"{low:+.1f} to {high:+.1f}"]


@app.command()
def main(
    count: Annotated[int, typer.Option(min=1, help="Consecutive requests to one process.")] = 10,
    rounds: Annotated[int, typer.Option(min=4, help="Rounds of each operation.")] = 60,
) -> None:
    """Measures each operation and prints a table."""
    table = Table("operation", title="Processor time of a request, µs")
    for name in ["graphql-core", "compiled", "difference %", "quartiles"]:
        table.add_column(name, justify="right")
    for name, graphql_core, compiled in asyncio.run(measure(count, rounds)):
        table.add_row(name, *_cells(graphql_core, compiled))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    app()
