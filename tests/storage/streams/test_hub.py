"""Delivery by the hub while Redis loses, repeats, reorders or corrupts messages, and the hub's single connection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from server.embedded import Valkey
from storage.stores import Stores
from storage.streams.event_sender import encode
from storage.streams.hub import MAX_QUEUE, Hub, HydratedEvent, PositionExpired, Subscriber, _StreamState, is_resumable
from storage.streams.log import REPLAY_LIMIT, Event, EventLog, Stream, StreamHead, StreamPosition
from tests.storage.event_recorder import EventRecorder, recorded_events
from tests.storage.faulty_proxy import faulty_proxy
from tests.storage.topic_scenario import OpenStores, TopicScenario
from tests.waiting import poll_until_true

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_head_comparisons")]

UNREACHABLE_REDIS_URL = "redis://127.0.0.1:1/0"


@pytest.fixture
async def scenario_with_own_redis(
    scenario: TopicScenario, own_valkey: Valkey, open_process: OpenStores
) -> AsyncIterator[TopicScenario]:
    """The topic in another process, with a Redis that the test may kill."""
    async with open_process(own_valkey.url) as stores:
        yield scenario.with_stores(stores)


@pytest.fixture
async def scenario_without_redis(scenario: TopicScenario, open_process: OpenStores) -> AsyncIterator[TopicScenario]:
    """The topic in another process that cannot reach Redis: its events are stored, but not published."""
    async with open_process(UNREACHABLE_REDIS_URL) as stores:
        yield scenario.with_stores(stores)


async def does_not_receive(recorder: EventRecorder, n: int) -> bool:
    """Returns whether event n does not arrive within 0.3 s."""
    return not await recorder.wait_for_event(n, 0.3)


async def test_post_reaches_other_process_at_once(scenario: TopicScenario, open_process: OpenStores) -> None:
    async with open_process() as stores, recorded_events(stores.hub, scenario.stream) as recorder:
        for n in range(1, 6):
            message = await scenario.post()
            assert await recorder.wait_for_event(n)
            assert recorder.subjects[-1] == message


async def test_lost_publish_is_recovered_by_next_publish(
    scenario: TopicScenario, scenario_without_redis: TopicScenario
) -> None:
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        await scenario_without_redis.post("lost")
        assert await does_not_receive(recorder, 1)
        await scenario.post("received")
        assert await recorder.wait_for_event(2)
    assert [subject.text for subject in recorder.subjects] == ["lost", "received"]


async def test_lost_publish_is_recovered_by_comparing_heads(
    scenario: TopicScenario, scenario_without_redis: TopicScenario
) -> None:
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        await asyncio.gather(*(scenario_without_redis.post() for _ in range(5)))
        await scenario.stores.hub.compare()
        assert await recorder.wait_for_event(5)
    assert recorder.numbers == [1, 2, 3, 4, 5]


async def test_heads_are_compared_periodically(scenario: TopicScenario, scenario_without_redis: TopicScenario) -> None:
    async with (
        running_hub(scenario.stores, compare_every_s=0.1) as hub,
        recorded_events(hub, scenario.stream) as recorder,
    ):
        await scenario_without_redis.post()
        assert await recorder.wait_for_event(1)


async def test_failed_head_comparison_is_repeated(
    scenario: TopicScenario, scenario_without_redis: TopicScenario
) -> None:
    log = FailingLog(scenario.stores)
    async with (
        running_hub(scenario.stores, log, compare_every_s=0.05) as hub,
        recorded_events(hub, scenario.stream) as recorder,
    ):
        log.failures = 2
        await scenario_without_redis.post()
        assert await recorder.wait_for_event(1)
    assert log.failures == 0


async def test_subscriber_without_redis_receives_all_events(
    scenario: TopicScenario, scenario_without_redis: TopicScenario
) -> None:
    async with recorded_events(scenario_without_redis.stores.hub, scenario.stream) as recorder:
        await scenario.post()
        await scenario_without_redis.stores.hub.compare()
        assert await recorder.wait_for_event(1)


async def test_redis_flushed_loses_no_event(scenario_with_own_redis: TopicScenario, own_valkey: Valkey) -> None:
    async with (
        recorded_events(scenario_with_own_redis.stores.hub, scenario_with_own_redis.stream) as recorder,
        Redis.from_url(own_valkey.url) as redis,
    ):
        for n in range(1, 6):
            await redis.flushall()
            await scenario_with_own_redis.post()
            assert await recorder.wait_for_event(n)


async def test_hub_reconnects_and_catches_up_after_killed_connection(
    scenario_with_own_redis: TopicScenario, own_valkey: Valkey
) -> None:
    async with (
        recorded_events(scenario_with_own_redis.stores.hub, scenario_with_own_redis.stream) as recorder,
        Redis.from_url(own_valkey.url) as redis,
    ):
        for n in range(1, 11):
            await redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            await scenario_with_own_redis.post()
            assert await recorder.wait_for_event(n), (
                "A reconnected hub must read the events that were published while it was disconnected."
            )
    assert recorder.numbers == list(range(1, 11))


class InterruptedLog(EventLog):
    """A log that runs `during_read` once, after it has read events and before it returns them."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores.mongo)
        self.during_read: Callable[[], Awaitable[None]] | None = None

    async def read(self, stream: Stream, after: int, limit: int = REPLAY_LIMIT) -> list[Event]:
        events = await super().read(stream, after, limit)
        if self.during_read is not None:
            callback, self.during_read = self.during_read, None
            await callback()
        return events


