"""A real HTTP server on loopback. A coroutine writes each response; connections are counted and requests recorded."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

StubResponse = Callable[[asyncio.StreamWriter], Awaitable[None]]


class StubServer:
    """An HTTP server. `answers` holds a coroutine for each path, which writes the response. Other paths get 404."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.port = 0
        self.connections = 0
        self.requests: list[str] = []
        self.answers: dict[str, StubResponse] = {}
        self.open_tasks: set[asyncio.Task[None]] = set()
        self.max_open = 0

    def url(self, path: str = "/", host: str | None = None, scheme: str = "http") -> str:
        return f"{scheme}://{host or self.host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self.open_tasks.add(task)
        self.max_open = max(self.max_open, len(self.open_tasks))
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            await self.answers.get(request.split(" ")[1], respond(b"", status=404))(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.open_tasks.discard(task)


@asynccontextmanager
async def stub_server(
    host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[StubServer]:
    """Serves a stub server. Without `port`, the system chooses one."""
    stub = StubServer(host)
    server = await asyncio.start_server(stub.serve, host, port, ssl=tls)
    stub.port = server.sockets[0].getsockname()[1]
    try:
        yield stub
    finally:
        server.close()
        for task in list(stub.open_tasks):
            task.cancel()
        await asyncio.gather(*stub.open_tasks, return_exceptions=True)


def head(status: int = 200, content_type: str = "text/html; charset=utf-8", **headers: str) -> bytes:
    """Returns the status line and the headers of a response. Underscores in names become hyphens."""
    all_headers = {"Content-Type": content_type, "Connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in all_headers.items())]
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
    """Returns a response that repeats `chunk` until the client disconnects. `written` collects the sizes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, content_type, **headers))
        while not writer.is_closing():
            writer.write(chunk)
            await writer.drain()
            written.append(len(chunk))

    return answer


def silent(start: bytes = b"") -> StubResponse:
    """Returns a response that writes `start`, and then nothing while the connection stays open."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await asyncio.Event().wait()

    return answer
