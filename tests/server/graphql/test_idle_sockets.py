"""Idle sockets keep no handshake data, and closed sockets leave no reference cycles."""

import asyncio
import weakref

import pytest
from starlette.types import Receive, Scope, Send

from server.graphql.socket_writer import ABORT_AFTER_S, connection_of
from tests.server.in_process import InProcessServer, raw_client, serve_in_process

pytestmark = pytest.mark.anyio

CLOSE, NORMAL_CLOSURE = 0x88, (1000).to_bytes(2)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts a socket and reads until it is closed."""
    assert connection_of(scope)
    await receive()
    await send({"type": "websocket.accept", "subprotocol": "graphql-transport-ws"})
    while (await receive())["type"] == "websocket.receive":
        pass


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("sends_close_frame", [True, False])
async def test_closed_socket_leaves_no_reference_cycle(sends_close_frame: bool) -> None:
    async with serve_in_process(application) as socket_server:
        remaining = await open_and_close(socket_server, sends_close_frame)
        ends_at = asyncio.get_running_loop().time() + ABORT_AFTER_S + 30
        while len(remaining) and asyncio.get_running_loop().time() < ends_at:
            await asyncio.sleep(0.05)
        assert not list(remaining)


async def open_and_close(socket_server: InProcessServer, sends_close_frame: bool) -> "weakref.WeakSet[object]":
    """Returns the protocol objects of uvicorn and of websockets, which must be freed afterwards."""
    async with raw_client(socket_server.port) as client:
        (connection,) = socket_server.connections
        if sends_close_frame:
            await client.send_frame(CLOSE, NORMAL_CLOSURE)
            await client.read_to_end()
        return weakref.WeakSet([connection, connection.conn])


async def test_open_socket_keeps_nothing_of_its_handshake() -> None:
    async with serve_in_process(application) as socket_server, raw_client(socket_server.port):
        (connection,) = socket_server.connections
        assert not {"request", "response"} & vars(connection).keys()
