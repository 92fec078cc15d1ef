"""Pages from a hot page equal the pages from MongoDB, for every kind of range."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from storage.chat.hot_pages import HotPages, decode, encode
from storage.chat.messages import MessageStore
from storage.chat.records import Message, Quote, ThreadSummary
from storage.chat.roles import Moderator
from storage.files.link_previews import LinkPreview, PreviewPicture
from storage.ids import MessageKey
from storage.stores import Stores
from storage.timeline import MAX_TIMESTAMP, NOW, Timestamp
from tests.storage.chat.hot_page_scenario import another_process, hit_count, make_hot, newest_page, wait_for_hot_page
from tests.storage.timeline_rule import PageArguments, actual_page, expected_around, expected_page
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

COUNT = 14
AUTHORS = {3: "bob", 6: "cid", 9: "bob", 13: "bob"}
"""Authors of messages by number. All other messages are by Ann."""

BLOCKS: list[frozenset[str]] = [frozenset(), frozenset({"bob", "cid"}), frozenset({"ann", "cid"})]


@dataclass(frozen=True)
class CachedTopic:
    """A topic and its messages, oldest first. Its hot page contains the messages from `floor` on."""

    hot_pages: HotPages
    store: MessageStore
    topic_id: str
    messages: list[Message]
    floor: int

    @property
    def timestamps(self) -> list[int]:
        return [message.timestamp for message in self.messages]

    def visible(self, blocked: frozenset[str]) -> list[Message]:
        """Returns the messages that no blocked user wrote."""
        return [message for message in self.messages if message.author_id not in blocked]


async def post_varied_messages(scenario: TopicScenario) -> None:
    """Posts messages, edits one, adds a preview and reactions, and deletes one."""
    messages = scenario.stores.messages
    posted = [
        await scenario.post(f"see https://beacon.example/{number}", AUTHORS.get(number, "ann"))
        for number in range(COUNT)
    ]
    await messages.edit(posted[-2].key, "ann", 'a "quoted" https://beacon.example/ \\ \x00 🔥 \u2028', ["bob", "cid"])
    image = "https://beacon.example/i.png"
    preview = LinkPreview(
        "https://beacon.example/", "Beacon", None, image, "Beacons", PreviewPicture(image, 40, 30, "a-hash")
    )
    await messages.set_preview(posted[-2].key, preview.url, preview)
    for emoji, user in itertools.product("🔥👍", ("bob", "cid")):
        await messages.add_reaction(scenario.organization_id, posted[-3].key, user, emoji)
    await messages.delete(posted[-4].key, Moderator("ann"))


@pytest.fixture(scope="module")
async def varied_topic(shared_stores: Stores) -> TopicScenario:
    """A hot topic with varied messages."""
    scenario = await create_topic_scenario(shared_stores)
    await post_varied_messages(scenario)
    return await make_hot(scenario)


@pytest.fixture(scope="module", params=[COUNT - 5, COUNT, COUNT + 5], ids=["smaller", "as large", "larger"])
async def module_topic(varied_topic: TopicScenario, request: pytest.FixtureRequest) -> AsyncIterator[CachedTopic]:
    """A topic whose hot page has room for fewer messages than the topic has, for as many, or for more."""
    size, stores, topic_id = request.param, varied_topic.stores, varied_topic.topic.id
    hot_pages = HotPages(stores.redis, stores.keys, stores.mongo, size)
    store = MessageStore(stores.mongo, stores.sequencer, hot_pages)
    messages = list((await store.page(topic_id, PageArguments(oldest=0).range)).items)
    floor = messages[-size].timestamp if size <= COUNT else 0
    yield CachedTopic(hot_pages, store, topic_id, messages, floor)
    await hot_pages.close()
    await stores.redis.delete(*stores.keys.hot_page(topic_id))


@pytest.fixture
async def cached_topic(module_topic: CachedTopic) -> CachedTopic:
    """The module's topic, whose hot page answers."""

    async def is_built() -> bool:
        return await module_topic.hot_pages.read(module_topic.topic_id, 0, MAX_TIMESTAMP, False, 1) is not None

    assert await poll_until_true(is_built)
    return module_topic


def timestamps_around_ends(timestamps: list[int]) -> list[int]:
    """Returns timestamps at and next to the floors and the end of the hot pages, and one in between."""
    near = [timestamps[at] + step for at in (0, 5, -1) for step in (-1, 0, 1)]
    return [*near[1:], timestamps[9]]


LIMITS = [1, COUNT - 6, COUNT - 5, 999]


def ranges_between(ends: list[int]) -> list[tuple[int, int]]:
    """Returns all ranges with these ends. Of those with ends in the wrong order, it returns the ones of neighbours."""
    order = sorted(ends)
    return [(low, high) for low in ends for high in ends if order.index(low) <= order.index(high) + 1]


def limits_of(topic: CachedTopic, blocked: frozenset[str]) -> list[int]:
    """Returns more limits if the hot page lacks messages, because its floor then decides which pages it can answer."""
    return LIMITS if topic.floor > topic.timestamps[0] and not blocked else LIMITS[::2]


