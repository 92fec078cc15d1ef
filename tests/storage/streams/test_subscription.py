"""One subscription: its start, delivery without gaps or duplicates, and recovery when its reader falls behind."""

import asyncio
import random
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from prometheus_client import REGISTRY

from storage.chat.roles import Moderator
from storage.errors import NotFound
from storage.streams.hub import MAX_QUEUE
from storage.streams.log import REPLAY_LIMIT, Stream, StreamPosition
from storage.streams.subscription import StreamEvent, SubscriptionStart, follow_events
from tests.storage.event_recorder import recorded_events
from tests.storage.topic_scenario import OpenStores, TopicScenario
from tests.waiting import poll_until_true

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_head_comparisons")]


async def position_after(scenario: TopicScenario, n: int = 0) -> StreamPosition:
    """Returns the position after event n of the topic's stream."""
    return StreamPosition((await scenario.stores.events.head(scenario.stream)).epoch, n)


async def post_many(scenario: TopicScenario, count: int) -> None:
    await asyncio.gather(*(scenario.post(str(number)) for number in range(count)))


async def subscription_start(scenario: TopicScenario, since: StreamPosition | None) -> SubscriptionStart:
    """Subscribes, and returns the first item."""
    async with aclosing(follow_events(scenario.stores.hub, scenario.stream, since)) as items:
        item = await anext(items)
    assert isinstance(item, SubscriptionStart)
    return item


async def test_subscription_without_cursor_starts_at_head(scenario: TopicScenario) -> None:
    await post_many(scenario, 3)
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        assert (recorder.starts[0].position, recorder.starts[0].resumed) == (await position_after(scenario, 3), False)
        await post_many(scenario, 2)
        assert await recorder.wait_for_event(5)
    assert recorder.numbers == [4, 5]


async def test_subscription_with_cursor_continues_after_it(scenario: TopicScenario) -> None:
    await post_many(scenario, 5)
    since = await position_after(scenario, 2)
    async with recorded_events(scenario.stores.hub, scenario.stream, since) as recorder:
        assert (recorder.starts[0].position, recorder.starts[0].resumed) == (since, True)
        await post_many(scenario, 2)
        assert await recorder.wait_for_event(7)
    assert recorder.numbers == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(("n", "resumed"), [(-1, False), (1, False), (2, True), (4, True), (5, False), (2**70, False)])
async def test_subscription_resumes_only_between_floor_and_head(scenario: TopicScenario, n: int, resumed: bool) -> None:
    await post_many(scenario, 4)
    await scenario.stores.mongo["topics"].update_one({"_id": scenario.topic.id}, {"$set": {"floor": 2}})
    start = await subscription_start(scenario, await position_after(scenario, n))
    assert start.resumed == resumed
    assert start.position.n == (n if resumed else 4)


async def test_cursor_of_another_epoch_does_not_resume(scenario: TopicScenario) -> None:
    await post_many(scenario, 4)
    start = await subscription_start(scenario, StreamPosition("restored", 2))
    assert (start.resumed, start.position) == (False, await position_after(scenario, 4))


async def test_missing_topic_cannot_be_subscribed_to(scenario: TopicScenario) -> None:
    with pytest.raises(NotFound):
        await anext(follow_events(scenario.stores.hub, Stream("topic", "nowhere"), None))
    assert "topic:nowhere" not in scenario.stores.hub._states


async def test_subscriptions_during_posts_have_no_gap_or_duplicate(
    scenario: TopicScenario, open_process: OpenStores
) -> None:
    async with open_process() as stores, AsyncExitStack() as stack:
        posting = asyncio.create_task(post_slowly(scenario.with_stores(stores), 180))
        recorders = []
        while not posting.done():
            head = await scenario.stores.events.head(scenario.stream)
            since = StreamPosition(head.epoch, random.randint(0, head.n)) if random.random() < 0.7 else None
            recorders.append(
                await stack.enter_async_context(recorded_events(scenario.stores.hub, scenario.stream, since))
            )
        for recorder in recorders:
            start_n = recorder.starts[0].position.n
            assert start_n == 180 or await recorder.wait_for_event(180)
            assert recorder.numbers == list(range(start_n + 1, 181))
            assert len(recorder.starts) == 1
    assert len(recorders) > 5


async def post_slowly(scenario: TopicScenario, count: int) -> None:
    """Posts messages in groups of three, each after the previous group is committed."""
    for number in range(0, count, 3):
        await asyncio.gather(*(scenario.post(str(number + each)) for each in range(3)))


async def test_post_during_subscribe_arrives_without_another_post(
    scenario: TopicScenario, open_process: OpenStores
) -> None:
    async with open_process() as stores:
        poster = scenario.with_stores(stores)
        for n in range(1, 41):
            posting = asyncio.create_task(poster.post())
            async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
                await posting
                # The post either precedes the subscription or arrives in it.
                assert recorder.starts[0].position.n == n or await recorder.wait_for_event(n)


