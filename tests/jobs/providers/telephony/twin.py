"""A telephony service on loopback that follows docs/interfaces.md, and checks limits by its own measurements.

It makes each callId's call once, refuses requests after notAfter, and counts active calls at every start. It can lose
responses and reports.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson

from jobs.providers.signed_webhooks import sign, verify

SECRET = "the telephony secret of the tests"

SendReport = Callable[[str, int, str, str | None], Awaitable[None]]


@dataclass
class TwinCall:
    """A call that was placed."""

    id: str
    number: str
    begun_at: float
    callback_url: str
    outcome: str | None = None
    ended_at: float | None = None


@dataclass
class TelephonyTwin:
    """A telephony service. `max_allowed` is how many calls may be active at a time; `faults` describes each excess.

    `lose_answers` is the share of accepted starts whose response is lost, `lose_reports` the share of lost reports. If
    `hold` is given, requests to start a call set `has_held` and wait for `hold`. `report` replaces the signed callback.
    """

    max_allowed: int
    talk_s: tuple[float, float] = (0.1, 0.4)
    outcome: str = "ANSWERED"
    report: SendReport | None = None
    lose_answers: float = 0.0
    lose_reports: float = 0.0
    host: str = "127.0.0.1"
    port: int = 0
    hold: asyncio.Event | None = None
    has_held: asyncio.Event = field(default_factory=asyncio.Event)
    calls: dict[str, TwinCall] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    max_active: int = 0
    faults: list[str] = field(default_factory=list)
    refusal_counts: Counter[str] = field(default_factory=Counter)
    polls: Counter[str] = field(default_factory=Counter)
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def dialled(self) -> Counter[str]:
        """The number of calls to each phone number."""
        return Counter(call.number for call in self.calls.values())

    def rolling_faults(self, per_second: int) -> list[float]:
        """Returns the lengths in seconds of periods under 1 s that have more than `per_second` starts."""
        starts = sorted(call.begun_at for call in self.calls.values())
        spans = [starts[i + per_second] - starts[i] for i in range(len(starts) - per_second)]
        return [span for span in spans if span < 1.0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection, request by request."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rows = head.split("\r\n")
                headers = {name.lower(): value for name, _, value in (row.partition(": ") for row in rows if row)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = line.split(" ")
                status, answer = await self._handle(method, path, headers, body)
                if status == 0:
                    return
                payload = orjson.dumps(answer)
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        verify(SECRET, headers, body if method == "POST" else path.encode(), time.time())
        if method == "GET":
            return self._look_up(path.rpartition("/")[2])
        if self.hold is not None:
            self.has_held.set()
            await self.hold.wait()
        return self._begin(orjson.loads(body))

    def _look_up(self, call_id: str) -> tuple[int, Any]:
        self.polls[call_id] += 1
        call = self.calls.get(call_id)
        if call is None:
            return 404, {}
        return 200, {"state": "active"} if call.outcome is None else {"state": "ended", "outcome": call.outcome}

    def _begin(self, request: dict[str, Any]) -> tuple[int, Any]:
        now_s = time.time()
        if request["callId"] in self.calls:
            return 200, {}
        if now_s > request["notAfter"]:
            self.refusal_counts[request["callId"]] += 1
            return 410, {}
        call = TwinCall(request["callId"], request["phoneNumber"], now_s, request["callbackUrl"])
        self.calls[call.id] = call
        self.active.add(call.id)
        self.max_active = max(self.max_active, len(self.active))
        if len(self.active) > self.max_allowed:
            self.faults.append(f"{len(self.active)} active, {self.max_allowed} allowed")
        task = asyncio.create_task(self._run_call(call))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return (0, {}) if self.rng.random() < self.lose_answers else (201, {})

    async def _run_call(self, call: TwinCall) -> None:
        await asyncio.sleep(self.rng.uniform(*self.talk_s))
        if self.rng.random() >= self.lose_reports:
            await self._send_report(call, 1, "ANSWERED", None)
        # The call ends when the service reports its end. Acceptance of the report may take longer.
        self.active.discard(call.id)
        call.outcome, call.ended_at = self.outcome, time.time()
        if self.rng.random() >= self.lose_reports:
            await self._send_report(call, 2, "ENDED", self.outcome)

    async def _send_report(self, call: TwinCall, sequence: int, event: str, outcome: str | None) -> None:
        with suppress(Exception):
            await (self.report or self._post)(call.id, sequence, event, outcome)

    async def _post(self, call_id: str, sequence: int, event: str, outcome: str | None) -> None:
        """Sends a signed callback, at most three times."""
        report = {"callId": call_id, "sequence": sequence, "event": event, "outcome": outcome}
        body = orjson.dumps({name: value for name, value in report.items() if value is not None})
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
            for _ in range(3):
                headers = sign(SECRET, f"{call_id}-{sequence}", int(time.time()), body)
                response = await http.post(self.calls[call_id].callback_url, content=body, headers=headers)
                if response.is_success:
                    return
                await asyncio.sleep(0.2)


@asynccontextmanager
async def telephony_twin(max_allowed: int, **options: Any) -> AsyncIterator[TelephonyTwin]:
    """Serves a twin on `host`, which is loopback by default."""
    service = TelephonyTwin(max_allowed, **options)
    server = await asyncio.start_server(service.serve, service.host, 0)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()
        for task in list(service.tasks):
            task.cancel()
        await asyncio.gather(*service.tasks, return_exceptions=True)
