"""Frames that bypass ASGI, on both event loops: they arrive whole, never after a close, and in bounded memory."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected
from websockets.asyncio.client import connect
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed

import server.graphql.socket_writer
from server.graphql.socket_writer import (
    ABORT_AFTER_S,
    MAX_FRAMES,
    MAX_WAITING_BYTES,
    MAX_WAITING_EVENTS,
    PAUSE_BYTES,
    WebSocketProtocol,
    connection_of,
)
from server.web import PING_EVERY_S, PING_TIMEOUT_S
from tests.server.graphql.echo_application import (
    DEADLINE_S,
    KIBIBYTE,
    SMALL_BUFFER_BYTES,
    EchoApplication,
    echo_server,
    slow_client,
    text_frame,
)
from tests.server.in_process import raw_client, serve_in_process
from tests.waiting import poll_until_true

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def _short_abort_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aborts clients that do not read after 0.2 s."""
    monkeypatch.setattr(server.graphql.socket_writer, "ABORT_AFTER_S", 0.2)


def fill_kernel_buffers(connection: WebSocketProtocol, size: int = 64 * KIBIBYTE) -> None:
    """Writes frames until the kernel accepts no more and some frames wait in the transport."""
    while not connection.transport.get_write_buffer_size():
        connection.write_events(text_frame(b"x" * size), 1)


async def test_idle_connection_keeps_nothing_of_its_handshake() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (_, connection):
        # The generator that parses frames was started with the request and would keep it.
        assert not hasattr(connection, "request")
        gc.collect()
        handshake_headers = [each for each in gc.get_objects() if type(each) is Headers and "sec-websocket-key" in each]
        assert handshake_headers == []


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
async def test_frame_of_any_size_is_read_by_a_common_client(size: int) -> None:
    text = ("狼煙" * size)[: size // 3] + "x" * (size % 3)
    assert len(text.encode()) == size
    async with echo_server() as (app, socket_server), connect(socket_server.url, max_size=None) as ws:
        (await app.accepted.get()).write_events(text_frame(text.encode()) + text_frame(b"next"), 2)
        async with asyncio.timeout(DEADLINE_S):
            assert [await ws.recv(), await ws.recv()] == [text, "next"]


async def test_frames_and_asgi_messages_keep_their_order() -> None:
    async with echo_server() as (app, socket_server), connect(socket_server.url) as ws:
        connection = await app.accepted.get()
        async with asyncio.timeout(DEADLINE_S):
            for n in range(100):
                connection.write_events(text_frame(b"offered %d" % n), 1)
                await ws.send(f"sent {n}")
                assert [await ws.recv(), await ws.recv()] == [f"offered {n}", f"sent {n}"]


async def test_drop_closes_with_1013_and_disconnects_application() -> None:
    async with echo_server() as (app, socket_server), connect(socket_server.url) as ws:
        connection = await app.accepted.get()
        connection.drop("Reading too slowly")
        assert not connection.is_open
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(DEADLINE_S):
                await ws.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "Reading too slowly")
        assert await poll_until_true(lambda: app.disconnects)
        assert app.disconnects[0]["code"] == 1013
        assert await socket_server.wait_until_all_closed(DEADLINE_S)


CLOSERS: dict[str, tuple[int, Callable[[EchoApplication, WebSocketProtocol], None]]] = {
    "a drop": (1013, lambda app, connection: connection.drop("Reading too slowly")),
    "the application": (4403, lambda app, connection: app.close_requested.set()),
    "a shutdown": (1012, lambda app, connection: connection.shutdown()),
}
"""The ways in which the server closes a socket, each with its close code."""


@pytest.mark.parametrize("closer", CLOSERS)
async def test_nothing_is_written_after_a_close_frame(closer: str) -> None:
    code, close = CLOSERS[closer]
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        connection.write_events(text_frame(b"before"), 1)
        close(app, connection)
        assert await poll_until_true(lambda: not connection.is_open)
        connection.write_events(text_frame(b"after"), 1)
        connection.drop("Once more")
        connection.keepalive_timeout()
        async with asyncio.timeout(DEADLINE_S):
            assert await raw.receive_frame() == (TEXT, b"before")
            opcode, payload = await raw.receive_frame()
            assert (opcode, int.from_bytes(payload[:2])) == (CLOSE, code)
            await raw.send_frame(CLOSE, payload[:2])
            assert await raw.read_to_end() == b""


