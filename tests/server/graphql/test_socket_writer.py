"""Frames past ASGI: whole, never after a close, never kept for those who don't read; on both event loops."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed

import server.graphql.socket_writer
from server.graphql.frames import Frames, Listener, Payload
from server.graphql.socket_writer import (
    ABORT_AFTER_S,
    MAX_WAITING_BYTES,
    MAX_WAITING_EVENTS,
    PAUSE_BYTES,
    WebSocketProtocol,
    protocol_of,
    text_frame_header,
)
from server.web import PING_EVERY_S, PING_TIMEOUT_S
from storage.errors import DomainError
from tests.server.in_process import InProcess, RawClient, in_process, raw_client

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
PATIENCE_S = 20
# Far less than the transport, and far more than a client with a small buffer takes.
KILOBYTE = 1024
SMALL_BUFFER = 4 * KILOBYTE

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def aborting_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who don't read are gone in no time."""
    monkeypatch.setattr(server.graphql.socket_writer, "ABORT_AFTER_S", 0.2)


class Hall:
    """An application that accepts every socket, closes on request, and records how sockets ended."""

    def __init__(self) -> None:
        self.entered: asyncio.Queue[WebSocketProtocol] = asyncio.Queue()
        self.ended: list[Message] = []
        self.close = asyncio.Event()
        self.errors: list[BaseException] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        wire = protocol_of(scope)
        assert wire is not None
        self.entered.put_nowait(wire)
        closing = asyncio.create_task(self._close_when_told(send))
        while (message := await receive())["type"] != "websocket.disconnect":
            await self._answer(message["text"], send)
        self.ended.append(message)
        closing.cancel()

    async def _answer(self, text: str, send: Send) -> None:
        try:
            await send({"type": "websocket.send", "text": text})
        except OSError as error:
            self.errors.append(error)

    async def _close_when_told(self, send: Send) -> None:
        await self.close.wait()
        await send({"type": "websocket.close", "code": 4403, "reason": "Token expired"})


@asynccontextmanager
async def hall(**options: Any) -> AsyncIterator[tuple[Hall, InProcess]]:
    app = Hall()
    async with in_process(app, **options) as served:
        yield app, served


@asynccontextmanager
async def somebody(app: Hall, served: InProcess) -> AsyncIterator[tuple[RawClient, WebSocketProtocol]]:
    """A client that reads only on request, and its writer."""
    async with raw_client(served.port, SMALL_BUFFER) as raw:
        yield raw, await app.entered.get()


def text_frame(payload: bytes) -> bytes:
    return text_frame_header(len(payload)) + payload


def fill(wire: WebSocketProtocol, size: int = 64 * KILOBYTE) -> None:
    """Offers frames until some of them wait in the transport."""
    while not wire.transport.get_write_buffer_size():
        wire.offer(text_frame(b"x" * size), 1)


async def eventually(look: Callable[[], object], deadline_s: float = PATIENCE_S) -> bool:
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + deadline_s
    while not look() and loop.time() < ends_at:
        await asyncio.sleep(0.001)
    return bool(look())


async def test_an_idle_connection_keeps_nothing_of_its_handshake() -> None:
    async with hall() as (app, served), somebody(app, served) as (_, wire):
        # The generator that parses frames began with the request, and would keep it.
        assert not hasattr(wire, "request")
        gc.collect()
        kept = [each for each in gc.get_objects() if type(each) is Headers and "sec-websocket-key" in each]
        assert kept == []


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
async def test_a_frame_of_any_size_is_read_by_a_common_client(size: int) -> None:
    text = ("狼煙" * size)[: size // 3] + "x" * (size % 3)
    assert len(text.encode()) == size
    async with hall() as (app, served), connect(served.url, max_size=None) as ws:
        (await app.entered.get()).offer(text_frame(text.encode()) + text_frame(b"next"), 2)
        async with asyncio.timeout(PATIENCE_S):
            assert [await ws.recv(), await ws.recv()] == [text, "next"]


async def test_frames_and_asgis_messages_keep_their_order() -> None:
    async with hall() as (app, served), connect(served.url) as ws:
        wire = await app.entered.get()
        async with asyncio.timeout(PATIENCE_S):
            for n in range(100):
                wire.offer(text_frame(b"offered %d" % n), 1)
                await ws.send(f"sent {n}")
                assert [await ws.recv(), await ws.recv()] == [f"offered {n}", f"sent {n}"]


async def test_dropping_closes_with_1013_and_tells_the_application() -> None:
    async with hall() as (app, served), connect(served.url) as ws:
        wire = await app.entered.get()
        wire.drop("Reading too slowly")
        assert not wire.is_open
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(PATIENCE_S):
                await ws.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "Reading too slowly")
        assert await eventually(lambda: app.ended)
        assert app.ended[0]["code"] == 1013
        assert await served.is_left(PATIENCE_S)


