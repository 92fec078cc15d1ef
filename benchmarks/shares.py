"""Turns of members after one of them was busy alone, and refusals of a person whose colleagues are at their limits.

First, one member sends requests alone, and then eight members do. The table shows the latencies and refusals of the
member who had been alone, and of the others. Afterwards, members and services spend their whole budgets of cost, while
a colleague sends a request now and then.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.hostile_member import percentile
from benchmarks.servers import RunningDeployment, deployment
from tests.client import Client, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, join, post_several

ROUNDS = ("alone before", "first round", "second round")
MESSAGES, MESSAGES_OF_A_MUTATION = 240, 15
PAGE = """query ($topic: ID!) {
  messages(topicId: $topic, latest: "now", limit: 240) {
    items { id timestamp text editedAt author { id name handle } }
  }
} # %s"""
"""Keeps the server busier than the client. Four of these cost less than a member may execute at a time."""
EXPENSIVE = "{ communities(limit: 100) { topics(limit: 100) { id lastMessage { id author { id } } } } } # %s"
"""Costs 30,000 or more, and takes little time."""

REQUEST = "{ communities(limit: 100) { id name topics(limit: 30) { id title } } }"
"""The colleague's request, with a cost of about 10,000."""

PAUSE_AFTER_REFUSAL_S = 0.03
PAUSE_OF_COLLEAGUE_S = 0.3

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(slots=True)
class Measurement:
    """The latencies and refusals of one or several members in a round."""

    latencies_ms: list[float] = field(default_factory=list)
    refusals: int = 0


async def time_pages(connection: Client, query: str, topic: str, ends_at_s: float, measured: Measurement) -> None:
    """Reads the newest messages again and again, until the round ends."""
    while (began_s := time.perf_counter()) < ends_at_s:
        result = await connection.execute(query, topic=topic)
        measured.latencies_ms.append((time.perf_counter() - began_s) * 1000)
        measured.refusals += "errors" in result


async def run_round(connections: Sequence[Sequence[Client]], topic: str, seconds: float) -> list[Measurement]:
    """Lets each member read on all connections at once. Returns the first member's measurement, and that of others."""
    ends_at_s = time.perf_counter() + seconds
    first, others = Measurement(), Measurement()
    # The comment keeps requests of different members from being coalesced.
    loads = [
        time_pages(connection, PAGE % number, topic, ends_at_s, others if number else first)
        for number, of_member in enumerate(connections)
        for connection in of_member
    ]
    await asyncio.gather(*loads)
    return [first, others]


async def measure_turns(
    running: RunningDeployment, members: int, connections: int, seconds: float
) -> list[list[Measurement]]:
    """Returns the measurements of each round: the first member alone, and all members twice."""
    async with AsyncExitStack() as stack:
        people = [
            [
                await stack.enter_async_context(client(running.product.url, running.token(f"reader{number}")))
                for _ in range(connections)
            ]
            for number in range(members)
        ]
        chat = await fill(people)
        rounds = (people[:1], people, people)
        return [await run_round(each, chat.topic, seconds) for each in rounds]


async def fill(people: Sequence[Sequence[Client]]) -> ChatTopic:
    """Returns a topic with messages that everyone may read."""
    chat = await create_chat_topic(people[0][0])
    await join(chat, *(each[0] for each in people))
    for start in range(0, MESSAGES, MESSAGES_OF_A_MUTATION):
        await post_several(chat, people[0][0], [f"Beacon {start + n} is lit." for n in range(MESSAGES_OF_A_MUTATION)])
    return chat


async def spend_all(url: str, token: str, name: str) -> None:
    """Sends expensive operations as fast as they are answered, until it is cancelled."""
    async with client(url, token) as greedy:
        while True:
            if "errors" in await greedy.execute(EXPENSIVE % name):
                await asyncio.sleep(PAUSE_AFTER_REFUSAL_S)


async def count_refusals(running: RunningDeployment, members: int, services: int, requests: int) -> int:
    """Returns how many requests of a colleague are refused, while members and services are at their limits."""
    url = running.product.url
    tokens = {f"member{n}": running.token(f"member{n}") for n in range(members)}
    tokens |= {f"service{n}": running.token(f"service{n}", "MEMBER", "SERVICE") for n in range(services)}
    loads = [asyncio.create_task(spend_all(url, token, name)) for name, token in tokens.items()]
    refused = 0
    async with client(url, running.token("colleague")) as colleague:
        for _ in range(requests):
            await asyncio.sleep(PAUSE_OF_COLLEAGUE_S)
            refused += "errors" in await colleague.execute(REQUEST)
    for load in loads:
        load.cancel()
    results = await asyncio.gather(*loads, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in results), results
    return refused


def print_turns(rounds: Sequence[Sequence[Measurement]]) -> None:
    table = Table("round", "members", "requests", "p50", "p99", "longest", "refusals")
    for name, measurements in zip(ROUNDS, rounds, strict=True):
        for who, measured in zip(("busy before", "others"), measurements, strict=True):
            latencies = measured.latencies_ms
            figures = [f"{percentile(latencies, share):.0f} ms" for share in (0.5, 0.99, 1.0)]
            if latencies:
                table.add_row(name, who, f"{len(latencies):,}", *figures, str(measured.refusals))
    Console(width=120).print(table)


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="Duration of each round.")] = 5.0,
    members: Annotated[int, typer.Option(help="Members who read.")] = 8,
    connections: Annotated[int, typer.Option(help="Connections of each of these members.")] = 4,
    greedy: Annotated[int, typer.Option(help="Members who spend their whole budgets.")] = 10,
    services: Annotated[int, typer.Option(help="Services that spend their whole budgets.")] = 2,
    requests: Annotated[int, typer.Option(help="Requests of the colleague.")] = 70,
) -> None:
    """Prints latencies of members after one was busy alone, and how often a colleague is refused."""
    with deployment(1, "pymongo") as running:
        print_turns(asyncio.run(measure_turns(running, members, connections, seconds)))
        refused = asyncio.run(count_refusals(running, greedy, services, requests))
    table = Table("members at their limits", "services at their limits", "refused requests of a colleague")
    table.add_row(str(greedy), str(services), f"{refused} of {requests}")
    Console().print(table)


if __name__ == "__main__":
    app()
