"""Packs with rules, and people of an organization who may earn them."""

from dataclasses import dataclass

from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampPackAvailability, StampRule, StampRuleKind
from storage.identity.audit import Actor
from storage.ids import UserKey
from storage.stores import Stores
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario


@dataclass(frozen=True)
class RuleScenario:
    """A topic with members, in an organization with packs."""

    scenario: TopicScenario

    @property
    def stores(self) -> Stores:
        return self.scenario.stores

    @property
    def admin(self) -> Actor:
        return Actor(self.scenario.organization_id, "admin", is_command_line=True)

    def person(self, name: str) -> UserKey:
        return UserKey(self.scenario.organization_id, name)

    async def join(self, *names: str) -> None:
        """Makes new people members of the community."""
        for name in names:
            user = await self.stores.users.sign_in(self.scenario.organization_id, name, (), name.title(), None)
            await self.stores.communities.join(self.scenario.community, user)

    async def pack(self, kind: StampRuleKind = StampRuleKind.MESSAGES_POSTED, threshold: int = 1) -> StampPack:
        """Creates a pack that people earn."""
        pack = await self.stores.stamp_packs.create(self.admin, f"{kind.value} {threshold}")
        rule = StampRule(kind, threshold)
        return await self.stores.stamp_packs.set_availability(self.admin, pack.id, StampPackAvailability.EARNED, rule)

    async def owners(self, pack: StampPack, *names: str) -> list[str]:
        """Returns those of the people who own the pack."""
        owned = await self.stores.stamp_ownerships.owned_among(self.scenario.organization_id, names)
        return [name for name in names if pack.id in owned.get(name, ())]

    async def walk(self) -> int:
        """Sweeps until no page is due. Returns the number of new owners."""
        granted = 0
        while await self.stores.mongo["stamp_catalogues"].count_documents(
            {"due": {"$exists": True}, "$expr": {"$lte": ["$due", "$$NOW"]}}
        ):
            granted += await self.stores.stamp_rule_walk.sweep()
        return granted

    async def let_walk_be_due(self) -> None:
        """Makes the next walk due now, as a day or a killed worker's claim does."""
        past = [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
        await self.stores.mongo["stamp_catalogues"].update_many({"due": {"$exists": True}}, past)


async def create_rule_scenario(stores: Stores, organization_id: str | None = None) -> RuleScenario:
    """Creates a topic of a new organization."""
    return RuleScenario(await create_topic_scenario(stores, organization_id))