async def test_message_during_catch_up_is_delivered(scenario_with_own_redis: TopicScenario, own_valkey: Valkey) -> None:
    log = InterruptedLog(scenario_with_own_redis.stores)
    async with (
        running_hub(scenario_with_own_redis.stores, log) as hub,
        recorded_events(hub, scenario_with_own_redis.stream) as recorder,
    ):

        async def during_read() -> None:
            await scenario_with_own_redis.post()
            assert await poll_until_true(is_received)

        async def is_received() -> bool:
            return 2 in hub._states[scenario_with_own_redis.stream.name].received

        await scenario_with_own_redis.post()
        assert await recorder.wait_for_event(1)
        log.during_read = during_read
        async with Redis.from_url(own_valkey.url) as redis:
            await redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        assert await recorder.wait_for_event(2)


async def test_redis_restarted_loses_no_event(scenario_with_own_redis: TopicScenario, own_valkey: Valkey) -> None:
    async with recorded_events(scenario_with_own_redis.stores.hub, scenario_with_own_redis.stream) as recorder:
        await scenario_with_own_redis.post()
        assert await recorder.wait_for_event(1)
        own_valkey.kill()
        await own_valkey.wait()
        await asyncio.gather(*(scenario_with_own_redis.post() for _ in range(3)))
        await scenario_with_own_redis.stores.hub.compare()
        assert await recorder.wait_for_event(4)
        await scenario_with_own_redis.post()
        await own_valkey.restart()
        assert await recorder.wait_for_event(5), "Reconnecting alone must recover missed events."
        await scenario_with_own_redis.post()
        assert await recorder.wait_for_event(6)
    assert recorder.numbers == [1, 2, 3, 4, 5, 6]


async def test_subscription_goes_live_once_redis_starts(
    scenario_with_own_redis: TopicScenario, own_valkey: Valkey
) -> None:
    own_valkey.kill()
    await own_valkey.wait()
    async with recorded_events(scenario_with_own_redis.stores.hub, scenario_with_own_redis.stream) as recorder:
        await own_valkey.restart()

        async def is_subscribed() -> bool:
            return scenario_with_own_redis.stores.hub._states[scenario_with_own_redis.stream.name].confirmed.is_set()

        assert await poll_until_true(is_subscribed)
        await scenario_with_own_redis.post()
        assert await recorder.wait_for_event(1)