@pytest.mark.parametrize("blocked", BLOCKS, ids=lambda blocked: "+".join(sorted(blocked)) or "nobody")
async def test_every_page_equals_the_page_from_mongodb(cached_topic: CachedTopic, blocked: frozenset[str]) -> None:
    ends = timestamps_around_ends(cached_topic.timestamps)
    limits = limits_of(cached_topic, blocked)
    visible = cached_topic.visible(blocked)
    by_timestamp: dict[int, Message] = {message.timestamp: message for message in visible}
    hits_before, page_count = hit_count(), 0
    ranges: list[tuple[int | None, int | None]] = [*ranges_between(ends), (None, NOW), *((end, None) for end in ends)]
    ranges += [bounds for end in ends for bounds in ((None, end), (end, NOW))]
    for (oldest, latest), inclusive in itertools.product(ranges, (True,) if blocked else (True, False)):
        for limit in limits:
            arguments = PageArguments(oldest, latest, limit, inclusive)
            page = await cached_topic.store.page(
                cached_topic.topic_id, arguments.range, blocked, is_hot=True, last=cached_topic.timestamps[-1]
            )
            timestamps: list[int] = [message.timestamp for message in page.items]
            assert actual_page(page, timestamps) == expected_page(list(by_timestamp), arguments), arguments
            assert list(page.items) == [by_timestamp[timestamp] for timestamp in timestamps], arguments
            page_count += 1
    assert hit_count() - hits_before > page_count / 3, "Too few pages came from the hot page."


@pytest.mark.parametrize("blocked", BLOCKS, ids=lambda blocked: "+".join(sorted(blocked)) or "nobody")
async def test_every_page_around_equals_the_page_from_mongodb(
    cached_topic: CachedTopic, blocked: frozenset[str]
) -> None:
    by_timestamp: dict[int, Message] = {message.timestamp: message for message in cached_topic.visible(blocked)}
    hits_before, page_count = hit_count(), 0
    for timestamp, limit in itertools.product([0, *timestamps_around_ends(cached_topic.timestamps)], (*LIMITS, 2, 3)):
        page = await cached_topic.store.around(cached_topic.topic_id, timestamp, limit, blocked, is_hot=True)
        timestamps: list[int] = [message.timestamp for message in page.items]
        expected = expected_around(list(by_timestamp), timestamp, limit)
        assert actual_page(page, timestamps) == expected, (timestamp, limit)
        assert list(page.items) == [by_timestamp[each] for each in timestamps], (timestamp, limit)
        page_count += 1
    assert hit_count() - hits_before > page_count / 3, "Too few pages came from the hot page."


@pytest.mark.parametrize("blocked", BLOCKS, ids=lambda blocked: "+".join(sorted(blocked)) or "nobody")
async def test_read_returns_a_complete_range_or_none(cached_topic: CachedTopic, blocked: frozenset[str]) -> None:
    ends = timestamps_around_ends(cached_topic.timestamps)
    arguments = itertools.product(ranges_between(ends), (True, False), limits_of(cached_topic, blocked))
    for (low, high), ascending, limit in arguments:
        in_range = [message for message in cached_topic.visible(blocked) if low <= message.timestamp <= high]
        expected = (in_range if ascending else in_range[::-1])[:limit]
        has_all = low >= cached_topic.floor or (
            not ascending and len(expected) == limit and expected[-1].timestamp >= cached_topic.floor
        )
        actual = await cached_topic.hot_pages.read(cached_topic.topic_id, low, high, ascending, limit, blocked)
        assert actual == (expected if has_all else None), (low, high, ascending, limit)


async def test_new_posts_push_out_the_oldest_messages(scenario: TopicScenario) -> None:
    await make_hot(scenario)
    async with another_process(scenario, size=5) as small:
        # A topic without messages has a hot page too.
        await wait_for_hot_page(small)
        posted = [await small.post(str(number)) for number in range(8)]
        hits_before = hit_count()
        assert await newest_page(small, limit=3) == posted[:-4:-1]
        assert hit_count() > hits_before
    assert await scenario.stores.redis.zcard(scenario.stores.keys.hot_page(scenario.topic.id)[1]) == 5


def test_decode_is_the_inverse_of_encode() -> None:
    preview = LinkPreview("https://beacon.example/", "Beacon", None, None, "Beacons")
    replies, quote = ThreadSummary(2, (("ann", 7),)), Quote(MessageKey("u", 5), "c")
    plain = Message("t", Timestamp(1), "ann", "", None, (), (), None, None, None)
    for message in (
        *(replace(plain, thread_summary=replies_or_none, quote=quote) for replies_or_none in (None, replies)),
        replace(plain, thread_summary=replies),
        replace(
            plain, link_preview=replace(preview, picture=PreviewPicture("https://beacon.example/i.png", 4, 3, "h"))
        ),
        Message("t", 1, "ann", "", "tea", (), (), None, None, None),  # type: ignore[arg-type]
        Message("t", 9_999_999_999_999_999, "ann", '"\\\u2028', None, ("b",), (("🔥", 2),), preview, None, None),  # type: ignore[arg-type]
    ):
        assert decode("t", encode(message)) == message
