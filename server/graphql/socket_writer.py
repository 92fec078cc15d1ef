"""uvicorn's WebSocket protocol, extended to write complete frames to the transport directly, without ASGI.

The application accepts and reads sockets by ASGI, and finds the connection in `scope["extensions"]` (`connection_of`).
A client is too slow when too much data waits in the transport's buffer. Its socket is then closed with 1013, so that
each client takes a bounded amount of memory (docs/semantics.md, 3). Sockets are never closed with 1011, after which
common clients do not reconnect.
"""

import asyncio
import socket
from typing import Any

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import Protocol

from server.graphql.single_reader_queue import SingleReaderQueue
from server.graphql.write_gate import WriteGate
from server.transport.unsent_data import STALLED_CONNECTIONS

EXTENSION = "noroshi.connection"
INVALID_DATA = 1007
TRY_AGAIN_LATER = 1013
MAX_WAITING_BYTES = 1024 * 1024
MAX_WAITING_EVENTS = 256
# Pings detect a client that does not read within 25 s. The detection and this time together stay below 30 s.
ABORT_AFTER_S = 3.0
# Senders by ASGI pause while more bytes than this wait in the transport.
PAUSE_BYTES = 16 * 1024
# By default the kernel buffers some megabytes for each socket, and a thousand stalled sockets exhaust its memory.
KERNEL_BUFFER_BYTES = 128 * 1024
# A flood of frames, such as pings, keeps the process from other work. Ordinary clients send some frames a second.
MAX_FRAMES = 2_000
FRAMES_WINDOW_S = 10.0
# Frames are parsed in pieces of this size, so that the limit holds within one large read.
PARSED_AT_ONCE_BYTES = 4 * 1024


