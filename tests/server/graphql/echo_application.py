"""An echo application on the product's WebSocket protocol, with clients that read only on demand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from server.graphql.socket_writer import (
    WebSocketProtocol,
    connection_of,
    text_frame_header,
)
from tests.server.in_process import InProcessServer, RawClient, raw_client, serve_in_process

DEADLINE_S = 20
KIBIBYTE = 1024
SMALL_BUFFER_BYTES = 4 * KIBIBYTE
"""A client's receive buffer. It holds far less than the server's transport."""


class EchoApplication:
    """An application that accepts every socket, returns each text, and closes its sockets on request.

    It records accepted connections, disconnect messages and errors of sending.
    """

    def __init__(self) -> None:
        self.accepted: asyncio.Queue[WebSocketProtocol] = asyncio.Queue()
        self.disconnects: list[Message] = []
        self.close_requested = asyncio.Event()
        self.errors: list[BaseException] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        connection = connection_of(scope)
        assert connection is not None
        self.accepted.put_nowait(connection)
        closing = asyncio.create_task(self._close_on_request(send))
        while (message := await receive())["type"] != "websocket.disconnect":
            await self._send_back(message["text"], send)
        self.disconnects.append(message)
        closing.cancel()

    async def _send_back(self, text: str, send: Send) -> None:
        try:
            await send({"type": "websocket.send", "text": text})
        except OSError as error:
            self.errors.append(error)

    async def _close_on_request(self, send: Send) -> None:
        await self.close_requested.wait()
        await send({"type": "websocket.close", "code": 4403, "reason": "Token expired"})


@asynccontextmanager
async def echo_server(**options: Any) -> AsyncIterator[tuple[EchoApplication, InProcessServer]]:
    app = EchoApplication()
    async with serve_in_process(app, **options) as socket_server:
        yield app, socket_server


@asynccontextmanager
async def slow_client(
    app: EchoApplication, socket_server: InProcessServer
) -> AsyncIterator[tuple[RawClient, WebSocketProtocol]]:
    """Yields a client that reads only on demand, and the server's side of its connection."""
    async with raw_client(socket_server.port, SMALL_BUFFER_BYTES) as raw:
        yield raw, await app.accepted.get()


def text_frame(payload: bytes) -> bytes:
    return text_frame_header(len(payload)) + payload
