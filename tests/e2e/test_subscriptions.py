"""Subscriptions of the running product: replay, withheld events, and lost permission."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pymongo
import pytest

from tests.client import Client, GraphQLFailed, SubscriptionSocket, client
from tests.e2e.chat_topic import (
    ChatTopic,
    create_chat_topic,
    events,
    join,
    leave,
    post,
    post_several,
    run_mutation,
    subscribed,
)
from tests.e2e.conftest import DeployedProduct
from tests.serving import web_process

TOPIC_EVENT_TYPES = (
    "subscription ($topic: ID!, $since: Cursor) { topicEvents(topicId: $topic, since: $since) { __typename } }"
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def people(product: DeployedProduct, org: str, *names: str) -> AsyncIterator[list[Client]]:
    """Opens one API client for each user."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client(product.url, product.token(name, org))) for name in names]


def texts(received: list[dict[str, Any]]) -> list[str]:
    return [event["message"]["text"] for event in received]


async def subscription_error(socket: SubscriptionSocket, query: str, **variables: Any) -> dict[str, Any]:
    """Subscribes. Returns the extensions of the error that the product must send at once."""
    await socket.subscribe(query, **variables)
    with pytest.raises(GraphQLFailed) as failure:
        await socket.next_event()
    extensions: dict[str, Any] = failure.value.errors[0]["extensions"]
    return extensions


async def test_every_socket_gets_every_event_in_order(product: DeployedProduct) -> None:
    async with people(product, "many", "ann") as (ann,), AsyncExitStack() as stack:
        chat = await create_chat_topic(ann)
        sockets = [(await stack.enter_async_context(subscribed(chat, ann)))[0] for _ in range(20)]
        posted_texts = [f"{n}" for n in range(60)]
        for n in range(0, 60, 15):
            await post_several(chat, ann, posted_texts[n : n + 15])
        for each in sockets:
            assert texts(await events(each, 60)) == posted_texts


async def test_resume_continues_exactly_after_cursor(product: DeployedProduct) -> None:
    async with people(product, "exact", "ann") as (ann,):
        chat = await create_chat_topic(ann)
        async with subscribed(chat, ann) as (socket, ready):
            assert ready["resumed"] is False
            await post_several(chat, ann, ["a", "b", "c"])
            received = [ready, *await events(socket, 3)]
        for missed_count in range(4):
            cursor = received[3 - missed_count]["cursor"]
            async with subscribed(chat, ann, since=cursor) as (socket, ready):
                assert (ready["resumed"], ready["cursor"]) == (True, cursor)
                assert await events(socket, missed_count) == received[4 - missed_count :]


async def test_resumed_subscription_continues_live(product: DeployedProduct) -> None:
    async with people(product, "live", "ann") as (ann,):
        chat = await create_chat_topic(ann)
        async with subscribed(chat, ann) as (_, ready):
            pass
        await post(chat, ann, "missed")
        async with subscribed(chat, ann, since=ready["cursor"]) as (socket, _):
            await post(chat, ann, "live")
            assert texts(await events(socket, 2)) == ["missed", "live"]


async def test_cursor_of_other_stream_is_refused(product: DeployedProduct) -> None:
    async with people(product, "cursor", "ann") as (ann,), ann.socket() as socket:
        chat, other = await create_chat_topic(ann), await create_chat_topic(ann)
        async with subscribed(other, ann) as (_, ready):
            pass
        for since in (ready["cursor"], "", "x", "狼煙", "YS5iLmM", 'Ym9ndXMuMS4"'):
            error = await subscription_error(socket, TOPIC_EVENT_TYPES, topic=chat.topic, since=since)
            assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "since")


async def test_expired_cursor_reports_not_resumed(product: DeployedProduct) -> None:
    async with people(product, "forgotten", "ann") as (ann,):
        chat = await create_chat_topic(ann)
        async with subscribed(chat, ann) as (_, ready):
            pass
        await post_several(chat, ann, ["a", "b", "c"])
        prune_events(product, chat, 2)
        async with subscribed(chat, ann, since=ready["cursor"]) as (socket, fresh):
            assert fresh["resumed"] is False
            assert fresh["cursor"] != ready["cursor"]
            await post(chat, ann, "d")
            assert texts(await events(socket, 1)) == ["d"]


