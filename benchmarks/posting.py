"""Posting to one topic, or reacting to one message: rates and latencies, by the number of clients and web processes.

Each client has a user of its own, and posts again after each acknowledgement. After each measurement, the topic must
hold the acknowledged messages in strictly increasing order, and at most one other message for each error. Clients that
react add a reaction and remove it alternately. Afterwards the message must count the reactions that are stored.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Annotated

import orjson
import typer

from benchmarks.cpu import wait_for_idle_machine
from benchmarks.load import PostingLoadReport, PostingLoadSpec, post_request
from benchmarks.servers import DatabaseServers, RunningDeployment, WebProcesses, deployment
from benchmarks.tables import numbers, percentile, print_table
from tests.client import Client, client

WARM_UP_S = 2.0
PRODUCT = "Noroshi"
POST = "mutation($input: PostMessageInput!) { postMessage(input: $input) { id timestamp } }"
ADD = 'mutation($id: ID!) { addReaction(messageId: $id, emoji: "🔥") { timestamp } }'
REMOVE = 'mutation($id: ID!) { removeReaction(messageId: $id, emoji: "🔥") { timestamp } }'
REACTIONS = "query($id: ID!) { message(id: $id) { reactions { count users(limit: 999) { id } } } }"
PAGE = """query($topic: ID!, $oldest: Timestamp!) {
  messages(topicId: $topic, oldest: $oldest, limit: 999, inclusive: false) { items { timestamp } hasNewer }
}"""
TEXT = "The beacon on the next hill is lit: pass it on, and keep yours burning until the one after it answers."

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Action(StrEnum):
    """An action of the clients."""

    POST = "post"
    REACTION = "reaction"


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: numbers of web processes and of clients, and durations of each measurement."""

    web: Sequence[int]
    clients: Sequence[int]
    seconds: float
    idle_timeout_s: float
    driver: str = "pymongo"
    warm_up_s: float = WARM_UP_S