CLOSERS: dict[str, tuple[int, Callable[[Hall, WebSocketProtocol], None]]] = {
    "a drop": (1013, lambda app, wire: wire.drop("Reading too slowly")),
    "the application": (4403, lambda app, wire: app.close.set()),
    "a shutdown": (1012, lambda app, wire: wire.shutdown()),
}


@pytest.mark.parametrize("closer", CLOSERS)
async def test_nothing_is_written_after_a_close_frame(closer: str) -> None:
    code, close = CLOSERS[closer]
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        wire.offer(text_frame(b"before"), 1)
        close(app, wire)
        assert await eventually(lambda: not wire.is_open)
        wire.offer(text_frame(b"after"), 1)
        wire.drop("Once more")
        wire.keepalive_timeout()
        async with asyncio.timeout(PATIENCE_S):
            assert await raw.frame() == (TEXT, b"before")
            opcode, payload = await raw.frame()
            assert (opcode, int.from_bytes(payload[:2])) == (CLOSE, code)
            await raw.say(CLOSE, payload[:2])
            assert await raw.rest() == b""


async def test_nothing_is_written_to_a_client_that_said_goodbye() -> None:
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        await raw.say(CLOSE, (1000).to_bytes(2))
        assert await eventually(lambda: not wire.is_open)
        wire.offer(text_frame(b"after"), 1)
        async with asyncio.timeout(PATIENCE_S):
            assert await raw.frame() == (CLOSE, (1000).to_bytes(2))
            assert await raw.rest() == b""


def test_stalled_client_is_detected_within_30_s() -> None:
    assert PING_EVERY_S + PING_TIMEOUT_S + ABORT_AFTER_S < 29


@pytest.mark.parametrize("closer", CLOSERS)
@pytest.mark.usefixtures("aborting_soon")
async def test_a_client_that_never_reads_is_gone_however_it_was_closed(closer: str) -> None:
    async with hall() as (app, served), somebody(app, served) as (_, wire):
        fill(wire)
        # The frame of the close still finds room in the transport, and then waits there.
        assert wire.writable.is_set()
        CLOSERS[closer][1](app, wire)
        assert await served.is_left(PATIENCE_S)


@pytest.mark.usefixtures("aborting_soon")
async def test_a_client_that_says_goodbye_and_never_reads_is_gone() -> None:
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        fill(wire)
        await raw.say(CLOSE, (1000).to_bytes(2))
        assert await served.is_left(PATIENCE_S)


async def test_dropped_client_wakes_waiting_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.socket_writer, "ABORT_AFTER_S", 600)
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        wire.offer(text_frame(b"x" * 8 * MAX_WAITING_BYTES), 1)
        assert await eventually(lambda: not wire.writable.is_set())
        await raw.say(TEXT, b"answer me")
        await asyncio.sleep(0.1)
        assert not app.errors
        wire.drop("Reading too slowly")
        assert await eventually(lambda: app.errors and app.ended)


@pytest.mark.usefixtures("aborting_soon")
async def test_dropped_client_is_closed_before_application_ends() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await asyncio.Event().wait()

    async with in_process(app) as served, raw_client(served.port, SMALL_BUFFER):
        (wire,) = served.wires
        fill(wire)
        wire.drop("Reading too slowly")
        assert await served.is_left(PATIENCE_S)


async def test_reading_client_gets_every_frame_before_close() -> None:
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        fill(wire)
        wire.drop("Reading too slowly")
        async with asyncio.timeout(PATIENCE_S):
            while (frame := await raw.frame())[0] == TEXT:
                assert frame[1].strip(b"x") == b""
            assert frame[0] == CLOSE


async def test_an_unanswered_ping_closes_with_1013() -> None:
    async with hall(ws_ping_interval=0.1, ws_ping_timeout=2) as (app, served), somebody(app, served) as (raw, _):
        async with asyncio.timeout(PATIENCE_S):
            opcode, payload = await raw.frame()
            assert opcode == PING
            await raw.say(PONG, payload)
            assert (await raw.frame())[0] == PING
            opcode, payload = await raw.frame()
        assert (opcode, int.from_bytes(payload[:2])) == (CLOSE, 1013)
        assert await eventually(lambda: app.ended)
        assert app.ended[0]["code"] == 1013


@pytest.mark.usefixtures("aborting_soon")
async def test_a_client_that_does_not_read_its_pings_is_gone() -> None:
    async with hall(ws_ping_interval=0.1, ws_ping_timeout=0.2) as (app, served), somebody(app, served) as (_, wire):
        fill(wire)
        assert await served.is_left(PATIENCE_S)


async def test_more_than_1_mib_of_events_closes_socket() -> None:
    async with hall() as (app, served), somebody(app, served) as (_, wire):
        fill(wire)
        most = wire.transport.get_write_buffer_size()
        for _ in range(40):
            wire.offer(text_frame(b"x" * 64 * KILOBYTE), 1)
            most = max(most, wire.transport.get_write_buffer_size())
        assert not wire.is_open
        assert MAX_WAITING_BYTES < most < MAX_WAITING_BYTES + 3 * 64 * KILOBYTE