def text_frame_header(payload_bytes: int) -> bytes:
    """Returns the header of an unfragmented, unmasked text frame (RFC 6455, 5.2)."""
    if payload_bytes < 126:
        return bytes((0x81, payload_bytes))
    if payload_bytes < 65_536:
        return b"\x81\x7e" + payload_bytes.to_bytes(2)
    return b"\x81\x7f" + payload_bytes.to_bytes(8)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection. Writes nothing after a close frame."""

    # Also the attributes of uvicorn's class, whose dictionary takes 2 KiB. Others that it may get are still possible.
    __slots__ = (
        *("_received_frames", "_unsent", "_unsent_bytes", "_unsent_events", "_window_ends_at"),
        *("app", "app_state", "asgi_version", "client", "close_sent", "close_timeout", "close_timer", "config", "conn"),
        *("connections", "curr_msg_data_type", "default_headers", "disconnected", "frames", "handshake_complete"),
        *("handshake_initiated", "initial_response", "last_ping_rtt", "logger", "loop", "pending_ping_payload"),
        *("ping_interval", "ping_sent_at", "ping_timeout", "ping_timer", "pong_timer", "queue", "read_paused"),
        *("request", "response", "root_path", "scheme", "scope", "server", "tasks", "transport", "writable"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.writable = WriteGate()  # type: ignore[assignment]
        self.queue = SingleReaderQueue[ASGIReceiveEvent]()  # type: ignore[assignment]
        self._received_frames, self._window_ends_at = 0, 0.0

    def start_keepalive(self) -> None:
        """Starts to ping after the handshake. Frees the handshake's data, which the scope holds too."""
        super().start_keepalive()
        # The parser refers to the request, so its headers would stay in memory until the socket closes.
        self.request.headers.clear()
        del self.request, self.response

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Limits the data that may wait for the client, in the transport and in the kernel."""
        super().connection_made(transport)
        # Bytes and number of events of each write that is not sent completely, oldest first.
        self._unsent: list[tuple[int, int]] = []
        self._unsent_bytes = self._unsent_events = 0
        self.transport.set_write_buffer_limits(high=PAUSE_BYTES)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER_BYTES)

    def begin(self, request: Request) -> None:
        """Answers a handshake that has been parsed. The connection then parses frames only."""
        self.conn.parser.close()
        self.conn.parser = Protocol.parse(self.conn)
        next(self.conn.parser)
        self.handle_connect(request)

    def handle_connect(self, event: Request) -> None:
        """Adds the connection to the scope's extensions."""
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[EXTENSION] = self

    def data_received(self, data: bytes) -> None:
        """Parses the data in small pieces. Discards the rest after the connection has failed."""
        for start in range(0, len(data), PARSED_AT_ONCE_BYTES):
            if self.disconnected or self.conn.parser_exc is not None:
                return
            super().data_received(data[start : start + PARSED_AT_ONCE_BYTES])

    def handle_events(self) -> None:
        """Closes the socket of a client that sends too many frames, of any kind."""
        now = self.loop.time()
        if now >= self._window_ends_at:
            self._received_frames, self._window_ends_at = 0, now + FRAMES_WINDOW_S
        self._received_frames += len(self.conn.events)
        if self._received_frames > MAX_FRAMES:
            self.drop("Too many frames")
        else:
            super().handle_events()

    def handle_ping(self) -> None:
        """Answers pings, except after a close frame."""
        if self.close_sent:
            self.conn.data_to_send()
        else:
            super().handle_ping()

    def pause_writing(self) -> None:
        """Stops reading from a client that does not read, so that nothing that it sends is answered."""
        super().pause_writing()
        STALLED_CONNECTIONS.add(self.transport, self.transport.abort)
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Reads again from a client that has taken nearly all data."""
        STALLED_CONNECTIONS.remove(self.transport)
        super().resume_writing()
        self._resume_reading()

    async def receive(self) -> ASGIReceiveEvent:
        """Returns the next message. Reads from the client again after the last one, if the client reads too."""
        message = await self.queue.get()
        if not self.queue.empty():
            # Many small messages that arrived together must not keep other connections waiting.
            await asyncio.sleep(0)
        elif self.read_paused:
            self.read_paused = False
            self._resume_reading()
        return message

    def _resume_reading(self) -> None:
        if self.writable.is_set() and not (self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def send_receive_event_to_app(self) -> None:
        """Closes with 1007 for text that is not UTF-8; uvicorn would log it as an error of the server."""
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

    async def wait_for_room(self) -> None:
        """Waits until nearly all written data is sent. Checks again after waking, since another caller may write."""
        while not self.writable.is_set():
            await self.writable.wait()

    @property
    def has_room(self) -> bool:
        """Whether nearly all written data is sent."""
        return self.writable.is_set()

    async def send_message(self, payload: bytes) -> None:
        """Writes one message as a text frame, after all other messages have nearly been sent.

        Raises: ClientDisconnected.
        """
        await self.wait_for_room()
        self.write_message(payload)

    def write_message(self, payload: bytes) -> None:
        """Writes one message as a text frame, without waiting. Raises: ClientDisconnected."""
        if not self.is_open:
            raise ClientDisconnected
        self.transport.writelines((text_frame_header(len(payload)), payload))

    def write_events(self, frames: bytes, events: int) -> None:
        """Writes complete frames that hold `events` events. Closes the socket if too much earlier data is unsent."""
        if not self.is_open:
            return
        if self._unsent and self._has_too_much_unsent():
            self.drop("Reading too slowly")
            return
        self.transport.write(frames)
        if self._unsent or self.transport.get_write_buffer_size():
            self._unsent.append((len(frames), events))
            self._unsent_bytes += len(frames)
            self._unsent_events += events

    def _has_too_much_unsent(self) -> bool:
        """Removes sent events from `_unsent`. Returns whether too many bytes or events are left there.

        Unsent responses to queries do not count.
        """
        waiting_bytes = self.transport.get_write_buffer_size()
        while self._unsent and self._unsent_bytes - self._unsent[0][0] >= waiting_bytes:
            frame_bytes, events = self._unsent.pop(0)
            self._unsent_bytes -= frame_bytes
            self._unsent_events -= events
        sent_events = self._sent_events_of_oldest_write(waiting_bytes)
        return (
            min(self._unsent_bytes, waiting_bytes) > MAX_WAITING_BYTES
            or self._unsent_events - sent_events >= MAX_WAITING_EVENTS
        )

    def _sent_events_of_oldest_write(self, waiting_bytes: int) -> int:
        """Estimates how many events of the oldest write in `_unsent` have been sent, if it was sent in part."""
        if not self._unsent:
            return 0
        frame_bytes, events = self._unsent[0]
        return events * max(self._unsent_bytes - waiting_bytes, 0) // frame_bytes

    def drop(self, reason: str) -> None:
        """Closes with 1013, and aborts the connection 3 s later, since a stalled client never reads the close frame."""
        if not self.is_open:
            return
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": TRY_AGAIN_LATER, "reason": reason})
        self.conn.send_close(TRY_AGAIN_LATER, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._abort_soon()
        # Wakes callers of `send` that wait for this client to read.
        self.disconnected = True
        self.writable.set()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Removes the connection from the scope when the application ends. Aborts it 3 s later if it is still open."""
        super().on_task_complete(task)
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions.pop(EXTENSION, None)
        if self in self.connections:
            self._abort_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Breaks reference cycles, since full garbage collections are rare here (server/web.py)."""
        STALLED_CONNECTIONS.remove(self.transport)
        super().connection_lost(exc)
        self.conn.parser.close()

    def _abort_soon(self) -> None:
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(ABORT_AFTER_S, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """Closes the connection after an unanswered ping: the client is gone or does not read."""
        self.pong_timer = None
        self.pending_ping_payload = None
        self.drop("No answer to a ping")


def connection_of(scope: Any) -> WebSocketProtocol | None:
    """Returns the connection of a WebSocket's scope; None if another protocol class serves the socket."""
    connection = scope.get("extensions", {}).get(EXTENSION)
    return connection if isinstance(connection, WebSocketProtocol) else None
