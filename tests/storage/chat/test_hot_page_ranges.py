"""Pages from a pool are the pages that MongoDB gives, for every kind of range, never beyond what it has."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from storage.chat.hot_pages import HotPages, decode, encode
from storage.chat.messages import MessageStore
from storage.chat.records import Message
from storage.link_previews import LinkPreview
from storage.stores import Stores
from storage.timeline import END, NOW
from tests.storage.chat.hot_page_scenario import heat, hits, newest, process
from tests.storage.chat.hot_page_scenario import pooled as pooled_in
from tests.storage.places import Place, soon
from tests.storage.timeline_rule import Asked, as_expected, expected_page

pytestmark = pytest.mark.anyio

COUNT = 14


@dataclass(frozen=True)
class Pooled:
    """A topic with a pool, and its messages, oldest first. The pool has those from `floor` on."""

    hot_pages: HotPages
    store: MessageStore
    topic_id: str
    messages: list[Message]
    floor: int

    @property
    def timestamps(self) -> list[int]:
        return [message.timestamp for message in self.messages]


async def filled(place: Place) -> None:
    """Posts of every kind, an edited one and a tombstone."""
    messages = place.stores.messages
    posted = [await place.post(f"see https://beacon.example/{number}") for number in range(COUNT)]
    await messages.edit(posted[-2].key, "ann", 'a "quoted" https://beacon.example/ \\ \x00 🔥 \u2028', ["bob", "cid"])
    preview = LinkPreview("https://beacon.example/", "Beacon", None, "https://beacon.example/i.png", "Beacons")
    await messages.set_preview(posted[-2].key, preview.url, preview)
    for emoji, user in itertools.product("🔥👍", ("bob", "cid")):
        await messages.add_reaction(place.organization_id, posted[-3].key, user, emoji)
    await messages.delete(posted[-4].key, "ann", may_delete_any=False)


@pytest.fixture(params=[COUNT - 5, COUNT, COUNT + 5], ids=["smaller", "as large", "larger"])
async def pooled(place: Place, request: pytest.FixtureRequest) -> AsyncIterator[Pooled]:
    """A pool that is smaller than the topic, as large, or larger."""
    size: int = request.param
    await filled(place)
    await heat(place)
    stores: Stores = place.stores
    hot_pages = HotPages(stores.redis, stores.keys, stores.mongo, size)
    store = MessageStore(stores.mongo, stores.sequencer, hot_pages)
    everything = list((await store.page(place.topic.id, Asked(oldest=0).range)).items)

    async def built() -> bool:
        return await hot_pages.read(place.topic.id, 0, END, False, 1) is not None

    assert await soon(built)
    floor = everything[-size].timestamp if size <= COUNT else 0
    yield Pooled(hot_pages, store, place.topic.id, everything, floor)
    await hot_pages.close()


def points(timestamps: list[int]) -> list[int]:
    """Around the pool's floor, somewhere within, around its tail, and far away on both sides."""
    near = [timestamps[at] + step for at in (0, 5, -1) for step in (-1, 0, 1)]
    return [*near[1:], timestamps[9]]


LIMITS = [1, COUNT - 6, COUNT - 5, 999]


async def test_every_page_is_what_mongodb_gives(pooled: Pooled) -> None:
    bounds = [None, NOW, *points(pooled.timestamps)]
    by_timestamp: dict[int, Message] = {message.timestamp: message for message in pooled.messages}
    before, asked = hits(), 0
    for oldest, latest, inclusive in itertools.product(bounds, bounds, (True, False)):
        if oldest == NOW or oldest is latest is None:
            continue
        for limit in LIMITS:
            page = Asked(oldest, latest, limit, inclusive)
            found = await pooled.store.page(pooled.topic_id, page.range, hot=True)
            timestamps: list[int] = [message.timestamp for message in found.items]
            assert as_expected(found, timestamps) == expected_page(pooled.timestamps, page), page
            assert list(found.items) == [by_timestamp[timestamp] for timestamp in timestamps], page
            asked += 1
    assert hits() - before > asked / 3, "they were to come from the pool"


async def test_a_pool_gives_everything_of_a_range_or_nothing(pooled: Pooled) -> None:
    ends = points(pooled.timestamps)
    for low, high, ascending, limit in itertools.product(ends, ends, (True, False), LIMITS):
        inside = [message for message in pooled.messages if low <= message.timestamp <= high]
        wanted = (inside if ascending else inside[::-1])[:limit]
        has_all = low >= pooled.floor or (
            not ascending and len(wanted) == limit and wanted[-1].timestamp >= pooled.floor
        )
        found = await pooled.hot_pages.read(pooled.topic_id, low, high, ascending, limit)
        assert found == (wanted if has_all else None), (low, high, ascending, limit)


async def test_what_is_posted_goes_in_above_and_out_below(place: Place) -> None:
    await heat(place)
    async with process(place, size=5) as small:
        # A topic without messages has a pool too.
        await pooled_in(small)
        posted = [await small.post(str(number)) for number in range(8)]
        before = hits()
        assert await newest(small, limit=3) == posted[:-4:-1]
        assert hits() > before
    assert await place.stores.redis.zcard(place.stores.keys.pool(place.topic.id)[1]) == 5


def test_a_message_comes_out_of_a_pool_as_it_went_in() -> None:
    preview = LinkPreview("https://beacon.example/", "Beacon", None, None, "Beacons")
    for message in (
        Message("t", 1, "ann", "", "tea", (), (), None, None, None),  # type: ignore[arg-type]
        Message("t", 9_999_999_999_999_999, "ann", '"\\\u2028', None, ("b",), (("🔥", 2),), preview, None, None),  # type: ignore[arg-type]
    ):
        assert decode("t", encode(message)) == message
