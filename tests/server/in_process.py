"""Serves a WebSocket application in the test's own process. A raw client decides when bytes are read."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from server.graphql.socket_writer import WebSocketProtocol
from tests.websocket_handshake import handshake_request

# Clients must mask their frames. A masking key of zeros leaves the payload unchanged.
MASK = b"\0\0\0\0"


class InProcessServer:
    """A server in this process: its port, its URL and its open connections."""

    def __init__(self, port: int, state: ServerState) -> None:
        self.port = port
        self.url = f"ws://127.0.0.1:{port}/graphql"
        self._state = state

    @property
    def connections(self) -> list[WebSocketProtocol]:
        return [each for each in self._state.connections if isinstance(each, WebSocketProtocol)]

    async def wait_until_all_closed(self, deadline_s: float) -> bool:
        """Waits until every connection has closed or the deadline passes. Returns whether all have closed."""
        ends_at = asyncio.get_running_loop().time() + deadline_s
        while self.connections and asyncio.get_running_loop().time() < ends_at:
            await asyncio.sleep(0.01)
        return not self.connections


@asynccontextmanager
async def serve_in_process(app: ASGIApp, **options: Any) -> AsyncIterator[InProcessServer]:
    """Serves the application for WebSockets only. `options` are passed to uvicorn."""
    defaults = {"lifespan": "off", "log_config": None, "ws_per_message_deflate": False, "ws_ping_interval": None}
    config = uvicorn.Config(app, ws=WebSocketProtocol, **(defaults | options))
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: WebSocketProtocol(config, state, {}), "127.0.0.1", 0)
    socket_server = InProcessServer(server.sockets[0].getsockname()[1], state)
    try:
        yield socket_server
    finally:
        server.close()
        for connection in socket_server.connections:
            connection.transport.abort()
        for task in state.tasks:
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        assert await socket_server.wait_until_all_closed(30)


class RawClient:
    """A WebSocket client on a raw socket. It reads, answers and closes only on demand."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._received = b""

    async def send_frame(self, opcode: int, payload: bytes = b"") -> None:
        """Sends one frame of less than 64 KiB."""
        size = len(payload)
        length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2)
        await asyncio.get_running_loop().sock_sendall(self._sock, bytes((opcode,)) + length + MASK + payload)

    async def receive_frame(self) -> tuple[int, bytes]:
        """Returns the next frame as its first byte and its payload. Raises: EOFError."""
        first, length = await self._read_exactly(2)
        if length >= 126:
            length = int.from_bytes(await self._read_exactly(2 if length == 126 else 8))
        return first, await self._read_exactly(length)

    async def read_to_end(self) -> bytes:
        """Returns everything until the server ends the connection, whether orderly or not."""
        while await self._receive():
            pass
        return self._received

    async def read_head(self) -> bytes:
        """Returns the status line and the headers of the response to the handshake."""
        while b"\r\n\r\n" not in self._received and await self._receive():
            pass
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        return head

    async def _read_exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            if not await self._receive():
                raise EOFError
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    async def _receive(self) -> bool:
        try:
            data = await asyncio.get_running_loop().sock_recv(self._sock, 65_536)
        except ConnectionError:
            return False
        self._received += data
        return bool(data)


@asynccontextmanager
async def raw_client(port: int, buffer_bytes: int | None = None) -> AsyncIterator[RawClient]:
    """Yields a connected client. `buffer_bytes` limits the kernel's receive buffer."""
    with socket.socket() as sock:
        if buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", port))
        await loop.sock_sendall(sock, handshake_request("127.0.0.1"))
        client = RawClient(sock)
        head = await client.read_head()
        assert head.startswith(b"HTTP/1.1 101"), head
        yield client
