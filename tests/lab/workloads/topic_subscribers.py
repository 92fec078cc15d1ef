"""Subscribers of a topic, who lose their sockets and resume after their last event."""

import asyncio
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.client import GraphQLFailed, SubscriptionSocket
from tests.e2e.chat_topic import cursor_position
from tests.lab.history import Outcome
from tests.lab.session import RETRY_S, WorkloadSession, micros

CONNECT_TIMEOUT_S = 15.0
LAST_EVENT_TIMEOUT_S = 180.0
EVENTS = """subscription ($topic: ID!, $since: Cursor) { topicEvents(topicId: $topic, since: $since) {
  kind: __typename
  ... on Event { cursor }
  ... on StreamReady { resumed }
  ... on MessagePosted { message { timestamp text } }
  ... on ReactionsChanged { message { timestamp text } }
} }"""
SOCKET_ERRORS = (ConnectionClosed, InvalidHandshake, OSError, TimeoutError, GraphQLFailed, AssertionError, ValueError)
"""Errors of a socket that can't be opened, or that ends."""


@dataclass
class TopicSubscriber:
    """One subscriber. Each of its subscriptions is one operation of the history."""

    session: WorkloadSession
    topic: str
    cursor: str | None = None

    async def run(self) -> None:
        """Subscribes again and again until the run ends. Each subscription ends after 2 to 25 seconds."""
        while not self.session.laboratory.ended.is_set():
            await self._subscribe(self.session.rng.uniform(2, 25))
            await self.session.laboratory.pause(RETRY_S)

    async def read_until(self, last_text: str) -> None:
        """Subscribes until the message with this text has arrived, or LAST_EVENT_TIMEOUT_S have passed."""
        begin = self.session.history.now()
        while self.session.history.now() < begin + LAST_EVENT_TIMEOUT_S:
            if await self._subscribe(30.0, last_text):
                return
            await asyncio.sleep(RETRY_S)

    async def _subscribe(self, seconds: float, last_text: str | None = None) -> bool:
        """Records one subscription. Returns whether the last message has arrived."""
        begin, history = self.session.history.now(), self.session.history
        result: dict[str, Any] = {"resumed": None, "first": None, "ready": None, "events": []}
        arguments = {"topic": self.topic, "since": self.cursor and cursor_position(self.cursor)}
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as deadline, self.session.socket() as socket:
                await socket.subscribe(EVENTS, topic=self.topic, since=self.cursor)
                await self._receive_event(socket, result)
                deadline.reschedule(asyncio.get_running_loop().time() + seconds)
                while last_text is None or not result["events"] or result["events"][-1][3] != last_text:
                    await self._receive_event(socket, result)
        except SOCKET_ERRORS as error:
            result["ended"] = f"{type(error).__name__}: {error}"
        outcome: Outcome = "fail" if result["ready"] is None else "ok"
        history.record(self.session.process, self.session.area, "subscription", arguments, begin, outcome, result)
        return bool(last_text) and any(event[3] == last_text for event in result["events"])

    async def _receive_event(self, socket: SubscriptionSocket, result: dict[str, Any]) -> None:
        event = await socket.next_event()
        now, self.cursor = self.session.history.now(), event["cursor"]
        if event["kind"] == "StreamReady":
            result |= {"resumed": event["resumed"], "first": cursor_position(event["cursor"]), "ready": now}
            return
        message = event.get("message") or {"timestamp": "0.0", "text": ""}
        recorded_event = [
            cursor_position(event["cursor"]),
            event["kind"],
            micros(message["timestamp"]),
            message["text"],
            now,
        ]
        result["events"].append(recorded_event)
