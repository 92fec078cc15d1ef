"""Events as WebSocket frames. Each event is serialized once; only the client's own id is inserted for each listener."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from server.graphql.fair_shares import LoopShare
from server.graphql.socket_writer import text_frame_header
from storage.errors import DomainError


class EventWriter(Protocol):
    """One client's connection, to which the events of its subscriptions are written."""

    def write_events(self, frames: bytes, events: int) -> None:
        """Writes complete frames that hold `events` events."""

    async def wait_for_room(self) -> None:
        """Waits until nearly all written data is sent."""


@dataclass(slots=True, eq=False)
class SocketSubscription:
    """One subscription on one socket, a listener of a broadcast. `id` is the client's id of it: JSON without quotes."""

    connection: EventWriter
    id: bytes
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

    def __init__(self, payloads: Sequence[bytes]) -> None:
        """`payloads` are the `payload` of each event as JSON."""
        self._payloads = payloads
        self._pieces_by_key: dict[tuple[int, tuple[int, ...]], list[bytes]] = {}

    def write(self, listener: SocketSubscription, hidden: tuple[int, ...] = ()) -> None:
        """Writes the events. `hidden` are the indexes of events that the listener's viewer must not see."""
        count = len(self._payloads) - len(hidden)
        if count:
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
