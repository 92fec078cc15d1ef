"""A subscription to several streams under one cursor: each event once, in the order of its stream, without gaps."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from storage.errors import BadUserInput
from storage.ids import new_id
from storage.stores import Stores
from storage.streams.changes import Batch, SystemChange
from storage.streams.log import Stream, StreamPosition
from storage.streams.merged_subscription import (
    MergedEvent,
    MergedStart,
    follow_merged,
    format_positions,
    parse_positions,
)
from storage.streams.subscription import IdleTimeout
from tests.storage.topic_scenario import create_topic_scenario

pytestmark = pytest.mark.anyio

MAIN = Stream("home", "o/a")
MergedItem = MergedStart | MergedEvent | IdleTimeout


class EmitEvent(SystemChange[None]):
    """Emits one event."""

    def __init__(self, ref: str) -> None:
        self.ref = ref

    def plan(self, batch: Batch) -> None:
        batch.emit("TopicCreated", self.ref)


class MergedStreams:
    """A main stream and other streams. All events refer to one stored topic, so that they can be hydrated."""

    def __init__(self, stores: Stores, topic_id: str) -> None:
        self.stores, self.topic_id = stores, topic_id
        self.main = Stream("community", f"main-{new_id()}")
        self.others: list[Stream] = []

    def add_stream(self) -> Stream:
        self.others.append(Stream("community", f"other-{new_id()}"))
        return self.others[-1]

    async def emit(self, *streams: Stream) -> None:
        for stream in streams:
            await self.stores.sequencer.commit(stream, EmitEvent(self.topic_id))

    def follow(self, since: str | None = None) -> AsyncGenerator[MergedItem, None]:
        positions = None if since is None else parse_positions(self.main, since)
        return follow_merged(self.stores.hub, self.main, self.others, positions)


async def next_item(items: AsyncGenerator[MergedItem, None]) -> MergedStart | MergedEvent:
    async with asyncio.timeout(60):
        while isinstance(item := await anext(items), IdleTimeout):
            pass
        return item


@pytest.fixture
async def merged_streams(shared_stores: Stores) -> MergedStreams:
    return MergedStreams(shared_stores, (await create_topic_scenario(shared_stores)).topic.id)


async def test_merged_events_arrive_once_in_order_of_each_stream(merged_streams: MergedStreams) -> None:
    one, other = merged_streams.add_stream(), merged_streams.add_stream()
    streams = [merged_streams.main, one, other]
    async with aclosing(merged_streams.follow()) as items:
        assert isinstance(await next_item(items), MergedStart)
        await asyncio.gather(*(merged_streams.emit(*[stream] * 10) for stream in streams))
        received = [await next_item(items) for _ in range(30)]
    for stream in streams:
        numbers = [item.event.event.n for item in received if isinstance(item, MergedEvent) and item.stream == stream]
        assert numbers == list(range(1, 11))


async def test_each_merged_cursor_resumes_all_streams_exactly(merged_streams: MergedStreams) -> None:
    streams = [merged_streams.main, merged_streams.add_stream(), merged_streams.add_stream()]
    async with aclosing(merged_streams.follow()) as items:
        await next_item(items)
        await asyncio.gather(*(merged_streams.emit(*[stream] * 4) for stream in streams))
        received = [await next_item(items) for _ in range(12)]
    emitted = [(item.stream, item.event.event.n) for item in received if isinstance(item, MergedEvent)]
    for index in (0, 5, 10):
        async with aclosing(merged_streams.follow(received[index].cursor)) as items:
            start = await next_item(items)
            assert isinstance(start, MergedStart)
            assert (start.resumed, start.cursor) == (True, received[index].cursor)
            remaining_items = [await next_item(items) for _ in range(11 - index)]
        replayed = {(item.stream, item.event.event.n) for item in remaining_items if isinstance(item, MergedEvent)}
        assert replayed == set(emitted[index + 1 :])


async def test_cursor_without_position_in_a_stream_is_not_resumed(merged_streams: MergedStreams) -> None:
    async with aclosing(merged_streams.follow()) as items:
        cursor = (await next_item(items)).cursor
    merged_streams.add_stream()
    async with aclosing(merged_streams.follow(cursor)) as items:
        start = await next_item(items)
        assert isinstance(start, MergedStart)
        assert not start.resumed


async def test_expired_merged_cursor_is_reported_once(merged_streams: MergedStreams) -> None:
    other = merged_streams.add_stream()
    async with aclosing(merged_streams.follow()) as items:
        await next_item(items)
        await merged_streams.emit(merged_streams.main, other)
        cursor = (await next_item(items)).cursor
    await merged_streams.stores.mongo["streams"].update_one({"_id": other.head_id}, {"$set": {"epoch": "another"}})
    async with aclosing(merged_streams.follow(cursor)) as items:
        start = await next_item(items)
        assert isinstance(start, MergedStart)
        assert not start.resumed
        await merged_streams.emit(merged_streams.main)
        assert isinstance(await next_item(items), MergedEvent)


@pytest.mark.parametrize("text", ["", "x", "a.b", "zzzzzzzzzz;.e.1", "zzzzzzzzzz", ";;;", "a;.e.one"])
def test_malformed_merged_cursor_is_refused(text: str) -> None:
    for cursor in (text, base64.urlsafe_b64encode(text.encode()).decode()):
        with pytest.raises(BadUserInput):
            parse_positions(MAIN, cursor)


def test_merged_cursor_round_trips_for_its_own_stream_only() -> None:
    positions = {"": StreamPosition("e", 5), "0123456789": StreamPosition("f", 2**60)}
    cursor = format_positions(MAIN, positions)
    assert parse_positions(MAIN, cursor) == positions
    with pytest.raises(BadUserInput):
        parse_positions(Stream("home", "o/b"), cursor)