async def test_half_open_redis_connection_is_replaced(
    scenario: TopicScenario, open_process: OpenStores, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.streams.hub.COMPARE_EVERY_S", 3600.0)
    async with (
        faulty_proxy(redis_url) as proxy,
        open_process(proxy.redis_url) as stores,
        recorded_events(stores.hub, scenario.stream) as recorder,
    ):
        await scenario.post()
        assert await recorder.wait_for_event(1)
        proxy.drop_traffic_of_open_connections()
        await scenario.post()
        assert await recorder.wait_for_event(2)


async def test_silent_redis_delays_hub_only_during_the_silence(
    scenario: TopicScenario, open_process: OpenStores, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.streams.hub.COMPARE_EVERY_S", 3600.0)
    monkeypatch.setattr("storage.streams.hub.ATTACH_TIMEOUT_S", 0.5)
    async with faulty_proxy(redis_url) as proxy:
        await proxy.drop_traffic()
        async with open_process(proxy.redis_url) as stores, recorded_events(stores.hub, scenario.stream) as recorder:
            await proxy.restore()
            # Nothing may depend on a connection that was opened during the silence.
            proxy.drop_traffic_of_open_connections()
            await scenario.post()
            assert await recorder.wait_for_event(1)


async def publish(scenario: TopicScenario, *numbers: int, epoch: str | None = None) -> None:
    """Publishes events with these numbers on the stream's channel, whether the log has them or not."""
    head = await scenario.stores.events.head(scenario.stream)
    events = await scenario.events()
    by_number = {each["_id"]["n"]: Event(each["_id"]["n"], each["kind"], each["ref"], each["at"]) for each in events}
    for n in numbers:
        event = by_number.get(n, Event(n, "MessagePosted", 1, events[-1]["at"]))
        payload = encode(head.epoch if epoch is None else epoch, [event])
        await scenario.stores.redis.publish(scenario.stores.keys.channel(scenario.stream.name), payload)


async def test_duplicate_and_reordered_messages_arrive_once_in_order(
    scenario: TopicScenario, scenario_without_redis: TopicScenario
) -> None:
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        await asyncio.gather(*(scenario_without_redis.post() for _ in range(6)))
        await publish(scenario, 2, 2, 1, 6, 3, 1, 5, 4, 6)
        assert await recorder.wait_for_event(6)
        await publish(scenario, 1, 6, 3)
        await scenario.post()
        assert await recorder.wait_for_event(7)
    assert recorder.numbers == [1, 2, 3, 4, 5, 6, 7]


async def test_subscriber_queue_has_each_event_once(
    scenario: TopicScenario, scenario_without_redis: TopicScenario
) -> None:
    async with scenario.stores.hub.subscribe(scenario.stream) as subscriber:
        await asyncio.gather(*(scenario_without_redis.post() for _ in range(4)))
        await publish(scenario, 1, 1, 2, 1, 2, 4, 3, 2, 4)
        await scenario.post()

        async def has_all() -> bool:
            return bool(subscriber.queue) and subscriber.queue[-1].event.n == 5

        assert await poll_until_true(has_all)
        assert [event.event.n for event in subscriber.queue] == [1, 2, 3, 4, 5]


async def test_unallocated_event_numbers_are_ignored(scenario: TopicScenario) -> None:
    await scenario.post()
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        await publish(scenario, 500)
        await publish(scenario, 2, epoch="another incarnation")
        assert await does_not_receive(recorder, 2)
        await scenario.post()
        assert await recorder.wait_for_event(2)
    assert recorder.numbers == [2]
    assert len(recorder.starts) == 1


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"5", b'{"epoch": "e", "events": []}', b"\x80pickle"])
async def test_malformed_message_does_not_stop_delivery(scenario: TopicScenario, payload: bytes) -> None:
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        await scenario.stores.redis.publish(scenario.stores.keys.channel(scenario.stream.name), payload)
        await scenario.post()
        assert await recorder.wait_for_event(1)
        await scenario.post()
        assert await recorder.wait_for_event(2)


async def test_streams_and_subscribers_share_one_connection(
    scenario_with_own_redis: TopicScenario, own_valkey: Valkey
) -> None:
    async with Redis.from_url(own_valkey.url) as redis, AsyncExitStack() as stack:
        for number in range(60):
            stream = Stream("user", f"org/{number % 20}")
            await stack.enter_async_context(scenario_with_own_redis.stores.hub.subscribe(stream))
        assert len(await redis.client_list(_type="pubsub")) == 1
        channel = scenario_with_own_redis.stores.keys.channel("user:org/1")
        assert await redis.pubsub_numsub(channel) == [(channel.encode(), 1)]


async def test_subscribers_receive_the_same_object(scenario: TopicScenario) -> None:
    async with (
        recorded_events(scenario.stores.hub, scenario.stream) as one,
        recorded_events(scenario.stores.hub, scenario.stream) as other,
    ):
        await scenario.post()
        assert await one.wait_for_event(1)
        assert await other.wait_for_event(1)
    assert one.subjects[0] is other.subjects[0]


