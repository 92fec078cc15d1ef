"""Several streams under one cursor: each without gaps, whatever joins and leaves meanwhile."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

import storage.streams.merged_subscription
from storage.errors import BadUserInput
from storage.ids import new_id
from storage.stores import Stores
from storage.streams.changes import Batch, Change
from storage.streams.log import Position, Stream
from storage.streams.merged_subscription import (
    MergedEvent,
    MergedStart,
    follow_merged,
    format_positions,
    parse_positions,
)
from tests.storage.places import found_place, soon

pytestmark = pytest.mark.anyio

MAIN = Stream("home", "o/a")
NOWHERE = Position("none", 0)
NOWHERE = Position("none", 0)
Step = MergedStart | MergedEvent


class Say(Change[None]):
    """One event that speaks of itself."""

    def __init__(self, ref: str) -> None:
        self.ref = ref

    def plan(self, batch: Batch) -> None:
        batch.emit("TopicCreated", self.ref)


class Ensemble:
    """A main stream with others. Events speak of a topic, so that they have an object."""

    def __init__(self, stores: Stores, topic_id: str) -> None:
        self.stores, self.topic_id = stores, topic_id
        self.main = Stream("community", f"main-{new_id()}")
        self.others: dict[Stream, Position] = {}
        self.looks = 0

    def join(self, begin: Position = NOWHERE) -> Stream:
        stream = Stream("community", f"other-{new_id()}")
        self.others[stream] = begin
        return stream

    async def say(self, *streams: Stream) -> None:
        for stream in streams:
            await self.stores.sequencer.commit(stream, Say(self.topic_id))

    async def who(self) -> dict[Stream, Position]:
        self.looks += 1
        return self.others

    def follow(self, since: str | None = None) -> AsyncGenerator[Step, None]:
        positions = None if since is None else parse_positions(self.main, since)
        return follow_merged(self.stores.hub, self.main, self.who, positions)


async def following(steps: AsyncGenerator[Step, None]) -> Step:
    async with asyncio.timeout(60):
        return await anext(steps)


@pytest.fixture
async def ensemble(shared_stores: Stores) -> Ensemble:
    return Ensemble(shared_stores, (await found_place(shared_stores)).topic.id)


async def test_merged_events_arrive_once_in_order_of_each_stream(ensemble: Ensemble) -> None:
    one, other = ensemble.join(), ensemble.join()
    streams = [ensemble.main, one, other]
    async with aclosing(ensemble.follow()) as steps:
        assert isinstance(await following(steps), MergedStart)
        await asyncio.gather(*(ensemble.say(*[stream] * 10) for stream in streams))
        heard = [await following(steps) for _ in range(30)]
    for stream in streams:
        numbers = [step.event.event.n for step in heard if isinstance(step, MergedEvent) and step.stream == stream]
        assert numbers == list(range(1, 11))


async def test_each_merged_cursor_resumes_all_streams_exactly(ensemble: Ensemble) -> None:
    streams = [ensemble.main, ensemble.join(), ensemble.join()]
    async with aclosing(ensemble.follow()) as steps:
        await following(steps)
        await asyncio.gather(*(ensemble.say(*[stream] * 4) for stream in streams))
        heard = [await following(steps) for _ in range(12)]
    told = [(step.stream, step.event.event.n) for step in heard if isinstance(step, MergedEvent)]
    for index in (0, 5, 10):
        async with aclosing(ensemble.follow(heard[index].cursor)) as steps:
            ready = await following(steps)
            assert isinstance(ready, MergedStart)
            assert (ready.resumed, ready.cursor) == (True, heard[index].cursor)
            rest = [await following(steps) for _ in range(11 - index)]
        again = {(step.stream, step.event.event.n) for step in rest if isinstance(step, MergedEvent)}
        assert again == set(told[index + 1 :])


async def test_stream_added_between_subscriptions_is_replayed_whole(ensemble: Ensemble) -> None:
    async with aclosing(ensemble.follow()) as steps:
        cursor = (await following(steps)).cursor
    new = ensemble.join()
    head = await ensemble.stores.events.head(new)
    ensemble.others[new] = Position(head.epoch, 1)
    await ensemble.say(new, new, new)
    async with aclosing(ensemble.follow(cursor)) as steps:
        ready = await following(steps)
        assert isinstance(ready, MergedStart)
        assert ready.resumed
        heard = [await following(steps) for _ in range(2)]
    assert [step.event.event.n for step in heard if isinstance(step, MergedEvent)] == [2, 3]


async def test_streams_join_and_leave_during_subscription(ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage.streams.merged_subscription, "REFRESH_EVERY_S", 0.05)
    async with aclosing(ensemble.follow()) as steps:
        await following(steps)
        new = ensemble.join()
        await ensemble.say(new)
        heard = await following(steps)
        assert isinstance(heard, MergedEvent)
        assert heard.stream == new
        del ensemble.others[new]
        waiting = asyncio.create_task(following(steps))
        before = ensemble.looks

        async def was_looked_for() -> bool:
            return ensemble.looks >= before + 3

        assert await soon(was_looked_for)
        await ensemble.say(new)
        await ensemble.say(ensemble.main)
        last = await waiting
        assert isinstance(last, MergedEvent)
        assert last.stream == ensemble.main


async def test_expired_merged_cursor_is_reported_once(ensemble: Ensemble) -> None:
    other = ensemble.join()
    async with aclosing(ensemble.follow()) as steps:
        await following(steps)
        await ensemble.say(ensemble.main, other)
        cursor = (await following(steps)).cursor
    await ensemble.stores.mongo["streams"].update_one({"_id": other.head_id}, {"$set": {"epoch": "another"}})
    async with aclosing(ensemble.follow(cursor)) as steps:
        ready = await following(steps)
        assert isinstance(ready, MergedStart)
        assert not ready.resumed
        await ensemble.say(ensemble.main)
        assert isinstance(await following(steps), MergedEvent)


@pytest.mark.parametrize("text", ["", "x", "a.b", "zzzzzzzzzz;.e.1", "zzzzzzzzzz", ";;;", "a;.e.one"])
def test_what_is_no_cursor_of_it_is_refused(text: str) -> None:
    for cursor in (text, base64.urlsafe_b64encode(text.encode()).decode()):
        with pytest.raises(BadUserInput):
            parse_positions(MAIN, cursor)


def test_merged_cursor_round_trips_for_its_own_stream_only() -> None:
    positions = {"": Position("e", 5), "0123456789": Position("f", 2**60)}
    cursor = format_positions(MAIN, positions)
    assert parse_positions(MAIN, cursor) == positions
    with pytest.raises(BadUserInput):
        parse_positions(Stream("home", "o/b"), cursor)
