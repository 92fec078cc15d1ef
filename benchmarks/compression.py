"""Costs of compressed answers and event streams, and of event streams beside sockets: processor time, bytes, memory.

Event streams are not compressed by the product. The measured web process compresses them all the same, if a client asks
for it, as the middleware would do by itself. Slices of the variants alternate on one web process. Memory is measured in
a new process for each variant. The web process runs on core 0, everything else shares core 1. Linux only.
"""

import asyncio
import gzip
import itertools
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated

import brotli
import typer
import uvloop
import zstandard

from benchmarks.cpu import cpu_times, memory_mib
from benchmarks.event_stream_load import DECODERS, event_streams, require_no_fault, stream_request
from benchmarks.fanout import load_process
from benchmarks.fanout_load import SubscriptionLoadSpec
from benchmarks.fanout_posting import FIELD, QUERY, SteadyPoster, TopicWithMembers, topic_with_members
from benchmarks.load import post_request
from benchmarks.screens import connection
from benchmarks.servers import DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import percentile, print_table
from server.demo.conversations import WORDS, scenes
from storage.chat.changes import NewMessage

COMPRESSING_PROGRAM = [
    *(sys.executable, "-P", "-c"),
    """
import server.transport.compression
from starlette_compress import _responder, add_compress_type

def classify_with_own_headers(message, classify=_responder.classify_start_message):
    # All event streams have the same list of headers, and the middleware changes it.
    message["headers"] = list(message["headers"])
    return classify(message)

_responder.classify_start_message = classify_with_own_headers
add_compress_type("text/event-stream", streaming=True)
from server.commands.cli import main
main()
""",
]
"""Runs `noroshi`, which compresses event streams, too."""

SOCKET = "socket"
ENCODINGS = tuple(DECODERS)
SUBSCRIPTIONS = (SOCKET, *ENCODINGS)
PAGE_SIZE = 200
PAGE_QUERY = """query($topicId: ID!) { messages(topicId: $topicId, latest: "now", limit: %d) {
  items { id timestamp text author { id handle name } reactions { emoji count reacted } } hasOlder hasNewer } }"""
FRAME_HEADER_BYTES = 4
WARM_UP_CLIENTS = 20
WARM_UP_REQUESTS = 5
PAUSE_S = 0.3
LEVEL_S = 0.2
"""How long each level compresses the same body again and again."""

