"""The event log: cursors, replay in order, and pruning that always raises the floor first."""

import asyncio
import base64
import gc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymongo.errors import OperationFailure

from server.embedded import Mongod
from storage.errors import BadUserInput, NotFound
from storage.mongo import Mongo
from storage.stores import Stores
from storage.streams.documents import EventDocument
from storage.streams.log import Stream, StreamHead, StreamPosition, format_cursor, parse_cursor, parse_stream_name
from tests.storage.faults import failpoint
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

TOPIC = Stream("topic", "t1")
NOON, SECOND, HOUR = datetime(2026, 12, 1, 12, tzinfo=UTC), timedelta(seconds=1), timedelta(hours=1)
EPOCHS = st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=1, max_size=12)


@given(EPOCHS, st.integers(0, 2**63 - 1))
def test_position_round_trips_as_cursor(epoch: str, n: int) -> None:
    cursor = format_cursor(TOPIC, StreamPosition(epoch, n))
    assert parse_cursor(TOPIC, cursor) == StreamPosition(epoch, n)
    assert cursor.isascii()
    assert not set(cursor) & set("=/+ ")


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_malformed_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadUserInput) as refusal:
        parse_cursor(TOPIC, text)
    assert refusal.value.extensions["field"] == "since"


@pytest.mark.parametrize("content", ["a.b", "a.b.c.d", "....", "x.e.", "x.e.1.5", "x.e.one", "x.e." + "9" * 5000])
def test_cursor_with_malformed_content_is_refused(content: str) -> None:
    with pytest.raises(BadUserInput):
        parse_cursor(TOPIC, base64.urlsafe_b64encode(content.encode()).decode())


def test_cursor_of_another_stream_is_refused() -> None:
    cursor = format_cursor(Stream("topic", "t2"), StreamPosition("e", 1))
    for stream in (TOPIC, Stream("community", "t2")):
        with pytest.raises(BadUserInput):
            parse_cursor(stream, cursor)


@given(st.sampled_from(["topic", "community", "user", "jobs"]), st.text())
def test_stream_name_round_trips(kind: str, id_: str) -> None:
    assert parse_stream_name(Stream(kind, id_).name) == Stream(kind, id_)


async def test_concurrent_reads_create_one_head(shared_stores: Stores) -> None:
    stream = Stream("user", "org/new")
    heads = await asyncio.gather(*(shared_stores.events.head(stream) for _ in range(20)))
    assert len(set(heads)) == 1
    assert (heads[0].n, heads[0].floor) == (0, 0)


