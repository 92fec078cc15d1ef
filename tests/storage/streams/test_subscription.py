"""One subscription: its start, no gaps and no duplicates, and recovery when it falls behind."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from prometheus_client import REGISTRY

from storage.errors import NotFound
from storage.streams.hub import MAX_QUEUE
from storage.streams.log import REPLAY_LIMIT, Position, Stream
from storage.streams.subscription import StreamEvent, SubscriptionStart, follow_events
from tests.storage.listening import listening
from tests.storage.places import OpenStores, Place, soon

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def no_head_comparisons() -> Iterator[None]:
    """Disables the periodic comparison of heads, so events arrive only by Redis or by an explicit comparison."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.streams.hub.COMPARE_EVERY_S", 3600.0)
        yield


async def start(place: Place, n: int = 0) -> Position:
    """Returns the position after event n of the topic's stream."""
    return Position((await place.stores.events.head(place.stream)).epoch, n)


async def post_many(place: Place, count: int) -> None:
    await asyncio.gather(*(place.post(str(number)) for number in range(count)))


async def first_step(place: Place, since: Position | None) -> SubscriptionStart:
    async with aclosing(follow_events(place.stores.hub, place.stream, since)) as steps:
        step = await anext(steps)
    assert isinstance(step, SubscriptionStart)
    return step


async def test_subscription_without_cursor_starts_at_head(place: Place) -> None:
    await post_many(place, 3)
    async with listening(place.stores.hub, place.stream) as listener:
        assert (listener.ready[0].position, listener.ready[0].resumed) == (await start(place, 3), False)
        await post_many(place, 2)
        assert await listener.has_heard(5)
    assert listener.numbers == [4, 5]


async def test_subscription_with_cursor_continues_after_it(place: Place) -> None:
    await post_many(place, 5)
    since = await start(place, 2)
    async with listening(place.stores.hub, place.stream, since) as listener:
        assert (listener.ready[0].position, listener.ready[0].resumed) == (since, True)
        await post_many(place, 2)
        assert await listener.has_heard(7)
    assert listener.numbers == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(("n", "resumed"), [(-1, False), (1, False), (2, True), (4, True), (5, False), (2**70, False)])
async def test_subscription_resumes_only_between_floor_and_head(place: Place, n: int, resumed: bool) -> None:
    await post_many(place, 4)
    await place.stores.mongo["topics"].update_one({"_id": place.topic.id}, {"$set": {"floor": 2}})
    ready = await first_step(place, await start(place, n))
    assert ready.resumed == resumed
    assert ready.position.n == (n if resumed else 4)


async def test_cursor_of_another_epoch_does_not_resume(place: Place) -> None:
    await post_many(place, 4)
    ready = await first_step(place, Position("restored", 2))
    assert (ready.resumed, ready.position) == (False, await start(place, 4))


async def test_missing_topic_cannot_be_subscribed_to(place: Place) -> None:
    with pytest.raises(NotFound):
        await anext(follow_events(place.stores.hub, Stream("topic", "nowhere"), None))
    assert "topic:nowhere" not in place.stores.hub._locals


async def test_subscriptions_during_posts_have_no_gap_or_duplicate(place: Place, another: OpenStores) -> None:
    async with another() as stores, AsyncExitStack() as listeners:
        posting = asyncio.create_task(post_slowly(place.through(stores), 180))
        started = []
        while not posting.done():
            head = await place.stores.events.head(place.stream)
            since = Position(head.epoch, random.randint(0, head.n)) if random.random() < 0.7 else None
            started.append(await listeners.enter_async_context(listening(place.stores.hub, place.stream, since)))
        for listener in started:
            first = listener.ready[0].position.n
            assert first == 180 or await listener.has_heard(180)
            assert listener.numbers == list(range(first + 1, 181))
            assert len(listener.ready) == 1
    assert len(started) > 5


async def post_slowly(place: Place, count: int) -> None:
    for number in range(0, count, 3):
        await asyncio.gather(*(place.post(str(number + each)) for each in range(3)))


async def test_post_during_subscribe_arrives_without_another_post(place: Place, another: OpenStores) -> None:
    async with another() as stores:
        poster = place.through(stores)
        for n in range(1, 41):
            posting = asyncio.create_task(poster.post())
            async with listening(place.stores.hub, place.stream) as listener:
                await posting
                # It was there before the subscription began, or it arrives.
                assert listener.ready[0].position.n == n or await listener.has_heard(n)


