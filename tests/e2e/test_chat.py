"""Several users chat through several processes. Each user sees the actions of the others."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.client import Client, GraphQLFailed, SubscriptionSocket, client
from tests.e2e.chat_topic import (
    TOPIC_EVENTS,
    ChatTopic,
    all_messages,
    create_chat_topic,
    join,
    post,
    run_mutation,
    subscribed,
)
from tests.e2e.conftest import DeployedProduct

pytestmark = pytest.mark.anyio

EMOJIS = ["👍", "🔥", "🎉"]


@asynccontextmanager
async def people(product: DeployedProduct, org: str, *names: str) -> AsyncIterator[list[Client]]:
    """Opens one API client for each user."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client(product.url, product.token(name, org))) for name in names]


async def test_conversation_reaches_every_member_live(product: DeployedProduct) -> None:
    async with people(product, "talk", "ann", "ben") as (ann, ben):
        chat = await create_chat_topic(ann)
        await join(chat, ben)
        async with subscribed(chat, ben) as (socket, _):
            posted = await post(chat, ann, "smoke over there, @ben!")
            event = await socket.next_event()
            assert (event["__typename"], event["message"]) == ("MessagePosted", posted)
            assert posted["mentions"] == [{"id": "ben"}]

            await run_mutation(
                ben, "addReaction(messageId: $messageId, emoji: $emoji)", messageId=posted["id"], emoji="🔥"
            )
            event = await socket.next_event()
            assert event["__typename"] == "ReactionsChanged"
            assert event["message"]["reactions"] == [{"emoji": "🔥", "count": 1}]

            await run_mutation(ann, "editMessage(id: $id, text: $text)", id=posted["id"], text="it is only fog")
            event = await socket.next_event()
            assert event["__typename"] == "MessageEdited"
            assert (event["message"]["text"], event["message"]["mentions"]) == ("it is only fog", [])
            assert event["message"]["editedAt"]

            await run_mutation(ann, "deleteMessage(id: $id)", id=posted["id"])
            event = await socket.next_event()
            assert event["__typename"] == "MessageDeleted"
            assert (event["message"]["text"], event["message"]["reactions"]) == ("", [])
            assert event["message"]["deletedAt"]


async def test_page_with_later_events_equals_later_page(product: DeployedProduct) -> None:
    """Pages that were read after subscribing, with all later events applied, equal the same pages read again."""
    rng = random.Random(7)
    async with people(product, "mirror", "ann", "ben", "cem") as users:
        chat = await create_chat_topic(users[0])
        await join(chat, *users[1:])
        for n in range(5):
            await post(chat, users[n % 3], f"before {n}")
        async with subscribed(chat, users[0]) as (socket, _):
            timeline = {message["timestamp"]: message for message in await all_messages(chat, users[0])}
            for _ in range(8):
                message_ids = [message["id"] for message in timeline.values()]
                await asyncio.gather(*(perform_random_action(rng, chat, person, message_ids) for person in users * 4))
                last_post = await post(chat, users[1], "that was all")
                while timeline.get(last_post["timestamp"]) != last_post:
                    message = await next_message(socket)
                    timeline[message["timestamp"]] = message
                assert [timeline[at] for at in sorted(timeline)] == await all_messages(chat, users[0])


async def perform_random_action(rng: random.Random, chat: ChatTopic, person: Client, message_ids: list[str]) -> None:
    """Performs a random action, which the product may reject."""
    target, emoji, text = rng.choice(message_ids), rng.choice(EMOJIS), f"狼煙 {rng.random()}"
    mutation = rng.choice(
        [
            f'postMessage(input: {{topicId: "{chat.topic}", text: "{text}"}})',
            f'postMessage(input: {{topicId: "{chat.topic}", text: "{text}", stampId: "hello"}})',
            f'editMessage(id: "{target}", text: "{text}")',
            f'deleteMessage(id: "{target}")',
            f'addReaction(messageId: "{target}", emoji: "{emoji}")',
            f'removeReaction(messageId: "{target}", emoji: "{emoji}")',
        ]
    )
    result = await person.execute(f"mutation {{ {mutation} {{ id }} }}")
    codes = {error["extensions"]["code"] for error in result.get("errors", [])}
    assert codes <= {"FORBIDDEN", "CONFLICT"}


