"""Open-loop load generator of the lookup benchmark: requests at a fixed rate, sent without waiting for earlier answers.

A separate process. Reads a LookupLoadSpec as JSON from stdin, and writes a LookupLoadReport as JSON to stdout. The
latency of a request counts from the time when the request was due.
"""

import asyncio
import gc
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import orjson
import uvloop

from benchmarks.cpu import cpu_times

LAST_ANSWER_TIMEOUT_S = 8.0
HEAD_END = b"\r\n\r\n"
CONTENT_LENGTH = b"\r\ncontent-length: "


@dataclass(frozen=True, slots=True)
class LookupLoadSpec:
    """One measurement. The requests are sent in this order, repeatedly, `rate` of them a second."""

    port: int
    requests: list[str]
    rate: float
    seconds: float
    pids: list[int]


@dataclass(slots=True)
class LookupLoadReport:
    """Result of a load: latencies of answers with status 200, answers by status, and CPU percent by process id."""

    pid: int = field(default_factory=os.getpid)
    latencies_ms: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    cpu_percent: dict[str, float] = field(default_factory=dict)


class LoadGenerator:
    """The connections of a load, and its report."""

    def __init__(self, spec: LookupLoadSpec) -> None:
        self.report = LookupLoadReport()
        self._spec = spec
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self) -> LookupLoadReport:
        """Sends requests at the rate, and waits for the last answers."""
        requests = [each.encode() for each in self._spec.requests]
        before, began_s = cpu_times([os.getpid(), *self._spec.pids]), time.perf_counter()
        tasks = []
        for number in range(int(self._spec.rate * self._spec.seconds)):
            due_s = began_s + number / self._spec.rate
            await asyncio.sleep(max(due_s - time.perf_counter(), 0))
            tasks.append(asyncio.create_task(self._send(requests[number % len(requests)], due_s)))
        self.report.cpu_percent = cpu_times([os.getpid(), *self._spec.pids]).percent_since(before)
        _, unanswered = await asyncio.wait(tasks, timeout=LAST_ANSWER_TIMEOUT_S)
        self.report.statuses["none"] += len(unanswered)
        return self.report

    async def _send(self, request: bytes, due_s: float) -> None:
        try:
            reader, writer = (
                self._idle.pop()
                if self._idle
                else await asyncio.open_connection("127.0.0.1", self._spec.port, limit=1 << 22)
            )
            writer.write(request)
            head = await reader.readuntil(HEAD_END)
            start = head.index(CONTENT_LENGTH) + len(CONTENT_LENGTH)
            await reader.readexactly(int(head[start : head.index(b"\r", start)]))
        except (OSError, asyncio.IncompleteReadError):
            self.report.statuses["broken"] += 1
            return
        self._idle.append((reader, writer))
        status = head[9:12].decode()
        self.report.statuses[status] += 1
        if status == "200":
            self.report.latencies_ms.append(1000 * (time.perf_counter() - due_s))


def main() -> None:
    """Runs the load that stdin specifies."""
    spec = LookupLoadSpec(**orjson.loads(sys.stdin.buffer.read()))
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.stdout.buffer.write(orjson.dumps(runner.run(LoadGenerator(spec).run())))
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
