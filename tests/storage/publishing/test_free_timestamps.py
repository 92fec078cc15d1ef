"""Timestamps of scheduled posts with the same due moment: each caller gets the first free timestamp, and no error."""

import asyncio
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any

import pytest
from structlog.testing import capture_logs

from storage.mongo import Session
from storage.publishing.documents import SCHEDULED_POSTS
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.free_timestamps import FreeTimestamps, first_free, microseconds
from storage.streams.changes import Batch
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio

OCCUPIED_COUNT = 20_000
POST_COUNT = 100


async def occupy(scenario: PublishingScenario, timestamps: Iterable[int]) -> None:
    """Stores a post at each timestamp."""
    rows = [{"_id": f"{scenario.organization_id}-{ts}", "org": scenario.organization_id, "ts": ts} for ts in timestamps]
    await scenario.stores.mongo[SCHEDULED_POSTS].insert_many(rows, ordered=False)


async def due_in_an_hour(scenario: PublishingScenario) -> datetime:
    return await scenario.now() + timedelta(hours=1)


def free_timestamps(first: int, taken: set[int], limit: int) -> list[int]:
    """Returns the lowest `limit` timestamps from `first` on that are not taken."""
    return list(islice((ts for ts in count(first) if ts not in taken), limit))


@pytest.mark.parametrize("seed", range(8))
async def test_first_free_finds_first_gap_of_any_size(scenario: PublishingScenario, seed: int) -> None:
    rng = random.Random(seed)
    density = rng.choice([0.5, 0.9, 0.99, 1.0])
    taken = {ts for ts in range(1000, 1000 + rng.choice([1, 2, 63, 64, 300])) if rng.random() <= density}
    await occupy(scenario, taken | {999})
    mongo = scenario.stores.mongo
    for first in (998, 999, 1000, 1001, 1150, 1299, 1300):
        timestamp = await mongo.transact(lambda session: first_free(mongo, session, scenario.organization_id, first))  # noqa: B023
        assert [timestamp] == free_timestamps(first, taken | {999}, 1)


async def test_first_free_sees_posts_of_its_transaction(scenario: PublishingScenario) -> None:
    mongo, organization_id = scenario.stores.mongo, scenario.organization_id

    async def insert_and_search(session: Session) -> int:
        row = {"_id": f"{organization_id}-1000", "org": organization_id, "ts": 1000}
        await mongo[SCHEDULED_POSTS].insert_one(row, session=session)
        return await first_free(mongo, session, organization_id, 1000)

    assert await mongo.transact(insert_and_search) == 1001


def test_microseconds_count_from_1970() -> None:
    assert microseconds(datetime(1970, 1, 1, 0, 0, 2, 250, tzinfo=UTC)) == 2_000_250


async def test_searches_from_near_instants_share_no_timestamp(scenario: PublishingScenario) -> None:
    due_at = await due_in_an_hour(scenario)
    later = due_at + timedelta(microseconds=1)
    free, found = FreeTimestamps(), list[int]()

    async def search(session: Session) -> None:
        for at in (due_at, due_at, later, due_at):
            before = set(free.free)
            await free.search(scenario.stores.mongo, session, scenario.organization_id, at)
            found.extend(free.free - before)

    await scenario.stores.mongo.transact(search)
    first = microseconds(due_at)
    assert found == list(range(first, first + 4))
    assert [free.take(at) for at in (later, due_at, due_at, due_at)] == [first + 1, first, first + 2, first + 3]


async def test_crowded_moment_refuses_no_post_and_no_update(scenario: PublishingScenario) -> None:
    due_at = await due_in_an_hour(scenario)
    first = microseconds(due_at)
    await occupy(scenario, range(first, first + OCCUPIED_COUNT))
    scheduled = await asyncio.gather(*(scenario.schedule(due_at=due_at) for _ in range(POST_COUNT)))
    posts_at_other_times = await asyncio.gather(*(scenario.schedule() for _ in range(POST_COUNT)))
    update, edit = scenario.stores.scheduled_posts.update, ScheduledPostEdit(due_at=due_at)
    updated = await asyncio.gather(*(update(scenario.organization_id, post.id, edit) for post in posts_at_other_times))
    timestamps = sorted(post.timestamp for post in [*scheduled, *updated])
    assert timestamps == list(range(first + OCCUPIED_COUNT, first + OCCUPIED_COUNT + 2 * POST_COUNT))


async def test_concurrent_posts_fill_gaps_in_one_commit(
    scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_sizes: list[int] = []
    transact = Sequencer._transact

    async def count_members(sequencer: Sequencer, stream: Stream, members: list[Any]) -> Batch:
        batch_sizes.append(len(members))
        return await transact(sequencer, stream, members)

    due_at = await due_in_an_hour(scenario)
    later = due_at + timedelta(milliseconds=1)
    first = microseconds(due_at)
    taken = {first, *range(first + 2, first + 1500, 2)}
    await occupy(scenario, taken)
    monkeypatch.setattr(Sequencer, "_transact", count_members)
    with capture_logs() as logs:
        posts = await asyncio.gather(*(scenario.schedule(due_at=due_at) for _ in range(30)))
        posts += await asyncio.gather(*(scenario.schedule(due_at=at) for at in (later, due_at, later, due_at)))
    expected = free_timestamps(first, taken, 32) + free_timestamps(microseconds(later), taken, 2)
    assert sorted(post.timestamp for post in posts) == sorted(expected)
    assert batch_sizes == [30, 4]
    assert "batch_split" not in [entry["event"] for entry in logs]