def prune_events(product: DeployedProduct, chat: ChatTopic, count: int) -> None:
    """Prunes the event log as the sweeper does after a day: raises the floor, then deletes the events."""
    mongo: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(product.mongodb_uri)
    with mongo:
        database = mongo["noroshi"]
        database["topics"].update_one({"_id": chat.topic}, {"$set": {"floor": count}})
        deletion = database["events"].delete_many({"_id.s": f"topic:{chat.topic}", "_id.n": {"$lte": count}})
        assert deletion.deleted_count == count


async def test_replay_shows_current_state_of_messages(product: DeployedProduct) -> None:
    async with people(product, "tombstones", "ann") as (ann,):
        chat = await create_chat_topic(ann)
        async with subscribed(chat, ann) as (_, ready):
            pass
        secret, draft = [await post(chat, ann, text) for text in ("a secret", "a draft")]
        await run_mutation(ann, "deleteMessage(id: $id)", id=secret["id"])
        await run_mutation(ann, "editMessage(id: $id, text: $text)", id=draft["id"], text="the final text")
        async with subscribed(chat, ann, since=ready["cursor"]) as (socket, _):
            replayed = await events(socket, 4)
    assert [event["__typename"] for event in replayed] == [
        *("MessagePosted", "MessagePosted"),
        *("MessageDeleted", "MessageEdited"),
    ]
    assert texts(replayed) == ["", "the final text", "", "the final text"]
    assert all(event["message"]["deletedAt"] for event in (replayed[0], replayed[2]))
    assert "a secret" not in str(replayed)


async def test_block_withholds_events_from_blocker_only(product: DeployedProduct) -> None:
    async with people(product, "blocks", "ann", "ben", "cem") as (ann, ben, cem):
        chat = await create_chat_topic(ann)
        await join(chat, ben, cem)
        async with subscribed(chat, ann) as (anns, start), subscribed(chat, cem) as (cems, _):
            await run_mutation(ann, "blockUser(userId: $userId)", userId="ben")
            await post(chat, ben, "hidden")
            await post(chat, cem, "shown")
            assert texts(await events(anns, 1)) == ["shown"]
            assert texts(await events(cems, 2)) == ["hidden", "shown"]
            await run_mutation(ann, "unblockUser(userId: $userId)", userId="ben")
            await post(chat, ben, "shown again")
            assert texts(await events(anns, 1)) == ["shown again"]
            await run_mutation(ann, "blockUser(userId: $userId)", userId="ben")
        async with subscribed(chat, ann, since=start["cursor"]) as (resumed_socket, _):
            assert texts(await events(resumed_socket, 1)) == ["shown"]
            await post(chat, cem, "live")
            assert texts(await events(resumed_socket, 1)) == ["live"]


async def test_viewer_dependent_field_is_executed_per_viewer(product: DeployedProduct) -> None:
    """A process executes a subscription without such a field once for all its viewers.

    The viewers have so many sockets that both use one process.
    """
    document = """
        subscription ($topic: ID!) { topicEvents(topicId: $topic) {
          __typename ... on ReactionsChanged { message { reactions { count reacted } author { blocked } } }
        } }
    """
    async with people(product, "viewers", "ann", "ben") as (ann, ben), AsyncExitStack() as stack:
        chat = await create_chat_topic(ann)
        await join(chat, ben)
        message = await post(chat, ann, "look")
        viewers = [ann, ben] * 8
        sockets = [(await stack.enter_async_context(subscribed(chat, each, document=document)))[0] for each in viewers]
        await run_mutation(
            ben, "addReaction(messageId: $messageId, emoji: $emoji)", messageId=message["id"], emoji="👍"
        )
        reactions = [(await events(each, 1))[0]["message"]["reactions"] for each in sockets]
    assert reactions == [[{"count": 1, "reacted": reacted}] for reacted in (False, True)] * 8


