"""Closed-loop load generator of the posting benchmark: each connection repeats its requests, one after each answer.

A separate process with little overhead: requests are built in advance, and answers are split by Content-Length.
Reads a PostingLoadSpec as JSON from stdin and writes a PostingLoadReport as JSON to stdout.
"""

import asyncio
import gc
import itertools
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import uvloop

from benchmarks.cpu import cpu_times

LAST_ANSWER_TIMEOUT_S = 15.0
HEAD_END = b"\r\n\r\n"
CONTENT_LENGTH = b"\r\ncontent-length: "


@dataclass(frozen=True, slots=True)
class PostingLoadSpec:
    """One measurement. Each client repeats its own `requests` in their order. Answers during the warm-up are not timed.

    The clients connect to the ports in turn. `pids` are the processes whose processor time is measured.
    """

    ports: list[int]
    requests: list[list[str]]
    warm_up_s: float
    seconds: float
    pids: list[int]


@dataclass(slots=True)
class PostingLoadReport:
    """Result of a load. Errors and timestamps (microseconds, of all acknowledged messages) include the warm-up.

    `disordered` counts messages whose timestamp is at or before one that was acknowledged before the message was sent.
    `cpu_percent` is percent of one processor by process id; "others" is the rest of the machine.
    """

    pid: int = field(default_factory=os.getpid)
    latencies_ms: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    timestamps: list[int] = field(default_factory=list)
    disordered: int = 0
    cpu_percent: dict[str, float] = field(default_factory=dict)


def post_request(path: str, token: str, query: str, variables: dict[str, Any]) -> str:
    """Returns a complete HTTP/1.1 request."""
    body = orjson.dumps({"query": query, "variables": variables}).decode()
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", "Accept: application/json"]
    content = ["Content-Type: application/json", f"Content-Length: {len(body.encode())}", "", body]
    return "\r\n".join([*head, *content])


class LoadGenerator:
    """The clients of a load, and its report."""

    def __init__(self, spec: PostingLoadSpec) -> None:
        self.report = PostingLoadReport()
        self.newest_timestamp = 0
        """The latest acknowledged timestamp."""

        self._spec = spec
        self._began_s = self._ends_s = 0.0

    async def run(self) -> PostingLoadReport:
        """Connects all clients, warms up, measures, and waits for the last answers."""
        ports = itertools.cycle(self._spec.ports)
        clients = [await self._connect(next(ports), requests) for requests in self._spec.requests]
        self._began_s = time.perf_counter() + self._spec.warm_up_s
        self._ends_s = self._began_s + self._spec.seconds
        for client in clients:
            client.send()
        await self._measure_cpu()
        _, unanswered = await asyncio.wait([client.done for client in clients], timeout=LAST_ANSWER_TIMEOUT_S)
        if unanswered:
            self.report.errors["NO_ANSWER"] += len(unanswered)
        return self.report

    def record_answer(self, body: bytes, sent_s: float, newest_when_sent: int) -> bool:
        """Records an answer. Returns whether the client should send its next request."""
        now_s = time.perf_counter()
        answer = orjson.loads(body)
        if errors := answer.get("errors"):
            self.report.errors[errors[0]["extensions"]["code"]] += 1
            return now_s < self._ends_s
        if self._began_s <= now_s < self._ends_s:
            self.report.latencies_ms.append(1000 * (now_s - sent_s))
        (result,) = answer["data"].values()
        self._record_timestamp(int(result["timestamp"].replace(".", "")), newest_when_sent)
        return now_s < self._ends_s

    def _record_timestamp(self, timestamp: int, newest_when_sent: int) -> None:
        self.report.timestamps.append(timestamp)
        self.report.disordered += timestamp <= newest_when_sent
        self.newest_timestamp = max(self.newest_timestamp, timestamp)

    async def _connect(self, port: int, requests: list[str]) -> "_Client":
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: _Client(self, requests), "127.0.0.1", port)
        return client

    async def _measure_cpu(self) -> None:
        pids = [os.getpid(), *self._spec.pids]
        await asyncio.sleep(self._spec.warm_up_s)
        before = cpu_times(pids)
        await asyncio.sleep(self._spec.seconds)
        self.report.cpu_percent = cpu_times(pids).percent_since(before)


class _Client(asyncio.Protocol):
    """A connection with at most one request in progress."""

    def __init__(self, load: LoadGenerator, requests: list[str]) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._load = load
        self._requests = itertools.cycle([request.encode() for request in requests])
        self._received = b""
        self._sent_s, self._newest_when_sent = 0.0, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not subclass asyncio's.
        self._transport = cast(asyncio.WriteTransport, transport)

    def send(self) -> None:
        """Sends the next request."""
        self._sent_s, self._newest_when_sent = time.perf_counter(), self._load.newest_timestamp
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._received += data
        body = _body(self._received)
        if body is None:
            return
        self._received = b""
        if self._load.record_answer(body, self._sent_s, self._newest_when_sent):
            self.send()
        else:
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._load.report.errors["CONNECTION_LOST"] += 1
            self.done.set_result(None)


def _body(received: bytes) -> bytes | None:
    """Returns the body of the answer, or None while it is incomplete."""
    head_end = received.find(HEAD_END)
    if head_end < 0:
        return None
    start = received.index(CONTENT_LENGTH) + len(CONTENT_LENGTH)
    length = int(received[start : received.index(b"\r", start)])
    body = received[head_end + len(HEAD_END) :]
    return body if len(body) >= length else None


def main() -> None:
    """Runs the load that stdin specifies."""
    spec = PostingLoadSpec(**orjson.loads(sys.stdin.buffer.read()))
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report = runner.run(LoadGenerator(spec).run())
    sys.stdout.buffer.write(orjson.dumps(report))


if __name__ == "__main__":
    main()
