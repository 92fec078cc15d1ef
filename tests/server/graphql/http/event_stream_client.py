"""A client of GraphQL over server-sent events, which records the events of one stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from tests.waiting import poll_until_true, until

EVENT_STREAM = "text/event-stream"


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