async def test_nothing_is_written_after_the_client_closes() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        await raw.send_frame(CLOSE, (1000).to_bytes(2))
        assert await poll_until_true(lambda: not connection.is_open)
        connection.write_events(text_frame(b"after"), 1)
        async with asyncio.timeout(DEADLINE_S):
            assert await raw.receive_frame() == (CLOSE, (1000).to_bytes(2))
            assert await raw.read_to_end() == b""


def test_stalled_client_is_detected_within_30_s() -> None:
    assert PING_EVERY_S + PING_TIMEOUT_S + ABORT_AFTER_S < 29


@pytest.mark.parametrize("closer", CLOSERS)
@pytest.mark.usefixtures("_short_abort_timeout")
async def test_closed_client_that_never_reads_is_aborted(closer: str) -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (_, connection):
        fill_kernel_buffers(connection)
        # The transport still takes the close frame, which then waits there.
        assert connection.writable.is_set()
        CLOSERS[closer][1](app, connection)
        assert await socket_server.wait_until_all_closed(DEADLINE_S)


@pytest.mark.usefixtures("_short_abort_timeout")
async def test_client_that_closes_and_never_reads_is_aborted() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        fill_kernel_buffers(connection)
        await raw.send_frame(CLOSE, (1000).to_bytes(2))
        assert await socket_server.wait_until_all_closed(DEADLINE_S)


async def test_dropped_client_wakes_waiting_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.socket_writer, "ABORT_AFTER_S", 600)
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (_, connection):
        connection.write_events(text_frame(b"x" * 8 * MAX_WAITING_BYTES), 1)
        assert await poll_until_true(lambda: not connection.writable.is_set())
        sending = asyncio.create_task(connection.send_message(b"an answer"))
        await asyncio.sleep(0.1)
        assert not sending.done()
        connection.drop("Reading too slowly")
        with pytest.raises(ClientDisconnected):
            await sending
        assert await poll_until_true(lambda: app.disconnects)


async def test_client_that_does_not_read_is_not_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.graphql.socket_writer, "MAX_FRAMES", 10**9)
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        connection.write_events(text_frame(b"x" * 8 * MAX_WAITING_BYTES), 1)
        assert await poll_until_true(lambda: not connection.writable.is_set())
        unsent_bytes = connection.transport.get_write_buffer_size()
        for _ in range(100):
            await raw.send_frame(PING, b"x" * 125)
        await asyncio.sleep(0.1)
        assert connection.transport.get_write_buffer_size() <= unsent_bytes
        async with asyncio.timeout(DEADLINE_S):
            while (await raw.receive_frame())[0] != PONG:
                pass


async def test_client_that_sends_too_many_frames_is_dropped() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, _):
        for _ in range(MAX_FRAMES + 1):
            await raw.send_frame(PONG)
        async with asyncio.timeout(DEADLINE_S):
            opcode, payload = await raw.receive_frame()
        assert (opcode, int.from_bytes(payload[:2]), payload[2:]) == (CLOSE, 1013, b"Too many frames")


@pytest.mark.usefixtures("_short_abort_timeout")
async def test_dropped_client_is_closed_before_application_ends() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await asyncio.Event().wait()

    async with serve_in_process(app) as socket_server, raw_client(socket_server.port, SMALL_BUFFER_BYTES):
        (connection,) = socket_server.connections
        fill_kernel_buffers(connection)
        connection.drop("Reading too slowly")
        assert await socket_server.wait_until_all_closed(DEADLINE_S)


async def test_reading_client_gets_every_frame_before_close() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        fill_kernel_buffers(connection)
        connection.drop("Reading too slowly")
        async with asyncio.timeout(DEADLINE_S):
            while (frame := await raw.receive_frame())[0] == TEXT:
                assert frame[1].strip(b"x") == b""
            assert frame[0] == CLOSE


async def test_unanswered_ping_closes_with_1013() -> None:
    async with (
        echo_server(ws_ping_interval=0.1, ws_ping_timeout=2) as (app, socket_server),
        slow_client(app, socket_server) as (raw, _),
    ):
        async with asyncio.timeout(DEADLINE_S):
            opcode, payload = await raw.receive_frame()
            assert opcode == PING
            await raw.send_frame(PONG, payload)
            assert (await raw.receive_frame())[0] == PING
            opcode, payload = await raw.receive_frame()
        assert (opcode, int.from_bytes(payload[:2])) == (CLOSE, 1013)
        assert await poll_until_true(lambda: app.disconnects)
        assert app.disconnects[0]["code"] == 1013


