"""Chat used by several people at once through several processes: each sees what the others do."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.client import Client, GraphQLFailed, Socket, client
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
    """Signed-in users, each with connections of their own."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client(product.url, product.token(name, org))) for name in names]


async def test_conversation_reaches_every_member_live(product: DeployedProduct) -> None:
    async with people(product, "talk", "ann", "ben") as (ann, ben):
        chat = await create_chat_topic(ann)
        await join(chat, ben)
        async with subscribed(chat, ben) as (socket, _):
            posted = await post(chat, ann, "smoke over there, @ben!")
            event = await socket.event()
            assert (event["__typename"], event["message"]) == ("MessagePosted", posted)
            assert posted["mentions"] == [{"id": "ben"}]

            await run_mutation(
                ben, "addReaction(messageId: $messageId, emoji: $emoji)", messageId=posted["id"], emoji="🔥"
            )
            event = await socket.event()
            assert event["__typename"] == "ReactionsChanged"
            assert event["message"]["reactions"] == [{"emoji": "🔥", "count": 1}]

            await run_mutation(ann, "editMessage(id: $id, text: $text)", id=posted["id"], text="it is only fog")
            event = await socket.event()
            assert event["__typename"] == "MessageEdited"
            assert (event["message"]["text"], event["message"]["mentions"]) == ("it is only fog", [])
            assert event["message"]["editedAt"]

            await run_mutation(ann, "deleteMessage(id: $id)", id=posted["id"])
            event = await socket.event()
            assert event["__typename"] == "MessageDeleted"
            assert (event["message"]["text"], event["message"]["reactions"]) == ("", [])
            assert event["message"]["deletedAt"]


async def test_page_with_later_events_equals_later_page(product: DeployedProduct) -> None:
    """Subscribes first, then pages and applies events: the result always equals a page read anew."""
    dice = random.Random(7)
    async with people(product, "mirror", "ann", "ben", "cem") as everybody:
        chat = await create_chat_topic(everybody[0])
        await join(chat, *everybody[1:])
        for n in range(5):
            await post(chat, everybody[n % 3], f"before {n}")
        async with subscribed(chat, everybody[0]) as (socket, _):
            mirror = {message["timestamp"]: message for message in await all_messages(chat, everybody[0])}
            for _ in range(8):
                known = [message["id"] for message in mirror.values()]
                await asyncio.gather(*(act(dice, chat, person, known) for person in everybody * 4))
                mark = await post(chat, everybody[1], "that was all")
                while mirror.get(mark["timestamp"]) != mark:
                    message = await next_message(socket)
                    mirror[message["timestamp"]] = message
                assert [mirror[at] for at in sorted(mirror)] == await all_messages(chat, everybody[0])


async def act(dice: random.Random, chat: ChatTopic, person: Client, known: list[str]) -> None:
    """A random action, allowed or not; a refused one changes nothing."""
    target, emoji, text = dice.choice(known), dice.choice(EMOJIS), f"狼煙 {dice.random()}"
    mutation = dice.choice(
        [
            f'postMessage(input: {{topicId: "{chat.topic}", text: "{text}"}})',
            f'postMessage(input: {{topicId: "{chat.topic}", text: "{text}", stampId: "hello"}})',
            f'editMessage(id: "{target}", text: "{text}")',
            f'deleteMessage(id: "{target}")',
            f'addReaction(messageId: "{target}", emoji: "{emoji}")',
            f'removeReaction(messageId: "{target}", emoji: "{emoji}")',
        ]
    )
    answer = await person.post(f"mutation {{ {mutation} {{ id }} }}")
    codes = {error["extensions"]["code"] for error in answer.get("errors", [])}
    assert codes <= {"FORBIDDEN", "CONFLICT"}


async def next_message(socket: Socket) -> dict[str, Any]:
    """Returns the message's state as the next event reports it."""
    async with asyncio.timeout(60):
        message: dict[str, Any] = (await socket.event())["message"]
    message.pop("linkPreview", None)
    return message


async def test_posted_message_is_read_through_any_process_at_once(product: DeployedProduct) -> None:
    """Connections are spread over the processes; each of them returns the message."""
    async with people(product, "at-once", "ann") as (ann,), AsyncExitStack() as stack:
        chat = await create_chat_topic(ann)
        readers = [await stack.enter_async_context(client(product.url, ann.token)) for _ in range(6)]
        newest = f'{{ messages(topicId: "{chat.topic}", latest: "now", limit: 1) {{ items {{ id }} }} }}'
        for n in range(25):
            posted = await post(chat, ann, f"{n}")
            pages = await asyncio.gather(*(reader.run(newest) for reader in readers))
            assert {page["messages"]["items"][0]["id"] for page in pages} == {posted["id"]}


async def test_timestamps_of_many_processes_are_unique_and_grow(product: DeployedProduct) -> None:
    async with people(product, "order", *(f"u{n}" for n in range(8))) as everybody:
        chat = await create_chat_topic(everybody[0])
        await join(chat, *everybody[1:])
        own = await asyncio.gather(*(in_turn(chat, person, 10) for person in everybody))
        seen = [message["timestamp"] for message in await all_messages(chat, everybody[0])]
        assert seen == sorted(set(seen))
        assert len(seen) == 80
        assert all(mine == sorted(mine) for mine in own)


async def in_turn(chat: ChatTopic, person: Client, count: int) -> list[str]:
    return [(await post(chat, person, f"{n}"))["timestamp"] for n in range(count)]


async def test_idempotency_key_sent_to_many_processes_posts_once(product: DeployedProduct) -> None:
    async with people(product, "once", *(["ann"] * 10)) as tabs:
        chat = await create_chat_topic(tabs[0])
        posted = await asyncio.gather(*(post(chat, tab, "once", key="k1") for tab in tabs))
        assert len({message["id"] for message in posted}) == 1
        assert len(await all_messages(chat, tabs[0])) == 1
        other = await tabs[0].fails(
            "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }",
            input={"topicId": chat.topic, "text": "other", "idempotencyKey": "k1"},
        )
        assert other["code"] == "CONFLICT"


async def test_organizations_are_isolated_end_to_end(product: DeployedProduct) -> None:
    async with people(product, "here", "ann") as (ann,), people(product, "there", "ann") as (stranger,):
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
            assert (await stranger.fails(query))["code"] == "NOT_FOUND"
        async with stranger.socket() as socket:
            await socket.start(TOPIC_EVENTS, topic=chat.topic)
            with pytest.raises(GraphQLFailed) as refused:
                await socket.event()
        assert refused.value.codes == ["NOT_FOUND"]
