"""Head updates: rising timestamps, contiguous event numbers, and a decaying posting rate."""

import math
import time

import pytest
from pymongo import ReturnDocument

from storage.ids import new_id
from storage.mongo import Document
from storage.stores import Stores
from storage.streams.heads import HEAT_TAU_S, head_update, messages_per_minute, timestamp_offset_us
from storage.streams.log import Stream

pytestmark = pytest.mark.anyio


class TopicHead:
    """The head of a topic's stream, updated as the sequencer updates it."""

    def __init__(self, stores: Stores, **fields: object) -> None:
        self.stream = Stream("topic", new_id())
        self._heads = stores.mongo["topics"]
        self._fields = fields

    async def advance(self, timestamps: int = 1, events: int = 1) -> Document:
        if self._fields:
            await self._heads.update_one({"_id": self.stream.id}, {"$set": self._fields}, upsert=True)
            self._fields = {}
        updated: Document | None = await self._heads.find_one_and_update(
            {"_id": self.stream.id},
            head_update(self.stream, timestamps, events, "new"),
            upsert=True,
            return_document=ReturnDocument.AFTER,
        )
        assert updated is not None
        return updated


def now_us() -> int:
    return time.time_ns() // 1000


async def test_new_head_starts_at_clock_and_event_one(shared_stores: Stores) -> None:
    now_us_before = now_us()
    head = await TopicHead(shared_stores).advance(timestamps=3, events=2)
    assert (head["n"], head["epoch"]) == (2, "new")
    # MongoDB's clock has a resolution of one millisecond. Timestamps of one batch differ by one microsecond.
    assert now_us_before - 1000 <= head["last"] - 2 <= now_us() + 2
    assert (head["last"] - 2) % 1000 == 0


async def test_timestamps_of_rapid_batches_always_rise(shared_stores: Stores) -> None:
    head, last, n = TopicHead(shared_stores), 0, 0
    for timestamps in (1, 100, 7, 1) * 5:
        updated = await head.advance(timestamps, events=timestamps)
        assert updated["last"] - timestamps >= last
        assert updated["n"] == n + timestamps
        last, n = updated["last"], updated["n"]


async def test_clock_behind_head_increments_last_timestamp(shared_stores: Stores) -> None:
    ahead_us = now_us() + 10**10
    updated = await TopicHead(shared_stores, last=ahead_us, n=4, epoch="old").advance(timestamps=5, events=1)
    assert (updated["last"], updated["n"], updated["epoch"]) == (ahead_us + 5, 5, "old")


async def test_batch_without_timestamps_keeps_last_timestamp(shared_stores: Stores) -> None:
    updated = await TopicHead(shared_stores, last=7, n=4, epoch="old", heat=1.0).advance(timestamps=0, events=1)
    assert (updated["last"], updated["n"], updated["heat"]) == (7, 5, 1.0)


async def test_head_update_keeps_previous_values(shared_stores: Stores) -> None:
    updated = await TopicHead(shared_stores, last=7, n=4, heat=1.0).advance(timestamps=2)
    assert updated["before"] == {"last": 7, "heat": 1.0}


async def test_simultaneous_posts_count_as_spread_over_five_minutes(shared_stores: Stores) -> None:
    head = TopicHead(shared_stores)
    for _ in range(3):
        updated = await head.advance(timestamps=50)
    per_minute = messages_per_minute(updated["heat"], time.time())
    assert per_minute == pytest.approx(150 * 60 / HEAT_TAU_S, rel=0.05)


async def test_heat_decays_by_e_in_five_minutes_and_adds_up(shared_stores: Stores) -> None:
    heat = math.log(100) + (time.time() - HEAT_TAU_S) / HEAT_TAU_S
    assert messages_per_minute(heat, time.time()) == pytest.approx(100 / math.e * 60 / HEAT_TAU_S, rel=0.03)
    updated = await TopicHead(shared_stores, heat=heat).advance(timestamps=10)
    expected = (100 / math.e + 10) * 60 / HEAT_TAU_S
    assert messages_per_minute(updated["heat"], time.time()) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("heat", [0.0, -1e9, 1.0])
async def test_cold_topic_warms_up_like_new_one(shared_stores: Stores, heat: float) -> None:
    updated = await TopicHead(shared_stores, heat=heat).advance(timestamps=10)
    per_minute = messages_per_minute(updated["heat"], time.time())
    assert per_minute == pytest.approx(10 * 60 / HEAT_TAU_S, rel=0.03)


def test_topic_without_heat_has_rate_zero() -> None:
    assert messages_per_minute(None, time.time()) == 0


async def test_heat_is_set_for_topics_only(shared_stores: Stores) -> None:
    update = head_update(Stream("user", "org/ann"), 3, 1, "e")
    assert "heat" not in update[0]["$set"]


def test_batches_of_merged_streams_start_at_random_microsecond() -> None:
    for kind in ("author", "topic"):
        starts = {timestamp_offset_us(Stream(kind, "one")) for _ in range(100)}
        assert len(starts) > 10
        assert 0 <= min(starts) <= max(starts) < 1000
    assert {timestamp_offset_us(Stream("community", "one")) for _ in range(100)} == {0}
