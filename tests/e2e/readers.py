"""Readers of a topic that record every event and resume where they stopped."""

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

LISTEN = """
    subscription ($topic: ID!, $since: Cursor) {
      topicEvents(topicId: $topic, since: $since) {
        __typename
        ... on Event { cursor at }
        ... on StreamReady { resumed }
        ... on MessagePosted { message { text } }
      }
    }
"""
LISTEN_AS_ONESELF = LISTEN.replace("{ text }", "{ text author { blocked } }")
"""The same subscription with a field that depends on the viewer, so that no execution is shared."""

Event = dict[str, Any]


@dataclass
class Visit:
    """One subscription from its start to its end. `lags_s` are the delays of events that happened during it."""

    since: str | None
    resumed: list[bool] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lags_s: list[float] = field(default_factory=list)
    began_at: float = 0.0
    code: int | None = None
    errors: list[Any] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Records an event, or the start of the stream."""
        now = time.time()
        if event["__typename"] == "StreamReady":
            self.resumed.append(event["resumed"])
            self.began_at = self.began_at or now
            return
        self.numbers.append(cursor_position(event["cursor"]))
        self.texts.append(event["message"]["text"])
        happened_at = datetime.fromisoformat(event["at"]).timestamp()
        if happened_at > self.began_at:
            self.lags_s.append(now - happened_at)

    def gap(self) -> str | None:
        """Returns what is wrong with the order of the events, or None when each follows the one before."""
        first = (cursor_position(self.since) + 1) if self.since else (self.numbers or [0])[0]
        expected = list(range(first, first + len(self.numbers)))
        return None if self.numbers == expected else f"since {first - 1}: {self.numbers}"


class Reader:
    """A reader on a socket. `cursor` is the last event read."""

    def __init__(self, url: str, token: str, topic: str, document: str = LISTEN) -> None:
        self.visits: list[Visit] = []
        self.cursor: str | None = None
        self.ready = asyncio.Event()
        self.ws: ClientConnection | None = None
        self._url, self._token, self._topic, self._document = url, token, topic, document

    @property
    def now(self) -> Visit:
        """The current subscription."""
        return self.visits[-1]

    @property
    def n(self) -> int:
        """The number of the last event."""
        return cursor_position(self.cursor) if self.cursor else 0

    async def visit(self) -> None:
        """Subscribes and reads until the socket is closed by either side, or no connection is accepted."""
        self.ready.clear()
        with suppress(OSError, InvalidHandshake, TimeoutError):
            async with raw_socket(self._url) as ws:
                self.ws = ws
                self.visits.append(Visit(self.cursor))
                try:
                    await self._listen(ws, self.now)
                except ConnectionClosed as closed:
                    self.now.code = closed.rcvd.code if closed.rcvd else 1006

    def cut(self) -> None:
        """Cuts the connection abruptly, as a network failure does."""
        if self.ws is not None:
            self.ws.transport.abort()

    async def _listen(self, ws: ClientConnection, visit: Visit) -> None:
        await _say(ws, type="connection_init", payload={"authorization": f"Bearer {self._token}"})
        assert orjson.loads(await ws.recv())["type"] == "connection_ack"
        given = {"topic": self._topic, "since": self.cursor}
        await _say(ws, id="1", type="subscribe", payload={"query": self._document, "variables": given})
        async for text in ws:
            frame = orjson.loads(text)
            if frame["type"] != "next" or frame["payload"].get("errors"):
                visit.errors.append(frame)
                return
            event = frame["payload"]["data"]["topicEvents"]
            visit.take(event)
            self.cursor = event["cursor"]
            self.ready.set()


async def _say(ws: ClientConnection, **message: Any) -> None:
    await ws.send(orjson.dumps(message).decode())


def percentile(values: list[float], share: float) -> float:
    """Returns the percentile: the value that `share` of the values do not exceed."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0.0