async def test_concurrent_heads_are_read_together(scenario: TopicScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    finds, find = list[str](), Mongo.find

    async def recording_find(mongo: Mongo, collection: str, *args: Any) -> list[Any]:
        finds.append(collection)
        return await find(mongo, collection, *args)

    streams = [scenario.stream, Stream("user", "org/ann"), Stream("user", "org/bob")]
    expected = [await scenario.stores.events.head(stream) for stream in streams]
    monkeypatch.setattr(Mongo, "find", recording_find)
    heads = await asyncio.gather(*(scenario.stores.events.head(stream) for stream in streams * 20))
    assert heads == expected * 20
    assert sorted(finds) == ["streams", "topics"]


async def test_head_is_read_after_the_call(scenario: TopicScenario) -> None:
    """A read that is in progress must not answer a later call: its head may be older than the call."""
    for number in range(1, 6):
        earlier = asyncio.create_task(scenario.stores.events.head(scenario.stream))
        await scenario.post()
        later, _ = await asyncio.gather(scenario.stores.events.head(scenario.stream), earlier)
        assert later.n == number


async def test_missing_topic_has_no_head(shared_stores: Stores) -> None:
    with pytest.raises(NotFound):
        await shared_stores.events.head(Stream("topic", "nowhere"))


async def test_log_is_read_in_order_and_in_pages(scenario: TopicScenario) -> None:
    other = await create_topic_scenario(scenario.stores)
    for _ in range(12):
        await scenario.post()
        await other.post()
    log = scenario.stores.events
    assert [event.n for event in await log.read(scenario.stream, 0)] == list(range(1, 13))
    assert [event.n for event in await log.read(scenario.stream, 7, limit=3)] == [8, 9, 10]
    assert await log.read(scenario.stream, 12) == []


async def test_heads_of_many_streams_are_read_together(scenario: TopicScenario) -> None:
    await scenario.post()
    user, unknown = Stream("user", "org/ann"), Stream("user", "org/nobody")
    user_head = await scenario.stores.events.head(user)
    heads = await scenario.stores.events.heads([scenario.stream, user, unknown, Stream("topic", "nowhere")])
    assert heads == {scenario.stream: await scenario.stores.events.head(scenario.stream), user: user_head}


@may_leave_sockets
async def test_cancelled_log_read_raises_cancelled_error(scenario: TopicScenario) -> None:
    """If a read suppressed its cancellation, a caller that awaits the task would hang."""
    log = scenario.stores.events
    for attempt in range(200):
        for read in (log.head(scenario.stream), log.read(scenario.stream, 0), log.heads([scenario.stream])):
            task: asyncio.Task[object] = asyncio.create_task(read)
            await asyncio.sleep(attempt / 100_000)
            was_done = not task.cancel()
            await asyncio.wait([task])
            assert was_done or task.cancelled()
    gc.collect()


async def event_numbers(scenario: TopicScenario) -> list[int]:
    return [event["_id"]["n"] for event in await scenario.events()]


async def post_five(scenario: TopicScenario) -> None:
    await asyncio.gather(*(scenario.post() for _ in range(5)))


async def test_pruning_deletes_old_events_and_raises_floors(stores: Stores) -> None:
    one, other = await create_topic_scenario(stores), await create_topic_scenario(stores)
    for scenario, old_event_count in ((one, 3), (other, 5)):
        await post_five(scenario)
        await scenario.age_events(old_event_count)
    assert await stores.events.prune() == 8
    assert (await event_numbers(one), await event_numbers(other)) == ([4, 5], [])
    heads = [await stores.events.head(scenario.stream) for scenario in (one, other)]
    assert [(head.n, head.floor) for head in heads] == [(5, 3), (5, 5)]
    assert await stores.events.prune() == 0


async def test_pruning_continues_after_its_last_batch(stores: Stores) -> None:
    scenario = await create_topic_scenario(stores)
    await post_five(scenario)
    await scenario.age_events(5)
    while await stores.events.prune(batch=2):
        head: StreamHead = await stores.events.head(scenario.stream)
        assert await event_numbers(scenario) == list(range(head.floor + 1, 6))
    assert (await stores.events.head(scenario.stream)).floor == 5


async def test_events_younger_than_a_day_are_kept(stores: Stores) -> None:
    scenario = await create_topic_scenario(stores)
    await post_five(scenario)
    assert await stores.events.prune() == 0
    assert await event_numbers(scenario) == [1, 2, 3, 4, 5]


async def test_interrupted_pruning_deletes_nothing_above_floor(own_scenario: TopicScenario, own_mongod: Mongod) -> None:
    await post_five(own_scenario)
    await own_scenario.age_events(4)
    for command, floor in (("update", 0), ("delete", 4)):
        async with failpoint(own_mongod.uri, command, errorCode=20):
            with pytest.raises(OperationFailure):
                await own_scenario.stores.events.prune()
        assert (await own_scenario.stores.events.head(own_scenario.stream)).floor == floor
        assert await event_numbers(own_scenario) == [1, 2, 3, 4, 5]


async def test_posting_continues_while_log_is_pruned(scenario: TopicScenario) -> None:
    await post_five(scenario)
    await scenario.age_events(5)
    await asyncio.gather(scenario.stores.events.prune(), *(scenario.post() for _ in range(50)))
    head = await scenario.stores.events.head(scenario.stream)
    assert (head.n, head.floor) == (55, 5)
    assert await event_numbers(scenario) == list(range(6, 56))


async def insert_events(stores: Stores, kinds_and_times: Sequence[tuple[str, datetime]]) -> None:
    """Stores events of one stream with these kinds and times, numbered from 1."""
    rows = [
        {"_id": {"s": "user:o/ann", "n": n}, "kind": kind, "ref": 1, "at": at}
        for n, (kind, at) in enumerate(kinds_and_times, 1)
    ]
    await stores.mongo["events"].insert_many(rows)


def numbers(page: Sequence[EventDocument]) -> list[int]:
    return sorted(event["_id"]["n"] for event in page)


async def test_page_by_time_has_all_events_of_its_last_instant(stores: Stores) -> None:
    times = [NOON, NOON + SECOND, NOON + SECOND, NOON + SECOND, NOON + 2 * SECOND]
    await insert_events(stores, [("MessagePosted", at) for at in times])
    page, end = await stores.events.page_by_time(NOON - SECOND, NOON + HOUR, 2)
    assert (numbers(page), end) == ([1], NOON)
    page, end = await stores.events.page_by_time(end, NOON + HOUR, 2)
    assert (numbers(page), end) == ([2, 3, 4], NOON + SECOND)
    assert await stores.events.page_by_time(NOON + HOUR, NOON, 2) == ([], NOON + HOUR)


async def test_page_by_time_selects_kinds(stores: Stores) -> None:
    kinds = ["NotificationArrived", "MessagePosted", "ConversationChanged", "NotificationArrived", "MessagePosted"]
    await insert_events(stores, [(kind, NOON) for kind in kinds])
    one, both = ["NotificationArrived"], ["NotificationArrived", "ConversationChanged"]
    # Limits of 2 and 3 are reached by events of one instant.
    for chosen, limit, found in ((one, 2, [1, 4]), (one, 9, [1, 4]), (both, 3, [1, 3, 4]), (None, 2, [1, 2, 3, 4, 5])):
        page, _ = await stores.events.page_by_time(NOON - SECOND, NOON + HOUR, limit, chosen)
        assert numbers(page) == found
