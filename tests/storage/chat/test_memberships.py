"""Joining and leaving: a burst of joins refuses nobody, and the member count equals the stored memberships."""

import asyncio
import random
from dataclasses import replace

import pytest

from storage.chat.records import Community
from storage.errors import NotFound
from storage.identity.records import User
from tests.storage.topic_scenario import OpenStores, TopicScenario

pytestmark = pytest.mark.anyio

BURST = 1000


def users(scenario: TopicScenario, count: int) -> list[User]:
    """Returns users who have not signed in. Joining needs no stored user."""
    return [User(f"u{n}", f"u{n}", f"User {n}", scenario.organization_id, (), 0, 0) for n in range(count)]


async def count_and_members(scenario: TopicScenario) -> tuple[int, set[str]]:
    """Returns the community's stored member count, and the users with a stored membership."""
    mongo, id_ = scenario.stores.mongo, scenario.community.id
    (community,) = await mongo.find("communities", {"_id": id_})
    memberships = await mongo.find("memberships", {"community": id_})
    assert len(memberships) == len({row["user"] for row in memberships})
    return community["members"], {row["user"] for row in memberships}


async def test_burst_of_joins_from_two_processes_refuses_none(
    scenario: TopicScenario, open_process: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the last joins may wait longer. Only refusals because of conflicts would be a defect.
    monkeypatch.setattr("storage.streams.sequencer.MAX_WAIT_S", 60.0)
    async with open_process() as other:
        stores = [scenario.stores, other]
        joins = [
            stores[number % 2].communities.join(scenario.community, user)
            for number, user in enumerate(users(scenario, BURST))
        ]
        await asyncio.gather(*joins)
    count, members = await count_and_members(scenario)
    assert (count, len(members)) == (BURST + 1, BURST + 1)


@pytest.mark.parametrize("seed", range(3))
async def test_concurrent_joins_and_leaves_count_memberships(
    scenario: TopicScenario, open_process: OpenStores, seed: int
) -> None:
    rng, candidates = random.Random(seed), users(scenario, 4)
    async with open_process() as other:

        def start_join_or_leave() -> "asyncio.Future[Community]":
            communities, user = rng.choice([scenario.stores, other]).communities, rng.choice(candidates)
            is_join = rng.random() < 0.5
            work = (
                communities.join(scenario.community, user)
                if is_join
                else communities.leave(scenario.community, user.id)
            )
            return asyncio.ensure_future(work)

        for _ in range(5):
            await asyncio.gather(*(start_join_or_leave() for _ in range(30)))
            count, members = await count_and_members(scenario)
            assert count == len(members)


async def test_join_then_leave_of_one_batch_leaves_nothing(scenario: TopicScenario) -> None:
    communities, (user,) = scenario.stores.communities, users(scenario, 1)
    joins_and_leaves = (communities.join(scenario.community, user), communities.leave(scenario.community, user.id))
    await asyncio.gather(*joins_and_leaves)
    assert await count_and_members(scenario) == (1, {"ann"})
    assert await communities.departures(scenario.community.id) == 1


async def test_join_of_missing_community_is_not_found(scenario: TopicScenario) -> None:
    (user,) = users(scenario, 1)
    with pytest.raises(NotFound):
        await scenario.stores.communities.join(replace(scenario.community, id="nowhere"), user)
