"""Events as WebSocket frames or as server-sent events. Each event is serialized once for all listeners.

Only the client's own id of a subscription is inserted for each listener on a socket. An event stream has one
subscription, so that its bytes are the same for all listeners.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from server.graphql.fair_shares import LoopShare
from server.graphql.socket_writer import text_frame_header
from storage.errors import DomainError

STREAM_END = b"event: complete\ndata:\n\n"
"""The last event of an operation on an event stream. Without the empty `data`, EventSource would ignore it."""


class EventWriter(Protocol):
    """One client's connection, to which the events of its subscriptions are written."""

    def write_events(self, frames: bytes, events: int) -> None:
        """Writes complete frames that hold `events` events."""

    async def wait_for_room(self) -> None:
        """Waits until nearly all written data is sent."""


@dataclass(slots=True, eq=False)
class Listener:
    """One subscription of one client, a listener of a broadcast.

    `id` is the client's id of it on a socket: JSON without quotes. None for an event stream.
    """

    connection: EventWriter
    id: bytes | None
    viewer_id: str
    ended: asyncio.Future[DomainError | None]
    """Done when the server ends the subscription: with the error for the client or None, or with a failed read."""
    share: LoopShare | None = None
    """The viewer's share of the event loop."""
    is_live: bool = False
    """Whether the broadcast writes each new event to this listener at once. False while it catches up."""
    is_checked: bool = False
    """Whether the broadcast has checked the viewer's permission since the listener joined."""
    catch_up_task: asyncio.Task[None] | None = None

    def end(self, error: DomainError | None = None) -> None:
        """Ends the subscription. The client receives the error, if there is one."""
        if not self.ended.done():
            self.ended.set_result(error)


class EventFrames:
    """The frames of several events, complete except for the id of the subscription."""

    def __init__(self, payloads: Sequence[bytes], cursors: Sequence[str]) -> None:
        """`payloads` are the `payload` of each event as JSON. `cursors` are the positions after each event."""
        self._payloads, self._cursors = payloads, cursors
        self._pieces_by_key: dict[tuple[int, tuple[int, ...]], list[bytes]] = {}
        self._streamed: dict[tuple[int, ...], bytes] = {}

    def write(self, listener: Listener, hidden: tuple[int, ...] = ()) -> None:
        """Writes the events. `hidden` are the indexes of events that the listener's viewer must not see."""
        count = len(self._payloads) - len(hidden)
        if count:
            if listener.id is None:
                listener.connection.write_events(self._stream_events(hidden), count)
                return
            pieces = self._pieces(len(listener.id), hidden)
            listener.connection.write_events(listener.id.join(pieces), count)

    def _pieces(self, id_bytes: int, hidden: tuple[int, ...]) -> list[bytes]:
        """Returns the bytes of the frames, split where the id belongs. The headers depend on the length of the id."""
        key = id_bytes, hidden
        pieces = self._pieces_by_key.get(key)
        if pieces is None:
            visible = [each for i, each in enumerate(self._payloads) if i not in hidden]
            pieces = self._pieces_by_key[key] = _split_frames(visible, id_bytes)
        return pieces

    def _stream_events(self, hidden: tuple[int, ...]) -> bytes:
        """Returns the visible events for an event stream, whose clients resume after the last id."""
        streamed = self._streamed.get(hidden)
        if streamed is None:
            events = enumerate(zip(self._payloads, self._cursors, strict=True))
            visible = [stream_event(payload, cursor) for i, (payload, cursor) in events if i not in hidden]
            streamed = self._streamed[hidden] = b"".join(visible)
        return streamed


def stream_event(payload: bytes, cursor: str | None = None) -> bytes:
    """Returns a result as an event of an event stream. `payload` is JSON in one line."""
    id_line = b"" if cursor is None else b"id: " + cursor.encode() + b"\n"
    return b"event: next\n" + id_line + b"data: " + payload + b"\n\n"


def _split_frames(payloads: Sequence[bytes], id_bytes: int) -> list[bytes]:
    pieces: list[bytes] = []
    end = b""
    for payload in payloads:
        before, after = b'{"type":"next","id":"', b'","payload":' + payload + b"}"
        header = text_frame_header(len(before) + id_bytes + len(after))
        pieces.append(end + header + before)
        end = after
    pieces.append(end)
    return pieces
