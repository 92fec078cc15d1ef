"""The fan-out without GraphQL on the own server of the `websockets` library, written to as its `broadcast` does."""

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

from benchmarks.fanout_apps import RAW_CHANNEL, READY
from server.settings import Settings

Sockets = dict[str, ServerConnection]


def answer(connection: ServerConnection, request: Request) -> Response | None:
    """Prints the port once the process serves."""
    return connection.respond(HTTPStatus.OK, "") if request.path == "/readyz" else None


def give(connection: ServerConnection, id_: str, payload: bytes) -> None:
    """One write for one frame; nobody is waited for."""
    connection.protocol.send_text(b'{"type":"next","id":"%b","payload":%b}' % (id_.encode(), payload))
    connection.send_data()


async def hear(connection: ServerConnection, sockets: Sockets) -> None:
    """Serves one socket to its end."""
    mine: list[str] = []
    with contextlib.suppress(ConnectionClosed):
        async for text in connection:
            said = orjson.loads(text)
            if said["type"] == "connection_init":
                await connection.send('{"type":"connection_ack"}')
            elif said["type"] == "subscribe":
                give(connection, said["id"], READY)
                sockets[said["id"]] = connection
                mine.append(said["id"])
    for id_ in mine:
        del sockets[id_]


async def hand_on(redis_url: str, sockets: Sockets) -> None:
    """Gives payloads to everybody, as they come."""
    async with Redis.from_url(redis_url) as redis, redis.pubsub() as pubsub:
        await pubsub.subscribe(RAW_CHANNEL)
        async for message in pubsub.listen():
            for payload in message["data"].split(b"\n") if message["type"] == "message" else ():
                for id_, connection in sockets.items():
                    give(connection, id_, payload)
                # uvloop would join what is written in one turn.
                await asyncio.sleep(0)


async def _serve(redis_url: str, listener: socket.socket) -> None:
    sockets: Sockets = {}
    async with serve(
        lambda connection: hear(connection, sockets),
        sock=listener,
        subprotocols=[Subprotocol(GRAPHQL_TRANSPORT_WS_PROTOCOL)],
        process_request=answer,
        compression=None,
    ):
        await hand_on(redis_url, sockets)


def main(settings: Settings, listener: socket.socket) -> None:
    """Serves until the process is ended."""
    assert settings.redis_url
    uvloop.run(_serve(settings.redis_url, listener))
