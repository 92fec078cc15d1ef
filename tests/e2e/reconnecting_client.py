"""A client of several web processes. It reconnects and repeats operations as the documentation says.

It repeats mutations, all with an idempotency key, after connections that are refused or break, and after UNAVAILABLE.
It resumes subscriptions with the last cursor after close code 1012 or a broken connection. It counts these failures,
and records every other failure.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.client import Client, GraphQLFailed

RETRY_S = 0.1
SERVICE_RESTART = 1012
ABNORMAL_CLOSURE = 1006
"""The code that client libraries report for a connection that ended without a close frame."""

ReceivedEvent = dict[str, Any]


@dataclass
class ReconnectingClient:
    """One user, and the addresses of the web processes."""

    urls: Sequence[str]
    token: str
    http: httpx2.AsyncClient
    retry_reasons: Counter[str] = field(default_factory=Counter)
    """Failures after which the documentation tells clients to repeat or reconnect, by kind."""

    errors: list[str] = field(default_factory=list)
    """All other failures."""

    def __post_init__(self) -> None:
        self._processes = itertools.cycle([Client(url, self.token, self.http) for url in self.urls])

    async def run(self, query: str, **variables: Any) -> dict[str, Any]:
        """Runs an operation on one process after another until one answers. Returns its data."""
        while True:
            try:
                return await next(self._processes).run(query, **variables)
            except httpx2.TransportError as error:
                self.retry_reasons[type(error).__name__] += 1
                await asyncio.sleep(RETRY_S)
            except GraphQLFailed as error:
                if set(error.codes) != {"UNAVAILABLE"}:
                    self.errors.append(str(error))
                    raise
                self.retry_reasons["UNAVAILABLE"] += 1
                await asyncio.sleep(RETRY_S)

    async def follow(self, query: str, received: list[ReceivedEvent], ready: asyncio.Event, **variables: Any) -> None:
        """Subscribes, and adds all events to `received` until it is cancelled."""
        cursor: str | None = None
        while True:
            try:
                async with next(self._processes).socket() as socket:
                    await socket.subscribe(query, since=cursor, **variables)
                    while True:
                        event = await socket.next_event()
                        if event["__typename"] != "StreamReady":
                            received.append(event)
                        elif cursor is not None and not event["resumed"]:
                            self.errors.append(f"A subscription was not resumed: {query}")
                        cursor = event["cursor"]
                        ready.set()
            except (OSError, InvalidHandshake):
                self.retry_reasons["connection refused"] += 1
            except ConnectionClosed as closed:
                self._record_close(closed.rcvd.code if closed.rcvd else ABNORMAL_CLOSURE)
            await asyncio.sleep(RETRY_S)

    def _record_close(self, code: int) -> None:
        if code in (SERVICE_RESTART, ABNORMAL_CLOSURE):
            self.retry_reasons[f"close {code}"] += 1
        else:
            self.errors.append(f"A socket was closed with {code}.")
