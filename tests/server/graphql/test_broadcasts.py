"""Broadcasts: which subscriptions share executions, and when a broadcast ends."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
import pytest
from graphql.execution import Executor
from prometheus_client import REGISTRY

import server.graphql.broadcasts as server_broadcasts
from storage.streams.log import Stream
from tests.server.graphql.graphql_server import (
    DEADLINE_S,
    TOPIC_EVENTS,
    GraphQLServer,
    RecordedSubscription,
    post_messages,
)
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

VIEWER_DEPENDENT_EVENTS = TOPIC_EVENTS.replace("author { id }", "author { id } reactions { emoji }")
CONDITIONAL_EVENTS = TOPIC_EVENTS.replace("$since: Cursor", "$since: Cursor, $with: Boolean! = false").replace(
    "text", "text @include(if: $with)"
)
# Operation ids of different lengths, some with characters that JSON escapes.
IDS = ["1", "7f3c1d5e-9b1a-4c57-8a0e-3f7f0d8c2b11", "狼煙", 'a "quoted" \\ id', "line\nbreak\t\u2028\0", "🔥" * 40]


def executed_events() -> float:
    """Returns the number of events that all broadcasts of this process have executed so far."""
    return REGISTRY.get_sample_value("noroshi_broadcast_executions_total") or 0.0


@pytest.fixture
def read_event_numbers(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the number of each event whose objects were read, once for each read."""
    numbers: list[int] = []
    hydrate = server.stores.hub._hydrate

    async def counting_hydrate(stream: Stream, events: Any) -> Any:
        numbers.extend(event.n for event in events)
        return await hydrate(stream, events)

    monkeypatch.setattr(server.stores.hub, "_hydrate", counting_hydrate)
    return numbers


async def test_event_is_read_and_executed_once_for_all_listeners(
    server: GraphQLServer, read_event_numbers: list[int]
) -> None:
    user_ids = [f"user{n}" for n in range(20)]
    await server.join(*user_ids)
    async with AsyncExitStack() as stack:
        subscriptions = [
            await stack.enter_async_context(server.subscribed(user_id, id_=IDS[n % len(IDS)]))
            for n, user_id in enumerate(user_ids)
        ]
        executed_before = executed_events()
        await post_messages(server.scenario, 10)
        for each in subscriptions:
            assert await each.receives(10)
        assert len(server.endpoint.subscriptions.broadcasts) == 1
        assert executed_events() == executed_before + 10
        assert sorted(read_event_numbers) == list(range(1, 11))
        for each in subscriptions:
            assert each.numbers == list(range(1, 11))
            assert each.results == subscriptions[0].results
            for text, first in zip(each.texts[1:], subscriptions[0].texts[1:], strict=True):
                assert text.replace(_in_json(each.id), _in_json("1"), 1) == first


def _in_json(id_: str) -> str:
    """Returns the id as a member of a JSON object, without the braces."""
    return orjson.dumps({"id": id_}).decode()[1:-1]


@asynccontextmanager
async def two_subscriptions(
    server: GraphQLServer, first: dict[str, Any], second: dict[str, Any]
) -> AsyncIterator[tuple[RecordedSubscription, RecordedSubscription]]:
    """Subscribes twice, with these arguments of `GraphQLServer.subscribed`."""
    async with server.subscribed(**first) as one, server.subscribed(**second) as other:
        yield one, other


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"user_id": "bob"}),
        ({}, {"id_": "other"}),
        ({"roles": ("MEMBER",)}, {"roles": ("ADMIN",)}),
        ({"query": CONDITIONAL_EVENTS, "with": True}, {"query": CONDITIONAL_EVENTS, "with": True, "user_id": "bob"}),
        ({"query": VIEWER_DEPENDENT_EVENTS}, {"query": VIEWER_DEPENDENT_EVENTS}),
    ],
    ids=["viewers", "ids", "roles", "variables", "one viewer twice"],
)
async def test_identical_subscriptions_share_one_broadcast(
    server: GraphQLServer, first: dict[str, Any], second: dict[str, Any]
) -> None:
    await server.join("bob")
    async with two_subscriptions(server, first, second) as (one, other):
        executed_before = executed_events()
        await post_messages(server.scenario, 3)
        assert await one.receives(3)
        assert await other.receives(3)
        assert one.events == other.events
        assert (len(server.endpoint.subscriptions.broadcasts), executed_events()) == (1, executed_before + 3)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"query": CONDITIONAL_EVENTS, "with": True}, {"query": CONDITIONAL_EVENTS, "with": False}),
        ({"query": TOPIC_EVENTS}, {"query": TOPIC_EVENTS.replace("text", "id")}),
        ({"query": VIEWER_DEPENDENT_EVENTS}, {"query": VIEWER_DEPENDENT_EVENTS, "user_id": "bob"}),
        (
            {"query": VIEWER_DEPENDENT_EVENTS, "roles": ("MEMBER",)},
            {"query": VIEWER_DEPENDENT_EVENTS, "roles": ("ADMIN",)},
        ),
        (
            {
                "query": f"{TOPIC_EVENTS.replace('(', ' A(', 1)} {CONDITIONAL_EVENTS.replace('(', ' B(', 1)}",
                "operation_name": "A",
            },
            {
                "query": f"{TOPIC_EVENTS.replace('(', ' A(', 1)} {CONDITIONAL_EVENTS.replace('(', ' B(', 1)}",
                "operation_name": "B",
            },
        ),
    ],
    ids=["variables", "documents", "viewers", "roles", "operations of one document"],
)
async def test_different_subscriptions_are_not_shared(
    server: GraphQLServer, first: dict[str, Any], second: dict[str, Any]
) -> None:
    await server.join("bob")
    async with two_subscriptions(server, first, second) as (one, other):
        executed_before = executed_events()
        await post_messages(server.scenario, 3)
        assert await one.receives(3)
        assert await other.receives(3)
        assert (len(server.endpoint.subscriptions.broadcasts), executed_events()) == (2, executed_before + 6)