async def test_slow_reader_continues_from_log(place: Place) -> None:
    overflows = REGISTRY.get_sample_value("noroshi_hub_overflows_total") or 0
    count = 2 * MAX_QUEUE
    async with aclosing(follow_events(place.stores.hub, place.stream, None)) as steps:
        await anext(steps)
        await post_many(place, 1)
        numbers = [await number_of(steps)]
        await post_many(place, count)
        assert await soon(lambda: has_overflowed(overflows))
        numbers += [await number_of(steps) for _ in range(count)]
        await post_many(place, 1)
        numbers.append(await number_of(steps))
    assert numbers == list(range(1, count + 3))


async def has_overflowed(before: float) -> bool:
    return (REGISTRY.get_sample_value("noroshi_hub_overflows_total") or 0) > before


async def number_of(steps: Any) -> int:
    """Returns the number of the next event."""
    while not isinstance(step := await anext(steps), StreamEvent):
        pass
    return step.position.n


async def test_reader_of_partly_pruned_log_restarts_at_head(place: Place) -> None:
    await post_many(place, REPLAY_LIMIT + 100)
    async with aclosing(follow_events(place.stores.hub, place.stream, await start(place))) as steps:
        await anext(steps)
        numbers = [await number_of(steps) for _ in range(REPLAY_LIMIT)]
        await age_events(place, REPLAY_LIMIT + 50)
        await place.stores.events.prune()
        again = await anext(steps)
        await place.post()
        last = await number_of(steps)
    assert numbers == list(range(1, REPLAY_LIMIT + 1))
    assert isinstance(again, SubscriptionStart)
    assert (again.resumed, again.position.n) == (False, REPLAY_LIMIT + 100)
    assert last == REPLAY_LIMIT + 101


async def test_reader_of_fully_pruned_log_restarts_at_head(place: Place) -> None:
    await post_many(place, REPLAY_LIMIT + 10)
    async with aclosing(follow_events(place.stores.hub, place.stream, await start(place))) as steps:
        await anext(steps)
        for _ in range(REPLAY_LIMIT):
            await number_of(steps)
        await age_events(place, REPLAY_LIMIT + 10)
        await place.stores.events.prune()
        again = await anext(steps)
    assert isinstance(again, SubscriptionStart)
    assert (again.resumed, again.position.n) == (False, REPLAY_LIMIT + 10)


async def age_events(place: Place, up_to: int) -> None:
    """Ages the first events beyond the retention period."""
    wanted = {"_id.s": place.stream.name, "_id.n": {"$lte": up_to}}
    day_ms = 25 * 3600 * 1000
    await place.stores.mongo["events"].update_many(wanted, [{"$set": {"at": {"$subtract": ["$at", day_ms]}}}])


async def test_deleted_text_is_not_replayed(place: Place) -> None:
    message = await place.post("secret")
    await place.stores.messages.delete(message.key, "ann", False)
    async with listening(place.stores.hub, place.stream, await start(place)) as listener:
        assert await listener.has_heard(2)
    assert [subject.text for subject in listener.subjects] == ["", ""]


async def test_events_of_missing_objects_are_skipped(place: Place) -> None:
    messages = [await place.post() for _ in range(3)]
    await place.stores.mongo["messages"].delete_one({"_id": messages[1].key.document_id})
    async with listening(place.stores.hub, place.stream, await start(place)) as listener:
        assert await listener.has_heard(3)
        await place.stores.mongo["messages"].delete_one({"_id": messages[2].key.document_id})
        await place.post()
        assert await listener.has_heard(4)
    assert listener.numbers == [1, 3, 4]


async def test_stream_restored_from_backup_restarts_readers(place: Place) -> None:
    await post_many(place, 5)
    async with listening(place.stores.hub, place.stream) as listener:
        restored = {"epoch": "restored", "n": 2}
        await place.stores.mongo["events"].delete_many({"_id.s": place.stream.name, "_id.n": {"$gt": 2}})
        await place.stores.mongo["topics"].update_one({"_id": place.topic.id}, {"$set": restored})
        await place.stores.hub.compare()
        assert await listener.is_ready(times=2)
        assert (listener.ready[1].position, listener.ready[1].resumed) == (Position("restored", 2), False)
        await place.post()
        assert await listener.has_heard(3)
    assert listener.numbers == [3]


async def test_idle_stream_is_reported_periodically(place: Place) -> None:
    async with listening(place.stores.hub, place.stream) as listener:

        async def was_idle() -> bool:
            return listener.idle > 0

        assert await soon(was_idle)


async def test_ended_subscription_leaves_no_state(place: Place) -> None:
    channel = place.stores.keys.channel(place.stream.name)
    async with listening(place.stores.hub, place.stream):
        assert await place.stores.redis.pubsub_numsub(channel) == [(channel.encode(), 1)]

    async def is_gone() -> bool:
        return bool(await place.stores.redis.pubsub_numsub(channel) == [(channel.encode(), 0)])

    assert await soon(is_gone)
    assert place.stream.name not in place.stores.hub._locals
