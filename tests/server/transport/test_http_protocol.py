"""HTTP connections whose clients vanish, or do not read their responses."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

import server.transport.http_protocol
from server.graphql.http.event_streams import KEEP_ALIVE_S
from server.graphql.socket_writer import WebSocketProtocol
from server.transport.http_protocol import MIN_UPLOAD_BYTES, UNACKNOWLEDGED_S, HttpProtocol, limit_acknowledgement
from tests.waiting import until
from tests.websocket_handshake import handshake_request

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
BODY = b"x" * (4 << 20)
DEADLINE_S = 30

pytestmark = pytest.mark.anyio

with_user_timeout = pytest.mark.skipif(
    not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Only Linux has a limit of this time."
)


async def answer_after_body(scope: Scope, receive: Receive, send: Send) -> None:
    await Request(scope, receive).body()
    await Response(BODY)(scope, receive, send)


@asynccontextmanager
async def requesting_client(request: bytes = REQUEST) -> AsyncIterator[tuple[socket.socket, ServerState]]:
    """Serves a body of 4 MiB, and yields a client that has sent a request and reads only on demand."""
    config = uvicorn.Config(answer_after_body, lifespan="off", log_config=None)
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    app_server = await loop.create_server(lambda: HttpProtocol(config, state, {}), "127.0.0.1", 0)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, app_server.sockets[0].getsockname())
        await loop.sock_sendall(client, request)
        async with asyncio.timeout(DEADLINE_S):
            try:
                yield client, state
            finally:
                app_server.close()
                for connection in list(state.connections):
                    connection.transport.abort()


async def read_to_end(client: socket.socket) -> int:
    """Returns the number of bytes until the connection is closed or reset."""
    loop, total = asyncio.get_running_loop(), 0
    try:
        while data := await loop.sock_recv(client, 65_536):
            total += len(data)
            if total > len(BODY):
                break
    except ConnectionError:
        pass
    return total


async def describe_handshake(scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts a socket, and sends the path, the query and the headers that it has received."""
    await receive()
    await send({"type": "websocket.accept"})
    headers = b"; ".join(b"%s=%s" % each for each in scope["headers"])
    await send({"type": "websocket.send", "bytes": b"%s|%s|%s" % (scope["raw_path"], scope["query_string"], headers)})
    await receive()


async def answer_handshake(request: bytes) -> bytes:
    """Returns the answer to a handshake until `describe_handshake` has written it, or until the end."""
    config = uvicorn.Config(describe_handshake, ws=WebSocketProtocol, lifespan="off", log_config=None)
    config.load()
    loop, received = asyncio.get_running_loop(), b""
    app_server = await loop.create_server(lambda: HttpProtocol(config, ServerState(), {}), "127.0.0.1", 0)
    async with asyncio.timeout(DEADLINE_S), app_server:
        reader, writer = await asyncio.open_connection(*app_server.sockets[0].getsockname())
        writer.write(request)
        while b"sec-websocket-version=13" not in received and (data := await reader.read(65_536)):
            received += data
        writer.transport.abort()
    return received


async def test_handshake_reaches_application_unchanged() -> None:
    request = handshake_request("a:80").replace(b"/graphql", b"/gr%C3%A4ph?a=b%20c")
    received = await answer_handshake(request.replace(b"\r\n\r\n", b"\r\nX-A:  1 \r\nx-a: 2\r\n\r\n"))
    assert received.startswith(b"HTTP/1.1 101 ")
    assert b"/gr%C3%A4ph|a=b%20c|host=a:80; " in received
    assert received.endswith(b"x-a=1; x-a=2")


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"version: 13", b"version: 12", b"400"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short", b"400"),
        (b"GET", b"POST", b"405"),
        (b"host: a", b"host: a\r\nx: " + b"y" * 9000, b"400"),
        (b"/graphql", b"/" + b"y" * 9000, b"400"),
        (b"host: a", b"host: a" + b"\r\nx: y" * 130, b"400"),
        (b"host: a", b"host: a\r\nContent-Length: 1", b"400"),
    ],
    ids=["version", "key", "method", "long header", "long url", "many headers", "body"],
)
async def test_malformed_handshake_is_refused_and_closed(old: bytes, new: bytes, status: bytes) -> None:
    received = await answer_handshake(handshake_request("a").replace(old, new))
    assert received.startswith(b"HTTP/1.1 " + status)