@pytest.mark.usefixtures("_short_abort_timeout")
async def test_client_that_does_not_read_its_pings_is_aborted() -> None:
    async with (
        echo_server(ws_ping_interval=0.1, ws_ping_timeout=0.2) as (app, socket_server),
        slow_client(app, socket_server) as (_, connection),
    ):
        fill_kernel_buffers(connection)
        assert await socket_server.wait_until_all_closed(DEADLINE_S)


async def test_more_than_1_mib_of_events_closes_socket() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (_, connection):
        fill_kernel_buffers(connection)
        largest_bytes = connection.transport.get_write_buffer_size()
        for _ in range(40):
            connection.write_events(text_frame(b"x" * 64 * KIBIBYTE), 1)
            largest_bytes = max(largest_bytes, connection.transport.get_write_buffer_size())
        assert not connection.is_open
        assert MAX_WAITING_BYTES < largest_bytes < MAX_WAITING_BYTES + 3 * 64 * KIBIBYTE


async def test_more_than_256_waiting_events_close_socket() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (_, connection):
        fill_kernel_buffers(connection)
        buffered_bytes_before = connection.transport.get_write_buffer_size()
        for n in range(MAX_WAITING_EVENTS):
            assert connection.is_open, f"closed when {n} of 256 events waited"
            connection.write_events(text_frame(b"event"), 1)
        assert not connection.is_open
        assert connection.transport.get_write_buffer_size() < buffered_bytes_before + 10 * KIBIBYTE


async def test_reading_client_is_not_closed_for_sent_events() -> None:
    frame = text_frame(b"x" * 48 * KIBIBYTE)
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        async with asyncio.timeout(DEADLINE_S):
            for _ in range(2 * MAX_WAITING_EVENTS):
                # The client stays a few events behind: some events always wait, but fewer than the limit.
                while connection.transport.get_write_buffer_size() < MAX_WAITING_BYTES - 2 * len(frame):
                    connection.write_events(frame, 1)
                    assert connection.is_open
                assert (await raw.receive_frame())[0] == TEXT


async def test_sender_waits_while_too_many_bytes_are_unsent() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        fill_kernel_buffers(connection, KIBIBYTE)
        assert connection.writable.is_set()
        connection.write_events(text_frame(b"x" * PAUSE_BYTES), 1)
        assert not connection.writable.is_set()
        async with asyncio.timeout(DEADLINE_S):
            while not connection.writable.is_set():
                assert (await raw.receive_frame())[0] == TEXT


async def test_kernel_buffers_little_for_client_that_does_not_read() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (_, connection):
        connection.write_events(text_frame(b"x" * 8 * MAX_WAITING_BYTES), 1)
        assert connection.transport.get_write_buffer_size() > 7 * MAX_WAITING_BYTES


async def test_invalid_handshake_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with echo_server() as (app, socket_server):
        reader, writer = await asyncio.open_connection("127.0.0.1", socket_server.port)
        writer.write(b"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(DEADLINE_S):
            assert (await reader.read()).startswith(b"HTTP/1.1 426 ")
        writer.close()
        assert app.accepted.empty()
    assert not caplog.records


async def test_large_waiting_answer_does_not_count_as_event() -> None:
    async with echo_server() as (app, socket_server), slow_client(app, socket_server) as (raw, connection):
        fill_kernel_buffers(connection)
        connection.transport.write(text_frame(b"x" * 2 * MAX_WAITING_BYTES))
        for _ in range(3):
            connection.write_events(text_frame(b"event"), 1)
        assert connection.is_open
        async with asyncio.timeout(DEADLINE_S):
            received = 0
            while received < 3:
                received += await raw.receive_frame() == (TEXT, b"event")


def test_connections_of_other_servers_have_no_writer() -> None:
    assert connection_of({"type": "websocket"}) is None
    assert (
        connection_of({"type": "websocket", "extensions": {server.graphql.socket_writer.EXTENSION: object()}}) is None
    )
