"""Users of the API. Each operation that they send becomes a line of the history."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from server.auth.tokens import mint
from tests.client import Client, GraphQLFailed, SubscriptionSocket
from tests.lab.cluster import AUTH_SECRET
from tests.lab.history import FINAL, HistoryRecorder, Outcome

ORGANIZATION = "lab"
REFUSAL_CODES = {"BAD_USER_INPUT", "FORBIDDEN", "NOT_FOUND", "CONFLICT", "RATE_LIMITED", "UNAUTHENTICATED"}
TIMEOUT_S = 15.0
RETRY_S = 0.5


@dataclass
class Laboratory:
    """The environment of all workloads: the history, the web processes, and whether the run has ended."""

    history: HistoryRecorder
    web_urls: list[str]
    seed: str
    http: httpx2.AsyncClient = field(
        default_factory=lambda: httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False, limits=httpx2.Limits())
    )
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def random(self, name: str) -> random.Random:
        """Returns a generator that depends on the run's seed and the name alone."""
        return random.Random(f"{self.seed}/{name}")

    def session(self, process: str, area: str, *roles: str, user: str | None = None) -> "WorkloadSession":
        """Returns a session of a user, whose id is `user`, or else the name of the process."""
        token = mint(AUTH_SECRET, user_id=user or process, organization_id=ORGANIZATION, roles=roles)
        return WorkloadSession(self, process, area, token, self.random(process))

    async def pause(self, seconds: float) -> None:
        """Sleeps, but not beyond the end of the run."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            pass


@dataclass
class WorkloadSession:
    """One process of a workload: it sends one operation at a time, each to a web process that it chooses by chance."""

    laboratory: Laboratory
    process: str
    area: str
    token: str
    rng: random.Random

    @property
    def history(self) -> HistoryRecorder:
        return self.laboratory.history

    def client(self) -> Client:
        """Returns a client of a web process that is chosen by chance."""
        return Client(self.rng.choice(self.laboratory.web_urls), self.token, self.laboratory.http)

    async def run(
        self,
        operation: str,
        arguments: dict[str, Any],
        query: str,
        shape: Callable[[Any], Any] = lambda value: value,
        **variables: Any,
    ) -> tuple[Outcome, Any]:
        """Sends an operation with one root field and records it. `shape` converts its value to the recorded result."""
        begin = self.history.now()
        outcome, result = await self._outcome(query, shape, variables)
        self.history.record(self.process, self.area, operation, arguments, begin, outcome, result)
        return outcome, result

    async def run_until_ok(
        self,
        operation: str,
        arguments: dict[str, Any],
        query: str,
        shape: Callable[[Any], Any] = lambda value: value,
        **variables: Any,
    ) -> Any:
        """Repeats an idempotent operation until it succeeds. Returns its result, or None if it is refused."""
        while True:
            outcome, result = await self.run(operation, arguments, query, shape, **variables)
            if outcome == "ok" or _is_refusal(result):
                return result if outcome == "ok" else None
            await asyncio.sleep(RETRY_S)

    def as_final(self) -> "WorkloadSession":
        """Returns a session of the same user that reads the state at the end."""
        return WorkloadSession(self.laboratory, FINAL, self.area, self.token, self.rng)

    @asynccontextmanager
    async def socket(self) -> AsyncIterator[SubscriptionSocket]:
        """Opens a socket to a web process that is chosen by chance."""
        async with self.client().socket() as socket:
            yield socket

    async def _outcome(self, query: str, shape: Callable[[Any], Any], variables: dict[str, Any]) -> tuple[Outcome, Any]:
        try:
            data = await self.client().run(query, **variables)
        except GraphQLFailed as failed:
            code = failed.codes[0]
            error = {"code": code, "message": failed.errors[0]["message"]}
            return ("fail" if code in REFUSAL_CODES else "unknown"), error
        except httpx2.ConnectError as error:
            return "fail", {"code": "NOT_CONNECTED", "message": str(error)}
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return "unknown", {"code": "NO_ANSWER", "message": f"{type(error).__name__}: {error}"}
        (value,) = data.values()
        return "ok", shape(value)


def _is_refusal(result: Any) -> bool:
    return isinstance(result, dict) and result.get("code") in REFUSAL_CODES - {"RATE_LIMITED"}


def micros(timestamp: str) -> int:
    """Returns a timestamp of the API as microseconds."""
    seconds, _, fraction = timestamp.partition(".")
    return int(seconds) * 1_000_000 + int(fraction)


def timestamp(value: int) -> str:
    """Returns microseconds as a timestamp of the API."""
    return f"{value // 1_000_000}.{value % 1_000_000:06d}"