async def next_message(socket: SubscriptionSocket) -> dict[str, Any]:
    """Returns the message of the next event, without its link preview."""
    async with asyncio.timeout(60):
        message: dict[str, Any] = (await socket.next_event())["message"]
    message.pop("linkPreview", None)
    return message


async def test_posted_message_is_read_through_any_process_at_once(product: DeployedProduct) -> None:
    """The connections of the readers are spread over the web processes. Each process returns the message."""
    async with people(product, "at-once", "ann") as (ann,), AsyncExitStack() as stack:
        chat = await create_chat_topic(ann)
        readers = [await stack.enter_async_context(client(product.url, ann.token)) for _ in range(6)]
        newest = f'{{ messages(topicId: "{chat.topic}", latest: "now", limit: 1) {{ items {{ id }} }} }}'
        for n in range(25):
            posted = await post(chat, ann, f"{n}")
            pages = await asyncio.gather(*(reader.run(newest) for reader in readers))
            assert {page["messages"]["items"][0]["id"] for page in pages} == {posted["id"]}


async def test_timestamps_of_many_processes_are_unique_and_grow(product: DeployedProduct) -> None:
    async with people(product, "order", *(f"u{n}" for n in range(8))) as users:
        chat = await create_chat_topic(users[0])
        await join(chat, *users[1:])
        timestamps_by_author = await asyncio.gather(*(post_one_by_one(chat, person, 10) for person in users))
        timeline = [message["timestamp"] for message in await all_messages(chat, users[0])]
        assert timeline == sorted(set(timeline))
        assert len(timeline) == 80
        assert all(timestamps == sorted(timestamps) for timestamps in timestamps_by_author)


async def post_one_by_one(chat: ChatTopic, person: Client, count: int) -> list[str]:
    return [(await post(chat, person, f"{n}"))["timestamp"] for n in range(count)]


async def test_idempotency_key_sent_to_many_processes_posts_once(product: DeployedProduct) -> None:
    async with people(product, "once", *(["ann"] * 10)) as tabs:
        chat = await create_chat_topic(tabs[0])
        posted = await asyncio.gather(*(post(chat, tab, "once", key="k1") for tab in tabs))
        assert len({message["id"] for message in posted}) == 1
        assert len(await all_messages(chat, tabs[0])) == 1
        error = await tabs[0].expect_error(
            "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }",
            input={"topicId": chat.topic, "text": "other", "idempotencyKey": "k1"},
        )
        assert error["code"] == "CONFLICT"


async def test_organizations_are_isolated_end_to_end(product: DeployedProduct) -> None:
    async with people(product, "here", "ann") as (ann,), people(product, "there", "ann") as (foreigner,):
        chat = await create_chat_topic(ann)
        posted = await post(chat, ann, "only for us")
        for query in (
            f'{{ topic(id: "{chat.topic}") {{ id }} }}',
            f'{{ community(id: "{chat.community}") {{ id }} }}',
            f'{{ message(id: "{posted["id"]}") {{ id }} }}',
            f'{{ messages(topicId: "{chat.topic}", latest: "now") {{ items {{ id }} }} }}',
            f'mutation {{ joinCommunity(communityId: "{chat.community}") {{ id }} }}',
            f'mutation {{ addReaction(messageId: "{posted["id"]}", emoji: "🔥") {{ id }} }}',
        ):
            assert (await foreigner.expect_error(query))["code"] == "NOT_FOUND"
        async with foreigner.socket() as socket:
            await socket.subscribe(TOPIC_EVENTS, topic=chat.topic)
            with pytest.raises(GraphQLFailed) as error:
                await socket.next_event()
        assert error.value.codes == ["NOT_FOUND"]