async def test_resumes_from_any_cursor_share_one_execution(server: GraphQLServer) -> None:
    await post_messages(server.scenario, 20)
    epoch = await server.epoch()
    async with AsyncExitStack() as stack:
        starts = [0, 7, 19, 20]
        subscriptions = [
            await stack.enter_async_context(server.subscribed(since=server.cursor(n, epoch))) for n in starts
        ]
        assert len(server.endpoint.subscriptions.broadcasts) == 1
        for start, each in zip(starts, subscriptions, strict=True):
            assert await each.receives(20 - start)
            assert [event["resumed"] for event in each.ready_events] == [True]
            assert each.ready_events[0]["cursor"] == server.cursor(start, epoch)
        executed_before = executed_events()
        await post_messages(server.scenario, 1)
        for start, each in zip(starts, subscriptions, strict=True):
            assert await each.reaches(21)
            assert each.numbers == list(range(start + 1, 22))
        assert executed_events() == executed_before + 1


async def test_concurrent_resumes_from_one_cursor_share_replay(server: GraphQLServer) -> None:
    await post_messages(server.scenario, 50)
    since = server.cursor(0, await server.epoch())
    async with server.subscribed() as first:
        executed_before = executed_events()
        async with AsyncExitStack() as stack:
            opening = [stack.enter_async_context(server.subscribed(since=since)) for _ in range(20)]
            subscriptions = await asyncio.gather(*opening)
            for each in subscriptions:
                assert await each.receives(50)
                assert each.numbers == list(range(1, 51))
            assert executed_events() < executed_before + 20 * 50 / 2
        assert first.numbers == []


def executors() -> list[object]:
    """Returns the executors of this process that are still alive."""
    gc.collect()
    return [each for each in gc.get_objects() if issubclass(type(each), Executor)]


async def test_listeners_share_one_executor(server: GraphQLServer) -> None:
    await server.join("bob", "eve")
    # Executors of other tests may still be alive.
    executors_before = executors()
    async with server.all_subscribed("ann", "bob", "eve"):
        assert sum(all(each is not earlier for earlier in executors_before) for each in executors()) == 1


async def test_listeners_that_start_together_share_stream_ready(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_broadcasts, "SHARE_READY_S", 60)
    await server.join("bob", "eve")
    await post_messages(server.scenario, 2)
    since = server.cursor(1, await server.epoch())
    query = TOPIC_EVENTS.replace("{ cursor }", "{ cursor at }")
    async with AsyncExitStack() as stack:
        starts = [("ann", None), ("bob", None), ("eve", since), ("bob", since)]
        ready = [
            (await stack.enter_async_context(server.subscribed(user_id, cursor, query, id_=IDS[n]))).results[0]
            for n, (user_id, cursor) in enumerate(starts)
        ]
    assert (ready[0], ready[2]) == (ready[1], ready[3])
    assert [(each["cursor"] == since, each["resumed"]) for each in ready] == [(False, False)] * 2 + [(True, True)] * 2


async def test_stream_ready_is_executed_again_later(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_broadcasts, "SHARE_READY_S", -1)
    await server.join("bob")
    query = TOPIC_EVENTS.replace("{ cursor }", "{ cursor at }")
    async with server.subscribed("ann", query=query) as ann, server.subscribed("bob", query=query) as bob:
        assert ann.results[0]["at"] < bob.results[0]["at"]


async def complete(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    await subscription.ws.send('{"id": "1", "type": "complete"}')


async def close(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    await subscription.ws.close()


async def abort(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    subscription.ws.transport.abort()


async def drop(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    assert await poll_until_true(lambda: len(server.socket_server.connections) == 1)
    server.socket_server.connections[0].drop("Reading too slowly")


async def leave(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    await server.stores.communities.leave(server.scenario.community, "bob")


@pytest.mark.parametrize("end_subscription", [complete, close, abort, drop, leave])
async def test_broadcast_ends_with_its_last_listener(
    server: GraphQLServer, end_subscription: Callable[[GraphQLServer, RecordedSubscription], Awaitable[None]]
) -> None:
    await server.join("bob")
    name = server.scenario.stream.name
    async with server.subscribed("bob") as last:
        async with server.subscribed("ann"):
            assert await has_channel_subscriber(server, name)
        assert len(server.endpoint.subscriptions.broadcasts) == 1
        await end_subscription(server, last)
        assert await poll_until_true(lambda: len(server.endpoint.subscriptions.broadcasts) == 0)
        assert await poll_until_true(lambda: not tasks_of(name))
        assert name not in server.stores.hub._states
        assert await loses_channel_subscribers(server, name)


def tasks_of(stream: str) -> list[str]:
    """Returns the names of the running tasks that serve the stream."""
    return [task.get_name() for task in asyncio.all_tasks() if stream in task.get_name()]


async def has_channel_subscriber(server: GraphQLServer, stream: str) -> bool:
    """Returns whether any process has subscribed to the stream's channel in Redis."""
    channel = server.stores.keys.channel(stream)
    ((_, subscribers),) = await server.stores.redis.pubsub_numsub(channel)
    return bool(subscribers)


async def loses_channel_subscribers(server: GraphQLServer, stream: str) -> bool:
    """Waits until no process is subscribed to the stream's channel. Raises: TimeoutError."""
    async with asyncio.timeout(DEADLINE_S):
        while await has_channel_subscriber(server, stream):
            await asyncio.sleep(0.01)
    return True
