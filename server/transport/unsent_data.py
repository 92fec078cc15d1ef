"""Bounds the data that the process has written and that clients have not read, over all connections.

A transport keeps what the kernel does not take. One connection keeps little (docs/limits.md), but many connections that
do not read could together exhaust the memory of the process.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Counter, Gauge

MAX_UNSENT_BYTES = 64 * 1024 * 1024

UNSENT_BYTES = Gauge(
    "noroshi_unsent_bytes", "Bytes that wait for clients that do not read, measured as they began to wait."
)
ABORTED_CONNECTIONS = Counter(
    "noroshi_aborted_connections",
    "Connections that were aborted because their clients did not read, by reason: stalled, or excess (the clients of "
    "this process together left too much unread).",
    ["reason"],
)


@dataclass(slots=True)
class _StalledConnection:
    unsent_bytes: int
    abort: Callable[[], None]


class StalledConnections:
    """The connections whose transports have paused writing, in the order in which they paused."""

    def __init__(self, max_bytes: int = MAX_UNSENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._connections: dict[asyncio.Transport, _StalledConnection] = {}
        self._total = 0

    def add(self, transport: asyncio.Transport, abort: Callable[[], None]) -> None:
        """Counts the unsent data of a transport that paused.

        While the total is too large, aborts the transport that paused first.
        """
        self.remove(transport)
        connection = self._connections[transport] = _StalledConnection(transport.get_write_buffer_size(), abort)
        self._change_total(connection.unsent_bytes)
        if self._total > self._max_bytes:
            self._measure()
            self._abort_oldest()

    def remove(self, transport: asyncio.Transport) -> None:
        """Removes a transport that resumed writing, or whose connection is lost."""
        connection = self._connections.pop(transport, None)
        if connection is not None:
            self._change_total(-connection.unsent_bytes)

    def _measure(self) -> None:
        for transport, connection in self._connections.items():
            now_bytes = transport.get_write_buffer_size()
            self._change_total(now_bytes - connection.unsent_bytes)
            connection.unsent_bytes = now_bytes

    def _abort_oldest(self) -> None:
        while self._total > self._max_bytes:
            transport, connection = next(iter(self._connections.items()))
            self.remove(transport)
            ABORTED_CONNECTIONS.labels("excess").inc()
            # A transport must not be aborted while it writes.
            asyncio.get_running_loop().call_soon(connection.abort)

    def _change_total(self, by_bytes: int) -> None:
        self._total += by_bytes
        UNSENT_BYTES.set(self._total)


STALLED_CONNECTIONS = StalledConnections()
"""The stalled connections of this process."""