async def test_handshake_with_other_characters_is_accepted() -> None:
    received = await answer_handshake(handshake_request("a").replace(b"host: a", b"host: a\r\nx: \xe9"))
    assert received.startswith(b"HTTP/1.1 101 ")
    assert b"x=\xe9" in received


async def test_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.transport.http_protocol, "STALLED_S", 0.2)
    async with requesting_client() as (client, state):
        while not state.total_requests or state.connections:
            await asyncio.sleep(0.05)
        assert await read_to_end(client) < len(BODY)


async def test_client_that_reads_slowly_gets_whole_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.transport.http_protocol, "STALLED_S", 2)
    async with requesting_client() as (client, _):
        assert await read_to_end(client) > len(BODY)


@with_user_timeout
async def test_acknowledgement_limit_ends_with_next_request() -> None:
    async with requesting_client() as (client, state):
        await until(lambda: any(each.scope for each in state.connections))
        (connection,) = state.connections
        assert isinstance(connection, HttpProtocol)
        accepted = connection.transport.get_extra_info("socket")
        limit_acknowledgement(connection.scope)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1000 * UNACKNOWLEDGED_S
        assert await read_to_end(client) > len(BODY)
        await asyncio.get_running_loop().sock_sendall(client, REQUEST)
        await until(lambda: not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))


async def test_platform_without_acknowledgement_limit_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)
    async with requesting_client() as (client, state):
        await until(lambda: any(each.scope for each in state.connections))
        (connection,) = state.connections
        assert isinstance(connection, HttpProtocol)
        limit_acknowledgement(connection.scope)
        assert await read_to_end(client) > len(BODY)


def test_acknowledgement_limit_lets_comments_be_lost() -> None:
    assert UNACKNOWLEDGED_S == 3 * KEEP_ALIVE_S == 30


async def test_full_client_that_takes_some_bytes_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's buffer is full for longer than the limit. TCP_USER_TIMEOUT would disconnect it."""
    monkeypatch.setattr(server.transport.http_protocol, "UNACKNOWLEDGED_S", 1.5)
    async with requesting_client() as (client, _):
        for _ in range(160):
            assert await asyncio.get_running_loop().sock_recv(client, 512)
            await asyncio.sleep(0.025)
        assert await read_to_end(client) > len(BODY) - 160 * 512


@pytest.mark.parametrize("start", [b"", b"POST / HT", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx"])
async def test_request_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(server.transport.http_protocol, "ARRIVAL_TIMEOUT_S", 0.2)
    async with requesting_client(start) as (client, state):
        answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"The request did not arrive within 0.2 s.")
        while state.connections:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("path", "is_refused"), [(b"/uploads/a", [False, True]), (b"/graphql", [True])], ids=["upload", "other"]
)
async def test_upload_may_take_longer_while_it_makes_progress(path: bytes, is_refused: list[bool]) -> None:
    """The deadline passes once for each item of `is_refused`. No byte arrives after the first time."""
    head = b"PUT " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
    async with requesting_client(head + b"x" * MIN_UPLOAD_BYTES) as (_, state):
        while not state.connections or next(iter(state.connections))._received_bytes < MIN_UPLOAD_BYTES:
            await asyncio.sleep(0.01)
        (connection,) = state.connections
        assert isinstance(connection, HttpProtocol)
        for expected in is_refused:
            connection._refuse_late_request()
            assert connection.transport.is_closing() == expected
