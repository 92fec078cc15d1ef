"""Reads of messages: pages in other processes, blocked authors, the last message, and awaited previews."""

import asyncio
import itertools
import random
from contextlib import aclosing

import pytest

from storage.chat.records import Message
from storage.chat.roles import Moderator
from storage.errors import NotFound
from storage.files.link_previews import LinkPreview
from storage.ids import MessageKey, new_id
from storage.stores import Stores
from storage.streams.subscription import SubscriptionStart, follow_events
from storage.timeline import MAX_TIMESTAMP, NOW, timeline_range
from tests.storage.timeline_rule import actual_page, expected_around
from tests.storage.topic_scenario import OpenStores, TopicScenario

pytestmark = pytest.mark.anyio

TIMELINE = [20, 21, 23, 24, 27]
AUTHORS = ["ann", "bob", "cyd"]


async def insert_messages(stores: Stores, authors: dict[int, str]) -> str:
    """Inserts messages with chosen timestamps directly. Returns the id of their new topic."""
    topic_id = new_id()
    documents = [
        {"_id": {"t": topic_id, "ts": timestamp}, "author": author, "text": "", "reactions": []}
        for timestamp, author in authors.items()
    ]
    if documents:
        await stores.mongo["messages"].insert_many(documents)
    return topic_id


async def test_around_has_at_most_half_the_limit_older(shared_stores: Stores) -> None:
    topic_id = await insert_messages(shared_stores, dict.fromkeys(TIMELINE, "ann"))
    for timestamp, limit in itertools.product([0, *range(18, 30), MAX_TIMESTAMP], [1, 2, 3, 4, 5, 6, 999]):
        page = await shared_stores.messages.around(topic_id, timestamp, limit)
        actual = actual_page(page, [message.timestamp for message in page.items])
        assert actual == expected_around(TIMELINE, timestamp, limit), (timestamp, limit)


async def test_around_does_not_fill_up_with_older_messages(shared_stores: Stores) -> None:
    topic_id = await insert_messages(shared_stores, dict.fromkeys(TIMELINE, "ann"))
    page = await shared_stores.messages.around(topic_id, 27, 4)
    assert [message.timestamp for message in page.items] == [23, 24, 27]
    assert (page.has_older, page.has_newer) == (True, False)
    page = await shared_stores.messages.around(topic_id, 20, 4)
    assert [message.timestamp for message in page.items] == [20, 21, 23, 24]
    assert (page.has_older, page.has_newer) == (False, True)


async def test_around_of_an_empty_topic_is_empty(shared_stores: Stores) -> None:
    page = await shared_stores.messages.around(new_id(), 20, 4)
    assert (page.items, page.has_older, page.has_newer, page.oldest, page.newest) == ([], False, False, None, None)


