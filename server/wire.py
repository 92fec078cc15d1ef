"""uvicorn's WebSocket protocol with a way past ASGI: finished frames go straight to the transport.

The application accepts and reads as usual, and finds the wire in `scope["extensions"]`. Slow readers are noticed by
what waits in the transport, and closed with 1013; memory for one is bounded (semantics.md, 3). The wire never closes
with 1011, from which clients don't come back.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

EXTENSION = "noroshi.wire"
TRY_AGAIN_LATER = 1013
MAX_WAITING_BYTES = 1024 * 1024
MAX_WAITING_EVENTS = 256
ABORT_AFTER_S = 5.0


def text_frame_header(payload_bytes: int) -> bytes:
    """The header of an unfragmented, unmasked text frame (RFC 6455, 5.2)."""
    if payload_bytes < 126:
        return bytes((0x81, payload_bytes))
    if payload_bytes < 65_536:
        return b"\x81\x7e" + payload_bytes.to_bytes(2)
    return b"\x81\x7f" + payload_bytes.to_bytes(8)


class Wire(WebSocketsSansIOProtocol):
    """One connection. Nothing is written after a close frame."""

    _waiting_events = 0

    def handle_connect(self, event: Request) -> None:
        """Makes itself known to the application."""
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[EXTENSION] = self

    @property
    def is_open(self) -> bool:
        """Whether frames may still be written."""
        return not (self.close_sent or self.disconnected or self.transport.is_closing())

    def offer(self, frames: bytes, events: int) -> None:
        """Writes whole frames at once; what the client does not take waits. Too much of it closes the socket."""
        if not self.is_open:
            return
        waiting_bytes = self.transport.get_write_buffer_size()
        if waiting_bytes == 0:
            self._waiting_events = 0
        elif waiting_bytes > MAX_WAITING_BYTES or self._waiting_events >= MAX_WAITING_EVENTS:
            self.drop("Reading too slowly")
            return
        self._waiting_events += events
        self.transport.write(frames)

    def drop(self, reason: str) -> None:
        """Closes with 1013, and for good after 5 s: a client that does not read never sees the close frame."""
        if not self.is_open:
            return
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": TRY_AGAIN_LATER, "reason": reason})
        self.conn.send_close(TRY_AGAIN_LATER, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.close_timer = self.loop.call_later(ABORT_AFTER_S, self.transport.abort)
        # Whoever waits in `send` for this client to read again must not wait any longer.
        self.disconnected = True
        self.writable.set()

    def keepalive_timeout(self) -> None:
        """The client did not answer a ping: it is gone, or does not read."""
        self.pong_timer = None
        self.pending_ping_payload = None
        self.drop("No answer to a ping")


def wire_of(scope: Any) -> Wire | None:
    """The wire of a WebSocket's scope; None under another server."""
    wire = scope.get("extensions", {}).get(EXTENSION)
    return wire if isinstance(wire, Wire) else None
