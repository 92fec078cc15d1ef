"""A pool of HTTP/1.1 connections to checked addresses. An idle connection is kept for a second, for the same peer.

The address guard decides which addresses may be reached (egress.py). This module follows no redirects, keeps no
cookies, retries nothing, and limits only the time to connect. Callers limit the time of the whole request.
"""

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from typing import NamedTuple, cast

import httpx2
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

IDLE_S = 1.0
"""How long an idle connection is kept. Servers keep idle connections longer, so none closes one during its reuse."""

MAX_OVERHEAD_BYTES = 64 * 1024
"""The most bytes without body content in a row: headers, chunk extensions, trailers."""

MAX_UNREAD_BYTES = 256 * 1024
"""How many received bytes of a body may wait for the reader before receiving is paused."""


class Peer(NamedTuple):
    """The destination of a connection, and the key under which it is kept when idle.

    The key includes the host name, because two hosts may share an IP address.
    """

    scheme: str
    host: str
    port: int
    address: str


class IncomingResponse:
    """A response as it arrives. The parser calls the `on_` methods, which must not raise."""

    def __init__(self) -> None:
        self.parser = HttpResponseParser(self)
        self.headers: list[tuple[bytes, bytes]] = []
        self.status = 0
        self.is_complete = False
        self.leaves_connection_usable = False
        self._body_ends_with_connection = False
        self.failure: httpx2.TransportError | None = None
        self.pieces: deque[bytes] = deque()
        self.unread_bytes = 0
        # Headers of the message that is being parsed, which may be a 1xx response.
        self._message_headers: list[tuple[bytes, bytes]] = []
        # Bytes that were received since the last chunk header or body content.
        self._overhead_bytes = 0
        self._arrived = asyncio.Event()

    def feed(self, data: bytes) -> None:
        """Parses received bytes. Malformed HTTP, or too many bytes without body content, is a failure."""
        self._overhead_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.leaves_connection_usable = False
            self.fail(httpx2.RemoteProtocolError(f"the response is not valid HTTP/1.1: {error}"))
        if self._overhead_bytes > MAX_OVERHEAD_BYTES and not self.is_complete:
            self.fail(httpx2.RemoteProtocolError(f"more than {MAX_OVERHEAD_BYTES} bytes of headers"))
        self._arrived.set()

    def fail(self, failure: httpx2.TransportError) -> None:
        """Fails the response, unless it is complete."""
        if not self.is_complete and self.failure is None:
            self.failure = failure
        self._arrived.set()

    def end(self) -> None:
        """Handles the end of the connection, which completes a body without a length and fails other responses."""
        if self.status and self._body_ends_with_connection and self.failure is None:
            self.is_complete = True
        # Has no effect on a complete response.
        self.fail(httpx2.RemoteProtocolError("the connection was closed before the response was complete"))

    async def wait_for_data(self) -> None:
        """Waits until more data has arrived. Raises: httpx2.TransportError when the response has failed."""
        if self.failure is not None:
            raise self.failure
        self._arrived.clear()
        await self._arrived.wait()

    def on_message_begin(self) -> None:
        """Starts a message: the response, a 1xx response before it, or an unexpected second response."""
        self._message_headers = []
        # A second response belongs to no request, so the connection cannot be reused.
        self.leaves_connection_usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header, or a trailer of a chunked body."""
        self._message_headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Sets status and headers, unless the message is a 1xx or a second response."""
        status = self.parser.get_status_code()
        if status < 200 or self.status:
            return
        self.status, self.headers = status, self._message_headers
        names = {name.lower() for name, _ in self.headers}
        self._body_ends_with_connection = not names & {b"content-length", b"transfer-encoding"}

    def on_chunk_header(self) -> None:
        """Starts a chunk of the body."""
        self._overhead_bytes = 0

    def on_body(self, piece: bytes) -> None:
        """Adds bytes of the body."""
        if not self.is_complete:
            self._overhead_bytes = 0
            self.pieces.append(piece)
            self.unread_bytes += len(piece)

    def on_message_complete(self) -> None:
        """Completes the response, unless the message is a 1xx or a second response."""
        if self.status and not self.is_complete:
            self.is_complete = True
            self.leaves_connection_usable = self.parser.should_keep_alive()


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.expiry: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._response: IncomingResponse | None = None
        self._is_open = False
        self._writable = asyncio.Event()

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent: the connection is open, and received no unexpected or unread bytes."""
        return self._is_open and self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Marks the connection open."""
        self._transport, self._is_open = cast(asyncio.Transport, transport), True
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Passes bytes to the current response; unexpected bytes close the connection."""
        if self._response is None:
            self.close()
            return
        self._response.feed(data)
        if self._response.failure is not None:
            self.close()
        elif self._response.unread_bytes > MAX_UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Suspends writing while the peer does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resumes writing."""
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Handles the end of the connection, with or without an error."""
        self._is_open = False
        self._writable.set()
        if self._response is None:
            return
        if error is None:
            self._response.end()
        else:
            self._response.fail(httpx2.ReadError(f"{type(error).__name__}: {error}"))

    async def send(self, request: httpx2.Request) -> IncomingResponse:
        """Sends a request, and returns the response once it has status and headers. Raises: httpx2.TransportError."""
        head = _head(request)
        self._response = response = IncomingResponse()
        # Writing to a closed connection does not raise. `wait_for_data` raises the error, unless the response arrived
        # before the connection was closed.
        try:
            await self._write(head + request.content)
        except httpx2.RequestNotRead:
            # The body is a stream.
            if "content-length" not in request.headers:
                raise httpx2.LocalProtocolError("a streamed body needs a Content-Length header") from None
            await self._write(head)
            async for piece in cast(httpx2.AsyncByteStream, request.stream):
                await self._write(piece)
        while not response.status:
            await response.wait_for_data()
        return response

    async def _write(self, data: bytes) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(data)
            await self._writable.wait()

    async def read_body(self, response: IncomingResponse) -> AsyncIterator[bytes]:
        """Yields the body as it arrives; stops receiving while 256 KB are unread. Raises: httpx2.TransportError."""
        assert self._transport is not None
        while True:
            while response.pieces:
                piece = response.pieces.popleft()
                response.unread_bytes -= len(piece)
                yield piece
            if response.is_complete:
                return
            self._transport.resume_reading()
            await response.wait_for_data()

    def finish(self) -> None:
        """Ends the response. Closes the connection unless the response was read completely and allows reuse."""
        response, self._response = self._response, None
        if response is None or not response.leaves_connection_usable or response.pieces:
            self.close()

    def close(self) -> None:
        """Closes the connection at once."""
        self._is_open = False
        if self._transport is not None:
            self._transport.abort()


class ConnectionPool:
    """Opens connections, and keeps idle connections for reuse for a second."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl = ssl_context or httpx2.create_ssl_context()
        self._idle: defaultdict[Peer, list[Connection]] = defaultdict(list)

    def take_idle(self, peer: Peer) -> Connection | None:
        """Returns an idle connection, which the caller then owns, or None."""
        idle = self._idle.get(peer, [])
        while idle:
            connection = idle.pop()
            self._end_idle_time(connection)
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def open(self, peer: Peer, timeout_s: float | None) -> Connection:
        """Opens a connection. Raises: httpx2.ConnectError, httpx2.ConnectTimeout; nothing was sent then."""
        tls, server_name = (self._ssl, peer.host) if peer.scheme == "https" else (None, None)
        connect = asyncio.get_running_loop().create_connection
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await connect(
                    lambda: Connection(peer), peer.address, peer.port, ssl=tls, server_hostname=server_name
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"no connection within {timeout_s} s") from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return connection

    def release(self, connection: Connection) -> None:
        """Returns a connection to the pool, which keeps it for a second if it may be reused."""
        connection.finish()
        if connection.is_usable:
            self._idle[connection.peer].append(connection)
            loop = asyncio.get_running_loop()
            connection.expiry = loop.call_later(IDLE_S, self._expire, connection)

    def _expire(self, connection: Connection) -> None:
        self._idle[connection.peer].remove(connection)
        self._end_idle_time(connection)
        connection.close()

    def _end_idle_time(self, connection: Connection) -> None:
        """Cancels the timer of a connection that was just removed from its peer's list, and removes an empty list."""
        if connection.expiry is not None:
            connection.expiry.cancel()
        if not self._idle[connection.peer]:
            del self._idle[connection.peer]

    async def aclose(self) -> None:
        """Closes idle connections. The callers that use the other connections must close those."""
        for peer in list(self._idle):
            while (connection := self.take_idle(peer)) is not None:
                connection.close()
        # Lets the event loop run the callbacks that close the aborted transports.
        await asyncio.sleep(0)


class ResponseBody(httpx2.AsyncByteStream):
    """A response's body. Closing it returns the connection to the pool."""

    def __init__(self, pool: ConnectionPool, connection: Connection, response: IncomingResponse) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert self._connection is not None, "the body is closed"
        async for piece in self._connection.read_body(self._response):
            yield piece

    async def aclose(self) -> None:
        """Returns the connection to the pool; a second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)


def _head(request: httpx2.Request) -> bytes:
    """Returns the request line and headers. Raises: httpx2.LocalProtocolError for a line break or NUL in them."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    head = b"\r\n".join([*lines, b"", b""])
    line_ends = len(lines) + 1
    if head.count(b"\r") != line_ends or head.count(b"\n") != line_ends or b"\0" in head:
        raise httpx2.LocalProtocolError("a header holds a line break or a NUL character")
    return head
