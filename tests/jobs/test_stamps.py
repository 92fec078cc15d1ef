"""Sweepers that give people the packs that they have earned."""

import pytest

from jobs.stamps import evaluate_active_people, evaluate_all_people
from storage.feed.stamp_rules.activity import SCANS
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.storage.feed.stamp_rules.rule_scenario import create_rule_scenario

pytestmark = pytest.mark.anyio


async def test_sweepers_grant_for_earlier_and_new_activity(stores: Stores) -> None:
    made, context = await create_rule_scenario(stores, "acme"), job_context(stores)
    await made.join("bob")
    pack = await made.pack()
    await made.scenario.post("hello", "ann")
    assert await evaluate_all_people(context) == 1
    assert await evaluate_active_people(context) == 0
    await made.scenario.post("hello", "bob")
    # Events are found ten seconds later.
    assert await evaluate_active_people(context) == 0
    await stores.mongo["events"].update_many({}, [{"$set": {"at": {"$subtract": ["$at", 15_000]}}}])
    await stores.mongo[SCANS].update_many({}, [{"$set": {"at": {"$subtract": ["$at", 60_000]}}}])
    assert await evaluate_active_people(context) == 1
    assert await made.owners(pack, "ann", "bob") == ["ann", "bob"]
