"""uvicorn's WebSocket protocol with a way past ASGI: finished frames go straight to the transport.

The application accepts and reads as usual, and finds the wire in `scope["extensions"]`. Slow readers are noticed by
what waits in the transport, and closed with 1013; memory for one is bounded (docs/semantics.md, 3). The
wire never closes with 1011, from which clients don't come back.
"""

import asyncio
import socket
from typing import Any

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from server.graphql.inbox import Inbox

EXTENSION = "noroshi.wire"
INVALID_DATA = 1007
TRY_AGAIN_LATER = 1013
MAX_WAITING_BYTES = 1024 * 1024
MAX_WAITING_EVENTS = 256
# Pings take up to 25 s to find out that nobody reads; 30 s is the promise.
ABORT_AFTER_S = 3.0
PAUSE_BYTES = 16 * 1024
# Left to itself the kernel takes some megabytes for each socket, and a thousand stalled ones choke them all.
KERNEL_BYTES = 128 * 1024


def text_frame_header(payload_bytes: int) -> bytes:
    """The header of an unfragmented, unmasked text frame (RFC 6455, 5.2)."""
    if payload_bytes < 126:
        return bytes((0x81, payload_bytes))
    if payload_bytes < 65_536:
        return b"\x81\x7e" + payload_bytes.to_bytes(2)
    return b"\x81\x7f" + payload_bytes.to_bytes(8)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection. Nothing is written after a close frame."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = Inbox[ASGIReceiveEvent]()  # type: ignore[assignment]

    def start_keepalive(self) -> None:
        """Begins to ping. The handshake is over; what it was about is in the scope."""
        super().start_keepalive()
        # The parser holds on to the request for as long as it lives.
        self.request.headers.clear()
        del self.request, self.response

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bounds what may wait for the client, in the transport and in the kernel."""
        super().connection_made(transport)
        self._unsent: list[tuple[int, int]] = []
        self._unsent_bytes = self._unsent_events = 0
        self.transport.set_write_buffer_limits(high=PAUSE_BYTES)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)

    def handle_connect(self, event: Request) -> None:
        """Makes itself known to the application."""
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[EXTENSION] = self

    def send_receive_event_to_app(self) -> None:
        """A text that is not UTF-8 is closed with 1007; uvicorn would log it as a fault of ours."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.conn.send_close(INVALID_DATA)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    @property
    def is_open(self) -> bool:
        """Whether frames may still be written."""
        return not (self.close_sent or self.disconnected or self.transport.is_closing())

    async def has_room(self) -> None:
        """Returns when the client has taken nearly all; of several who wait, the next one as soon as it has again."""
        while not self.writable.is_set():
            await self.writable.wait()

    def offer(self, frames: bytes, events: int) -> None:
        """Writes whole frames at once; what the client does not take waits. Too much of it closes the socket."""
        if not self.is_open:
            return
        if self._unsent and self._too_much_waits():
            self.drop("Reading too slowly")
            return
        self.transport.write(frames)
        if self._unsent or self.transport.get_write_buffer_size():
            self._unsent.append((len(frames), events))
            self._unsent_bytes += len(frames)
            self._unsent_events += events

    def _too_much_waits(self) -> bool:
        """Forgets what has left, and looks at the rest. Answers to queries don't count, however large."""
        waiting_bytes = self.transport.get_write_buffer_size()
        while self._unsent and self._unsent_bytes - self._unsent[0][0] >= waiting_bytes:
            frame_bytes, events = self._unsent.pop(0)
            self._unsent_bytes -= frame_bytes
            self._unsent_events -= events
        gone = self._gone_events(waiting_bytes)
        return (
            min(self._unsent_bytes, waiting_bytes) > MAX_WAITING_BYTES
            or self._unsent_events - gone >= MAX_WAITING_EVENTS
        )

    def _gone_events(self, waiting_bytes: int) -> int:
        """Of the frames that were written together and have left in part, about how many events."""
        if not self._unsent:
            return 0
        frame_bytes, events = self._unsent[0]
        return events * max(self._unsent_bytes - waiting_bytes, 0) // frame_bytes

    def drop(self, reason: str) -> None:
        """Closes with 1013, and soon for good: a client that does not read never sees the close frame."""
        if not self.is_open:
            return
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": TRY_AGAIN_LATER, "reason": reason})
        self.conn.send_close(TRY_AGAIN_LATER, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._abort_soon()
        # Whoever waits in `send` for this client to read again must not wait any longer.
        self.disconnected = True
        self.writable.set()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application is through with this socket. What waits for a client that does not read waits no longer."""
        super().on_task_complete(task)
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions.pop(EXTENSION, None)
        if self in self.connections:
            self._abort_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets go of what holds on to itself: a full look for garbage is rare here (server/web.py)."""
        super().connection_lost(exc)
        self.conn.parser.close()

    def _abort_soon(self) -> None:
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(ABORT_AFTER_S, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """The client did not answer a ping: it is gone, or does not read."""
        self.pong_timer = None
        self.pending_ping_payload = None
        self.drop("No answer to a ping")


def protocol_of(scope: Any) -> WebSocketProtocol | None:
    """The wire of a WebSocket's scope; None under another server."""
    wire = scope.get("extensions", {}).get(EXTENSION)
    return wire if isinstance(wire, WebSocketProtocol) else None
