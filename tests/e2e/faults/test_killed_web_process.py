"""Replies, cross-posts and direct messages while processes are killed: each is stored, counted and announced once."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import orjson
import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import OperationFailure

from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic, join
from tests.e2e.conftest import DeployedProduct
from tests.waiting import until

pytestmark = pytest.mark.anyio

COUNT = 36
HELD = 12
"""Number of cross-posts that no process can store before it is killed."""

WRITERS = 6
KILLS = 2
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { id } }"
START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { topic { id } } }"
THREAD = "query ($id: ID!) { done: message(id: $id) { thread { id: topicId replyCount lastRepliers { id } } } }"
PAGE = """
query ($id: ID!) { done: messages(topicId: $id, latest: "now", limit: 999) { items { text threadReply { threadId } } } }
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


async def cross_posts(person: Client, topic: str) -> list[str]:
    """Returns the texts of the cross-posts of a topic, sorted."""
    items = (await person.run(PAGE, id=topic))["done"]["items"]
    return sorted(each["text"] for each in items if each["threadReply"] is not None)


async def until_cross_posts(person: Client, topic: str, texts: list[str]) -> None:
    """Waits until a topic has as many cross-posts as texts, and compares them."""

    async def are_there() -> bool:
        return len(await cross_posts(person, topic)) >= len(texts)

    await until(are_there, interval_s=0.25)
    assert await cross_posts(person, topic) == sorted(texts)


@asynccontextmanager
async def locked_topic(mongodb_uri: str, topic: str) -> AsyncIterator[None]:
    """Lets every commit to the stream of a topic fail and be repeated, as long as the block runs."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(mongodb_uri)
    async with client, client.start_session() as session:
        await until(lambda: lock(client, session, topic))
        yield
        await session.abort_transaction()


async def lock(client: AsyncMongoClient[dict[str, Any]], session: AsyncClientSession, topic: str) -> bool:
    """Writes to a topic in a transaction that stays open. Returns False if it conflicts with a commit in progress."""
    await session.start_transaction()
    try:
        await client["noroshi"]["topics"].update_one({"_id": topic}, {"$inc": {"fences": 1}}, session=session)
    except OperationFailure as failure:
        if not failure.has_error_label("TransientTransactionError"):
            raise
        await session.abort_transaction()
        return False
    return True


@pytest.mark.timeout(180)
async def test_messages_through_kills_are_stored_and_counted_once(product: DeployedProduct) -> None:
    async with client(product.url, product.token("ann")) as ann, client(product.url, product.token("bob")) as bob:
        chat = await create_chat_topic(ann)
        await join(chat, bob)
        parent = (await ann.run(POST, input={"topicId": chat.topic, "text": "parent"}))["done"]["id"]
        conversation = (await bob.run(START, input={"userIds": ["ann"]}))["done"]["topic"]["id"]
        acknowledged: list[str] = []

        async def write(writer: int) -> None:
            for n in range(writer, COUNT, WRITERS):
                await post(bob, f"reply {n}", topicId=chat.topic, replyTo=parent, alsoToTopic=True)
                await post(bob, f"direct {n}", topicId=conversation)
                acknowledged.extend((f"reply {n}", f"direct {n}"))

        await asyncio.gather(kill_repeatedly(product, acknowledged), *(write(n) for n in range(WRITERS)))

        async def thread_shows_all() -> bool:
            thread = (await ann.run(THREAD, id=parent))["done"]["thread"]
            return thread is not None and thread["replyCount"] == COUNT and thread["lastRepliers"] == [{"id": "bob"}]

        await until(thread_shows_all)
        await until_cross_posts(ann, chat.topic, [f"reply {n}" for n in range(COUNT)])
        thread = (await ann.run(THREAD, id=parent))["done"]["thread"]["id"]
        for topic, name in ((thread, "reply"), (conversation, "direct")):
            items = (await ann.run(PAGE, id=topic))["done"]["items"]
            assert sorted(each["text"] for each in items) == sorted(f"{name} {n}" for n in range(COUNT))
        notified = [each["message"]["id"] for each in (await ann.run(NOTIFICATIONS))["done"]["items"]]
        assert 0 < len(notified) == len(set(notified)) <= COUNT


@pytest.mark.timeout(180)
async def test_cross_posts_of_killed_relays_stand_once(product: DeployedProduct) -> None:
    """Kills all processes that relay the outbox, while none of them can commit a cross-post."""
    async with client(product.url, product.token("ann")) as ann, client(product.url, product.token("bob")) as bob:
        chat = await create_chat_topic(ann)
        await join(chat, bob)
        parent = (await ann.run(POST, input={"topicId": chat.topic, "text": "parent"}))["done"]["id"]
        await post(bob, "first", topicId=chat.topic, replyTo=parent)
        texts = [f"held {n}" for n in range(HELD)]
        async with locked_topic(product.mongodb_uri, chat.topic):
            reply = {"topicId": chat.topic, "replyTo": parent, "alsoToTopic": True}
            await asyncio.gather(*(post(bob, text, **reply) for text in texts))
            assert await cross_posts(ann, chat.topic) == []
            for pid, command in product.processes.children().items():
                if "noroshi web" in command or "noroshi worker" in command:
                    os.kill(pid, signal.SIGKILL)
        await until(product.is_whole)
        await until_cross_posts(ann, chat.topic, texts)