LEVELS: dict[str, tuple[Sequence[int], Callable[[bytes, int], bytes]]] = {
    "gzip": ((1, 4, 6, 9), lambda body, level: gzip.compress(body, compresslevel=level)),
    "br": ((1, 3, 4, 5, 9), lambda body, level: bytes(brotli.compress(body, quality=level))),
    "zstd": ((-1, 1, 4, 9, 15), lambda body, level: zstandard.ZstdCompressor(level=level).compress(body)),
}
"""Levels by encoding. The middleware uses level 4 of each."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class CompressionOptions:
    """Numbers of clients and of requests, and the lengths of slices."""

    streams: int
    connections: int
    compressed: int
    rounds: int
    seconds: float
    rate: float
    requests: int

    def order(self, variants: Sequence[str]) -> Iterator[str]:
        """Yields the variants of all slices. Each round begins with another one."""
        for number in range(self.rounds):
            shift = number % len(variants)
            yield from (*variants[shift:], *variants[:shift])


@dataclass
class Tally:
    """Figures of one variant, from all slices."""

    cpu_us: list[float] = field(default_factory=list)
    """Processor time of the web process for each event of a client, or for each answer."""

    wire_bytes: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    kib: list[float] = field(default_factory=list)
    """Memory of a connection."""


Tallies = defaultdict[str, Tally]


@dataclass(frozen=True)
class Subscribers:
    """Connected subscribers: how many events each has at least, and the bytes that an event takes."""

    least: Callable[[], Awaitable[int]]
    event_bytes: Callable[[], Awaitable[float]]


class CompressionBenchmark:
    """The topic, its members' tokens, and the options of the measurements."""

    def __init__(
        self, servers: DatabaseServers, topic: TopicWithMembers, members: Sequence[str], options: CompressionOptions
    ) -> None:
        self._topic, self._members, self._options = topic, members, options
        self._tokens = [servers.token(member) for member in members]
        self._variables = {"topicId": topic.topic.id}
        self._texts = itertools.cycle(demo_texts())

    async def post(self, texts: list[str]) -> None:
        """Posts the texts, each with a sentence of the demo, by authors in turn."""
        ids, authors = (self._topic.topic.id, self._topic.topic.community_id), random.sample(self._members, len(texts))
        new = (
            NewMessage(*ids, author, f"{text} {next(self._texts)}", None, [])
            for text, author in zip(texts, authors, strict=True)
        )
        await asyncio.gather(*(self._topic.stores.messages.post(each) for each in new))

    async def measure_streams(self, web: WebProcesses) -> Tallies:
        """Measures events to subscribers of each kind."""
        tallies = Tallies(Tally)
        for variant in self._options.order(SUBSCRIPTIONS):
            await self._measure_events(web, variant, tallies[variant])
        return tallies

    async def _measure_events(self, web: WebProcesses, variant: str, tally: Tally) -> None:
        options, poster = self._options, SteadyPoster(self.post)
        async with self._subscribed(web, variant, self._tokens[: options.streams]) as subscribers:
            await asyncio.sleep(PAUSE_S)
            before = cpu_times([web.pid])
            await poster.run(options.rate, options.seconds, lambda: True)
            while await subscribers.least() < poster.posted:
                await asyncio.sleep(PAUSE_S / 10)
            tally.cpu_us.append(_cpu_us(web, before.processes_s) / (poster.posted * options.streams))
            tally.wire_bytes.append(await subscribers.event_bytes())

    async def measure_answers(self, web: WebProcesses) -> tuple[Tallies, bytes]:
        """Measures pages of messages in each encoding, one after the other. Returns the body of a page, too."""
        await self.post([str(number) for number in range(min(PAGE_SIZE, len(self._members)))])
        tallies, bodies = Tallies(Tally), dict[str, bytes]()
        for encoding in self._options.order(ENCODINGS):
            bodies[encoding] = await self._measure_pages(web, encoding, tallies[encoding])
        assert len(set(bodies.values())) == 1, "The encodings gave different answers."
        return tallies, bodies["identity"]

    async def _measure_pages(self, web: WebProcesses, encoding: str, tally: Tally) -> bytes:
        """Requests pages, and returns the decoded body of the last one."""
        request = post_request("/graphql", self._tokens[0], PAGE_QUERY % PAGE_SIZE, self._variables)
        sent = request.replace("\r\n", f"\r\nAccept-Encoding: {encoding}\r\n", 1).encode()
        async with connection(web) as sender:
            for _ in range(WARM_UP_REQUESTS):
                body = await sender.answer(sent)
            before = cpu_times([web.pid])
            for _ in range(self._options.requests):
                began_s = time.perf_counter()
                body = await sender.answer(sent)
                tally.latencies_ms.append(1000 * (time.perf_counter() - began_s))
            tally.cpu_us.append(_cpu_us(web, before.processes_s) / self._options.requests)
        tally.wire_bytes.append(len(body))
        decoded = DECODERS[encoding]()(body)
        assert decoded.startswith(b'{"data":{"messages":'), decoded[:500]
        return decoded

    async def measure_memory(self, servers: DatabaseServers, variants: Sequence[str]) -> Tallies:
        """Measures the memory of idle subscribers of each kind."""
        tallies = Tallies(Tally)
        for variant in self._options.order(variants):
            with web_process(servers, COMPRESSING_PROGRAM) as web:
                tallies[variant].kib.append(await self._memory_kib(web, variant))
        return tallies

    async def _memory_kib(self, web: WebProcesses, variant: str) -> float:
        """Returns the memory of a connection. The first connections stay open, and are not counted."""
        count = self.connections(variant)
        first, tokens = self._tokens[:WARM_UP_CLIENTS], self._tokens[-count:]
        async with self._subscribed(web, variant, first):
            await asyncio.sleep(PAUSE_S)
            before_mib = memory_mib(web.pid)
            async with self._subscribed(web, variant, tokens):
                await asyncio.sleep(PAUSE_S)
                return 1024 * (memory_mib(web.pid) - before_mib) / count

    def connections(self, variant: str) -> int:
        """Returns the number of idle connections of a kind."""
        is_plain = variant in (SOCKET, "identity")
        return self._options.connections if is_plain else self._options.compressed

    @asynccontextmanager
    async def _subscribed(self, web: WebProcesses, variant: str, tokens: Sequence[str]) -> AsyncIterator[Subscribers]:
        """Subscribes each token on a connection of its own."""
        if variant == SOCKET:
            spec = SubscriptionLoadSpec(web.port, list(tokens), QUERY, FIELD, self._variables, len(tokens))
            async with load_process(spec) as load:
                connected = await load.execute("connect")
                assert connected["open"] == len(tokens), connected

                async def least() -> int:
                    return int((await load.execute("progress"))["least"])

                async def event_bytes() -> float:
                    return float((await load.execute("report"))["frame_bytes"] + FRAME_HEADER_BYTES)

                yield Subscribers(least, event_bytes)
            return
        requests = [stream_request(token, QUERY, self._variables, variant) for token in tokens]
        async with event_streams(web.port, requests, variant) as clients:
            before_bytes, ready = sum(each.received_bytes for each in clients), 1

            async def least_events() -> int:
                require_no_fault(clients)
                return min(each.events for each in clients) - ready

            async def mean_bytes() -> float:
                events = sum(each.events - ready for each in clients)
                return (sum(each.received_bytes for each in clients) - before_bytes) / max(events, 1)

            yield Subscribers(least_events, mean_bytes)


