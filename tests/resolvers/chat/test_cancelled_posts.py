"""Posts that are cancelled at each await, and repeated with the same key: each is stored, counted and notified once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from storage.chat.threads.rules import thread_id
from storage.ids import message_key
from storage.streams.log import Stream
from tests.cancellation import CancelledAwait
from tests.resolvers.people import POST, Answer, ChatScenario, until_outbox_is_empty

pytestmark = pytest.mark.anyio

AT_A_TIME = 12
START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { topic { id } } }"
THREAD = "query ($id: ID!) { done: message(id: $id) { thread { replyCount lastRepliers { id } unreadCount } } }"
NOTIFICATIONS = '{ done: notifications(latest: "now", limit: 500) { items { kind message { topicId } } } }'
CONVERSATION = 'query ($id: ID!) { done: topic(id: $id) { unreadCount messages(latest: "now") { items { id } } } }'


async def cancelled_post(chat: ChatScenario, fields: Answer, await_number: int) -> tuple[Answer, bool]:
    """Posts as Bob, cancelled at the await, and repeats it. Returns the message, and whether the await existed."""
    work = CancelledAwait(chat.bob.do(POST, input=fields), await_number)

    async def run() -> None:
        with suppress(asyncio.CancelledError):
            await work

    await asyncio.create_task(run())
    return await chat.bob.do(POST, input=fields), work.awaits >= await_number


async def cancel_at_every_await(check: Callable[[int], Awaitable[bool]]) -> None:
    """Runs the check for await 1, then 2 and so on, some at a time, until an await does not exist."""
    await_number = 1
    while all(await asyncio.gather(*(check(await_number + n) for n in range(AT_A_TIME)))):
        await_number += AT_A_TIME


async def posted_events(chat: ChatScenario, topic: str) -> int:
    """Returns how many messages the events of a topic or thread announce."""
    events = await chat.ann.stores.events.read(Stream("topic", topic), 0)
    return sum(event.kind == "MessagePosted" for event in events)


async def test_cancelled_and_repeated_reply_counts_once(chat: ChatScenario) -> None:
    threads: set[str] = set()

    async def check(await_number: int) -> bool:
        parent = await chat.ann.post(chat.topic)
        fields = {"topicId": chat.topic, "replyTo": parent["id"], "text": "x", "idempotencyKey": f"k{await_number}"}
        reply, existed = await cancelled_post(chat, fields, await_number)
        thread = thread_id(message_key(parent["id"]))
        threads.add(thread)
        await until_outbox_is_empty(chat.ann.stores)
        shown = (await chat.ann.do(THREAD, id=parent["id"]))["thread"]
        expected = {"replyCount": 1, "lastRepliers": [{"id": "bob"}], "unreadCount": 1}
        assert (reply["topicId"], shown) == (thread, expected), f"Cancelled at await {await_number}"
        assert await posted_events(chat, thread) == 1, f"Cancelled at await {await_number}"
        return existed

    await cancel_at_every_await(check)
    items = (await chat.ann.do(NOTIFICATIONS))["items"]
    assert sorted(each["message"]["topicId"] for each in items) == sorted(threads)


async def test_cancelled_and_repeated_direct_message_counts_once(chat: ChatScenario) -> None:
    async def check(await_number: int) -> bool:
        group = {"userIds": ["ann", "eve"], "groupName": f"x{await_number}"}
        conversation = (await chat.bob.do(START, input=group))["topic"]["id"]
        fields = {"topicId": conversation, "text": "x", "idempotencyKey": f"k{await_number}"}
        message, existed = await cancelled_post(chat, fields, await_number)
        await until_outbox_is_empty(chat.ann.stores)
        seen = await chat.ann.do(CONVERSATION, id=conversation)
        assert seen == {"unreadCount": 1, "messages": {"items": [{"id": message["id"]}]}}
        assert await posted_events(chat, conversation) == 1
        return existed

    await cancel_at_every_await(check)
