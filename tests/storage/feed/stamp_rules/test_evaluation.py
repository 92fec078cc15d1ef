"""Evaluation of rules: the pack is granted from the threshold on, and progress is the count up to it."""

import asyncio

import pytest

from storage.chat.stamps.documents import StampCatalogueDocument
from storage.chat.stamps.rules import StampRule, StampRuleKind
from storage.feed.stamp_rules.evaluation import PackRules, pack_rules
from storage.stores import Stores
from tests.storage.chat.stamps.test_ownerships import create_pack, notifications
from tests.storage.feed.stamp_rules.rule_scenario import RuleScenario, create_rule_scenario
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio

MESSAGES, POSTS, REACTIONS, DAYS = StampRuleKind


async def rules(rule_scenario: RuleScenario) -> PackRules:
    packs = await rule_scenario.stores.stamp_packs.list_packs(rule_scenario.scenario.organization_id)
    return {pack.id: pack.rule for pack in packs if pack.rule is not None}


def test_catalogue_has_rules_of_earned_packs_only() -> None:
    earned = {"id": "a", "rule": {"kind": "MEMBER_DAYS", "threshold": 365}}
    catalogue: StampCatalogueDocument = {"_id": "acme", "packs": [earned, {"id": "b"}]}  # type: ignore[typeddict-item]
    assert pack_rules(catalogue) == {"a": StampRule(DAYS, 365)}


async def test_pack_is_earned_from_the_threshold_on(shared_stores: Stores) -> None:
    made = await create_rule_scenario(shared_stores)
    organization_id, evaluation = made.scenario.organization_id, shared_stores.stamp_rule_evaluation
    await made.join("bob", "cat")
    few, many = await made.pack(MESSAGES, 2), await made.pack(MESSAGES, 4)
    given = await create_pack(shared_stores, organization_id)
    packs = [few, many, given]
    for number in range(1, 5):
        await made.scenario.post("hello", "bob")
        owned = set(await made.owners(few, "bob")) and {few.id}
        progress = await evaluation.progress(made.person("bob"), packs, owned)
        assert progress == [min(number, 2), number, None]
        people = {"bob": [MESSAGES], "cat": [MESSAGES], "nobody": [MESSAGES]}
        assert await evaluation.evaluate(organization_id, await rules(made), people) == (number in (2, 4))
        assert await evaluation.evaluate(organization_id, await rules(made), {"bob": list(StampRuleKind)}) == 0
    assert await made.owners(many, "bob", "cat") == ["bob"]
    assert len(await notifications(shared_stores, made.person("bob"))) == 2


async def test_other_kinds_of_rules_are_not_evaluated(shared_stores: Stores) -> None:
    made = await create_rule_scenario(shared_stores)
    pack = await made.pack(MESSAGES, 1)
    await made.scenario.post("hello", "ann")
    people = {"ann": [POSTS, REACTIONS, DAYS]}
    evaluation = shared_stores.stamp_rule_evaluation
    assert await evaluation.evaluate(made.scenario.organization_id, await rules(made), people) == 0
    assert await made.owners(pack, "ann") == []


async def test_deactivated_people_and_service_accounts_earn_nothing(shared_stores: Stores) -> None:
    made = await create_rule_scenario(shared_stores)
    organization_id, users = made.scenario.organization_id, shared_stores.mongo["users"]
    await made.join("bob", "bot", "gone")
    await made.pack(DAYS, 1)
    await users.update_many({"_id.org": organization_id}, [{"$set": {"at": {"$subtract": ["$$NOW", 86_400_000]}}}])
    await users.update_one({"_id": {"org": organization_id, "id": "bot"}}, {"$set": {"service": True}})
    await users.update_one({"_id": {"org": organization_id, "id": "gone"}}, [{"$set": {"deactivated_at": "$$NOW"}}])
    people = {name: [DAYS] for name in ("bob", "bot", "gone")}
    evaluation = shared_stores.stamp_rule_evaluation
    assert await evaluation.evaluate(organization_id, await rules(made), people) == 1


async def test_evaluations_of_several_workers_grant_once(shared_stores: Stores, open_process: OpenStores) -> None:
    made = await create_rule_scenario(shared_stores)
    names = [f"p{number}" for number in range(8)]
    await made.join(*names)
    pack = await made.pack(MESSAGES, 1)
    for name in names:
        await made.scenario.post("hello", name)
    people, known = {name: [MESSAGES] for name in names}, await rules(made)
    async with open_process() as second, open_process() as third:
        evaluations = [each.stamp_rule_evaluation for each in (shared_stores, second, third)] * 2
        granted = await asyncio.gather(
            *(each.evaluate(made.scenario.organization_id, known, people) for each in evaluations)
        )
    assert sum(granted) == len(names)
    assert await made.owners(pack, *names) == names
    for name in names:
        assert len(await notifications(shared_stores, made.person(name))) == 1
