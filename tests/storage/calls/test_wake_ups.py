"""The channel of wake-ups reports whether it receives the wake-ups of other processes."""

import asyncio
from contextlib import suppress

import pytest

from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio


async def test_channel_receives_while_it_is_subscribed(stores: Stores) -> None:
    channel = stores.call_wake_ups
    subscriptions: list[bool] = []
    assert not channel.is_receiving
    listening = asyncio.create_task(
        channel.listen(lambda _org, _released: None, lambda: subscriptions.append(channel.is_receiving))
    )

    async def has_subscribed(times: int) -> bool:
        return len(subscriptions) == times

    await until(lambda: has_subscribed(1))
    await stores.redis.client_kill_filter(_type="pubsub")
    await until(lambda: has_subscribed(2))
    assert subscriptions == [True, True]
    listening.cancel()
    with suppress(asyncio.CancelledError):
        await listening
    assert not channel.is_receiving
