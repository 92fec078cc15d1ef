"""Posting to one topic: the product's group commit, interleaved with one transaction for each message.

Each client is another user and posts again after each acknowledgement. Afterwards the topic is read back. It must hold
exactly the acknowledged messages, in strictly increasing order.
"""

import asyncio
import math
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import idle_machine
from benchmarks.load import Job, Report, post_request
from benchmarks.servers import Bench, Target, bench, one_by_one
from tests.client import Client, client

WARM_UP_S = 2.0
WIDTH = 120
GROUP_COMMIT, ONE_EACH, EMPTY = "group commit", "a transaction each", "empty mutation"
POST = "mutation($input: PostMessageInput!) { postMessage(input: $input) { id timestamp } }"
PAGE = """query($topic: ID!, $oldest: Timestamp!) {
  messages(topicId: $topic, oldest: $oldest, limit: 999, inclusive: false) { items { timestamp } hasNewer }
}"""
TEXT = "The beacon on the next hill is lit: pass it on, and keep yours burning until the one after it answers."

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Asked:
    """Options of a run. Durations are for each row."""

    web: Sequence[int]
    clients: Sequence[int]
    seconds: float
    patience_s: float
    driver: str


@dataclass(frozen=True)
class Row:
    """One measurement."""

    way: str
    target: Target
    mongod_pid: int
    clients: int
    seconds: float
    report: Report

    @property
    def rate(self) -> float:
        """Acknowledged messages a second."""
        return len(self.report.latencies_ms) / self.seconds

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        web = "+".join(self._cpu(pid) for pid in self.target.web_pids)
        cpu = [self._cpu(self.report.pid), web, self._cpu(self.mongod_pid), self._cpu("others")]
        latencies = [f"{self._latency_ms(percent):,.1f}" for percent in (50, 99)]
        errors = str(sum(self.report.errors.values()))
        return [
            self.way,
            str(len(self.target.web_pids)),
            str(self.clients),
            f"{self.rate:,.0f}",
            *latencies,
            errors,
            *cpu,
        ]

    def _latency_ms(self, percent: int) -> float:
        """Latencies of acknowledged messages, by nearest rank."""
        latencies = sorted(self.report.latencies_ms)
        return latencies[math.ceil(len(latencies) * percent / 100) - 1] if latencies else math.nan

    def _cpu(self, process: int | str) -> str:
        return f"{self.report.cpu_percent[str(process)]:.0f}"


class Posting:
    """A community whose members post to one topic after the other."""

    def __init__(self, bench: Bench, founder: Client, asked: Asked) -> None:
        self._bench, self._founder, self._asked = bench, founder, asked
        self._tokens = [bench.token(f"user{number}") for number in range(max(asked.clients))]
        self._community_id = ""

    async def prepare(self) -> None:
        """Creates the community and joins all clients."""
        create = "mutation($name: String!) { createCommunity(input: {name: $name}) { id } }"
        self._community_id = (await self._founder.run(create, name="Hilltops"))["createCommunity"]["id"]
        for token in self._tokens:
            member = Client(self._founder.url, token, self._founder.http)
            await member.run("mutation($id: ID!) { joinCommunity(communityId: $id) { id } }", id=self._community_id)

    async def post(self, way: str, target: Target, clients: int) -> Row:
        """Measures `clients` that post to a new topic, and checks its messages."""
        create = 'mutation($id: ID!) { createTopic(input: {communityId: $id, title: "Smoke"}) { id } }'
        topic_id = (await self._founder.run(create, id=self._community_id))["createTopic"]["id"]
        variables = {"input": {"topicId": topic_id, "text": TEXT}}
        row = await self._load(way, target, "/graphql", POST, variables, clients)
        _check(row.report, await self._read_back(topic_id))
        return row

    async def do_nothing(self, target: Target, clients: int) -> Row:
        """Measures `clients` that send an empty mutation."""
        return await self._load(EMPTY, target, "/empty", "mutation { empty }", {}, clients)

    async def _load(
        self, way: str, target: Target, path: str, query: str, variables: dict[str, Any], clients: int
    ) -> Row:
        requests = [post_request(path, token, query, variables) for token in self._tokens[:clients]]
        pids = [*target.web_pids, self._bench.mongod_pid]
        await idle_machine(self._asked.patience_s)
        report = await _run_load(Job(target.port, requests, WARM_UP_S, self._asked.seconds, pids))
        return Row(way, target, self._bench.mongod_pid, clients, self._asked.seconds, report)

    async def _read_back(self, topic_id: str) -> list[int]:
        """All timestamps of the topic in microseconds, paged by `oldest` as clients do."""
        timestamps: list[int] = []
        oldest, more = "0.000000", True
        while more:
            page = (await self._founder.run(PAGE, topic=topic_id, oldest=oldest))["messages"]
            found = [item["timestamp"] for item in page["items"]]
            timestamps.extend(int(timestamp.replace(".", "")) for timestamp in found)
            oldest, more = found[-1] if found else oldest, page["hasNewer"]
        return timestamps


