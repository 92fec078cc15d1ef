"""The connection pool against servers that answer with correct HTTP, with incorrect HTTP, or without HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest

from jobs.providers.connections import MAX_OVERHEAD_BYTES, ConnectionPool, Peer, ResponseBody
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

ServeConnection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class RawServer:
    """The address of a server that sends raw bytes, the requests of each connection, and how many connections ended."""

    url: str = ""
    requests: list[list[bytes]] = field(default_factory=list)
    ended_connections: int = 0


@asynccontextmanager
async def raw_server(*answers: bytes, closes_after_response: bool = False) -> AsyncIterator[RawServer]:
    """Answers request n of a connection with response n, or with the last response.

    With `closes_after_response`, the server closes each connection after its first response.
    """
    raw = RawServer()
    connections: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections[asyncio.current_task()] = writer
        requests: list[bytes] = []
        raw.requests.append(requests)
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                requests.append(request)
                writer.write(answers[min(len(requests), len(answers)) - 1])
                await writer.drain()
                if closes_after_response:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            raw.ended_connections += 1
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield raw
    finally:
        server.close()
        for writer in connections.values():
            writer.transport.abort()
        await asyncio.gather(*(task for task in connections if task is not None))


@pytest.fixture
async def pool() -> AsyncIterator[ConnectionPool]:
    pool = ConnectionPool()
    yield pool
    await pool.aclose()


def peer_of(url: str, name: str = "a.example") -> Peer:
    return Peer("http", name, httpx2.URL(url).port or 80, "127.0.0.1")


async def send(pool: ConnectionPool, request: httpx2.Request, name: str = "a.example") -> httpx2.Response:
    """Sends a request and returns the response with its body, as the guarded transport does."""
    peer = peer_of(str(request.url), name)
    connection = pool.take_idle(peer) or await pool.open(peer, 5)
    try:
        answer = await connection.send(request)
    except BaseException:
        connection.close()
        raise
    response = httpx2.Response(answer.status, headers=answer.headers, stream=ResponseBody(pool, connection, answer))
    try:
        await response.aread()
    finally:
        await response.aclose()
    return response


async def get(pool: ConnectionPool, url: str, name: str = "a.example") -> httpx2.Response:
    return await send(pool, httpx2.Request("GET", url), name)


async def test_connection_is_reused_for_same_name_only(pool: ConnectionPool) -> None:
    async with raw_server(OK) as server:
        for name in ("a.example", "a.example", "b.example", "a.example"):
            assert (await get(pool, server.url, name)).content == b"ok"
        assert list(map(len, server.requests)) == [3, 1]


async def test_concurrent_requests_have_a_connection_each(pool: ConnectionPool) -> None:
    async with raw_server(OK) as server:
        answers = await asyncio.gather(*(get(pool, server.url) for _ in range(10)))
        assert [each.content for each in answers] == [b"ok"] * 10
        assert list(map(len, server.requests)) == [1] * 10
        await asyncio.gather(*(get(pool, server.url) for _ in range(10)))
        assert list(map(len, server.requests)) == [2] * 10


async def test_idle_connection_closes_after_a_second(pool: ConnectionPool) -> None:
    async with raw_server(OK) as server:
        await get(pool, server.url)
        assert server.ended_connections == 0

        async def has_ended() -> bool:
            return server.ended_connections == 1

        assert await poll_until_true(has_ended)
        await get(pool, server.url)
        assert len(server.requests) == 2


async def test_connection_closed_by_peer_is_not_reused(pool: ConnectionPool) -> None:
    async with raw_server(OK, closes_after_response=True) as server:
        for _ in range(3):
            assert (await get(pool, server.url)).content == b"ok"
            idle = pool._idle.get(peer_of(server.url), [])

            async def is_unusable() -> bool:
                return not any(each.is_usable for each in idle)  # noqa: B023

            assert await poll_until_true(is_unusable)
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: t\r\n\r\n",
            b"abc",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    ],
    ids=["chunked", "no content", "interim answers", "empty"],
)
async def test_framed_response_keeps_connection_open(pool: ConnectionPool, answer: bytes, body: bytes) -> None:
    async with raw_server(answer) as server:
        for _ in range(3):
            response = await get(pool, server.url)
            assert response.content == body
            assert "link" not in response.headers
        assert list(map(len, server.requests)) == [3]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + OK,
        OK + b"HTTP/1.1 200 OK\r\nContent-Le",
        OK + b"and more",
    ],
    ids=["closing", "HTTP/1.0", "two answers", "start of another answer", "longer than its length"],
)
async def test_closed_or_overfull_connection_is_not_reused(pool: ConnectionPool, answer: bytes) -> None:
    async with raw_server(answer) as server:
        for _ in range(3):
            assert (await get(pool, server.url)).content == b"ok"
        assert len(server.requests) == 3


async def test_body_without_length_ends_with_connection(pool: ConnectionPool) -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nall of it", closes_after_response=True) as server:
        response = await get(pool, server.url)
        assert (response.content, response.headers["x"]) == (b"all of it", "y")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        CHUNKED + b"5\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"",
    ],
    ids=["short", "short chunk", "no head", "interim only", "another protocol", "no HTTP", "two lengths", "nothing"],
)
async def test_truncated_or_malformed_response_fails(pool: ConnectionPool, answer: bytes) -> None:
    async with raw_server(answer, closes_after_response=True) as server:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            await get(pool, server.url)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10 * MAX_OVERHEAD_BYTES,
        CHUNKED + b"0\r\nX: " + b"y" * 10 * MAX_OVERHEAD_BYTES,
        CHUNKED + b"1;" + b"y" * 10 * MAX_OVERHEAD_BYTES,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 30_000,
    ],
    ids=["many", "one", "trailer", "chunk extension", "interim answers"],
)
async def test_endless_headers_close_the_connection(pool: ConnectionPool, start: bytes) -> None:
    async with raw_server(start) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await get(pool, server.url)

        async def has_ended() -> bool:
            return server.ended_connections == 1

        assert await poll_until_true(has_ended)


async def test_large_request_and_response_arrive_whole(pool: ConnectionPool) -> None:
    size = 8 * 1024 * 1024
    received: list[bytes] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        received.append(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + received[0])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    content = bytes(range(256)) * (size // 256)
    assert (await send(pool, httpx2.Request("POST", url, content=content))).content == content == received[0]
    server.close()


async def test_early_error_response_is_returned(pool: ConnectionPool) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    assert (await send(pool, httpx2.Request("POST", url, content=bytes(1024 * 1024)))).status_code == 413
    server.close()


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\0b"])
async def test_header_with_line_break_is_never_sent(pool: ConnectionPool, value: str) -> None:
    async with raw_server(OK) as server:
        request = httpx2.Request("GET", server.url, headers={"Authorization": f"Bearer {value}"})
        with pytest.raises(httpx2.LocalProtocolError):
            await send(pool, request)
        assert server.requests in ([], [[]])


async def test_partly_read_response_closes_the_connection(pool: ConnectionPool) -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin") as server:
        peer = peer_of(server.url)
        connection = await pool.open(peer, 5)
        body = ResponseBody(pool, connection, await connection.send(httpx2.Request("GET", server.url)))
        async for piece in body:
            assert piece == b"begin"
            break
        await body.aclose()
        await body.aclose()
        assert not connection.is_usable
        assert pool.take_idle(peer) is None
