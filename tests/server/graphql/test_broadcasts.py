"""Broadcasts: which subscriptions share executions. Sharing loses, repeats and leaks no event."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
import pytest
from graphql.execution import Executor
from prometheus_client import REGISTRY

from resolvers.chat.events import ChatEventSource
from server.graphql.broadcasts import RECHECK_EVERY_S
from server.graphql.frames import Listener
from storage.streams.log import Position, Stream, format_cursor
from tests.e2e.chat_topic import cursor_position
from tests.server.graphql.graphql_server import (
    DEADLINE_S,
    TOPIC_EVENTS,
    GraphQLServer,
    RecordedSubscription,
    wait_until,
)
from tests.server.in_process import RawClient, raw_client
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

TEXT = 0x81
# Operation ids of different lengths, some with characters that JSON escapes.
IDS = ["1", "7f3c1d5e-9b1a-4c57-8a0e-3f7f0d8c2b11", "狼煙", 'a "quoted" \\ id', "line\nbreak\t\u2028\0", "🔥" * 40]
VIEWER_DEPENDENT_EVENTS = TOPIC_EVENTS.replace("author { id }", "author { id } reactions { emoji }")
CONDITIONAL_EVENTS = TOPIC_EVENTS.replace("$since: Cursor", "$since: Cursor, $with: Boolean! = false").replace(
    "text", "text @include(if: $with)"
)


def executions() -> float:
    """Returns the number of events that all broadcasts of this process have executed so far."""
    return REGISTRY.get_sample_value("noroshi_broadcast_executions_total") or 0.0


async def post(scenario: TopicScenario, count: int, author: str = "ann") -> None:
    """Posts several messages concurrently."""
    await asyncio.gather(*(scenario.post(f"{author} {n}", author) for n in range(count)))


def cursor(server: GraphQLServer, n: int, epoch: str) -> str:
    """Returns the cursor of event n of the topic."""
    return format_cursor(server.scenario.stream, Position(epoch, n))


async def epoch(server: GraphQLServer) -> str:
    """Returns the current epoch of the topic's stream."""
    return (await server.stores.events.head(server.scenario.stream)).epoch


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
        before = executions()
        await post(server.scenario, 10)
        for each in subscriptions:
            assert await each.receives(10)
        assert len(server.endpoint.broadcasts) == 1
        assert executions() == before + 10
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
async def two_subscribed(
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
    async with two_subscribed(server, first, second) as (one, other):
        before = executions()
        await post(server.scenario, 3)
        assert await one.receives(3)
        assert await other.receives(3)
        assert one.events == other.events
        assert (len(server.endpoint.broadcasts), executions()) == (1, before + 3)


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
    async with two_subscribed(server, first, second) as (one, other):
        before = executions()
        await post(server.scenario, 3)
        assert await one.receives(3)
        assert await other.receives(3)
        assert (len(server.endpoint.broadcasts), executions()) == (2, before + 6)


async def test_resumes_from_any_cursor_share_one_execution(server: GraphQLServer) -> None:
    await post(server.scenario, 20)
    at = await epoch(server)
    async with AsyncExitStack() as stack:
        starts = [0, 7, 19, 20]
        subscriptions = [
            await stack.enter_async_context(server.subscribed(since=cursor(server, n, at))) for n in starts
        ]
        assert len(server.endpoint.broadcasts) == 1
        for start, each in zip(starts, subscriptions, strict=True):
            assert await each.receives(20 - start)
            assert [event["resumed"] for event in each.ready_events] == [True]
            assert each.ready_events[0]["cursor"] == cursor(server, start, at)
        before = executions()
        await post(server.scenario, 1)
        for start, each in zip(starts, subscriptions, strict=True):
            assert await each.reaches(21)
            assert each.numbers == list(range(start + 1, 22))
        assert executions() == before + 1


async def test_concurrent_resumes_from_one_cursor_share_replay(server: GraphQLServer) -> None:
    await post(server.scenario, 50)
    since = cursor(server, 0, await epoch(server))
    async with server.subscribed() as first:
        before = executions()
        async with AsyncExitStack() as stack:
            opening = [stack.enter_async_context(server.subscribed(since=since)) for _ in range(20)]
            subscriptions = await asyncio.gather(*opening)
            for each in subscriptions:
                assert await each.receives(50)
                assert each.numbers == list(range(1, 51))
            assert executions() < before + 20 * 50 / 2
        assert first.numbers == []


async def test_listeners_that_come_and_go_get_each_event_once(server: GraphQLServer) -> None:
    user_ids = [f"user{n}" for n in range(6)]
    await server.join(*user_ids)
    first = cursor(server, 0, await epoch(server))
    received: dict[str, list[list[int]]] = {user_id: [] for user_id in user_ids}
    posting, posted = True, 0
    rng = random.Random(7)

    async def subscribe_repeatedly(user_id: str) -> None:
        position = first
        while posting or cursor_position(position) < posted:
            async with server.subscribed(user_id, position) as subscription:
                await asyncio.sleep(rng.uniform(0, 0.2))
                position, numbers = subscription.last_cursor, subscription.numbers
                assert [event["resumed"] for event in subscription.ready_events] == [True]
            received[user_id].append(numbers)

    async with server.subscribed() as constant, asyncio.TaskGroup() as group:
        for user_id in user_ids:
            group.create_task(subscribe_repeatedly(user_id))
        while posted < 200 or min(len(each) for each in received.values()) < 4:
            await post(server.scenario, 5)
            posted += 5
            # After 200 posts the loop only waits for slow subscribers. Posts at full speed would overwhelm them.
            await asyncio.sleep(rng.uniform(0, 0.03) if posted < 200 else 0.5)
        posting = False
        assert await constant.reaches(posted)
    assert constant.numbers == list(range(1, posted + 1))
    for parts in received.values():
        assert [n for part in parts for n in part] == constant.numbers


async def test_listener_ahead_of_process_gets_no_repetition(
    server: GraphQLServer, scenario_without_redis: TopicScenario
) -> None:
    at = await epoch(server)
    async with server.subscribed() as behind:
        await post(scenario_without_redis, 4)
        async with (
            server.subscribed(since=cursor(server, 4, at)) as ahead,
            server.subscribed(since=cursor(server, 2, at)) as between,
        ):
            assert [event["resumed"] for event in ahead.ready_events] == [True]
            assert not await behind.receives(1, 0.2)
            await server.stores.hub.compare()
            assert await behind.receives(4)
            await post(server.scenario, 1)
            for each, start in ((behind, 0), (between, 2), (ahead, 4)):
                assert await each.reaches(5)
                assert each.numbers == list(range(start + 1, 6))


async def test_block_withholds_events_from_blocker_only(server: GraphQLServer) -> None:
    await server.join("bob", "eve", "joe")
    org, relations = server.scenario.organization_id, server.stores.relations
    await relations.block(org, "joe", "bob")
    async with server.all_subscribed("ann", "bob", "eve", "joe") as subscriptions:
        for author in ("ann", "bob", "eve"):
            await post(server.scenario, 1, author)
        assert await wait_until(lambda: all(each.numbers[-1:] == [3] for each in subscriptions))
        await relations.block(org, "eve", "bob")
        await relations.unblock(org, "joe", "bob")
        await post(server.scenario, 1, "bob")
        await post(server.scenario, 1, "eve")
        assert await wait_until(lambda: all(each.numbers[-1:] == [5] for each in subscriptions))
        assert len(server.endpoint.broadcasts) == 1
    received = dict(zip(["ann", "bob", "eve", "joe"], [each.numbers for each in subscriptions], strict=True))
    assert received == {"ann": [1, 2, 3, 4, 5], "bob": [1, 2, 3, 4, 5], "eve": [1, 2, 3, 5], "joe": [1, 3, 4, 5]}


async def test_block_withholds_replayed_events(server: GraphQLServer) -> None:
    await server.join("bob", "eve")
    await server.stores.relations.block(server.scenario.organization_id, "eve", "bob")
    for n in range(6):
        await post(server.scenario, 1, "bob" if n % 2 else "ann")
    since = cursor(server, 0, await epoch(server))
    async with server.subscribed("ann"), server.subscribed("eve", since) as eve, server.subscribed("bob", since) as bob:
        assert await bob.receives(6)
        assert await eve.reaches(5)
    assert (bob.numbers, eve.numbers) == ([1, 2, 3, 4, 5, 6], [1, 3, 5])


async def test_leaving_ends_only_own_subscription_within_5_s(server: GraphQLServer) -> None:
    assert RECHECK_EVERY_S < 4, "At least 1 s of the 5 s must remain for the lookup and the delivery."
    await server.join("bob", "eve")
    async with server.all_subscribed("ann", "bob", "eve") as (ann, bob, eve):
        await server.stores.communities.leave(server.scenario.community, "bob")
        assert await wait_until(lambda: bob.error_codes)
        assert bob.error_codes == ["FORBIDDEN"]
        assert bob.closed is None
        await post(server.scenario, 2)
        assert await ann.receives(2)
        assert await eve.receives(2)
        assert not await bob.receives(1, 0.2)
        assert (ann.error_codes, eve.error_codes) == ([], [])
        assert len(server.endpoint.broadcasts) == 1


@pytest.fixture
def rechecked_user_ids(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Returns the users whose membership each recheck has read."""
    rechecks: list[set[str]] = []
    may_listen = ChatEventSource.may_listen

    async def recording_may_listen(source: ChatEventSource, user_ids: Collection[str]) -> AbstractSet[str]:
        rechecks.append(set(user_ids))
        return await may_listen(source, user_ids)

    monkeypatch.setattr(ChatEventSource, "may_listen", recording_may_listen)
    return rechecks


async def test_recheck_reads_only_new_listeners_until_departure(
    server: GraphQLServer, rechecked_user_ids: list[set[str]]
) -> None:
    await server.join("bob", "eve")
    async with server.all_subscribed("ann", "bob") as (_, bob):
        assert await wait_until(lambda: rechecked_user_ids == [{"ann", "bob"}])
        async with server.subscribed("eve"):
            assert await wait_until(lambda: rechecked_user_ids[1:] == [{"eve"}])
            await server.stores.communities.leave(server.scenario.community, "bob")
            assert await wait_until(lambda: bob.error_codes)
            assert rechecked_user_ids[2:] == [{"ann", "bob", "eve"}]


async def test_leaving_during_start_ends_subscription(server: GraphQLServer) -> None:
    await server.join("bob")
    async with server.subscribed("bob") as bob:
        # Deletes the membership without counting a departure, as if bob had left before the first recheck.
        await server.stores.mongo["memberships"].delete_one({"community": server.scenario.community.id, "user": "bob"})
        assert await wait_until(lambda: bob.error_codes)
        assert bob.error_codes == ["FORBIDDEN"]


def executors() -> list[object]:
    """Returns the executors of this process that are still alive."""
    gc.collect()
    return [each for each in gc.get_objects() if issubclass(type(each), Executor)]


async def test_listeners_share_one_executor(server: GraphQLServer) -> None:
    await server.join("bob", "eve")
    # Executors of other tests may still be alive.
    before = executors()
    async with server.all_subscribed("ann", "bob", "eve"):
        assert sum(all(each is not earlier for earlier in before) for each in executors()) == 1


async def complete(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    await subscription.ws.send('{"id": "1", "type": "complete"}')


async def close(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    await subscription.ws.close()


async def abort(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    subscription.ws.transport.abort()


async def be_dropped(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    assert await wait_until(lambda: len(server.socket_server.connections) == 1)
    server.socket_server.connections[0].drop("Reading too slowly")


async def leave(server: GraphQLServer, subscription: RecordedSubscription) -> None:
    await server.stores.communities.leave(server.scenario.community, "bob")


@pytest.mark.parametrize("end", [complete, close, abort, be_dropped, leave])
async def test_broadcast_ends_with_its_last_listener(
    server: GraphQLServer, end: Callable[[GraphQLServer, RecordedSubscription], Awaitable[None]]
) -> None:
    await server.join("bob")
    name = server.scenario.stream.name
    async with server.subscribed("bob") as last:
        async with server.subscribed("ann"):
            assert await has_channel_subscriber(server, name)
        assert len(server.endpoint.broadcasts) == 1
        await end(server, last)
        assert await wait_until(lambda: len(server.endpoint.broadcasts) == 0)
        assert await wait_until(lambda: not tasks_of(name))
        assert name not in server.stores.hub._locals
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


class FailingRead:
    """A read whose first calls fail."""

    def __init__(self, read: Callable[..., Awaitable[Any]], times: int) -> None:
        self.remaining_failures = times
        self._read = read

    async def __call__(self, *args: Any) -> Any:
        if self.remaining_failures:
            self.remaining_failures -= 1
            raise ConnectionError("connection lost")
        return await self._read(*args)


async def test_broadcast_continues_after_failed_read(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    await server.join("bob")
    async with server.all_subscribed("ann", "bob") as subscriptions:
        await post(server.scenario, 2)
        assert await subscriptions[1].receives(2)
        failing_read = FailingRead(server.stores.relations.blockers_of, times=2)
        monkeypatch.setattr(server.stores.relations, "blockers_of", failing_read)
        await post(server.scenario, 3)
        for each in subscriptions:
            assert await each.receives(5)
        await post(server.scenario, 1)
        for each in subscriptions:
            assert await each.reaches(6)
            assert each.numbers == [1, 2, 3, 4, 5, 6]
            assert len(each.ready_events) == 1
        assert failing_read.remaining_failures == 0


async def test_failed_read_while_catching_up_loses_no_event(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post(server.scenario, 5)
    since = cursor(server, 2, await epoch(server))
    async with server.subscribed():
        head = FailingRead(server.stores.hub.head, times=1)
        blockers = FailingRead(server.stores.relations.blockers_of, times=2)
        monkeypatch.setattr(server.stores.hub, "head", head)
        monkeypatch.setattr(server.stores.relations, "blockers_of", blockers)
        async with server.subscribed(since=since) as late:
            assert await late.reaches(5)
            await post(server.scenario, 1)
            assert await late.reaches(6)
            assert late.numbers == [3, 4, 5, 6]
            assert [event["resumed"] for event in late.ready_events] == [True]
        assert [each.remaining_failures for each in (head, blockers)] == [0, 0]


async def test_pruned_log_restarts_every_listener(server: GraphQLServer, scenario_without_redis: TopicScenario) -> None:
    await server.join("bob")
    at = await epoch(server)
    async with server.all_subscribed("ann", "bob") as subscriptions:
        await post(server.scenario, 1)
        for each in subscriptions:
            assert await each.receives(1)
        await post(scenario_without_redis, 5)
        await server.stores.events._delete_up_to({server.scenario.stream: 6})
        await server.stores.hub.compare()
        assert await wait_until(lambda: all(len(each.ready_events) == 2 for each in subscriptions))
        await post(server.scenario, 1)
        async with server.subscribed(since=cursor(server, 3, at)) as late:
            assert [event["resumed"] for event in late.ready_events] == [False]
        for each in subscriptions:
            assert await each.reaches(7)
            assert each.numbers == [1, 7]
            assert (each.ready_events[1]["resumed"], each.ready_events[1]["cursor"]) == (False, cursor(server, 6, at))


async def replace_event_log(server: GraphQLServer) -> None:
    """Empties the event log and starts a new epoch, as restoring a backup does."""
    await server.stores.mongo["events"].delete_many({"_id.s": server.scenario.stream.name})
    new_head = {"$set": {"epoch": "new", "n": 0, "floor": 0}}
    await server.stores.mongo["topics"].update_one({"_id": server.scenario.topic.id}, new_head)


async def test_new_epoch_restarts_every_listener(server: GraphQLServer) -> None:
    await server.join("bob")
    async with server.all_subscribed("ann", "bob") as subscriptions:
        await post(server.scenario, 3)
        for each in subscriptions:
            assert await each.receives(3)
        await replace_event_log(server)
        await server.stores.hub.compare()
        assert await wait_until(lambda: all(len(each.ready_events) == 2 for each in subscriptions))
        await post(server.scenario, 2)
        for each in subscriptions:
            assert await each.receives(5)
            assert each.numbers == [1, 2, 3, 1, 2]
            assert (each.ready_events[1]["resumed"], each.ready_events[1]["cursor"]) == (
                False,
                cursor(server, 0, "new"),
            )


class HeldRead:
    """A read that holds back its result until it is released."""

    def __init__(self, read: Callable[..., Awaitable[Any]]) -> None:
        self.has_read, self.released = asyncio.Event(), asyncio.Event()
        self._read = read

    async def __call__(self, *args: Any) -> Any:
        result = await self._read(*args)
        self.has_read.set()
        await self.released.wait()
        return result


async def test_new_epoch_restarts_listener_that_catches_up(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post(server.scenario, 5)
    since = cursor(server, 0, await epoch(server))
    async with server.subscribed() as live:
        held_read = HeldRead(server.stores.hub.replay)
        with monkeypatch.context() as patch:
            patch.setattr(server.stores.hub, "replay", held_read)
            async with server.subscribed(since=since) as late:
                assert await wait_until(held_read.has_read.is_set)
                patch.undo()
                await replace_event_log(server)
                await server.stores.hub.compare()
                assert await wait_until(lambda: len(live.ready_events) == 2)
                held_read.released.set()
                assert await wait_until(lambda: len(late.ready_events) == 2)
                await post(server.scenario, 1)
                assert await late.reaches(1)
                assert late.results[-1]["cursor"] == live.results[-1]["cursor"] == cursor(server, 1, "new")
                assert [event["resumed"] for event in late.ready_events] == [True, False]


async def test_event_between_ready_and_live_is_not_lost(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    await post(server.scenario, 5)
    since = cursor(server, 2, await epoch(server))
    async with server.subscribed() as live:
        held_read = HeldRead(server.stores.hub.replay)
        with monkeypatch.context() as patch:
            patch.setattr(server.stores.hub, "replay", held_read)
            async with server.subscribed(since=since) as late:
                assert await wait_until(held_read.has_read.is_set)
                patch.undo()
                await post(server.scenario, 3)
                assert await live.reaches(8)
                held_read.released.set()
                assert await late.reaches(8)
                assert late.numbers == [3, 4, 5, 6, 7, 8]


async def test_slow_client_far_behind_catches_up_on_one_socket(server: GraphQLServer) -> None:
    for _ in range(12):
        await asyncio.gather(*(server.scenario.post("x" * 1000) for _ in range(100)))
    async with server.subscribed() as live, raw_client(server.socket_server.port, 16_384) as raw:
        variables = {"topic": server.scenario.topic.id, "since": cursor(server, 0, await epoch(server))}
        for message in (
            {"type": "connection_init", "payload": {"authorization": f"Bearer {server.token('ann')}"}},
            {"id": "1", "type": "subscribe", "payload": {"query": TOPIC_EVENTS, "variables": variables}},
        ):
            await raw.send_frame(TEXT, orjson.dumps(message))
        subscription = RecordedSubscription(live.ws, "1")
        async with asyncio.timeout(120):
            while len(subscription.frames) < 1202 + 20:
                opcode, text = await raw.receive_frame()
                assert opcode == TEXT, text
                subscription.frames.append(orjson.loads(text))
                if len(subscription.frames) % 60 == 0:
                    await post(server.scenario, 1)
                    await asyncio.sleep(0.02)
        assert subscription.numbers == list(range(1, 1221))


PAUSE_BETWEEN_FRAMES_S = 0.0005


async def subscribe(raw: RawClient, server: GraphQLServer, since: str | None, *queries: str) -> None:
    """Initializes the socket and subscribes with each query. The operation ids count from 1."""
    authorization = f"Bearer {server.token('ann')}"
    await raw.send_frame(TEXT, orjson.dumps({"type": "connection_init", "payload": {"authorization": authorization}}))
    variables = {"topic": server.scenario.topic.id, "since": since}
    for id_, query in enumerate(queries, 1):
        message = {"id": str(id_), "type": "subscribe", "payload": {"query": query, "variables": variables}}
        await raw.send_frame(TEXT, orjson.dumps(message))


async def receive_slowly(raw: RawClient, server: GraphQLServer, until: int, *ids: str) -> dict[str, list[int]]:
    """Reads frames with a short pause after each, and returns the numbers of the events by operation id."""
    numbers: dict[str, list[int]] = {id_: [] for id_ in ids}
    async with asyncio.timeout(60):
        while any(each[-1:] != [until] for each in numbers.values()):
            opcode, text = await raw.receive_frame()
            assert opcode == TEXT, text
            frame = orjson.loads(text)
            event = frame.get("payload", {}).get("data", {}).get("topicEvents", {})
            if event.get("__typename") == "MessagePosted":
                numbers[frame["id"]].append(cursor_position(event["cursor"]))
            await asyncio.sleep(PAUSE_BETWEEN_FRAMES_S)
    return numbers


async def test_several_subscriptions_catch_up_on_one_socket(server: GraphQLServer) -> None:
    for _ in range(6):
        await asyncio.gather(*(server.scenario.post("x" * 1000) for _ in range(100)))
    async with raw_client(server.socket_server.port, 16_384) as raw:
        await subscribe(
            raw, server, cursor(server, 0, await epoch(server)), TOPIC_EVENTS, TOPIC_EVENTS + " ", TOPIC_EVENTS + "  "
        )
        received = await receive_slowly(raw, server, 600, "1", "2", "3")
    assert received == {id_: list(range(1, 601)) for id_ in "123"}


async def test_listener_after_outage_catches_up_at_own_pace(
    server: GraphQLServer, scenario_without_redis: TopicScenario
) -> None:
    async with raw_client(server.socket_server.port, 16_384) as raw, server.subscribed() as fast:
        await subscribe(raw, server, None, TOPIC_EVENTS, TOPIC_EVENTS + " ")
        for _ in range(3):
            # The acknowledgement, and a StreamReady for each subscription.
            await raw.receive_frame()
        await server.scenario.post("the first")
        for _ in range(12):
            await asyncio.gather(*(scenario_without_redis.post("x" * 1000) for _ in range(100)))
        await server.stores.hub.compare()
        received = await receive_slowly(raw, server, 1201, "1", "2")
        assert await fast.reaches(1201)
        # All three subscriptions are live again.
        await server.scenario.post("the last")
        assert (await receive_slowly(raw, server, 1202, "1", "2")) == {id_: [1202] for id_ in "12"}
        assert await fast.reaches(1202)
    assert received == {id_: list(range(1, 1202)) for id_ in "12"}
    assert fast.numbers == list(range(1, 1203))


async def test_listener_that_caught_up_is_live_before_the_next_event(server: GraphQLServer) -> None:
    """The listener would lose an event that arrives between the last comparison of positions and `is_live`."""
    async with server.subscribed() as subscription:
        assert await wait_until(lambda: all(each.is_live for each in _listeners(server)))
        (broadcast,) = server.endpoint.broadcasts._broadcasts.values()
        (listener,) = broadcast.listeners
        assert broadcast.position is not None
        listener.is_live = False
        with pytest.raises(StopIteration):
            # The coroutine must end in one step, so that no other task can run before `is_live` is set.
            broadcast._catch_up(listener, broadcast.position).send(None)
        assert listener.is_live
        await post(server.scenario, 1)
        assert await subscription.receives(1)


def _listeners(server: GraphQLServer) -> list[Listener]:
    return [each for broadcast in server.endpoint.broadcasts._broadcasts.values() for each in broadcast.listeners]
