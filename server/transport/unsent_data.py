"""Bounds the data that the process has written and that clients have not read, over all connections.

A transport keeps what the kernel does not take. One connection keeps little (docs/limits.md), but many connections that
do not read could together exhaust the memory of the process.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Counter, Gauge

MAX_UNSENT_BYTES = 64 * 1024 * 1024

UNSENT = Gauge("noroshi_unsent_bytes", "Bytes that wait for clients that do not read, measured as they began to wait.")
ABORTED = Counter(
    "noroshi_aborted_connections",
    "Connections that were aborted because their clients did not read, by reason: stalled, or excess (the clients of "
    "this process together left too much unread).",
    ["reason"],
)


@dataclass(slots=True)
class _Unsent:
    bytes: int
    abort: Callable[[], None]


class StalledConnections:
    """The connections whose transports have paused writing, in the order in which they paused."""

    def __init__(self, max_bytes: int = MAX_UNSENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[asyncio.Transport, _Unsent] = {}
        self._total = 0

    def add(self, transport: asyncio.Transport, abort: Callable[[], None]) -> None:
        """Counts the unsent data of a transport that paused. Aborts the oldest ones while the total is too large."""
        self.remove(transport)
        unsent = self._waiting[transport] = _Unsent(transport.get_write_buffer_size(), abort)
        self._change_total(unsent.bytes)
        if self._total > self._max_bytes:
            self._measure()
            self._abort_oldest()

    def remove(self, transport: asyncio.Transport) -> None:
        """Forgets a transport that resumed writing, or whose connection is lost."""
        unsent = self._waiting.pop(transport, None)
        if unsent is not None:
            self._change_total(-unsent.bytes)

    def _measure(self) -> None:
        for transport, unsent in self._waiting.items():
            now_bytes = transport.get_write_buffer_size()
            self._change_total(now_bytes - unsent.bytes)
            unsent.bytes = now_bytes

    def _abort_oldest(self) -> None:
        while self._total > self._max_bytes:
            transport, unsent = next(iter(self._waiting.items()))
            self.remove(transport)
            ABORTED.labels("excess").inc()
            # A transport must not be aborted while it writes.
            asyncio.get_running_loop().call_soon(unsent.abort)

    def _change_total(self, by_bytes: int) -> None:
        self._total += by_bytes
        UNSENT.set(self._total)


STALLED_CONNECTIONS = StalledConnections()
"""The stalled connections of this process."""
