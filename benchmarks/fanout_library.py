"""Delivery of events without GraphQL, on the server of the `websockets` library.

Writes frames to all sockets in the same way as the library's `broadcast` function.
"""

import asyncio
import contextlib
import socket
from http import HTTPStatus

import orjson
import uvloop
from redis.asyncio import Redis
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from benchmarks.fanout_apps import PAYLOADS_CHANNEL, READY_PAYLOAD
from server.settings import Settings

ConnectionsByOperation = dict[str, ServerConnection]


def answer_readiness(connection: ServerConnection, request: Request) -> Response | None:
    """Answers readiness checks. All other requests continue with the WebSocket handshake."""
    return connection.respond(HTTPStatus.OK, "") if request.path == "/readyz" else None


def write_frame(connection: ServerConnection, id_: str, payload: bytes) -> None:
    """Writes one frame without waiting for slow clients."""
    connection.protocol.send_text(b'{"type":"next","id":"%b","payload":%b}' % (id_.encode(), payload))
    connection.send_data()


async def serve_socket(connection: ServerConnection, connections: ConnectionsByOperation) -> None:
    """Serves one socket until it is closed."""
    ids: list[str] = []
    with contextlib.suppress(ConnectionClosed):
        async for text in connection:
            message = orjson.loads(text)
            if message["type"] == "connection_init":
                await connection.send('{"type":"connection_ack"}')
            elif message["type"] == "subscribe":
                write_frame(connection, message["id"], READY_PAYLOAD)
                connections[message["id"]] = connection
                ids.append(message["id"])
    for id_ in ids:
        del connections[id_]


async def broadcast_payloads(redis_url: str, connections: ConnectionsByOperation) -> None:
    """Writes every payload from Redis to all sockets."""
    async with Redis.from_url(redis_url) as redis, redis.pubsub() as pubsub:
        await pubsub.subscribe(PAYLOADS_CHANNEL)
        async for message in pubsub.listen():
            for payload in message["data"].split(b"\n") if message["type"] == "message" else ():
                for id_, connection in connections.items():
                    write_frame(connection, id_, payload)
                # Ends this iteration of the event loop, because uvloop joins all writes of one iteration.
                await asyncio.sleep(0)


async def _serve(redis_url: str, listener: socket.socket) -> None:
    connections: ConnectionsByOperation = {}
    async with serve(
        lambda connection: serve_socket(connection, connections),
        sock=listener,
        subprotocols=[Subprotocol(GRAPHQL_TRANSPORT_WS_PROTOCOL)],
        process_request=answer_readiness,
        compression=None,
    ):
        await broadcast_payloads(redis_url, connections)


def main(settings: Settings, listener: socket.socket) -> None:
    """Serves until SIGTERM."""
    assert settings.redis_url
    uvloop.run(_serve(settings.redis_url, listener))
