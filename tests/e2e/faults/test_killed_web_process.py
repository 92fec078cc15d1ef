"""Replies and direct messages while web processes are killed: each is stored, counted and announced once."""

import asyncio
import os
import signal
from contextlib import suppress

import httpx2
import orjson
import pytest

from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic, join
from tests.e2e.conftest import DeployedProduct
from tests.waiting import until

pytestmark = pytest.mark.anyio

COUNT = 36
WRITERS = 6
KILLS = 2
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { id } }"
START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { id } }"
THREAD = "query ($id: ID!) { done: message(id: $id) { thread { id replyCount lastRepliers { id } } } }"
PAGE = """
query ($id: ID!) { done: messages(topicId: $id, latest: "now", limit: 999) { items { text } } }
"""
NOTIFICATIONS = """
{ done: notifications(latest: "now", limit: 999) { items { kind message { id } } } }
"""


async def post(person: Client, key: str, **fields: object) -> None:
    """Posts a message with its key as text. Repeats it until it is acknowledged."""
    while True:
        with suppress(httpx2.HTTPError, orjson.JSONDecodeError):
            answer = await person.execute(POST, input={**fields, "text": key, "idempotencyKey": key})
            if "errors" not in answer:
                return
            assert answer["errors"][0]["extensions"]["code"] == "UNAVAILABLE", answer
        await asyncio.sleep(0.05)


async def kill_repeatedly(product: DeployedProduct, acknowledged: list[str]) -> None:
    """Kills a web process each time that a further share of the messages is acknowledged."""
    for n in range(1, KILLS + 1):
        await until(lambda share=n: len(acknowledged) >= 2 * COUNT * share // (KILLS + 1))  # type: ignore[misc]
        os.kill(product.processes.child("noroshi web"), signal.SIGKILL)


@pytest.mark.timeout(180)
async def test_messages_through_kills_are_stored_and_counted_once(product: DeployedProduct) -> None:
    async with client(product.url, product.token("ann")) as ann, client(product.url, product.token("bob")) as bob:
        chat = await create_chat_topic(ann)
        await join(chat, bob)
        parent = (await ann.run(POST, input={"topicId": chat.topic, "text": "parent"}))["done"]["id"]
        conversation = (await bob.run(START, input={"userIds": ["ann"]}))["done"]["id"]
        acknowledged: list[str] = []

        async def write(writer: int) -> None:
            for n in range(writer, COUNT, WRITERS):
                await post(bob, f"reply {n}", topicId=chat.topic, replyTo=parent)
                await post(bob, f"direct {n}", topicId=conversation)
                acknowledged.extend((f"reply {n}", f"direct {n}"))

        await asyncio.gather(kill_repeatedly(product, acknowledged), *(write(n) for n in range(WRITERS)))

        async def thread_shows_all() -> bool:
            thread = (await ann.run(THREAD, id=parent))["done"]["thread"]
            return thread is not None and thread["replyCount"] == COUNT and thread["lastRepliers"] == [{"id": "bob"}]

        await until(thread_shows_all)
        thread = (await ann.run(THREAD, id=parent))["done"]["thread"]["id"]
        for topic, name in ((thread, "reply"), (conversation, "direct")):
            items = (await ann.run(PAGE, id=topic))["done"]["items"]
            assert sorted(each["text"] for each in items) == sorted(f"{name} {n}" for n in range(COUNT))
        notified = [each["message"]["id"] for each in (await ann.run(NOTIFICATIONS))["done"]["items"]]
        assert 0 < len(notified) == len(set(notified)) <= COUNT
