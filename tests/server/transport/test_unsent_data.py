"""The bound on the unsent data of all connections, with the transports of real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from server.transport.unsent_data import StalledConnections

MEBIBYTE = 1 << 20

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def stalled_transport(unsent_bytes: int) -> AsyncIterator[asyncio.Transport]:
    """Yields a transport with data that its peer does not read."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for each in (ours, theirs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        ours.setblocking(False)
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        transport.write(b"x" * unsent_bytes)
        yield transport
        transport.abort()


async def test_oldest_stalled_connections_are_aborted_over_limit() -> None:
    connections = StalledConnections(max_bytes=2 * MEBIBYTE)
    async with (
        stalled_transport(MEBIBYTE) as oldest,
        stalled_transport(MEBIBYTE) as second,
        stalled_transport(MEBIBYTE) as newest,
    ):
        for transport in (oldest, second, newest):
            connections.add(transport, transport.abort)
        await asyncio.sleep(0)
        assert [each.is_closing() for each in (oldest, second, newest)] == [True, False, False]


async def test_connection_that_stalls_again_is_counted_once() -> None:
    connections = StalledConnections(max_bytes=2 * MEBIBYTE)
    async with stalled_transport(MEBIBYTE) as first, stalled_transport(MEBIBYTE) as second:
        connections.add(first, first.abort)
        connections.remove(first)
        connections.remove(first)
        connections.add(second, second.abort)
        connections.add(first, first.abort)
        await asyncio.sleep(0)
        assert not first.is_closing()
        assert not second.is_closing()