def _cpu_us(web: WebProcesses, before_s: dict[str, float]) -> float:
    pid = str(web.pid)
    return 1e6 * (cpu_times([web.pid]).processes_s[pid] - before_s[pid])


def demo_texts() -> list[str]:
    """Returns the texts of the demo's conversations, English and Japanese, in random order."""
    rng = random.Random(1)
    lines = [line[2:] for theme in scenes().values() for scene in theme for line in scene]
    texts = [line.format_map({slot: rng.choice(choices) for slot, choices in WORDS.items()}) for line in lines]
    return rng.sample(texts, len(texts))


def level_rows(body: bytes) -> Iterator[list[str]]:
    """Yields a row for each encoding and level: the size of the body, and the processor time to compress it."""
    for encoding, (levels, compress) in LEVELS.items():
        for level in levels:
            began_s, count = time.process_time(), 0
            while (spent_s := time.process_time() - began_s) < LEVEL_S:
                compressed, count = compress(body, level), count + 1
            yield [f"{encoding} {level}", f"{len(compressed) / 1000:.1f}", f"{1000 * spent_s / count:.2f}"]


async def measure(options: CompressionOptions, variants: Sequence[str]) -> tuple[Tallies, Tallies, bytes, Tallies]:
    """Measures everything."""
    members = [f"m{number}" for number in range(max(options.streams, options.connections, PAGE_SIZE))]
    async with database_servers() as servers, topic_with_members(servers, members) as topic:
        benchmark = CompressionBenchmark(servers, topic, members, options)
        with web_process(servers, COMPRESSING_PROGRAM) as web:
            streams = await benchmark.measure_streams(web)
            answers, body = await benchmark.measure_answers(web)
        return streams, answers, body, await benchmark.measure_memory(servers, variants)


@app.command()
def main(
    streams: Annotated[int, typer.Option(min=1, help="Subscribers of each kind that receive events.")] = 200,
    connections: Annotated[int, typer.Option(min=1, help="Idle sockets, and idle event streams.")] = 500,
    compressed: Annotated[int, typer.Option(min=1, help="Idle event streams of each encoding.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="Slices of each variant.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of a slice in seconds.")] = 3,
    rate: Annotated[float, typer.Option(min=0.1, help="Events a second.")] = 20,
    requests: Annotated[int, typer.Option(min=1, help="Answers of a slice.")] = 60,
) -> None:
    """Measures compression, and prints tables."""
    options = CompressionOptions(streams, connections, compressed, rounds, seconds, rate, requests)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        events, answers, body, memory = runner.run(measure(options, SUBSCRIPTIONS))
    _print_costs(f"Events to {streams} subscribers, for each of them", "web CPU µs", events)
    _print_costs(f"Pages of {PAGE_SIZE} messages, one after the other", "web CPU µs", answers)
    print_table(f"A page of {len(body) / 1000:.1f} kB in this process", ["level", "kB", "CPU ms"], level_rows(body))
    rows = ([name, f"{statistics.median(each.kib):.1f}", _all(each.kib)] for name, each in memory.items())
    print_table("Memory of an idle connection", ["connection", "KiB", "KiB of each round"], rows)


def _print_costs(title: str, cpu: str, tallies: Tallies) -> None:
    print_table(
        title, ["encoding", cpu, "of each round", "bytes", "p50 ms"], itertools.starmap(_cost_cells, tallies.items())
    )


def _cost_cells(name: str, tally: Tally) -> list[str]:
    latency = f"{percentile(tally.latencies_ms, 50):.1f}" if tally.latencies_ms else ""
    size = f"{statistics.median(tally.wire_bytes):,.0f}"
    return [name, f"{statistics.median(tally.cpu_us):,.1f}", _all(tally.cpu_us), size, latency]


def _all(figures: Sequence[float]) -> str:
    return ", ".join(f"{figure:,.1f}" for figure in figures)


if __name__ == "__main__":
    app()