@pytest.mark.parametrize("is_ascending", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_paging_with_blocked_authors_fills_every_page(
    shared_stores: Stores, limit: int, is_ascending: bool
) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        authors = {timestamp: rng.choice(AUTHORS) for timestamp in range(1, 40) if rng.random() < 0.6}
        blocked = frozenset(rng.sample(AUTHORS, rng.randint(0, 2)))
        topic_id = await insert_messages(shared_stores, authors)
        visible = [timestamp for timestamp, author in authors.items() if author not in blocked]
        timestamps = await read_all_pages(shared_stores, topic_id, blocked, limit, is_ascending)
        assert timestamps == (visible if is_ascending else visible[::-1]), seed


async def read_all_pages(
    stores: Stores, topic_id: str, blocked: frozenset[str], limit: int, is_ascending: bool
) -> list[int]:
    """Reads all pages from one end to the other. Only the last page may be short."""
    timestamps: list[int] = []
    page_range = timeline_range(oldest=0, limit=limit) if is_ascending else timeline_range(latest=NOW, limit=limit)
    while True:
        page = await stores.messages.page(topic_id, page_range, blocked)
        timestamps += [message.timestamp for message in page.items]
        if not (page.has_newer if is_ascending else page.has_older):
            return timestamps
        assert len(page.items) == limit, "A short page was not the last one."
        if is_ascending:
            page_range = timeline_range(oldest=timestamps[-1], limit=limit, inclusive=False)
        else:
            page_range = timeline_range(latest=timestamps[-1], limit=limit, inclusive=False)


async def test_has_older_and_has_newer_ignore_blocked_messages(shared_stores: Stores) -> None:
    topic_id = await insert_messages(shared_stores, {20: "bob", 21: "ann", 22: "bob"})
    page = await shared_stores.messages.page(topic_id, timeline_range(oldest=21, latest=21), frozenset({"bob"}))
    assert [message.timestamp for message in page.items] == [21]
    assert (page.has_older, page.has_newer) == (False, False)


async def test_page_is_equal_if_caller_knows_the_last_timestamp(shared_stores: Stores) -> None:
    topic_id = await insert_messages(shared_stores, dict.fromkeys(range(20, 26), "bob") | {26: "ann"})
    for blocked in (frozenset[str](), frozenset({"ann"}), frozenset({"bob"})):
        for bounds in itertools.product((None, 19, 22, 26), (None, 22, 25, 26, 30), (1, 3, 50), (True, False)):
            oldest, latest, limit, inclusive = bounds
            if oldest is None and latest is None:
                continue
            page_range = timeline_range(oldest=oldest, latest=latest, limit=limit, inclusive=inclusive)
            page = await shared_stores.messages.page(topic_id, page_range, blocked)
            assert await shared_stores.messages.page(topic_id, page_range, blocked, last=26) == page, bounds


async def test_last_message_is_the_newest_visible_one(shared_stores: Stores) -> None:
    topic_id = await insert_messages(shared_stores, {20: "ann", 21: "bob"})
    last = await shared_stores.messages.last_message(topic_id, 21)
    assert last is not None
    assert last.timestamp == 21
    visible = await shared_stores.messages.last_message(topic_id, 21, frozenset({"bob"}))
    assert visible is not None
    assert visible.timestamp == 20
    assert await shared_stores.messages.last_message(topic_id, 21, frozenset({"ann", "bob"})) is None
    assert await shared_stores.messages.last_message("topic without messages", 21) is None


async def test_missing_message_is_none_or_not_found(scenario: TopicScenario) -> None:
    missing = MessageKey(scenario.topic.id, 5)
    assert await scenario.stores.messages.find(missing) is None
    with pytest.raises(NotFound):
        await scenario.stores.messages.get(missing)


async def test_tombstone_keeps_timestamp_and_author_only(scenario: TopicScenario) -> None:
    message = await scenario.post("see https://example.com")
    await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "bob", "👍")
    tombstone = await scenario.stores.messages.delete(message.key, Moderator("ann"))
    assert tombstone == await scenario.stores.messages.get(message.key)
    assert (tombstone.timestamp, tombstone.author_id) == (message.timestamp, "ann")
    assert (tombstone.text, tombstone.stamp_id, list(tombstone.reaction_counts)) == ("", None, [])
    assert tombstone.deleted_at is not None
    page = await scenario.stores.messages.page(scenario.topic.id, timeline_range(latest=NOW))
    assert page.items == [tombstone]


async def messages_awaiting_preview(scenario: TopicScenario) -> list[MessageKey]:
    """Returns the topic's messages that await a preview, of any age."""
    keys = await scenario.stores.messages.awaiting_preview(-60, 1000)
    return [key for key in keys if key.topic_id == scenario.topic.id]


async def test_message_with_a_link_awaits_its_preview(scenario: TopicScenario) -> None:
    messages = scenario.stores.messages
    plain, linked = await scenario.post("hello"), await scenario.post("see https://example.com")
    assert await messages_awaiting_preview(scenario) == [linked.key]
    preview = LinkPreview("https://example.com", "Example", None, None, None)
    with_preview = await messages.set_preview(linked.key, "https://example.com", preview)
    assert with_preview.link_preview == preview
    assert await messages_awaiting_preview(scenario) == []
    await messages.edit(plain.key, "ann", "see https://example.org", ())
    assert await messages_awaiting_preview(scenario) == [plain.key]
    await messages.set_preview(plain.key, "https://example.org", None)
    assert await messages_awaiting_preview(scenario) == []


