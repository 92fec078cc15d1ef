"""A twin of mongos, the router of a sharded cluster: it introduces itself as one, and executes nothing."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import bson

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
HEADER = struct.Struct("<iiii")
FLAGS_AND_KIND_BYTES = 5
HELLO = {"hello", "ismaster", "isMaster"}
INTRODUCTION = {
    "ok": 1,
    "msg": "isdbgrid",
    "helloOk": True,
    "ismaster": True,
    "isWritablePrimary": True,
    "minWireVersion": 0,
    "maxWireVersion": 17,
    "maxBsonObjectSize": 16 * 1024 * 1024,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
}


@asynccontextmanager
async def mongos_twin() -> AsyncIterator[str]:
    """Yields the address of a running twin."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            length, request_id, _, opcode = HEADER.unpack(await reader.readexactly(HEADER.size))
            body = await reader.readexactly(length - HEADER.size)
            writer.write(_response(request_id, opcode, body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _response(request_id: int, opcode: int, body: bytes) -> bytes:
    if opcode == OP_QUERY:
        # Flags, the name of the collection, how many documents to skip and to return, and the command.
        command = body[body.index(b"\0", 4) + 1 + 8 :]
        payload = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(_answer(command))
        return _message(request_id, OP_REPLY, payload)
    return _message(request_id, OP_MSG, struct.pack("<iB", 0, 0) + bson.encode(_answer(body[FLAGS_AND_KIND_BYTES:])))


def _message(request_id: int, opcode: int, payload: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(payload), 0, request_id, opcode) + payload


def _answer(command: bytes) -> dict[str, Any]:
    (length,) = struct.unpack_from("<i", command)
    name = next(iter(bson.decode(command[:length])))
    if name in HELLO:
        return INTRODUCTION
    return {"ok": 1} if name in ("ping", "endSessions") else {"ok": 0, "code": 59, "errmsg": f"no such command: {name}"}
