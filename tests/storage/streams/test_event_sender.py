"""The event sender sends events in order and in the background, without delaying commits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from server.embedded import Valkey
from storage.redis.keys import RedisKeys
from storage.streams.event_sender import MAX_QUEUED, EventSender, decode, encode
from storage.streams.log import Event, Stream
from tests.storage.faults import sigstopped

pytestmark = pytest.mark.anyio

KEYS = RedisKeys("test")
TIMEOUT_S = 20
STREAM = Stream("topic", "t")


def new_event(n: int) -> Event:
    return Event(n, "MessagePosted", n, datetime(2026, 11, 21, 12, 0, 0, 123000, UTC))


@given(
    st.text(max_size=20),
    st.lists(
        st.builds(
            Event,
            st.integers(0, 2**53),
            st.text(max_size=20),
            st.integers(0, 2**53) | st.text(max_size=20),
            st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
        ),
        min_size=1,
    ),
)
def test_sent_events_round_trip(epoch: str, events: list[Event]) -> None:
    assert decode(encode(epoch, events)) == (epoch, events)


@asynccontextmanager
async def running_sender(url: str) -> AsyncIterator[EventSender]:
    async with Redis.from_url(url) as redis:
        sender = EventSender(redis, KEYS)
        sender.start()
        try:
            yield sender
        finally:
            await sender.close()


@asynccontextmanager
async def subscription(url: str) -> AsyncIterator[PubSub]:
    """Subscribes to the stream's channel."""
    async with Redis.from_url(url) as redis, redis.pubsub() as pubsub:
        await pubsub.subscribe(KEYS.channel(STREAM.name))
        assert await pubsub.get_message(timeout=TIMEOUT_S)
        yield pubsub


async def received_numbers(pubsub: PubSub, count: int) -> list[int]:
    """Returns the numbers of the next `count` events, or of fewer if no message arrives for `TIMEOUT_S`."""
    numbers: list[int] = []
    while len(numbers) < count:
        message = await pubsub.get_message(timeout=TIMEOUT_S)
        if message is None:
            break
        numbers += [event.n for event in decode(message["data"])[1]]
    return numbers


async def test_events_are_sent_in_order_of_commits(own_valkey: Valkey) -> None:
    async with subscription(own_valkey.url) as pubsub, running_sender(own_valkey.url) as sender:
        for n in range(1, 501):
            sender.send(STREAM, "e", [new_event(n)])
        assert await received_numbers(pubsub, 500) == list(range(1, 501))


async def test_closing_sender_sends_queued_events(own_valkey: Valkey) -> None:
    async with subscription(own_valkey.url) as pubsub:
        async with running_sender(own_valkey.url) as sender:
            for n in range(1, 51):
                sender.send(STREAM, "e", [new_event(n)])
        assert await received_numbers(pubsub, 50) == list(range(1, 51))


async def test_hanging_redis_delays_no_caller_and_recovers(own_valkey: Valkey) -> None:
    loop = asyncio.get_running_loop()
    async with running_sender(own_valkey.url) as sender:
        with sigstopped(own_valkey.pid):
            began_at = loop.time()
            for n in range(2 * MAX_QUEUED):
                sender.send(STREAM, "e", [new_event(n)])
            assert loop.time() - began_at < 15, "Events over the limit must be dropped without waiting."
            await asyncio.sleep(0)
        await assert_sends_again(own_valkey, sender)


async def test_restarted_redis_gets_events_again(own_valkey: Valkey) -> None:
    async with running_sender(own_valkey.url) as sender:
        own_valkey.kill()
        await own_valkey.wait()
        sender.send(STREAM, "e", [new_event(1)])
        await own_valkey.restart()
        await assert_sends_again(own_valkey, sender)


async def test_unexpected_error_stops_no_later_event(own_valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("not an error of Redis or of the network")

    async with running_sender(own_valkey.url) as sender:
        with monkeypatch.context() as patch:
            patch.setattr(Redis, "pipeline", fail)
            sender.send(STREAM, "e", [new_event(1)])
            async with asyncio.timeout(TIMEOUT_S):
                await sender._queue.join()
        await assert_sends_again(own_valkey, sender)


async def assert_sends_again(valkey: Valkey, sender: EventSender) -> None:
    """Sends an event and waits for it. Earlier events may arrive first."""
    async with subscription(valkey.url) as pubsub, asyncio.timeout(TIMEOUT_S):
        sender.send(STREAM, "e", [new_event(77)])
        while await received_numbers(pubsub, 1) != [77]:
            pass


async def test_closing_sender_does_not_wait_for_dead_redis(own_valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.streams.event_sender.SEND_TIMEOUT_S", 60.0)
    loop = asyncio.get_running_loop()
    with sigstopped(own_valkey.pid):
        async with running_sender(own_valkey.url) as sender:
            sender.send(STREAM, "e", [new_event(1)])
            began_at = loop.time()
        assert loop.time() - began_at < 15, "Sending the event would take 60 s."


async def test_sender_that_never_started_closes() -> None:
    async with Redis.from_url("redis://127.0.0.1:1/0") as redis:
        sender = EventSender(redis, KEYS)
        sender.send(STREAM, "e", [new_event(1)])
        await sender.close()
