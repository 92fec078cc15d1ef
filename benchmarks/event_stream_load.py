"""Clients of event streams in the benchmark's process. They decode what arrives, and count events and bytes."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import brotli
import zstandard

from benchmarks.load import post_request
from server.transport.compression import GZIP
from tests.waiting import until

HEAD_END, LINE_END = b"\r\n\r\n", b"\r\n"
EVENT = b"event: next\n"
CONNECTED_AT_ONCE = 50

Decode = Callable[[bytes], bytes]

DECODERS: dict[str, Callable[[], Decode]] = {
    "identity": lambda: bytes,
    "gzip": lambda: zlib.decompressobj(GZIP).decompress,
    "br": lambda: brotli.Decompressor().process,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj().decompress,
}
"""Makes a decoder of one response, by its encoding."""


class StreamClient(asyncio.Protocol):
    """A subscription on a connection of its own."""

    def __init__(self, request: bytes, encoding: str) -> None:
        self.events = self.received_bytes = 0
        """Events, StreamReady among them, and bytes with the framing of HTTP."""
        self.fault = ""
        """Why the stream has ended, or did not begin; empty while it is open."""
        self._request, self._encoding = request, encoding
        self._decode = DECODERS[encoding]()
        self._is_begun = False
        self._unparsed = self._text = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Sends the request."""
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Counts the events in the chunks that are complete."""
        self.received_bytes += len(data)
        self._unparsed += data
        if self._is_begun or self._begins():
            while (chunk := self._next_chunk()) is not None:
                self._count(self._decode(chunk))

    def connection_lost(self, exc: Exception | None) -> None:
        """Records the end."""
        self.fault = self.fault or f"ended: {exc}"

    def _begins(self) -> bool:
        """Reads the head of the response. Returns whether the stream has begun."""
        head, end, rest = self._unparsed.partition(HEAD_END)
        if not end:
            return False
        is_encoded = f"content-encoding: {self._encoding}".encode() in head.lower()
        if not head.startswith(b"HTTP/1.1 200") or is_encoded is (self._encoding == "identity"):
            self.fault = head.decode()
            self.transport.abort()
            return False
        self._unparsed, self._is_begun = rest, True
        return True

    def _next_chunk(self) -> bytes | None:
        """Returns the next chunk of the transfer encoding; None if it is not complete."""
        size, end, rest = self._unparsed.partition(LINE_END)
        if not end or len(rest) < int(size, 16) + len(LINE_END):
            return None
        self._unparsed = rest[int(size, 16) + len(LINE_END) :]
        return rest[: int(size, 16)]

    def _count(self, text: bytes) -> None:
        """Counts events. The first bytes of an event may have come with the chunk before."""
        self._text += text
        self.events += self._text.count(EVENT)
        self._text = self._text.rpartition(EVENT)[2][-len(EVENT) + 1 :]


def stream_request(token: str, query: str, variables: dict[str, Any], encoding: str) -> bytes:
    """Returns the request of a subscription whose events are encoded."""
    accept = f"Accept: text/event-stream\r\nAccept-Encoding: {encoding}"
    return post_request("/graphql", token, query, variables).replace("Accept: application/json", accept).encode()


@asynccontextmanager
async def event_streams(port: int, requests: Sequence[bytes], encoding: str) -> AsyncIterator[list[StreamClient]]:
    """Subscribes a client for each request, and waits until each has its first event."""
    loop, clients = asyncio.get_running_loop(), list[StreamClient]()
    try:
        for start in range(0, len(requests), CONNECTED_AT_ONCE):
            group = [StreamClient(request, encoding) for request in requests[start : start + CONNECTED_AT_ONCE]]
            clients += group
            await asyncio.gather(*(loop.create_connection(lambda each=each: each, "127.0.0.1", port) for each in group))
            await until(lambda group=group: all(each.events or each.fault for each in group))  # type: ignore[misc]
            require_no_fault(group)
        yield clients
    finally:
        for client in clients:
            client.transport.abort()


def require_no_fault(clients: Sequence[StreamClient]) -> None:
    """Raises AssertionError if a stream has ended."""
    faults = {client.fault for client in clients if client.fault}
    assert not faults, faults
