"""The cost of an open, idle socket, and that nothing is left of it for the garbage collector."""

import asyncio
import weakref

import pytest
from starlette.types import Receive, Scope, Send

from server.graphql.socket_writer import ABORT_AFTER_S, protocol_of
from tests.server.in_process import InProcess, in_process, raw_client

pytestmark = pytest.mark.anyio

CLOSE, NORMALLY = 0x88, (1000).to_bytes(2)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads until the client is gone."""
    assert protocol_of(scope)
    await receive()
    await send({"type": "websocket.accept", "subprotocol": "graphql-transport-ws"})
    while (await receive())["type"] == "websocket.receive":
        pass


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("orderly", [True, False])
async def test_closed_socket_leaves_no_reference_cycle(orderly: bool) -> None:
    async with in_process(application) as served:
        left = await open_and_close(served, orderly)
        ends_at = asyncio.get_running_loop().time() + ABORT_AFTER_S + 30
        while len(left) and asyncio.get_running_loop().time() < ends_at:
            await asyncio.sleep(0.05)
        assert not list(left)


async def open_and_close(served: InProcess, orderly: bool) -> "weakref.WeakSet[object]":
    """The objects that must be gone: the protocols of uvicorn and of websockets."""
    async with raw_client(served.port) as client:
        (wire,) = served.wires
        if orderly:
            await client.say(CLOSE, NORMALLY)
            await client.rest()
        return weakref.WeakSet([wire, wire.conn])


async def test_an_open_socket_keeps_nothing_of_its_handshake() -> None:
    async with in_process(application) as served, raw_client(served.port):
        (wire,) = served.wires
        assert not {"request", "response"} & vars(wire).keys()
