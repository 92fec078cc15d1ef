"""Joined frames equal frames that are sent one by one, on both event loops. Event streams share their bytes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection, connect

from server.graphql.frames import EventFrames, Listener, stream_event
from server.graphql.socket_writer import (
    WebSocketProtocol,
)
from storage.errors import DomainError
from tests.server.graphql.echo_application import DEADLINE_S, echo_server, text_frame
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
# Texts around the lengths at which the header of a frame grows.
LONG_TEXTS = st.builds(
    str.__mul__, st.sampled_from('x"\\狼'), st.sampled_from([0, 1, 80, 90, 100, 110, 65_400, 65_500])
)
PAYLOADS = st.lists(st.tuples(VALUES | LONG_TEXTS, st.frozensets(st.sampled_from("abc"))), max_size=6)
IDS = st.lists(st.tuples(st.text(max_size=40) | LONG_TEXTS, st.sampled_from("abc")), min_size=1, max_size=4)


@pytest.fixture(scope="module")
async def connected_socket(anyio_backend: object) -> AsyncIterator[tuple[WebSocketProtocol, ClientConnection]]:
    """Yields both ends of one connection: the server's and the client's."""
    async with echo_server() as (app, socket_server), connect(socket_server.url, max_size=None, max_queue=None) as ws:
        yield await app.accepted.get(), ws


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(payloads=PAYLOADS, ids=IDS)
async def test_joined_frames_equal_frames_sent_one_by_one(
    connected_socket: tuple[WebSocketProtocol, ClientConnection],
    payloads: list[tuple[object, frozenset[str]]],
    ids: list[tuple[str, str]],
) -> None:
    connection, ws = connected_socket
    frames = EventFrames([orjson.dumps(value) for value, _ in payloads], [""] * len(payloads))
    for id_, viewer in ids:
        end: asyncio.Future[DomainError | None] = asyncio.get_running_loop().create_future()
        hidden = tuple(index for index, (_, hidden_from) in enumerate(payloads) if viewer in hidden_from)
        frames.write(Listener(connection, orjson.dumps(id_)[1:-1], viewer, end), hidden)
        # More than 1 MiB of waiting data would close the socket.
        assert await poll_until_true(lambda: not connection.transport.get_write_buffer_size())
    connection.write_events(text_frame(b"end"), 0)
    expected = [
        {"type": "next", "id": id_, "payload": value}
        for id_, viewer in ids
        for value, hidden_from in payloads
        if viewer not in hidden_from
    ]
    async with asyncio.timeout(DEADLINE_S):
        received = [orjson.loads(text) async for text in texts_before_end(ws)]
    assert received == expected


class KeptEvents:
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[tuple[bytes, int]] = []

    def write_events(self, frames: bytes, events: int) -> None:
        self.written.append((frames, events))

    async def wait_for_room(self) -> None:
        """Returns at once."""


async def test_event_streams_get_the_same_bytes_without_hidden_events() -> None:
    frames, connection = EventFrames([b"1", b"2", b"3"], ["a", "b", "c"]), KeptEvents()
    end: asyncio.Future[DomainError | None] = asyncio.get_running_loop().create_future()
    for hidden in ((), (1,), (), (0, 1, 2)):
        frames.write(Listener(connection, None, "ann", end), hidden)
    first, without_second, again = connection.written
    assert first == (b"".join(stream_event(b"%d" % n, id_) for n, id_ in ((1, "a"), (2, "b"), (3, "c"))), 3)
    assert without_second == (b"event: next\nid: a\ndata: 1\n\nevent: next\nid: c\ndata: 3\n\n", 2)
    assert again[0] is first[0]


async def texts_before_end(ws: ClientConnection) -> AsyncIterator[str]:
    """Yields the received texts before the text `end`."""
    while (text := str(await ws.recv())) != "end":
        yield text
