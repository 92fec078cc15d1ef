"""Latency of five members, and memory of the web process, while another member sends expensive documents.

Five members post and read in one topic. In every second phase, the hostile member keeps eight connections busy. Four
HTTP connections and two WebSockets send documents that validation accepts. One HTTP connection sends documents that are
refused, and one WebSocket subscribes. Phases with and without the hostile member alternate in one run.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Annotated, Any

import httpx2
import orjson
import typer
from websockets.exceptions import ConnectionClosed

from benchmarks.cpu import forget_peak, memory_mib
from benchmarks.servers import RunningDeployment, deployment
from benchmarks.tables import percentile, print_table
from tests.client import Client, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, join, post_several

ORDINARY_MEMBERS = 5
"""Number of members who post and read."""

HTTP_CONNECTIONS = 4
SOCKETS = 2
MESSAGES = 300
REACTIONS = 5
PAUSE_S = 0.02
PAUSE_AFTER_ATTACK_S = 1.0
TEXT = "@ann @ben #news 狼煙" * 20

READ = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now") { items { id text author { name } } } }'
POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
USER = "id handle name organizationId roles followerCount followingCount"

REFUSED = [
    "{ communities { " + "topics { id lastMessage { id } } " * 120 + "} }",
    "{ viewer { " + " ".join(f"followerCoun{n}" for n in range(400)) + " } }",
    "{ viewer { ...F0 } } fragment F70 on User { id } fragment F71 on User { id } "
    + " ".join(f"fragment F{n} on User {{ ...F{n + 1} ...F{n + 2} id name }}" for n in range(70)),
    "{ communities(limit: 999) { topics(limit: 999) { id } } }",
    "{ viewer { " + "id " * 999,
]
"""Documents that are refused after much work: equal fields, unknown fields, many fragments, cost, syntax."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def aliased(count: int, selection: str) -> str:
    """Returns the selection under several aliases."""
    return " ".join(f"a{number}: {selection}" for number in range(count))


def documents(chat: ChatTopic) -> list[str]:
    """Returns the most expensive documents that validation accepts."""
    page = f'messages(topicId: "{chat.topic}", latest: "now", limit: %d) {{ items {{ %s }} }}'
    feed = '%s(latest: "now", limit: 900) { items { %s } }'
    post = f"id text author {{ {USER} following blocked }} mentions {{ id }} hashtags linkPreview {{ title }}"
    topic = "id title lastMessage { text author { id } mentions { id } } unreadCount readUpTo"
    return [
        aliased(9, page % (20, "reactions { users(limit: 1) { id } }")),
        aliased(9, page % (999, "reactions { emoji count reacted }")),
        aliased(9, page % (999, f"text mentions {{ {USER} }}")),
        aliased(15, page % (999, f"id timestamp text author {{ {USER} following blocked }}")),
        aliased(9, feed % ("homeFeed", post)),
        aliased(9, feed % ("localFeed", post)),
        aliased(9, feed % ("notifications", "id kind actor { id } message { text mentions { id } }")),
        aliased(9, f"trendingTopics(limit: 999) {{ topic {{ {topic} }} messagesPerMinute }}"),
        aliased(15, f'users(query: "a", limit: 999) {{ {USER} following blocked }}'),
        aliased(3, f"communities(limit: 99) {{ id members(limit: 99) {{ id }} topics {{ {topic} }} }}"),
    ]


def subscriptions(chat: ChatTopic) -> list[str]:
    """Returns as many different subscriptions to one topic as a viewer may have, with large selections."""
    message = f"id text author {{ {USER} following blocked }} mentions {{ {USER} following blocked }}"
    fields = aliased(14, f"message {{ {message} reactions {{ users(limit: 99) {{ id }} }} }}")
    selection = f"... on MessagePosted {{ {fields} %s: cursor }}"
    operation = f'subscription {{ topicEvents(topicId: "{chat.topic}") {{ {selection} }} }}'
    return [operation % f"s{n}" for n in range(20)]