async def test_more_than_256_events_do_not_wait_for_anybody() -> None:
    async with hall() as (app, served), somebody(app, served) as (_, wire):
        fill(wire)
        before = wire.transport.get_write_buffer_size()
        for n in range(MAX_WAITING_EVENTS):
            assert wire.is_open, f"{n} of 256 wait."
            wire.offer(text_frame(b"event"), 1)
        assert not wire.is_open
        assert wire.transport.get_write_buffer_size() < before + 10 * KILOBYTE


async def test_reading_client_is_not_closed_for_sent_events() -> None:
    frame = text_frame(b"x" * 48 * KILOBYTE)
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(2 * MAX_WAITING_EVENTS):
                # Always some events behind: something waits whenever the next one comes, yet never too much.
                while wire.transport.get_write_buffer_size() < MAX_WAITING_BYTES - 2 * len(frame):
                    wire.offer(frame, 1)
                    assert wire.is_open
                assert (await raw.frame())[0] == TEXT


async def test_sender_waits_while_too_many_events_are_unsent() -> None:
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        fill(wire, KILOBYTE)
        assert wire.writable.is_set()
        wire.offer(text_frame(b"x" * PAUSE_BYTES), 1)
        assert not wire.writable.is_set()
        async with asyncio.timeout(PATIENCE_S):
            while not wire.writable.is_set():
                assert (await raw.frame())[0] == TEXT


async def test_the_kernel_keeps_little_for_a_client_that_does_not_read() -> None:
    async with hall() as (app, served), somebody(app, served) as (_, wire):
        wire.offer(text_frame(b"x" * 8 * MAX_WAITING_BYTES), 1)
        assert wire.transport.get_write_buffer_size() > 7 * MAX_WAITING_BYTES


async def test_invalid_handshake_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with hall() as (app, served):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert (await reader.read()).startswith(b"HTTP/1.1 426 ")
        writer.close()
        assert app.entered.empty()
    assert not caplog.records


async def test_a_large_answer_that_waits_is_no_event_that_waits() -> None:
    async with hall() as (app, served), somebody(app, served) as (raw, wire):
        fill(wire)
        wire.transport.write(text_frame(b"x" * 2 * MAX_WAITING_BYTES))
        for _ in range(3):
            wire.offer(text_frame(b"event"), 1)
        assert wire.is_open
        async with asyncio.timeout(PATIENCE_S):
            events = 0
            while events < 3:
                events += await raw.frame() == (TEXT, b"event")


def test_other_servers_have_no_wire() -> None:
    assert protocol_of({"type": "websocket"}) is None
    assert protocol_of({"type": "websocket", "extensions": {server.graphql.socket_writer.EXTENSION: object()}}) is None


def in_json(value: object) -> bytes:
    return orjson.dumps(value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
# Payloads and ids around the lengths at which a frame's header grows.
LONG = st.builds(str.__mul__, st.sampled_from('x"\\狼'), st.sampled_from([0, 1, 80, 90, 100, 110, 65_400, 65_500]))
PAYLOADS = st.lists(st.tuples(VALUES | LONG, st.frozensets(st.sampled_from("abc"))), max_size=6)
IDS = st.lists(st.tuples(st.text(max_size=40) | LONG, st.sampled_from("abc")), min_size=1, max_size=4)


@pytest.fixture(scope="module")
async def line(anyio_backend: object) -> AsyncIterator[tuple[WebSocketProtocol, ClientConnection]]:
    async with hall() as (app, served), connect(served.url, max_size=None, max_queue=None) as ws:
        yield await app.entered.get(), ws


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(payloads=PAYLOADS, ids=IDS)
async def test_joined_frames_are_the_same_as_sending_one_by_one(
    line: tuple[WebSocketProtocol, ClientConnection],
    payloads: list[tuple[object, frozenset[str]]],
    ids: list[tuple[str, str]],
) -> None:
    wire, ws = line
    frames = Frames([Payload(in_json(value), hidden_from) for value, hidden_from in payloads])
    for id_, viewer in ids:
        ended: asyncio.Future[DomainError | None] = asyncio.get_running_loop().create_future()
        frames.write(Listener(wire, in_json(id_)[1:-1], viewer, ended))
        # More than a megabyte that waits would be too much.
        assert await eventually(lambda: not wire.transport.get_write_buffer_size())
    wire.offer(text_frame(b"end"), 0)
    expected = [
        {"type": "next", "id": id_, "payload": value}
        for id_, viewer in ids
        for value, hidden_from in payloads
        if viewer not in hidden_from
    ]
    async with asyncio.timeout(PATIENCE_S):
        received = [orjson.loads(text) async for text in until_end(ws)]
    assert received == expected


async def until_end(ws: ClientConnection) -> AsyncIterator[str]:
    while (text := str(await ws.recv())) != "end":
        yield text
