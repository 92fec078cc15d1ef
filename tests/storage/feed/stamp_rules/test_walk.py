"""The walk finds everybody who has earned a pack, also when workers are killed and rules change meanwhile."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampPackAvailability, StampRuleKind
from storage.feed.stamp_rules import walk
from storage.stores import Stores
from tests.cancellation import CancelledAwait
from tests.storage.chat.stamps.test_ownerships import create_pack, notifications
from tests.storage.feed.stamp_rules.rule_scenario import RuleScenario, create_rule_scenario
from tests.waiting import until

pytestmark = pytest.mark.anyio

MESSAGES, _, _, DAYS = StampRuleKind
PAGE_SIZE = 10
NAMES = [f"p{number:02}" for number in range(2 * PAGE_SIZE + 5)]


@pytest.fixture
async def made(stores: Stores) -> RuleScenario:
    return await create_rule_scenario(stores, "acme")


async def add_people(made: RuleScenario) -> None:
    """Inserts NAMES, who signed in ten days ago."""
    at = await made.stores.mongo.now() - timedelta(days=10)
    user = {"name": "", "search": [], "roles": [], "followers": 0, "following": 0, "at": at}
    documents = [{**user, "_id": {"org": "acme", "id": name}, "handle": name} for name in NAMES]
    await made.stores.mongo["users"].insert_many(documents)


async def test_walk_reaches_everybody_for_a_new_rule(made: RuleScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "PAGE_SIZE", PAGE_SIZE)
    await add_people(made)
    early, late = await made.pack(DAYS, 10), await made.pack(DAYS, 11)
    granted = await asyncio.gather(*(made.walk() for _ in range(3)))
    # A walk that found the pages claimed by another one has ended early.
    await made.walk()
    assert sum(granted) <= len(NAMES)
    assert await made.owners(early, *NAMES, "ann") == NAMES
    assert await made.owners(late, *NAMES) == []
    for name in (NAMES[0], NAMES[PAGE_SIZE], NAMES[-1]):
        assert len(await notifications(made.stores, made.person(name))) == 1
    # The next walk begins a day later, and grants what was earned since.
    assert await made.walk() == 0
    await made.stores.mongo["users"].update_many({}, [{"$set": {"at": {"$subtract": ["$at", 86_400_000]}}}])
    await made.let_walk_be_due()
    assert await made.walk() == len(NAMES)
    assert await made.owners(late, *NAMES) == NAMES


async def is_walked_to(names: list[str], made: RuleScenario, pack: StampPack) -> bool:
    await made.let_walk_be_due()
    await made.walk()
    return await made.owners(pack, *names) == names


async def test_killed_walk_is_continued_by_another_worker(made: RuleScenario) -> None:
    names = [f"p{number}" for number in range(4)]
    await made.join(*names)
    for name in names:
        await made.scenario.post("hello", name)
    for await_number in range(1, 200, 5):
        pack = await made.pack(MESSAGES, 1)
        sweep = CancelledAwait(made.stores.stamp_rule_walk.sweep(), await_number)
        try:
            await sweep
        except asyncio.CancelledError:
            # The killed worker's last command may still run, and claim the page once more.
            await until(partial(is_walked_to, names, made, pack))
        assert await made.owners(pack, *names, "ann") == names
        for name in names:
            about_pack = [
                each for each in await notifications(made.stores, made.person(name)) if each.stamp_pack_id == pack.id
            ]
            assert len(about_pack) == 1
        await made.stores.stamp_packs.remove(made.admin, pack.id)
        if sweep.awaits < await_number:
            return
    raise AssertionError("The sweep did not end.")


async def test_rule_changed_during_a_page_begins_the_walk_anew(made: RuleScenario) -> None:
    await made.join("bob")
    await made.scenario.post("hello", "bob")
    pack = await made.pack(MESSAGES, 2)
    claimed = await made.stores.stamp_rule_walk.claim()
    assert claimed is not None
    assert await made.stores.stamp_rule_walk.claim() is None
    cheap = await made.pack(MESSAGES, 1)
    assert await made.stores.stamp_rule_walk.evaluate_page(claimed) == 0
    assert await made.walk() == 1
    assert (await made.owners(pack, "bob"), await made.owners(cheap, "bob")) == ([], ["bob"])


async def test_owners_of_removed_packs_are_deleted(made: RuleScenario) -> None:
    kept, removed = await create_pack(made.stores, "acme"), await create_pack(made.stores, "acme", name="Hills")
    for pack in (kept, removed):
        await made.stores.stamp_ownerships.grant_earned(made.person("ann"), pack.id)
    await made.stores.stamp_packs.remove(made.admin, removed.id)
    assert await made.walk() == 0
    assert await made.owners(removed, "ann") == ["ann"]
    await made.let_walk_be_due()
    await made.walk()
    assert (await made.owners(kept, "ann"), await made.owners(removed, "ann")) == (["ann"], [])
    # Without rules no further walk is due.
    assert await made.stores.mongo["stamp_catalogues"].count_documents({"due": {"$exists": True}}) == 0


async def test_owners_keep_a_pack_whose_rule_ends(made: RuleScenario) -> None:
    pack = await made.pack(MESSAGES, 1)
    await made.scenario.post("hello", "ann")
    assert await made.walk() == 1
    given = StampPackAvailability.GIVEN
    await made.stores.stamp_packs.set_availability(made.admin, pack.id, given, None)
    await made.let_walk_be_due()
    await made.walk()
    assert await made.owners(pack, "ann") == ["ann"]
