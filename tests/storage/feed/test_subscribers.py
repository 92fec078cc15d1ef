"""Home streams get events until 27 h after the stored subscription of their reader.

A subscription more than 26 h after the stored one resets the stream.
"""

import asyncio

import pytest

from storage.feed.records import home_stream, local_stream
from storage.mongo import Document
from storage.streams.log import StreamHead
from tests.storage.feed.feed_scenario import FeedScenario

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000


async def pass_hours(feed: FeedScenario, reader: str, hours: float) -> None:
    """Simulates that hours have passed since the reader's last subscription."""
    past = {"$subtract": ["$subscribed_at", int(hours * HOUR_MS)]}
    owner = {"o": feed.organization_id, "u": reader}
    await feed.stores.mongo["feeds"].update_one({"_id": owner}, [{"$set": {"subscribed_at": past}}])


async def head(feed: FeedScenario, reader: str) -> StreamHead:
    return await feed.stores.events.head(home_stream(feed.organization_id, reader))


async def push_and_count_arrivals(feed: FeedScenario, reader: str) -> int:
    """Pushes a post to the reader. Returns how many arrivals the home stream has."""
    post = await feed.post()
    await feed.stores.feeds.push(post, [reader])
    return len(await feed.events(home_stream(feed.organization_id, reader)))


async def test_push_adds_events_only_for_recent_subscribers(feed: FeedScenario) -> None:
    await feed.subscribe("bob")
    assert await push_and_count_arrivals(feed, "bob") == 1
    await pass_hours(feed, "bob", 25.9)
    assert await push_and_count_arrivals(feed, "bob") == 2
    await pass_hours(feed, "bob", 1.2)
    assert await push_and_count_arrivals(feed, "bob") == 2
    assert await feed.stores.home_subscribers.among(feed.organization_id, ["ann", "bob", "eve"]) == []
    await feed.subscribe("bob")
    assert await push_and_count_arrivals(feed, "bob") == 3


async def test_reader_who_never_subscribed_gets_no_events(feed: FeedScenario) -> None:
    """The reader's own post creates the home stream."""
    await feed.post("bob")
    await feed.wait_for_relays(home_stream(feed.organization_id, "bob"))
    await feed.stores.home.record_read(feed.organization_id, "bob")
    assert await push_and_count_arrivals(feed, "bob") == 1, "Only the reader's own post has arrived."


@pytest.mark.parametrize(("hours", "is_reset"), [(0.0, False), (25.9, False), (26.1, True), (27.5, True)])
async def test_stream_without_subscribers_is_reset_once(feed: FeedScenario, hours: float, is_reset: bool) -> None:
    await feed.subscribe("bob")
    await push_and_count_arrivals(feed, "bob")
    head_before = await head(feed, "bob")
    await pass_hours(feed, "bob", hours)
    await asyncio.gather(*(feed.subscribe("bob") for _ in range(5)))
    head_after = await head(feed, "bob")
    assert (head_after.epoch != head_before.epoch, head_after.n) == (is_reset, head_before.n)
    await feed.subscribe("bob")
    assert await head(feed, "bob") == head_after


async def test_every_stream_without_events_is_reset_before_use(feed: FeedScenario) -> None:
    """A reader whose stream gets no events any more must not resume an earlier cursor."""
    for hours in (26.5, 26.9, 27.0, 27.1, 100.0):
        await feed.subscribe("bob")
        head_before = await head(feed, "bob")
        await pass_hours(feed, "bob", hours)
        await feed.subscribe("bob")
        assert (await head(feed, "bob")).epoch != head_before.epoch


async def test_list_gets_events_only_after_recent_subscription(feed: FeedScenario) -> None:
    stream, lists = local_stream(feed.organization_id), feed.stores.list_subscribers
    counts, epochs = [], set()
    for hours in (0.0, 25.9, 27.1):
        await lists.record(stream)
        epochs.add((await feed.stores.events.head(stream)).epoch)
        past = {"$subtract": ["$subscribed_at", int(hours * HOUR_MS)]}
        await feed.stores.mongo["streams"].update_one({"_id": stream.name}, [{"$set": {"subscribed_at": past}}])
        await feed.post()
        await feed.wait_for_relays(home_stream(feed.organization_id, "ann"))
        counts.append(len(await feed.events(stream)))
    await asyncio.gather(*(lists.record(stream) for _ in range(5)))
    assert (counts, len(epochs)) == ([1, 2, 2], 1)
    assert (await feed.stores.events.head(stream)).epoch not in epochs


async def test_subscription_keeps_time_of_last_visit(feed: FeedScenario) -> None:
    await feed.stores.home.record_read(feed.organization_id, "bob")
    await feed.backdate("feeds", "seen_at", days=29)

    async def stored_feed() -> Document:
        (document,) = await feed.documents("feeds")
        return document

    seen_at = (await stored_feed())["seen_at"]
    await feed.subscribe("bob")
    assert (await stored_feed())["seen_at"] == seen_at
