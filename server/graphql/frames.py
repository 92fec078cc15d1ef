"""Events as WebSocket frames: serialized once, and completed with each listener's operation id."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from server.graphql.socket_writer import WebSocketProtocol, text_frame_header
from storage.errors import DomainError


@dataclass(slots=True, eq=False)
class Listener:
    """One subscription on one socket. `id` is the operation's id as JSON, without quotes."""

    wire: WebSocketProtocol
    id: bytes
    viewer_id: str
    ended: asyncio.Future[DomainError | None]
    live: bool = False
    checked: bool = False
    catching_up: asyncio.Task[None] | None = None

    def end(self, error: DomainError | None = None) -> None:
        """Ends the subscription, with an error that the client receives, if any."""
        if not self.ended.done():
            self.ended.set_result(error)


@dataclass(frozen=True, slots=True)
class Payload:
    """An event's `payload` as JSON, and the ids of the viewers whom it is hidden from."""

    json: bytes
    hidden_from: frozenset[str]


class Frames:
    """The frames of several events, complete except for the operation id."""

    def __init__(self, payloads: Sequence[Payload]) -> None:
        self._payloads = payloads
        self._hiding = any(payload.hidden_from for payload in payloads)
        self._pieces: dict[tuple[int, tuple[int, ...]], list[bytes]] = {}

    def write(self, listener: Listener) -> None:
        """Writes the events that the listener's viewer may see."""
        hidden: tuple[int, ...] = ()
        if self._hiding:
            hidden = tuple(i for i, each in enumerate(self._payloads) if listener.viewer_id in each.hidden_from)
        count = len(self._payloads) - len(hidden)
        if count:
            pieces = self._cut(len(listener.id), hidden)
            listener.wire.offer(listener.id.join(pieces), count)

    def _cut(self, id_bytes: int, hidden: tuple[int, ...]) -> list[bytes]:
        """Returns the bytes of the frames, split where the id belongs. The headers depend on the length of the id."""
        key = id_bytes, hidden
        pieces = self._pieces.get(key)
        if pieces is None:
            shown = [each.json for i, each in enumerate(self._payloads) if i not in hidden]
            pieces = self._pieces[key] = _cut(shown, id_bytes)
        return pieces


def _cut(payloads: Sequence[bytes], id_bytes: int) -> list[bytes]:
    pieces: list[bytes] = []
    rest = b""
    for payload in payloads:
        before, after = b'{"type":"next","id":"', b'","payload":' + payload + b"}"
        header = text_frame_header(len(before) + id_bytes + len(after))
        pieces.append(rest + header + before)
        rest = after
    pieces.append(rest)
    return pieces