@pytest.mark.parametrize("is_busy", [False, True], ids=["in a quiet topic", "in a busy topic"])
async def test_leaving_community_ends_subscription_within_15_s(product: DeployedProduct, is_busy: bool) -> None:
    async with people(product, f"leave-{is_busy}", "ann", "ben") as (ann, ben):
        chat = await create_chat_topic(ann)
        await join(chat, ben)
        async with subscribed(chat, ben) as (bens, _), subscribed(chat, ann) as (anns, _):
            posting = asyncio.create_task(post_in_background(chat, ann)) if is_busy else None
            await leave(chat, ben)
            began_s = time.monotonic()
            with pytest.raises(GraphQLFailed) as error:
                await events(bens, 10_000)
            if posting is not None:
                posting.cancel()
            assert error.value.codes == ["FORBIDDEN"]
            assert time.monotonic() - began_s < 15, "The product checks the membership every 2 s."
            await post(chat, ann, "still here")
            while texts(await events(anns, 1)) != ["still here"]:
                pass


async def post_in_background(chat: ChatTopic, author: Client) -> None:
    while True:
        await post(chat, author, "blah")
        await asyncio.sleep(0.05)


async def test_subscription_of_non_member_is_forbidden(product: DeployedProduct) -> None:
    async with people(product, "strangers", "ann", "ben") as (ann, ben):
        chat = await create_chat_topic(ann)
        async with ben.socket() as socket:
            assert await subscription_error(socket, TOPIC_EVENT_TYPES, topic=chat.topic) == {"code": "FORBIDDEN"}


async def test_community_events_are_throttled_to_one_per_second(product: DeployedProduct) -> None:
    document = """
        subscription ($id: ID!) { communityEvents(communityId: $id) {
          __typename ... on TopicCreated { topic { title } } ... on TopicActivity { topic { id } }
        } }
    """
    async with people(product, "sidebar", "ann") as (ann,), ann.socket() as socket:
        chat = await create_chat_topic(ann)
        await socket.subscribe(document, id=chat.community)
        assert (await socket.next_event())["__typename"] == "StreamReady"
        await ann.run(f'mutation {{ createTopic(input: {{communityId: "{chat.community}", title: "New"}}) {{ id }} }}')
        assert (await events(socket, 1))[0] == {"__typename": "TopicCreated", "topic": {"title": "New"}}
        began_s = time.monotonic()
        reading = asyncio.create_task(events_until_quiet(socket))
        for _ in range(10):
            await post_several(chat, ann, ["a", "b", "c"])
        lasted_s = time.monotonic() - began_s
        received = await reading
        assert 1 <= len(received) <= lasted_s + 2
        assert all(event == {"__typename": "TopicActivity", "topic": {"id": chat.topic}} for event in received)


async def events_until_quiet(socket: SubscriptionSocket) -> list[dict[str, Any]]:
    """Collects events until none has arrived for 3 s."""
    received = []
    while True:
        try:
            received += await events(socket, 1, deadline_s=3)
        except TimeoutError:
            return received


async def test_shutdown_closes_sockets_with_1012(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    with web_process(tmp_path, mongodb_uri, redis_url, database=database) as web:
        async with client(web.url, web.token()) as ann, AsyncExitStack() as stack:
            chat = await create_chat_topic(ann)
            sockets = [(await stack.enter_async_context(subscribed(chat, ann)))[0] for _ in range(5)]
            web.process.send_signal(signal.SIGTERM)
            for each in sockets:
                async with asyncio.timeout(30):
                    await each.ws.wait_closed()
                assert each.ws.close_code == 1012
        # After it has closed all sockets, uvicorn exits by the signal.
        assert web.process.wait(30) in (0, -signal.SIGTERM)
        assert "Traceback" not in web.log_text
