"""Listeners that fall behind, resume or survive a failure get each event once and in order."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from tests.e2e.chat_topic import cursor_position
from tests.server.graphql.graphql_server import (
    TOPIC_EVENTS,
    GraphQLServer,
    HeldRead,
    RecordedSubscription,
    post_messages,
)
from tests.server.in_process import RawClient, raw_client
from tests.storage.topic_scenario import TopicScenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

TEXT = 0x81
PAUSE_BETWEEN_FRAMES_S = 0.0015
MISSED_COUNT = 600
"""More events than one read of the log returns, and than may wait for a socket in the product and in the kernel."""


async def test_listeners_that_come_and_go_get_each_event_once(server: GraphQLServer) -> None:
    user_ids = [f"user{n}" for n in range(6)]
    await server.join(*user_ids)
    first_cursor = server.cursor(0, await server.epoch())
    received: dict[str, list[list[int]]] = {user_id: [] for user_id in user_ids}
    posting, posted_count = True, 0
    rng = random.Random(7)

    async def subscribe_repeatedly(user_id: str) -> None:
        cursor = first_cursor
        while posting or cursor_position(cursor) < posted_count:
            async with server.subscribed(user_id, cursor) as subscription:
                await asyncio.sleep(rng.uniform(0, 0.2))
                cursor, numbers = subscription.last_cursor, subscription.numbers
                assert [event["resumed"] for event in subscription.ready_events] == [True]
            received[user_id].append(numbers)

    async with server.subscribed() as constant_subscription, asyncio.TaskGroup() as group:
        for user_id in user_ids:
            group.create_task(subscribe_repeatedly(user_id))
        while posted_count < 200 or min(len(each) for each in received.values()) < 4:
            await post_messages(server.scenario, 5)
            posted_count += 5
            # After 200 posts the loop only waits for slow subscribers. Posts at full speed would overwhelm them.
            await asyncio.sleep(rng.uniform(0, 0.03) if posted_count < 200 else 0.5)
        posting = False
        assert await constant_subscription.reaches(posted_count)
    assert constant_subscription.numbers == list(range(1, posted_count + 1))
    for parts in received.values():
        assert [n for part in parts for n in part] == constant_subscription.numbers


async def test_listener_ahead_of_process_gets_no_repetition(
    server: GraphQLServer, scenario_without_redis: TopicScenario
) -> None:
    epoch = await server.epoch()
    async with server.subscribed() as behind:
        await post_messages(scenario_without_redis, 4)
        async with (
            server.subscribed(since=server.cursor(4, epoch)) as ahead,
            server.subscribed(since=server.cursor(2, epoch)) as between,
        ):
            assert [event["resumed"] for event in ahead.ready_events] == [True]
            assert not await behind.receives(1, 0.2)
            await server.stores.hub.compare()
            assert await behind.receives(4)
            await post_messages(server.scenario, 1)
            for each, start in ((behind, 0), (between, 2), (ahead, 4)):
                assert await each.reaches(5)
                assert each.numbers == list(range(start + 1, 6))


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
        await post_messages(server.scenario, 2)
        assert await subscriptions[1].receives(2)
        failing_read = FailingRead(server.stores.relations.blockers_among, times=2)
        monkeypatch.setattr(server.stores.relations, "blockers_among", failing_read)
        await post_messages(server.scenario, 3)
        for each in subscriptions:
            assert await each.receives(5)
        await post_messages(server.scenario, 1)
        for each in subscriptions:
            assert await each.reaches(6)
            assert each.numbers == [1, 2, 3, 4, 5, 6]
            assert len(each.ready_events) == 1
        assert failing_read.remaining_failures == 0


async def test_failed_read_while_catching_up_loses_no_event(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post_messages(server.scenario, 5)
    since = server.cursor(2, await server.epoch())
    async with server.subscribed():
        head = FailingRead(server.stores.hub.head, times=1)
        blockers = FailingRead(server.stores.relations.blockers_among, times=2)
        monkeypatch.setattr(server.stores.hub, "head", head)
        monkeypatch.setattr(server.stores.relations, "blockers_among", blockers)
        async with server.subscribed(since=since) as late_subscription:
            assert await late_subscription.reaches(5)
            await post_messages(server.scenario, 1)
            assert await late_subscription.reaches(6)
            assert late_subscription.numbers == [3, 4, 5, 6]
            assert [event["resumed"] for event in late_subscription.ready_events] == [True]
        assert [each.remaining_failures for each in (head, blockers)] == [0, 0]


async def test_pruned_log_restarts_every_listener(server: GraphQLServer, scenario_without_redis: TopicScenario) -> None:
    await server.join("bob")
    epoch = await server.epoch()
    async with server.all_subscribed("ann", "bob") as subscriptions:
        await post_messages(server.scenario, 1)
        for each in subscriptions:
            assert await each.receives(1)
        await post_messages(scenario_without_redis, 5)
        await server.stores.events.prune(kept_s=0)
        await server.stores.hub.compare()
        assert await poll_until_true(lambda: all(len(each.ready_events) == 2 for each in subscriptions))
        await post_messages(server.scenario, 1)
        async with server.subscribed(since=server.cursor(3, epoch)) as late_subscription:
            assert [event["resumed"] for event in late_subscription.ready_events] == [False]
        for each in subscriptions:
            assert await each.reaches(7)
            assert each.numbers == [1, 7]
            assert (each.ready_events[1]["resumed"], each.ready_events[1]["cursor"]) == (False, server.cursor(6, epoch))


async def replace_event_log(server: GraphQLServer) -> None:
    """Empties the event log and starts a new epoch, as restoring a backup does."""
    await server.stores.mongo["events"].delete_many({"_id.s": server.scenario.stream.name})
    new_head = {"$set": {"epoch": "new", "n": 0, "floor": 0}}
    await server.stores.mongo["topics"].update_one({"_id": server.scenario.topic.id}, new_head)


async def test_new_epoch_restarts_every_listener(server: GraphQLServer) -> None:
    await server.join("bob")
    async with server.all_subscribed("ann", "bob") as subscriptions:
        await post_messages(server.scenario, 3)
        for each in subscriptions:
            assert await each.receives(3)
        await replace_event_log(server)
        await server.stores.hub.compare()
        assert await poll_until_true(lambda: all(len(each.ready_events) == 2 for each in subscriptions))
        await post_messages(server.scenario, 2)
        for each in subscriptions:
            assert await each.receives(5)
            assert each.numbers == [1, 2, 3, 1, 2]
            assert (each.ready_events[1]["resumed"], each.ready_events[1]["cursor"]) == (
                False,
                server.cursor(0, "new"),
            )


async def test_new_epoch_restarts_listener_that_catches_up(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post_messages(server.scenario, 5)
    since = server.cursor(0, await server.epoch())
    async with server.subscribed() as live_subscription:
        held_read = HeldRead(server.stores.hub.replay)
        with monkeypatch.context() as patch:
            patch.setattr(server.stores.hub, "replay", held_read)
            async with server.subscribed(since=since) as late_subscription:
                assert await poll_until_true(held_read.has_read.is_set)
                patch.undo()
                await replace_event_log(server)
                await server.stores.hub.compare()
                assert await poll_until_true(lambda: len(live_subscription.ready_events) == 2)
                held_read.released.set()
                assert await poll_until_true(lambda: len(late_subscription.ready_events) == 2)
                await post_messages(server.scenario, 1)
                assert await late_subscription.reaches(1)
                assert (
                    late_subscription.results[-1]["cursor"]
                    == live_subscription.results[-1]["cursor"]
                    == server.cursor(1, "new")
                )
                assert [event["resumed"] for event in late_subscription.ready_events] == [True, False]


async def test_event_between_ready_and_live_is_not_lost(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    await post_messages(server.scenario, 5)
    since = server.cursor(2, await server.epoch())
    async with server.subscribed() as live_subscription:
        held_read = HeldRead(server.stores.hub.replay)
        with monkeypatch.context() as patch:
            patch.setattr(server.stores.hub, "replay", held_read)
            async with server.subscribed(since=since) as late_subscription:
                assert await poll_until_true(held_read.has_read.is_set)
                patch.undo()
                await post_messages(server.scenario, 3)
                assert await live_subscription.reaches(8)
                held_read.released.set()
                assert await late_subscription.reaches(8)
                assert late_subscription.numbers == [3, 4, 5, 6, 7, 8]


async def post_long_messages(scenario: TopicScenario, count: int) -> None:
    """Posts messages of 1,000 characters, 100 at a time."""
    for _ in range(count // 100):
        await asyncio.gather(*(scenario.post("x" * 1000) for _ in range(100)))


async def test_slow_client_far_behind_catches_up_on_one_socket(server: GraphQLServer) -> None:
    await post_long_messages(server.scenario, MISSED_COUNT)
    async with server.subscribed() as live_subscription, raw_client(server.socket_server.port, 16_384) as raw:
        variables = {"topic": server.scenario.topic.id, "since": server.cursor(0, await server.epoch())}
        for message in (
            {"type": "connection_init", "payload": {"authorization": f"Bearer {server.token('ann')}"}},
            {"id": "1", "type": "subscribe", "payload": {"query": TOPIC_EVENTS, "variables": variables}},
        ):
            await raw.send_frame(TEXT, orjson.dumps(message))
        subscription = RecordedSubscription(live_subscription.ws, "1")
        async with asyncio.timeout(120):
            # The acknowledgement, StreamReady, the missed events, and one more event for each 30 frames.
            while len(subscription.frames) < 2 + MISSED_COUNT + 20:
                opcode, text = await raw.receive_frame()
                assert opcode == TEXT, text
                subscription.frames.append(orjson.loads(text))
                if len(subscription.frames) % 30 == 0:
                    await post_messages(server.scenario, 1)
                    await asyncio.sleep(0.02)
        assert subscription.numbers == list(range(1, MISSED_COUNT + 21))


async def subscribe(raw: RawClient, server: GraphQLServer, since: str | None, *queries: str) -> None:
    """Initializes the socket and subscribes with each query. The operation ids count from 1."""
    authorization = f"Bearer {server.token('ann')}"
    await raw.send_frame(TEXT, orjson.dumps({"type": "connection_init", "payload": {"authorization": authorization}}))
    variables = {"topic": server.scenario.topic.id, "since": since}
    for id_, query in enumerate(queries, 1):
        message = {"id": str(id_), "type": "subscribe", "payload": {"query": query, "variables": variables}}
        await raw.send_frame(TEXT, orjson.dumps(message))


async def receive_slowly(raw: RawClient, server: GraphQLServer, until: int, *ids: str) -> dict[str, list[int]]:
    """Reads frames, with a short pause after each, until every operation has received event `until`.

    Returns the numbers of the events by operation id.
    """
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
    await post_long_messages(server.scenario, 300)
    async with raw_client(server.socket_server.port, 16_384) as raw:
        await subscribe(
            raw, server, server.cursor(0, await server.epoch()), TOPIC_EVENTS, TOPIC_EVENTS + " ", TOPIC_EVENTS + "  "
        )
        received = await receive_slowly(raw, server, 300, "1", "2", "3")
    assert received == {id_: list(range(1, 301)) for id_ in "123"}


async def test_listener_after_outage_catches_up_at_own_pace(
    server: GraphQLServer, scenario_without_redis: TopicScenario
) -> None:
    async with raw_client(server.socket_server.port, 16_384) as raw, server.subscribed() as fast_subscription:
        await subscribe(raw, server, None, TOPIC_EVENTS, TOPIC_EVENTS + " ")
        for _ in range(3):
            # The acknowledgement, and a StreamReady for each subscription.
            await raw.receive_frame()
        await server.scenario.post("the first")
        await post_long_messages(scenario_without_redis, MISSED_COUNT)
        await server.stores.hub.compare()
        last = MISSED_COUNT + 1
        received = await receive_slowly(raw, server, last, "1", "2")
        assert await fast_subscription.reaches(last)
        # All three subscriptions are live again.
        await server.scenario.post("the last")
        assert (await receive_slowly(raw, server, last + 1, "1", "2")) == {id_: [last + 1] for id_ in "12"}
        assert await fast_subscription.reaches(last + 1)
    assert received == {id_: list(range(1, last + 1)) for id_ in "12"}
    assert fast_subscription.numbers == list(range(1, last + 2))


async def test_listener_that_caught_up_is_live_before_the_next_event(server: GraphQLServer) -> None:
    """The listener would lose an event that arrives between the last comparison of positions and `is_live`."""
    async with server.subscribed() as subscription:
        assert await poll_until_true(lambda: all(each.is_live for each in server.listeners))
        (broadcast,) = server.endpoint.subscriptions.broadcasts._broadcasts.values()
        (listener,) = broadcast.listeners
        assert broadcast.position is not None
        listener.is_live = False
        with pytest.raises(StopIteration):
            # The coroutine must end in one step, so that no other task can run before `is_live` is set.
            broadcast._catch_up(listener, broadcast.position).send(None)
        assert listener.is_live
        await post_messages(server.scenario, 1)
        assert await subscription.receives(1)
