"""A real HTTP server on loopback whose responses are coroutines. It counts connections and records requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

StubResponse = Callable[[asyncio.StreamWriter], Awaitable[None]]


class StubServer:
    """An HTTP server that answers each path of `answers` with a coroutine, and every other path with 404."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.port = 0
        self.connections = 0
        self.requests: list[str] = []
        self.answers: dict[str, StubResponse] = {}
        self.open: set[asyncio.Task[None]] = set()
        self.most_open = 0

    def url(self, path: str = "/", host: str | None = None, scheme: str = "http") -> str:
        return f"{scheme}://{host or self.host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self.open.add(task)
        self.most_open = max(self.most_open, len(self.open))
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            await self.answers.get(request.split(" ")[1], respond(b"", status=404))(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.open.discard(task)


@asynccontextmanager
async def stub_server(
    host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[StubServer]:
    served = StubServer(host)
    server = await asyncio.start_server(served.serve, host, port, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in list(served.open):
            task.cancel()
        await asyncio.gather(*served.open, return_exceptions=True)


def head(status: int = 200, content_type: str = "text/html; charset=utf-8", **headers: str) -> bytes:
    named = {"Content-Type": content_type, "Connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def respond(
    body: bytes, status: int = 200, content_type: str = "text/html; charset=utf-8", **headers: str
) -> StubResponse:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, content_type, **headers, Content_Length=str(len(body))) + body)

    return answer


def redirect(location: str, status: int = 302) -> StubResponse:
    return respond(b"", status, Location=location)


def endless(chunk: bytes, written: list[int], content_type: str = "text/html", **headers: str) -> StubResponse:
    """Writes `chunk` until the client disconnects; `written` collects the sizes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, content_type, **headers))
        while not writer.is_closing():
            writer.write(chunk)
            await writer.drain()
            written.append(len(chunk))

    return answer


def silent(start: bytes = b"") -> StubResponse:
    """Writes `start` and then nothing more."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await asyncio.Event().wait()

    return answer