async def test_preview_of_a_replaced_link_is_dropped(scenario: TopicScenario) -> None:
    messages = scenario.stores.messages
    message = await scenario.post("see https://example.com")
    await messages.edit(message.key, "ann", "see https://example.org", ())
    updated = await messages.set_preview(message.key, "https://example.com", LinkPreview("u", "t", None, None, None))
    assert updated.link_preview is None
    assert await messages_awaiting_preview(scenario) == [message.key]


async def test_sweep_ignores_messages_that_waited_briefly(scenario: TopicScenario) -> None:
    await scenario.post("see https://example.com")
    keys = await scenario.stores.messages.awaiting_preview(60, 1000)
    assert all(key.topic_id != scenario.topic.id for key in keys)


async def test_last_messages_that_are_read_together_respect_each_block(shared_stores: Stores) -> None:
    topic = await insert_messages(shared_stores, {1: "ann", 2: "bob"})
    read, blocks = (
        shared_stores.messages.last_message,
        [frozenset[str](), frozenset({"bob"}), frozenset({"ann", "bob"})],
    )
    for order in (blocks, blocks[::-1]):
        messages = await asyncio.gather(*(read(topic, 2, blocked) for blocked in order))
        authors = {blocked: message and message.author_id for blocked, message in zip(order, messages, strict=True)}
        assert [authors[each] for each in blocks] == ["bob", "ann", None]


async def assert_in_pages(reader: TopicScenario, message: Message) -> None:
    """Asserts that pages contain the message as it is, also for a viewer who has blocked somebody."""
    messages, topic_id = reader.stores.messages, reader.topic.id
    for blocked in (frozenset[str](), frozenset({"zed"})):
        newest = await messages.page(topic_id, timeline_range(latest=NOW), blocked)
        around = await messages.around(topic_id, message.timestamp, 5, blocked)
        assert message in newest.items
        assert message in around.items


async def test_returned_change_is_in_pages_of_other_process(scenario: TopicScenario, open_process: OpenStores) -> None:
    messages, organization_id = scenario.stores.messages, scenario.organization_id
    preview = LinkPreview("https://beacon.example/", "Beacon", None, None, None)
    async with open_process() as other:
        reader = scenario.with_stores(other)
        posted = await scenario.post("see https://beacon.example/")
        await assert_in_pages(reader, posted)
        await scenario.post("hidden", author="zed")
        await assert_in_pages(reader, await messages.edit(posted.key, "ann", "look: https://beacon.example/", ["bob"]))
        await assert_in_pages(reader, await messages.set_preview(posted.key, preview.url, preview))
        await assert_in_pages(reader, await messages.add_reaction(organization_id, posted.key, "bob", "🔥"))
        await assert_in_pages(reader, await messages.remove_reaction(organization_id, posted.key, "bob", "🔥"))
        await assert_in_pages(reader, await messages.delete(posted.key, Moderator("ann")))


async def test_page_has_every_message_before_the_start(scenario: TopicScenario, open_process: OpenStores) -> None:
    """A subscription delivers no event before its start, so a page that is read afterwards must contain its message."""
    async with open_process() as other:
        poster = scenario.with_stores(other)
        posting = asyncio.gather(*(poster.post(str(number)) for number in range(250)))
        while not posting.done():
            async with aclosing(follow_events(scenario.stores.hub, scenario.stream, None)) as items:
                start = await anext(items)
            page = await scenario.stores.messages.page(scenario.topic.id, timeline_range(latest=NOW, limit=999))
            assert isinstance(start, SubscriptionStart)
            assert len(page.items) >= start.position.n
        await posting