async def test_slow_reader_continues_from_log(scenario: TopicScenario) -> None:
    overflows_before = REGISTRY.get_sample_value("noroshi_hub_overflows_total") or 0
    count = 2 * MAX_QUEUE
    async with aclosing(follow_events(scenario.stores.hub, scenario.stream, None)) as items:
        await anext(items)
        await post_many(scenario, 1)
        numbers = [await next_number(items)]
        await post_many(scenario, count)
        assert await poll_until_true(lambda: has_overflowed(overflows_before))
        numbers += [await next_number(items) for _ in range(count)]
        await post_many(scenario, 1)
        numbers.append(await next_number(items))
    assert numbers == list(range(1, count + 3))


async def has_overflowed(previous_count: float) -> bool:
    return (REGISTRY.get_sample_value("noroshi_hub_overflows_total") or 0) > previous_count


async def next_number(items: Any) -> int:
    """Returns the number of the next event."""
    while not isinstance(item := await anext(items), StreamEvent):
        pass
    return item.position.n


async def test_reader_of_partly_pruned_log_restarts_at_head(scenario: TopicScenario) -> None:
    await post_many(scenario, REPLAY_LIMIT + 100)
    async with aclosing(follow_events(scenario.stores.hub, scenario.stream, await position_after(scenario))) as items:
        await anext(items)
        numbers = [await next_number(items) for _ in range(REPLAY_LIMIT)]
        await scenario.age_events(REPLAY_LIMIT + 50)
        await scenario.stores.events.prune()
        restart = await anext(items)
        await scenario.post()
        last = await next_number(items)
    assert numbers == list(range(1, REPLAY_LIMIT + 1))
    assert isinstance(restart, SubscriptionStart)
    assert (restart.resumed, restart.position.n) == (False, REPLAY_LIMIT + 100)
    assert last == REPLAY_LIMIT + 101


async def test_reader_of_fully_pruned_log_restarts_at_head(scenario: TopicScenario) -> None:
    await post_many(scenario, REPLAY_LIMIT + 10)
    async with aclosing(follow_events(scenario.stores.hub, scenario.stream, await position_after(scenario))) as items:
        await anext(items)
        for _ in range(REPLAY_LIMIT):
            await next_number(items)
        await scenario.age_events(REPLAY_LIMIT + 10)
        await scenario.stores.events.prune()
        restart = await anext(items)
    assert isinstance(restart, SubscriptionStart)
    assert (restart.resumed, restart.position.n) == (False, REPLAY_LIMIT + 10)


async def test_deleted_text_is_not_replayed(scenario: TopicScenario) -> None:
    message = await scenario.post("secret")
    await scenario.stores.messages.delete(message.key, Moderator("ann"))
    async with recorded_events(scenario.stores.hub, scenario.stream, await position_after(scenario)) as recorder:
        assert await recorder.wait_for_event(2)
    assert [subject.text for subject in recorder.subjects] == ["", ""]


async def test_events_of_missing_objects_are_skipped(scenario: TopicScenario) -> None:
    messages = [await scenario.post() for _ in range(3)]
    await scenario.stores.mongo["messages"].delete_one({"_id": messages[1].key.document_id})
    async with recorded_events(scenario.stores.hub, scenario.stream, await position_after(scenario)) as recorder:
        assert await recorder.wait_for_event(3)
        await scenario.stores.mongo["messages"].delete_one({"_id": messages[2].key.document_id})
        await scenario.post()
        assert await recorder.wait_for_event(4)
    assert recorder.numbers == [1, 3, 4]


async def test_stream_restored_from_backup_restarts_readers(scenario: TopicScenario) -> None:
    await post_many(scenario, 5)
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:
        restored_head = {"epoch": "restored", "n": 2}
        await scenario.stores.mongo["events"].delete_many({"_id.s": scenario.stream.name, "_id.n": {"$gt": 2}})
        await scenario.stores.mongo["topics"].update_one({"_id": scenario.topic.id}, {"$set": restored_head})
        await scenario.stores.hub.compare()
        assert await recorder.wait_for_start(times=2)
        assert (recorder.starts[1].position, recorder.starts[1].resumed) == (StreamPosition("restored", 2), False)
        await scenario.post()
        assert await recorder.wait_for_event(3)
    assert recorder.numbers == [3]


async def test_idle_stream_is_reported(scenario: TopicScenario) -> None:
    async with recorded_events(scenario.stores.hub, scenario.stream) as recorder:

        async def was_idle() -> bool:
            return recorder.idle_timeouts > 0

        assert await poll_until_true(was_idle)


async def test_ended_subscription_leaves_no_state(scenario: TopicScenario) -> None:
    channel = scenario.stores.keys.channel(scenario.stream.name)
    async with recorded_events(scenario.stores.hub, scenario.stream):
        assert await scenario.stores.redis.pubsub_numsub(channel) == [(channel.encode(), 1)]

    async def is_unsubscribed() -> bool:
        return bool(await scenario.stores.redis.pubsub_numsub(channel) == [(channel.encode(), 0)])

    assert await poll_until_true(is_unsubscribed)
    assert scenario.stream.name not in scenario.stores.hub._states