@dataclass(frozen=True)
class PostingResult:
    """The result of one variant with certain numbers of web processes and clients."""

    variant: str
    web: WebProcesses
    mongod_pid: int
    clients: int
    seconds: float
    report: PostingLoadReport

    @property
    def rate(self) -> float:
        """Acknowledged messages or reactions a second."""
        return len(self.report.latencies_ms) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Processor time of the web processes for each message or reaction, in ms."""
        percent = sum(self.report.cpu_percent[str(pid)] for pid in self.web.pids)
        return 10 * percent / max(self.rate, 1 / self.seconds)

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        web_cpu = "+".join(self._cpu(pid) for pid in self.web.pids)
        cpu = [self._cpu(self.report.pid), web_cpu, self._cpu(self.mongod_pid), self._cpu("others")]
        latencies = [f"{percentile(self.report.latencies_ms, percent):,.1f}" for percent in (50, 99)]
        errors = str(sum(self.report.errors.values()))
        return [str(len(self.web.pids)), str(self.clients), f"{self.rate:,.0f}", *latencies, errors, *cpu]

    def _cpu(self, process: int | str) -> str:
        return f"{self.report.cpu_percent[str(process)]:.0f}"


class PostingBenchmark:
    """A community whose members post and react. Each measurement creates a new topic."""

    def __init__(self, servers: DatabaseServers, founder: Client, options: RunOptions) -> None:
        self._servers, self._founder, self._options = servers, founder, options
        self._tokens = [servers.token(f"user{number}") for number in range(max(options.clients))]
        self._community_id = ""

    async def prepare(self) -> None:
        """Creates the community and joins all clients."""
        create = "mutation($name: String!) { createCommunity(input: {name: $name}) { id } }"
        self._community_id = (await self._founder.run(create, name="Hilltops"))["createCommunity"]["id"]
        for token in self._tokens:
            member = Client(self._founder.url, token, self._founder.http)
            await member.run("mutation($id: ID!) { joinCommunity(communityId: $id) { id } }", id=self._community_id)

    async def measure(self, action: Action, variant: str, web: WebProcesses, clients: int) -> PostingResult:
        """Measures `clients` clients that post to a new topic or react to a new message, and checks what is stored."""
        create = 'mutation($id: ID!) { createTopic(input: {communityId: $id, title: "Smoke"}) { id } }'
        topic_id = (await self._founder.run(create, id=self._community_id))["createTopic"]["id"]
        measure = self._measure_posts if action is Action.POST else self._measure_reactions
        report = await measure(topic_id, web, self._tokens[:clients])
        return PostingResult(variant, web, self._servers.mongod_pid, clients, self._options.seconds, report)

    async def _measure_posts(self, topic_id: str, web: WebProcesses, tokens: Sequence[str]) -> PostingLoadReport:
        variables = {"input": {"topicId": topic_id, "text": TEXT}}
        report = await self._load(web, [[post_request("/graphql", token, POST, variables)] for token in tokens])
        _check(report, await self._read_back(topic_id))
        return report

    async def _measure_reactions(self, topic_id: str, web: WebProcesses, tokens: Sequence[str]) -> PostingLoadReport:
        id_ = (await self._founder.run(POST, input={"topicId": topic_id, "text": TEXT}))["postMessage"]["id"]
        report = await self._load(
            web, [[post_request("/graphql", token, each, {"id": id_}) for each in (ADD, REMOVE)] for token in tokens]
        )
        reactions = (await self._founder.run(REACTIONS, id=id_))["message"]["reactions"]
        if any(each["count"] != len(each["users"]) for each in reactions):
            sys.exit(f"The message does not count the reactions that are stored: {reactions}.")
        return report

    async def _load(self, web: WebProcesses, requests: list[list[str]]) -> PostingLoadReport:
        pids, options = [*web.pids, self._servers.mongod_pid], self._options
        await wait_for_idle_machine(options.idle_timeout_s)
        return await _run_load(PostingLoadSpec(web.ports, requests, options.warm_up_s, options.seconds, pids))

    async def _read_back(self, topic_id: str) -> list[int]:
        """Returns all timestamps of the topic in microseconds, paged by `oldest`."""
        timestamps: list[int] = []
        oldest, more = "0.000000", True
        while more:
            page = (await self._founder.run(PAGE, topic=topic_id, oldest=oldest))["messages"]
            formatted = [item["timestamp"] for item in page["items"]]
            timestamps.extend(int(timestamp.replace(".", "")) for timestamp in formatted)
            oldest, more = formatted[-1] if formatted else oldest, page["hasNewer"]
        return timestamps


async def _run_load(spec: PostingLoadSpec) -> PostingLoadReport:
    """Runs the load generator in a separate process. Returns its report."""
    command = [sys.executable, "-m", "benchmarks.load"]
    run = partial(subprocess.run, command, input=orjson.dumps(spec), stdout=subprocess.PIPE, check=True)
    return PostingLoadReport(**orjson.loads((await asyncio.to_thread(run)).stdout))


def _check(report: PostingLoadReport, stored: Sequence[int]) -> None:
    """Exits unless the topic holds the acknowledged messages.

    The outcome of a failed request is unknown, so the topic may hold one more message for each error.
    """
    acknowledged = set(report.timestamps)
    faults = {
        "messages are out of order": sum(a >= b for a, b in pairwise(stored)),
        "timestamps were acknowledged twice": len(report.timestamps) - len(acknowledged),
        "acknowledged messages are missing": len(acknowledged - set(stored)),
        "messages were never acknowledged": max(len(stored) - len(acknowledged) - sum(report.errors.values()), 0),
        "messages precede a message that was acknowledged before they were sent": report.disordered,
    }
    if found := [f"{count} {fault}" for fault, count in faults.items() if count]:
        sys.exit(f"The topic does not hold the acknowledged messages in order: {'; '.join(found)}.")


async def _measure(running: RunningDeployment, action: Action, options: RunOptions) -> AsyncIterator[PostingResult]:
    """Measures each number of clients."""
    web = running.web_processes
    async with client(web.url, running.servers.token("founder")) as founder:
        benchmark = PostingBenchmark(running.servers, founder, options)
        await benchmark.prepare()
        for count in options.clients:
            yield await benchmark.measure(action, PRODUCT, web, count)


async def _results(action: Action, options: RunOptions) -> list[PostingResult]:
    results = []
    for count in options.web:
        with deployment(count, options.driver) as running:
            async for result in _measure(running, action, options):
                typer.echo(" ".join(result.cells()), err=True)
                results.append(result)
    return results


@app.command()
def main(
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of each measurement.")] = 5.0,
    clients: Annotated[str, typer.Option(help="Numbers of clients, separated by commas.")] = "1,10,100",
    web: Annotated[str, typer.Option(help="Numbers of web processes, separated by commas.")] = "1,2",
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds before each measurement.")] = WARM_UP_S,
    idle_timeout_s: Annotated[
        float, typer.Option("--idle-timeout", help="Seconds that each measurement waits for an idle machine.")
    ] = 10.0,
    action: Annotated[Action, typer.Option(help="What the clients do.")] = Action.POST,
) -> None:
    """Measures posting to one topic or reacting to one message, and prints a table."""
    options = RunOptions(numbers(web), numbers(clients), seconds, idle_timeout_s, warm_up_s=warm_up_s)
    rows = asyncio.run(_results(action, options))
    columns = ["web", "clients", f"{action}s/s", "p50 ms", "p99 ms", "errors", "load %", "web CPU", "mongod", "others"]
    print_table(f"{action}s in one topic, {seconds:g} s each", columns, (row.cells() for row in rows))


if __name__ == "__main__":
    app()