@dataclass(slots=True)
class PhaseResults:
    """Measurements of all phases with the hostile member, or of all phases without."""

    reads_ms: list[float] = field(default_factory=list)
    posts_ms: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    hostile_answers: Counter[str] = field(default_factory=Counter)
    growth_mib: float = 0.0


async def time_requests(person: Client, chat: ChatTopic, phase: PhaseResults, ends_at_s: float) -> None:
    """Posts and reads alternately until the phase ends."""
    while time.perf_counter() < ends_at_s:
        post = {"topicId": chat.topic, "text": "The beacon is lit."}
        for latencies, query, variables in (
            (phase.posts_ms, POST, {"input": post}),
            (phase.reads_ms, READ, {"topic": chat.topic}),
        ):
            began_s = time.perf_counter()
            result = await person.execute(query, **variables)
            latencies.append((time.perf_counter() - began_s) * 1000)
            phase.errors.update(error["extensions"]["code"] for error in result.get("errors", ()))
        await asyncio.sleep(PAUSE_S)


def outcome(result: dict[str, Any]) -> str:
    """Returns "answered", or the code of the first error."""
    errors = result.get("errors")
    return str(errors[0].get("extensions", {}).get("code", "error")) if errors else "answered"


async def attack_by_http(url: str, token: str, queries: list[str], phase: PhaseResults, first: int) -> None:
    """Sends one document after the other on one connection, from index `first` on, until it is cancelled."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(timeout=60) as connection:
        for number, query in enumerate(cycle(queries[first:] + queries[:first])):
            # A comment makes each document distinct, so that no two requests share an execution.
            body = {"query": f"{{ {query} }} # {first} {number % 5}"}
            response = await connection.post(f"{url}/graphql", json=body, headers=headers)
            phase.hostile_answers[outcome(orjson.loads(response.content))] += 1
            await asyncio.sleep(PAUSE_S)


async def attack_by_socket(person: Client, queries: list[str], phase: PhaseResults) -> None:
    """Sends all documents at once over one socket, again and again, until it is cancelled."""
    while True:
        with suppress(ConnectionClosed):
            async with person.socket() as socket:
                while True:
                    pending = {await socket.subscribe(f"{{ {query} }}") for query in queries}
                    while pending:
                        frame = await socket.next_frame()
                        if frame["type"] in ("complete", "error"):
                            pending.discard(frame["id"])
                            phase.hostile_answers["answered" if frame["type"] == "complete" else "refused"] += 1
                    await asyncio.sleep(PAUSE_S)


async def attack_by_refusals(url: str, token: str, phase: PhaseResults) -> None:
    """Sends documents that are refused, each with a text of its own, until it is cancelled."""
    async with httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {token}"}) as connection:
        for number, query in enumerate(cycle(REFUSED)):
            response = await connection.post(f"{url}/graphql", json={"query": f"{query} # {number}"})
            phase.hostile_answers[outcome(orjson.loads(response.content))] += 1


async def attack_by_subscriptions(person: Client, chat: ChatTopic, phase: PhaseResults) -> None:
    """Subscribes to the topic where the other members post, and counts events, until it is cancelled."""
    async with person.socket() as socket:
        for query in subscriptions(chat):
            await socket.subscribe(query)
        while True:
            phase.hostile_answers["event" if (await socket.next_frame())["type"] == "next" else "refused"] += 1


@asynccontextmanager
async def hostile_member(
    running: RunningDeployment, queries: list[str], chat: ChatTopic, phase: PhaseResults
) -> AsyncIterator[None]:
    """Runs all attacks of the hostile member during the block."""
    url, token = running.web_processes.url, running.servers.token("mallory")
    async with client(url, token) as mallory:
        attacks = [attack_by_http(url, token, queries, phase, n % len(queries)) for n in range(HTTP_CONNECTIONS)]
        attacks += [attack_by_socket(mallory, queries, phase) for _ in range(SOCKETS)]
        attacks += [attack_by_refusals(url, token, phase), attack_by_subscriptions(mallory, chat, phase)]
        tasks = [asyncio.create_task(each) for each in attacks]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    phase.hostile_answers[type(result).__name__] += 1


async def fill(people: list[Client], chat: ChatTopic) -> None:
    """Posts the messages of the topic that the hostile member's documents read, with reactions of every person."""
    for start in range(0, MESSAGES, 15):
        await post_several(chat, people[start // 15 % len(people)], [TEXT] * 15)
    query = 'query ($id: ID!) { messages(topicId: $id, latest: "now", limit: 999) { items { id } } }'
    items = (await people[0].run(query, id=chat.topic))["messages"]["items"]
    for number, person in enumerate(people):
        for start in range(0, len(items) * REACTIONS // ORDINARY_MEMBERS, 15):
            ids = [items[(start + offset) % len(items)]["id"] for offset in range(15)]
            emoji = chr(0x1F600 + number + ORDINARY_MEMBERS * (start // len(items)))
            fields = (f'addReaction(messageId: "{id_}", emoji: "{emoji}") {{ id }}' for id_ in ids)
            await person.execute(f"mutation {{ {' '.join(f'a{n}: {each}' for n, each in enumerate(fields))} }}")


async def measure(running: RunningDeployment, seconds: float, rounds: int) -> dict[str, PhaseResults]:
    """Alternates phases "without" and "with" the hostile member. Returns their results by these words."""
    phases = {"without": PhaseResults(), "with": PhaseResults()}
    async with AsyncExitStack() as stack:
        names = [*(f"user{n}" for n in range(ORDINARY_MEMBERS)), "mallory"]
        url, token = running.web_processes.url, running.servers.token
        members = [await stack.enter_async_context(client(url, token(name))) for name in names]
        shared_chat, large_chat = await create_chat_topic(members[0]), await create_chat_topic(members[0])
        for chat in (shared_chat, large_chat):
            await join(chat, *members)
        people = members[:ORDINARY_MEMBERS]
        await fill(people, large_chat)
        queries, pid = documents(large_chat), running.web_processes.pid
        for _ in range(rounds):
            await run_phase(phases["without"], people, shared_chat, seconds, pid)
            async with hostile_member(running, queries, shared_chat, phases["with"]):
                await run_phase(phases["with"], people, shared_chat, seconds, pid)
            await asyncio.sleep(PAUSE_AFTER_ATTACK_S)
    return phases


async def run_phase(phase: PhaseResults, people: list[Client], chat: ChatTopic, seconds: float, pid: int) -> None:
    """Measures the requests of `people`, and the growth of the web process's memory."""
    forget_peak(pid)
    before_mib, ends_at_s = memory_mib(pid), time.perf_counter() + seconds
    await asyncio.gather(*(time_requests(person, chat, phase, ends_at_s) for person in people))
    phase.growth_mib = max(phase.growth_mib, memory_mib(pid, "VmHWM") - before_mib)


def cells(name: str, phase: PhaseResults) -> list[str]:
    """Returns the cells of the table."""
    figures = [
        f"{percentile(latencies, percent):.0f} ms"
        for latencies in (phase.reads_ms, phase.posts_ms)
        for percent in (50, 99)
    ]
    answers = ", ".join(f"{count} {answer}" for answer, count in phase.hostile_answers.most_common())
    return [name, *figures, f"{dict(phase.errors) or 0}", f"+{phase.growth_mib:.0f} MiB", answers]


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="Duration of each phase.")] = 5.0,
    rounds: Annotated[int, typer.Option(help="Number of phases with the hostile member, and without.")] = 3,
    pin: Annotated[bool, typer.Option(help="Give core 0 to the web process, and core 1 to everything else.")] = False,
) -> None:
    """Prints the ordinary members' latencies and the growth of memory, with and without a hostile member."""
    with deployment(1, is_pinned=pin) as running:
        phases = asyncio.run(measure(running, seconds, rounds))
    columns = ["hostile member", "reads p50", "p99", "posts p50", "p99", "errors", "memory", "answers to it"]
    print_table(f"{ORDINARY_MEMBERS} members", columns, (cells(*each) for each in phases.items()))


if __name__ == "__main__":
    app()