async def _run_load(job: Job) -> Report:
    """The report of a load generator in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.load"]
    run = partial(subprocess.run, command, input=orjson.dumps(job), stdout=subprocess.PIPE, check=True)
    return Report(**orjson.loads((await asyncio.to_thread(run)).stdout))


def _check(report: Report, stored: Sequence[int]) -> None:
    """Exits unless the topic holds the acknowledged messages. An error may leave the outcome unknown."""
    acknowledged = set(report.timestamps)
    faults = {
        "messages do not stand in strictly increasing order": sum(a >= b for a, b in pairwise(stored)),
        "timestamps were acknowledged twice": len(report.timestamps) - len(acknowledged),
        "acknowledged messages are missing": len(acknowledged - set(stored)),
        "messages were never acknowledged": max(len(stored) - len(acknowledged) - sum(report.errors.values()), 0),
        "messages stand before one that they were sent after": report.disordered,
    }
    if found := [f"{count} {fault}" for fault, count in faults.items() if count]:
        sys.exit(f"The topic is not what it should be: {'; '.join(found)}.")


async def _measure(bench: Bench, ordinary: Target, asked: Asked) -> AsyncIterator[Row]:
    """Measures both variants, interleaved, then the empty mutation."""
    async with client(bench.target.url, bench.token("founder")) as founder:
        posting = Posting(bench, founder, asked)
        await posting.prepare()
        for count in asked.clients:
            yield await posting.post(GROUP_COMMIT, bench.target, count)
            yield await posting.post(ONE_EACH, ordinary, count)
        for count in asked.clients:
            if count > 1:
                yield await posting.do_nothing(ordinary, count)


async def _rows(asked: Asked) -> list[Row]:
    rows = []
    for count in asked.web:
        with bench(count, asked.driver) as running, one_by_one(running, count) as ordinary:
            async for row in _measure(running, ordinary, asked):
                typer.echo(" ".join(row.cells()), err=True)
                rows.append(row)
            typer.echo(running.product.errors, err=True, nl=False)
    return rows


def _table(rows: Sequence[Row], seconds: float) -> Table:
    table = Table(title=f"postMessage to one topic, {seconds:g} s each; CPU in percent of one processor")
    table.add_column("way")
    for name in ("web", "clients", "messages/s", "p50 ms", "p99 ms", "errors", "load", "web CPU", "mongod", "others"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row.cells())
    return table


def _ratios(rows: Sequence[Row]) -> list[str]:
    """How much more the group commit does, by web processes and clients."""
    rates = {(row.way, len(row.target.web_pids), row.clients): row.rate for row in rows}
    return [
        f"{web} web, {clients} clients: {rate / max(rates[ONE_EACH, web, clients], 0.1):.1f} times the messages"
        for (way, web, clients), rate in rates.items()
        if way == GROUP_COMMIT
    ]


@app.command()
def main(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each row is measured.")] = 5.0,
    clients: Annotated[str, typer.Option(help="How many clients at once.")] = "1,10,100",
    web: Annotated[str, typer.Option(help="How many web processes.")] = "1,2",
    driver: Annotated[str, typer.Option(help="motor or pymongo.")] = "pymongo",
    patience_s: Annotated[float, typer.Option(help="How long each row waits for an idle machine.")] = 10.0,
) -> None:
    """Measures posting to one topic, and prints a table."""
    # SIGTERM raises KeyboardInterrupt, so that child processes are ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows = asyncio.run(_rows(Asked(_numbers(web), _numbers(clients), seconds, patience_s, driver)))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(_table(rows, seconds))
    for line in _ratios(rows):
        console.print(line)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    app()
