"""Readers of a topic, which record every event and resume after the last one."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.client import raw_socket
from tests.e2e.chat_topic import cursor_position

SHARED_DOCUMENT = """
    subscription ($topic: ID!, $since: Cursor) {
      topicEvents(topicId: $topic, since: $since) {
        __typename
        ... on Event { cursor at }
        ... on StreamReady { resumed }
        ... on MessagePosted { message { text } }
      }
    }
"""
VIEWER_DOCUMENT = SHARED_DOCUMENT.replace("{ text }", "{ text author { blocked } }")
"""The same subscription with a field that depends on the viewer. Its execution is not shared."""

ReceivedEvent = dict[str, Any]


@dataclass
class SubscriptionRecord:
    """The record of one subscription. `lags_s` are the delays of events that happened after it was ready."""

    since: str | None
    resumed: list[bool] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lags_s: list[float] = field(default_factory=list)
    ready_at: float = 0.0
    close_code: int | None = None
    errors: list[Any] = field(default_factory=list)

    def record(self, event: ReceivedEvent) -> None:
        """Records an event, including StreamReady."""
        now = time.time()
        if event["__typename"] == "StreamReady":
            self.resumed.append(event["resumed"])
            self.ready_at = self.ready_at or now
            return
        self.numbers.append(cursor_position(event["cursor"]))
        self.texts.append(event["message"]["text"])
        happened_at = datetime.fromisoformat(event["at"]).timestamp()
        if happened_at > self.ready_at:
            self.lags_s.append(now - happened_at)

    def sequence_error(self) -> str | None:
        """Returns a description of the event numbers if they are not consecutive, otherwise None."""
        first = (cursor_position(self.since) + 1) if self.since else (self.numbers or [0])[0]
        expected = list(range(first, first + len(self.numbers)))
        return None if self.numbers == expected else f"Events after {first - 1}: {self.numbers}"


class TopicReader:
    """A user who reads a topic through a socket. `cursor` belongs to the last received event."""

    def __init__(self, url: str, token: str, topic: str, document: str = SHARED_DOCUMENT) -> None:
        self.subscriptions: list[SubscriptionRecord] = []
        self.cursor: str | None = None
        self.ready = asyncio.Event()
        self.ws: ClientConnection | None = None
        self._url, self._token, self._topic, self._document = url, token, topic, document

    @property
    def current(self) -> SubscriptionRecord:
        """The current or last subscription."""
        return self.subscriptions[-1]

    @property
    def position(self) -> int:
        """The number of the last received event."""
        return cursor_position(self.cursor) if self.cursor else 0

    async def subscribe(self) -> None:
        """Connects, subscribes, and reads until the socket is closed. Returns at once if no connection is accepted."""
        self.ready.clear()
        with suppress(OSError, InvalidHandshake, TimeoutError):
            async with raw_socket(self._url) as ws:
                self.ws = ws
                self.subscriptions.append(SubscriptionRecord(self.cursor))
                try:
                    await self._read(ws, self.current)
                except ConnectionClosed as closed:
                    self.current.close_code = closed.rcvd.code if closed.rcvd else 1006

    def disconnect(self) -> None:
        """Aborts the connection, as a network failure does."""
        if self.ws is not None:
            self.ws.transport.abort()

    async def _read(self, ws: ClientConnection, subscription: SubscriptionRecord) -> None:
        await _send(ws, type="connection_init", payload={"authorization": f"Bearer {self._token}"})
        assert orjson.loads(await ws.recv())["type"] == "connection_ack"
        variables = {"topic": self._topic, "since": self.cursor}
        await _send(ws, id="1", type="subscribe", payload={"query": self._document, "variables": variables})
        async for text in ws:
            frame = orjson.loads(text)
            if frame["type"] != "next" or frame["payload"].get("errors"):
                subscription.errors.append(frame)
                return
            event = frame["payload"]["data"]["topicEvents"]
            subscription.record(event)
            self.cursor = event["cursor"]
            self.ready.set()


async def _send(ws: ClientConnection, **message: Any) -> None:
    await ws.send(orjson.dumps(message).decode())


def percentile(values: list[float], share: float) -> float:
    """Returns the smallest value that at least `share` of the values do not exceed."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0.0
