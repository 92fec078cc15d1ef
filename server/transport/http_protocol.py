"""uvicorn's HTTP protocol, which aborts connections whose clients do not read their responses (docs/limits.md)."""

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER_BYTES)
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
        """Stops watching the connection, which gets another protocol."""
        self._is_request_complete = True
        self._stop_watching()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops watching the client."""
        self._is_request_complete = True
        self._update_arrival_timer()
        self._stop_watching()
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
