"""Clients of GraphQL over server-sent events: one records the events of a stream, one is a raw socket."""

import asyncio
import ctypes
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import orjson

from tests.waiting import poll_until_true, until

EVENT_STREAM = "text/event-stream"

SO_ATTACH_FILTER = 26
RETURN_CONSTANT = 0x06
"""The instruction of a packet filter (BPF) that ends it with the number of bytes to keep."""


@dataclass(frozen=True)
class ServerSentEvent:
    """One event: its type, the text of its data, and its id."""

    type: str
    data: str
    id: str | None

    @property
    def result(self) -> dict[str, Any]:
        """The GraphQL result of the event `next`."""
        result: dict[str, Any] = orjson.loads(self.data)
        return result

    @property
    def value(self) -> dict[str, Any]:
        """The value of the one root field."""
        (value,) = self.result["data"].values()
        event: dict[str, Any] = value
        return event


def parse_event(text: str) -> ServerSentEvent:
    """Returns the event of its lines."""
    fields = dict(line.partition(":")[::2] for line in text.split("\n"))
    return ServerSentEvent(fields["event"].strip(), fields["data"].removeprefix(" "), _stripped(fields.get("id")))


def _stripped(value: str | None) -> str | None:
    return None if value is None else value.strip()


@dataclass
class RecordedStream:
    """A stream, and the text that has arrived on it so far."""

    response: httpx2.Response
    text: str = ""
    is_closed: bool = False
    """Whether the server has closed the stream."""

    @property
    def events(self) -> list[ServerSentEvent]:
        """The complete events, without comments."""
        blocks = self.text.split("\n\n")[:-1]
        return [parse_event(block) for block in blocks if not block.startswith(":")]

    @property
    def is_complete(self) -> bool:
        """Whether the operation has ended, so that the client does not ask again."""
        return any(event.type == "complete" for event in self.events)

    @property
    def values(self) -> list[dict[str, Any]]:
        """The values of the root field, without StreamReady."""
        nexts = [event for event in self.events if event.type == "next" and "errors" not in event.result]
        return [event.value for event in nexts if event.value["__typename"] != "StreamReady"]

    @property
    def codes(self) -> list[str]:
        """The codes of all errors."""
        results = [event.result for event in self.events if event.type == "next"]
        return [error["extensions"]["code"] for result in results for error in result.get("errors", ())]

    @property
    def texts(self) -> list[str]:
        """The texts of the posted messages."""
        return [value["message"]["text"] for value in self.values if "message" in value]

    async def receives(self, count: int) -> bool:
        """Waits for a number of events after StreamReady, and returns whether they arrived."""
        return await poll_until_true(lambda: len(self.values) >= count, 60)

    async def closes(self) -> None:
        """Waits until the server has closed the stream."""
        await until(lambda: self.is_closed, 60)

    async def record(self) -> None:
        """Records until the stream ends."""
        with suppress(httpx2.HTTPError):
            async for text in self.response.aiter_text():
                self.text += text
        self.is_closed = True


@asynccontextmanager
async def recorded(
    http: httpx2.AsyncClient,
    url: str,
    token: str | None,
    query: str,
    *,
    accept: str = EVENT_STREAM,
    last_event_id: str | None = None,
    **values: Any,
) -> AsyncIterator[RecordedStream]:
    """Posts an operation with a client, and records the stream until the block ends."""
    authorization = None if token is None else f"Bearer {token}"
    headers = {"accept": accept, "authorization": authorization, "last-event-id": last_event_id}
    sent = {name: value for name, value in headers.items() if value is not None}
    async with http.stream("POST", url, json={"query": query, "variables": values}, headers=sent) as response:
        stream = RecordedStream(response)
        task = asyncio.create_task(stream.record())
        try:
            yield stream
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def streamed(url: str, token: str | None, query: str, **options: Any) -> AsyncIterator[RecordedStream]:
    """Posts an operation to a server on a connection of its own, and records the stream until the block ends."""
    async with (
        httpx2.AsyncClient(timeout=60) as http,
        recorded(http, f"{url}/graphql", token, query, **options) as stream,
    ):
        yield stream


@asynccontextmanager
async def raw_stream(url: str, token: str, query: str, **values: Any) -> AsyncIterator[socket.socket]:
    """Posts an operation, and yields the socket, which has a small buffer and reads only on demand."""
    body = orjson.dumps({"query": query, "variables": values})
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: {EVENT_STREAM}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.setblocking(False)
        await loop.sock_connect(raw, ("127.0.0.1", urlsplit(url).port))
        await loop.sock_sendall(raw, head.encode() + body)
        yield raw


def vanish(client: socket.socket) -> None:
    """Pulls the client's cable: Linux drops every packet that arrives, before TCP acknowledges it."""
    keep_nothing = ctypes.create_string_buffer(struct.pack("HBBI", RETURN_CONSTANT, 0, 0, 0))
    program = struct.pack("HP", 1, ctypes.addressof(keep_nothing))
    client.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
