"""Serves an ASGI application over HTTP in the test's own process and event loop."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState


@asynccontextmanager
async def http_server(app: ASGIApp, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[int]:
    """Serves the application, and yields its port. `options` are passed to uvicorn."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, **options)
    config.load()
    state = ServerState()
    protocol = config.http_protocol_class
    assert not isinstance(protocol, str)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0, ssl=tls)  # type: ignore[call-arg, arg-type, return-value]
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        await asyncio.gather(*state.tasks, return_exceptions=True)
