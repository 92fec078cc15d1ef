"""Presence between two web processes: a person's typing is seen at the other one, and ends after kill -9."""

import signal
from pathlib import Path

import pytest

from tests.client import client
from tests.e2e.chat_topic import create_chat_topic, join
from tests.serving import web_process

pytestmark = pytest.mark.anyio

TYPE = "mutation ($id: ID!) { setTyping(topicId: $id) }"
EVENTS = """
subscription ($id: ID!) {
  typingEvents(topicId: $id) { type: __typename }
}
"""


async def test_typing_ends_after_its_process_was_killed(
    mongodb_uri: str, redis_url: str, database: str, tmp_path: Path
) -> None:
    with (
        web_process(tmp_path, mongodb_uri, redis_url, database=database) as one,
        web_process(tmp_path, mongodb_uri, redis_url, one) as other,
    ):
        async with client(one.url, one.token("ann")) as ann, client(other.url, other.token("bob")) as bob:
            chat = await create_chat_topic(ann)
            await join(chat, bob)
            async with bob.socket() as socket:
                await socket.subscribe(EVENTS, id=chat.topic)
                types = [(await socket.next_event())["type"]]
                assert (await ann.run(TYPE, id=chat.topic))["setTyping"]
                types.append((await socket.next_event())["type"])
                one.process.send_signal(signal.SIGKILL)
                types.append((await socket.next_event())["type"])
                assert types == ["StreamReady", "TypingStarted", "TypingEnded"]
