"""A telephony service's server of recordings, with slow, endless, missing and misleading answers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.http_server import http_server

WAV = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00" + bytes(range(256)) * 40


@dataclass
class RecordingServer:
    """Serves what a test has put, and counts requests by path."""

    url: str = ""
    bodies: dict[str, bytes] = field(default_factory=lambda: {"/call.wav": WAV})
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    """Paths whose answers stop after their beginning."""

    request_counts: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        self.request_counts[path] += 1
        self.headers.append(dict(request.headers))
        if path in self.statuses:
            return Response(status_code=self.statuses[path])
        if path in self.redirects:
            return RedirectResponse(self.redirects[path])
        if path in self.silent or path == "/endless.wav":
            return StreamingResponse(_endless(request, path in self.silent), media_type="audio/wav")
        if path not in self.bodies:
            return Response(status_code=404)
        # The type is the same for everything, since only the bytes count.
        return Response(self.bodies[path], media_type="audio/wav")


async def _endless(request: Request, is_silent: bool) -> AsyncIterator[bytes]:
    yield WAV
    while not await request.is_disconnected():
        await asyncio.sleep(0.01)
        yield b"" if is_silent else bytes(64 * 1024)


@asynccontextmanager
async def recording_server() -> AsyncIterator[RecordingServer]:
    """Serves recordings on loopback."""
    server = RecordingServer()
    async with http_server(Starlette(routes=[Route("/{path:path}", server.answer)])) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server