async def test_leaving_subscriber_does_not_affect_others(scenario: TopicScenario) -> None:
    async with recorded_events(scenario.stores.hub, scenario.stream) as remaining_recorder:
        async with recorded_events(scenario.stores.hub, scenario.stream):
            await scenario.post()
        await scenario.post()
        assert await remaining_recorder.wait_for_event(2)


async def test_resubscribing_at_once_misses_no_event(scenario: TopicScenario, open_process: OpenStores) -> None:
    async with open_process() as stores:
        for n in range(1, 21):
            async with recorded_events(stores.hub, scenario.stream):
                pass
            async with recorded_events(stores.hub, scenario.stream) as recorder:
                await scenario.post()
                assert await recorder.wait_for_event(n)


class SlowHub(Hub):
    """A hub that delays the subscribe command by a minute."""

    async def _send_subscribe(self, local: _StreamState) -> None:
        await asyncio.sleep(60)


async def test_cancelled_subscribe_leaves_no_state(scenario: TopicScenario) -> None:
    stores = scenario.stores
    hub = SlowHub(stores.redis, stores.keys, stores.events, hydrate_nothing)
    stack = AsyncExitStack()
    entering = asyncio.create_task(stack.enter_async_context(hub.subscribe(scenario.stream)))
    await asyncio.sleep(0)
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    assert not hub._states


async def hydrate_nothing(stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    return {}


class FailingLog(EventLog):
    """A log whose next `failures` comparisons of heads fail. A subscription that can't read its own head would end."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores.mongo)
        self.failures = 0

    async def heads(self, streams: Sequence[Stream]) -> dict[Stream, StreamHead]:
        task = asyncio.current_task()
        if self.failures and task is not None and task.get_name() == "hub compare":
            self.failures -= 1
            raise ConnectionError("not now")
        return await super().heads(streams)


@asynccontextmanager
async def running_hub(
    stores: Stores, event_log: EventLog | None = None, compare_every_s: float = 60, failures: int = 0
) -> AsyncIterator[Hub]:
    """Runs a separate hub. Its first `failures` hydrations fail."""
    remaining_failures = failures

    async def hydrate(stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
        nonlocal remaining_failures
        remaining_failures -= 1
        if remaining_failures >= 0:
            raise ConnectionError("not now")
        return {event.n: event.ref for event in events}

    hub = Hub(stores.redis, stores.keys, event_log or stores.events, hydrate, compare_every_s)
    hub.start()
    try:
        yield hub
    finally:
        await hub.close()


async def test_failed_hydration_delays_events_and_loses_none(scenario: TopicScenario) -> None:
    async with running_hub(scenario.stores, failures=3) as hub, recorded_events(hub, scenario.stream) as recorder:
        for _ in range(3):
            await scenario.post()

        async def have_all_arrived() -> bool:
            await hub.compare()
            return await recorder.wait_for_event(3, 0.1)

        assert await poll_until_true(have_all_arrived)
    assert recorder.numbers == [1, 2, 3]


async def test_position_before_a_missing_event_is_expired(scenario: TopicScenario) -> None:
    for _ in range(3):
        await scenario.post()
    head = await scenario.stores.events.head(scenario.stream)
    assert len(await scenario.stores.hub.replay(scenario.stream, StreamPosition(head.epoch, 1))) == 2
    await scenario.stores.mongo["events"].delete_one({"_id": {"s": scenario.stream.name, "n": 2}})
    with pytest.raises(PositionExpired):
        await scenario.stores.hub.replay(scenario.stream, StreamPosition(head.epoch, 1))
    assert len(await scenario.stores.hub.replay(scenario.stream, StreamPosition(head.epoch, 2))) == 1


def test_position_is_resumable_between_floor_and_head() -> None:
    head = StreamHead(n=9, floor=4, epoch="e")
    assert [n for n in range(12) if is_resumable(StreamPosition("e", n), head)] == [4, 5, 6, 7, 8, 9]
    assert not is_resumable(StreamPosition("f", 5), head)


def test_full_queue_is_emptied_and_takes_no_more_events() -> None:
    subscriber, event = Subscriber(), HydratedEvent(Event(1, "MessagePosted", 1, datetime.now(UTC)), None)
    lengths = []
    for _ in range(MAX_QUEUE + 3):
        subscriber.push(event)
        lengths.append(len(subscriber.queue))
    assert lengths == [*range(1, MAX_QUEUE + 1), 0, 0, 0]
    assert subscriber.has_overflowed
