"""Signals of people who type reach the subscribers of every process, end by themselves, and are bounded."""

import asyncio
from typing import Any

import pytest

from server.embedded import Valkey
from storage.identity.presence import typing_hub
from storage.identity.presence.typing_hub import MAX_RECENT, MAX_SHOWN, MAX_STORED, typing_stream
from storage.ids import new_id
from storage.streams.hub import PositionExpired
from storage.streams.log import StreamPosition
from tests.storage.event_recorder import EventRecorder, recorded_events
from tests.storage.topic_scenario import OpenStores
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typing_hub, "POLL_EVERY_S", 0.05)
    monkeypatch.setattr(typing_hub, "SIGNAL_EVERY_S", 0.0)
    monkeypatch.setattr(typing_hub, "TYPING_S", 0.5)


@pytest.fixture
def topic() -> str:
    return new_id()


def changes(recorder: EventRecorder) -> list[tuple[str, Any]]:
    """Returns the kind and the person of each event."""
    return [(item.event.event.kind, item.event.subject) for item in recorder.received]


async def until_changes(recorder: EventRecorder, *expected: tuple[str, str]) -> None:
    await until(lambda: len(changes(recorder)) >= len(expected))
    assert changes(recorder) == list(expected)


STARTED, ENDED = ("TypingStarted", "ann"), ("TypingEnded", "ann")


async def test_typing_of_another_process_starts_and_ends(open_process: OpenStores, topic: str) -> None:
    async with open_process() as one, open_process() as other:
        async with recorded_events(other.typing, typing_stream(topic)) as recorder:
            await one.typing.begin(topic, "ann")
            await until_changes(recorder, STARTED)
            assert await other.typing.people(topic) == await one.typing.people(topic) == ["ann"]
            await one.typing.end(topic, "ann")
            await until_changes(recorder, STARTED, ENDED)
        assert not other.typing._topics


async def test_typing_ends_by_itself(open_process: OpenStores, topic: str) -> None:
    async with open_process() as reader, recorded_events(reader.typing, typing_stream(topic)) as recorder:
        async with open_process() as stopping:
            await stopping.typing.begin(topic, "ann")
            await until_changes(recorder, STARTED)
        await until_changes(recorder, STARTED, ENDED)
        assert await reader.typing.people(topic) == []


async def test_repeated_signal_extends_the_typing(
    open_process: OpenStores, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process() as stores:
        ends_at: list[float | None] = []
        for seconds in (60.0, 120.0):
            monkeypatch.setattr(typing_hub, "TYPING_S", seconds)
            await stores.typing.begin(topic, "ann")
            ends_at.append(await stores.redis.zscore(stores.keys.typing(topic), "ann"))
        assert ends_at[0] is not None
        assert ends_at[1] is not None
        assert ends_at[1] - ends_at[0] >= 60_000


async def test_fast_signals_are_not_written(
    open_process: OpenStores, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_hub, "SIGNAL_EVERY_S", 3600.0)
    async with open_process() as stores:
        await stores.typing.begin(topic, "ann")
        await stores.redis.delete(stores.keys.typing(topic))
        await stores.typing.begin(topic, "ann")
        assert await stores.typing.people(topic) == []
        await stores.typing.end(topic, "ann")
        await stores.typing.begin(topic, "ann")
        assert await stores.typing.people(topic) == ["ann"]


async def test_crowd_of_typing_people_is_bounded(
    open_process: OpenStores, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_hub, "TYPING_S", 60.0)
    people = [f"p{number:02}" for number in range(3 * MAX_STORED)]
    async with open_process() as stores, recorded_events(stores.typing, typing_stream(topic)) as recorder:
        await asyncio.gather(*(stores.typing.begin(topic, each) for each in people))
        await until(lambda: len(changes(recorder)) >= MAX_SHOWN)
        assert await stores.redis.zcard(stores.keys.typing(topic)) == MAX_STORED
        shown = await stores.typing.people(topic)
        assert len(shown) == len(changes(recorder)) == MAX_SHOWN
        await stores.typing.end(topic, shown[0])
        await until(lambda: len(changes(recorder)) >= MAX_SHOWN + 2)
        assert changes(recorder)[MAX_SHOWN] == ("TypingEnded", shown[0])
        now_shown = await stores.typing.people(topic)
        assert now_shown[: MAX_SHOWN - 1] == shown[1:]
        assert len(now_shown) == MAX_SHOWN


async def test_typing_ends_without_redis_and_returns(
    open_process: OpenStores, own_valkey: Valkey, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_hub, "TYPING_S", 60.0)
    async with (
        open_process(own_valkey.url) as stores,
        recorded_events(stores.typing, typing_stream(topic)) as recorder,
    ):
        await stores.typing.begin(topic, "ann")
        await until_changes(recorder, STARTED)
        await own_valkey.stop()
        await until_changes(recorder, STARTED, ENDED)
        await stores.typing.begin(topic, "ann")
        await stores.typing.end(topic, "ann")
        assert await stores.typing.people(topic) == []
        await own_valkey.start()

        async def has_started_again() -> bool:
            await stores.typing.begin(topic, "ann")
            return changes(recorder)[2:] == [STARTED]

        await until(has_started_again)


async def test_forgotten_events_are_not_replayed(open_process: OpenStores, topic: str) -> None:
    async with open_process() as stores:
        stream = typing_stream(topic)
        async with stores.typing.subscribe(stream):
            epoch = (await stores.typing.head(stream)).epoch
            state = stores.typing._topics[topic]
            for number in range(MAX_RECENT):
                state.show(["ann"] if number % 2 == 0 else [])
            assert len(await stores.typing.replay(stream, StreamPosition(epoch, 0))) == MAX_RECENT
            state.show(["ann"])
            with pytest.raises(PositionExpired):
                await stores.typing.replay(stream, StreamPosition(epoch, 0))
            with pytest.raises(PositionExpired):
                await stores.typing.replay(stream, StreamPosition("another", 1))
