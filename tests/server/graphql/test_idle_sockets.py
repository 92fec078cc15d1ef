"""Idle sockets keep no handshake data, and closed sockets leave no reference cycles."""

import asyncio
import gc
import weakref

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import Operation
from uvicorn.server import ServerState

from server.graphql.socket_writer import ABORT_AFTER_S, WebSocketProtocol, connection_of
from server.graphql.websocket import SIGN_IN_HEADERS
from server.transport.http_protocol import HttpProtocol
from tests.server.graphql.graphql_server import TOPIC_EVENTS, GraphQLServer
from tests.server.in_process import InProcessServer, raw_client, serve_in_process
from tests.waiting import poll_until_true

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
        assert not hasattr(connection, "request")
        assert not hasattr(connection, "response")


async def test_idle_socket_keeps_no_attribute_in_a_dictionary() -> None:
    """Attributes outside of `__slots__` would take 2 KiB for each socket."""
    async with serve_in_process(application) as socket_server, raw_client(socket_server.port):
        assert [vars(each) for each in socket_server.connections] == [{}]


async def test_idle_subscription_keeps_no_text_and_no_headers(server: GraphQLServer) -> None:
    text = TOPIC_EVENTS + "# This comment is part of no other document."
    async with server.subscribed(query=text):
        (connection,) = server.socket_server.connections
        assert {name for name, _ in connection.scope["headers"]} <= SIGN_IN_HEADERS
        gc.collect()
        operations = [each for each in gc.get_objects() if type(each) is Operation]
        own = [each for each in operations if each.handler.websocket.ws.scope is connection.scope]
        assert [(each.query, each.variables) for each in own] == [("", None)]
        messages = [each for each in gc.get_objects() if type(each) is dict and each.get("type") == "subscribe"]
        assert not [each for each in messages if text in str(each)]


@pytest.mark.usefixtures("_no_garbage_collection")
async def test_upgraded_connection_frees_its_http_protocol() -> None:
    config = uvicorn.Config(application, ws=WebSocketProtocol, lifespan="off", log_config=None)
    config.load()
    protocols: weakref.WeakSet[HttpProtocol] = weakref.WeakSet()

    def new_protocol() -> HttpProtocol:
        protocols.add(protocol := HttpProtocol(config, ServerState(), {}))
        return protocol

    listener = await asyncio.get_running_loop().create_server(new_protocol, "127.0.0.1", 0)
    async with raw_client(listener.sockets[0].getsockname()[1]):
        assert await poll_until_true(lambda: not protocols)
    listener.close()
