"""Minimal receiver of webhooks, for a separate process. Prints its port.

/ledger returns the id and the time of arrival of each request since the last call of /ledger. A request has arrived
when it is complete. No signatures are checked, so that the benchmark measures the sender.
"""

import asyncio
import socket
import sys
import time

import orjson
import uvloop
from httptools import HttpRequestParser

RECEIVED: list[tuple[str, float]] = []
"""Webhook id and time of arrival of each request."""


class SenderConnection(asyncio.Protocol):
    """One connection of a sender."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = HttpRequestParser(self)
        self._url, self._id = b"", ""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"webhook-id":
            self._id = value.decode()

    def on_message_complete(self) -> None:
        if self._url == b"/ledger":
            self._answer(orjson.dumps(RECEIVED))
            RECEIVED.clear()
            return
        RECEIVED.append((self._id, time.time()))
        self._answer(orjson.dumps({"id": self._id}))

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)  # type: ignore[attr-defined]


async def serve() -> None:
    """Prints the port and serves until the process is ended."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        print(listener.getsockname()[1], flush=True)
        server = await asyncio.get_running_loop().create_server(SenderConnection, sock=listener, backlog=4096)
        await server.serve_forever()


if __name__ == "__main__":
    sys.exit(uvloop.run(serve()))
