"""Closed-loop load generator of the timeline benchmark: each connection sends its next request after each answer.

A separate process with little overhead: requests are built in advance, and only a sample of answers is parsed. Reads a
TimelineLoadSpec as JSON from stdin and writes a TimelineLoadReport as JSON to stdout.
"""

import asyncio
import gc
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import orjson
import uvloop

from benchmarks.cpu import cpu_times

LAST_ANSWER_TIMEOUT_S = 15.0
PARSED_EVERY = 50
"""One of this many answers is parsed and checked."""

OK = b"HTTP/1.1 200"
HEAD_END = b"\r\n\r\n"
CONTENT_LENGTH = b"\r\ncontent-length: "
EXPECTED_START = b'{"data":{"messages":{'


@dataclass(frozen=True, slots=True)
class TimelineLoadSpec:
    """One measurement.

    All connections take their requests from one endless cycle. Answers during the warm-up are not timed.
    """

    port: int
    requests: list[str]
    connections: int
    page_size: int
    warm_up_s: float
    seconds: float
    pids: list[int]


@dataclass(slots=True)
class TimelineLoadReport:
    """Result of a load. `answer_bytes` is the size of all timed bodies.

    `cpu_percent` is of one processor, by process id; "others" is the rest of the machine.
    """

    pid: int = field(default_factory=os.getpid)
    latencies_ms: list[float] = field(default_factory=list)
    answer_bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    cpu_percent: dict[str, float] = field(default_factory=dict)


class LoadGenerator:
    """The clients of a load, and its report."""

    def __init__(self, spec: TimelineLoadSpec) -> None:
        self.report = TimelineLoadReport()
        self._spec = spec
        self._requests: Iterator[bytes] = itertools.cycle([request.encode() for request in spec.requests])
        self._answers = itertools.count(1)
        self._began_s = self._ends_s = 0.0

    async def run(self) -> TimelineLoadReport:
        """Connects all clients, warms up, measures, and waits for the last answers."""
        clients = [await self._connect() for _ in range(self._spec.connections)]
        self._began_s = time.perf_counter() + self._spec.warm_up_s
        self._ends_s = self._began_s + self._spec.seconds
        for client in clients:
            client.send()
        await self._measure_cpu()
        _, unanswered = await asyncio.wait([client.done for client in clients], timeout=LAST_ANSWER_TIMEOUT_S)
        if unanswered:
            self.report.errors["NO_ANSWER"] += len(unanswered)
        return self.report

    def next_request(self) -> bytes:
        """Returns the next request."""
        return next(self._requests)

    def record_answer(self, head: bytes, body: bytes, sent_s: float) -> bool:
        """Records an answer. Returns whether the client should send another request."""
        now_s = time.perf_counter()
        if not (head.startswith(OK) and body.startswith(EXPECTED_START)):
            self.report.errors[body[:200].decode(errors="replace")] += 1
        elif next(self._answers) % PARSED_EVERY == 0:
            self._check_page(body)
        if self._began_s <= now_s < self._ends_s:
            self.report.latencies_ms.append(1000 * (now_s - sent_s))
            self.report.answer_bytes += len(body)
        return now_s < self._ends_s

    def _check_page(self, body: bytes) -> None:
        answer = orjson.loads(body)
        items = answer["data"]["messages"]["items"]
        if (
            answer.get("errors")
            or len(items) != self._spec.page_size
            or not all(item["author"]["handle"] for item in items)
        ):
            self.report.errors["NOT_A_PAGE"] += 1

    async def _connect(self) -> "_Client":
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: _Client(self), "127.0.0.1", self._spec.port)
        return client

    async def _measure_cpu(self) -> None:
        pids = [os.getpid(), *self._spec.pids]
        await asyncio.sleep(self._spec.warm_up_s)
        before = cpu_times(pids)
        await asyncio.sleep(self._spec.seconds)
        self.report.cpu_percent = cpu_times(pids).percent_since(before)


class _Client(asyncio.Protocol):
    """A connection with at most one request in progress."""

    def __init__(self, load: LoadGenerator) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._load = load
        self._received = b""
        self._sent_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not subclass asyncio's.
        self._transport = cast(asyncio.WriteTransport, transport)

    def send(self) -> None:
        """Sends the next request."""
        self._sent_s = time.perf_counter()
        self._transport.write(self._load.next_request())

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(HEAD_END)
        if not end or len(body) < content_length(head):
            return
        self._received = b""
        if self._load.record_answer(head, body, self._sent_s):
            self.send()
        else:
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._load.report.errors["CONNECTION_LOST"] += 1
            self.done.set_result(None)


def content_length(head: bytes) -> int:
    """Returns the size of the body that follows the head of an answer."""
    start = head.index(CONTENT_LENGTH) + len(CONTENT_LENGTH)
    return int(head[start:].partition(b"\r")[0])


def main() -> None:
    """Runs the load that stdin specifies."""
    spec = TimelineLoadSpec(**orjson.loads(sys.stdin.buffer.read()))
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report = runner.run(LoadGenerator(spec).run())
    sys.stdout.buffer.write(orjson.dumps(report))


if __name__ == "__main__":
    main()
