"""uvicorn's HTTP protocol, which aborts connections of clients that vanish or do not read (docs/limits.md)."""

import asyncio
import re
import socket
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request

from server.transport.unsent_data import ABORTED_CONNECTIONS, STALLED_CONNECTIONS

STALLED_S = 10.0
"""A client that takes no byte of its response for this time is disconnected."""

ARRIVAL_TIMEOUT_S = 60.0
"""A request must arrive completely within this time. An upload may take longer while it makes progress."""

MIN_UPLOAD_BYTES = 64 * 1024
"""Number of bytes that make progress of an upload, within the same time."""

UPLOADS = b"/uploads/"
"""Beginning of the paths that take uploads."""

KERNEL_BUFFER_BYTES = 256 * 1024
"""By default the kernel buffers some megabytes for each connection."""

UNACKNOWLEDGED_S = 30.0
"""The client of an event stream that acknowledges no sent byte for this time is disconnected.

Linux counts the time during which a client's buffer is full, too, even if the client takes some bytes now and then. So
the limit holds for event streams only, whose clients resume, and for no slow download.
"""

EXTENSION = "noroshi.acknowledgement_limit"
"""The key of a connection's AcknowledgementLimit in `scope["extensions"]`."""

MAX_HANDSHAKE_HEADERS = 128
MAX_HANDSHAKE_LINE_BYTES = 8_170
"""The limits of websockets, which counts the whole line of a header or of the URL: 8,192 bytes."""

BODY_HEADERS = frozenset((b"content-length", b"transfer-encoding"))
_PRINTABLE = re.compile(rb"[\t\x20-\x7e]*")


class AcknowledgementLimit:
    """Lets TCP give up a client that has vanished. Linux would send the same data again for 13 to 30 minutes.

    Platforms without the option, such as macOS, keep their own time.
    """

    __slots__ = ("_connection", "_is_set")

    def __init__(self, connection: socket.socket) -> None:
        self._connection: socket.socket | None = connection
        self._is_set = False

    def start(self) -> None:
        """Sets the limit, until the next request on the connection."""
        self._set(round(1000 * UNACKNOWLEDGED_S))
        self._is_set = True

    def stop(self) -> None:
        """Removes the limit."""
        if self._is_set:
            self._set(0)
            self._is_set = False

    def close(self) -> None:
        """Forgets the connection before its file descriptor is closed."""
        self._connection = None

    def _set(self, timeout_ms: int) -> None:
        if self._connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)


class HttpProtocol(HttpToolsProtocol):
    """One connection, until it is upgraded to a WebSocket."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._progress_timer: asyncio.TimerHandle | None = None
        self._arrival_timer: asyncio.TimerHandle | None = None
        self._is_request_complete = False
        self._received_bytes = 0
        self.url = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Limits the data that waits in the kernel, and the time for the first request."""
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER_BYTES)
        self._acknowledgement_limit = AcknowledgementLimit(connection)
        self._update_arrival_timer()

    def data_received(self, data: bytes) -> None:
        """Limits the time until the request is complete."""
        super().data_received(data)
        self._received_bytes += len(data)
        self._update_arrival_timer()

    def on_message_begin(self) -> None:
        """Records that a request began to arrive."""
        self._is_request_complete = False
        super().on_message_begin()
        self._acknowledgement_limit.stop()
        self.scope["extensions"] = {EXTENSION: self._acknowledgement_limit}  # type: ignore[dict-item]

    def on_message_complete(self) -> None:
        """Records that a request has arrived."""
        self._is_request_complete = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Counts the unsent data, and begins to watch whether the client takes it."""
        super().pause_writing()
        STALLED_CONNECTIONS.add(self.transport, self.transport.abort)
        self._check_progress_later()

    def resume_writing(self) -> None:
        """Stops watching the client, which has taken nearly all data."""
        self._stop_watching()
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """Stops watching the connection, which gets another protocol. Frees this one."""
        self._is_request_complete = True
        self._stop_watching()
        if (refusal := self._handshake_refusal()) is not None:
            self.send_400_response(refusal)
            return
        if all(_PRINTABLE.fullmatch(value) for _, value in self.headers):
            self._hand_over()
        else:
            # websockets decodes other characters.
            super().handle_websocket_upgrade()
        # The parser and the protocol refer to each other.
        self.parser = None  # type: ignore[assignment]

    def _handshake_refusal(self) -> str | None:
        """Returns why the handshake is refused, if it is. websockets would never answer these handshakes."""
        longest_bytes = max((len(name) + len(value) for name, value in self.headers), default=0)
        if len(self.headers) > MAX_HANDSHAKE_HEADERS or max(longest_bytes, len(self.url)) > MAX_HANDSHAKE_LINE_BYTES:
            return "The headers or the URL of the handshake are too large."
        if not _PRINTABLE.fullmatch(self.url):
            return "The URL of the handshake must be ASCII."
        if any(name in BODY_HEADERS and value != b"0" for name, value in self.headers):
            return "A handshake has no body."
        return None

    def _hand_over(self) -> None:
        """Gives the parsed request to the new protocol, so that it need not be parsed again."""
        headers = Headers()
        for name, value in self.headers:
            headers.set_insecure(name.decode(), value.decode().strip(" \t"))
        protocol: Any = self.ws_protocol_class(  # type: ignore[call-arg, misc]
            config=self.config, server_state=self.server_state, app_state=self.app_state
        )
        self.connections.discard(self)
        protocol.connection_made(self.transport)
        protocol.begin(Request(self.url.decode(), headers, self.scope["method"]))
        self.transport.set_protocol(protocol)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops watching the client."""
        self._is_request_complete = True
        self._update_arrival_timer()
        self._stop_watching()
        self._acknowledgement_limit.close()
        super().connection_lost(exc)

    def _update_arrival_timer(self) -> None:
        if self._is_request_complete and self._arrival_timer is not None:
            self._arrival_timer.cancel()
            self._arrival_timer = None
        elif not self._is_request_complete and self._arrival_timer is None:
            self._received_bytes = 0
            self._arrival_timer = self.loop.call_later(ARRIVAL_TIMEOUT_S, self._refuse_late_request)

    def _refuse_late_request(self) -> None:
        self._arrival_timer = None
        if self.url.startswith(UPLOADS) and self._received_bytes >= MIN_UPLOAD_BYTES:
            self._update_arrival_timer()
            return
        self.send_400_response(f"The request did not arrive within {ARRIVAL_TIMEOUT_S:g} s.")

    def _check_progress_later(self) -> None:
        unsent_bytes = self.transport.get_write_buffer_size()
        self._progress_timer = self.loop.call_later(STALLED_S, self._check_progress, unsent_bytes)

    def _check_progress(self, before_bytes: int) -> None:
        if self.transport.get_write_buffer_size() < before_bytes:
            self._check_progress_later()
        else:
            ABORTED_CONNECTIONS.labels("stalled").inc()
            self.transport.abort()

    def _stop_watching(self) -> None:
        STALLED_CONNECTIONS.remove(self.transport)
        if self._progress_timer is not None:
            self._progress_timer.cancel()
            self._progress_timer = None


def limit_acknowledgement(scope: Scope) -> None:
    """Disconnects the client of this request when it acknowledges nothing for UNACKNOWLEDGED_S."""
    limit = scope.get("extensions", {}).get(EXTENSION)
    if isinstance(limit, AcknowledgementLimit):
        limit.start()
