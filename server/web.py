"""The web process: runs the application in uvicorn, on its own socket or on one inherited from the supervisor."""

import errno
import gc
import socket

import uvicorn

from server.graphql import PROCESS_STREAMS, WebSocketProtocol
from server.processes import StartupError, without_garbage_collection
from server.settings import Settings
from server.transport.http_protocol import HttpProtocol
from server.transport.trusted_proxies import TrustedProxies

WS_MAX_SIZE_BYTES = 65_536
GRACEFUL_SHUTDOWN_S = 10
BACKLOG = 2048
# A client that stops reading answers no ping and is disconnected within 25 s.
PING_EVERY_S = 10.0
PING_TIMEOUT_S = 15.0
# Answered requests and delivered events leave no reference cycles; a subscription leaves some 20 objects. A full
# collection takes 0.2 s with a thousand sockets and stops the process (benchmarks/fanout.py). Still rarer collections
# make pages slightly faster, and lookups of a thousand addresses slower.
GC_THRESHOLDS = 20_000, 20, 10


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; port 0 takes a free port. Raises: StartupError that names host and port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise StartupError(f"Can't listen on {host}:{port}, {reason}: choose another with --port or --host.") from error


def serve_web(settings: Settings, listener: socket.socket | None = None) -> None:
    """Serves until SIGTERM or SIGINT. Running requests then have 10 s to finish."""
    with without_garbage_collection():
        from server.app import create_app

    listener = listener or listen(settings.host, settings.port)
    config = uvicorn.Config(
        TrustedProxies(create_app(settings), settings.proxy_networks),
        loop="uvloop",
        http=HttpProtocol,
        ws=WebSocketProtocol,
        ws_ping_interval=PING_EVERY_S,
        ws_ping_timeout=PING_TIMEOUT_S,
        ws_per_message_deflate=False,
        ws_max_size=WS_MAX_SIZE_BYTES,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
        backlog=BACKLOG,
        # uvicorn takes an application that returns an awaitable, without being a coroutine function, for ASGI 2.
        interface="asgi3",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        # TrustedProxies does this. uvicorn's own list of proxies would come from the environment.
        proxy_headers=False,
    )
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn's server, with the garbage collector tuned for thousands of sockets, and an end without event streams."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the server, then excludes all present objects from garbage collection."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the event streams, for which uvicorn would wait, and then the server."""
        PROCESS_STREAMS.close()
        await super().shutdown(sockets)
