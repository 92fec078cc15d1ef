"""Evaluates the rules of an organization for people, and grants the packs that they have earned."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from storage.chat.stamps.documents import StampCatalogueDocument
from storage.chat.stamps.ownerships import StampPackOwnerships
from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampRule, StampRuleKind, stored_rule
from storage.feed.stamp_rules.counts import ActivityCounts
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mongo import Document, Mongo

PACK_RULES: Document = {"packs.id": 1, "packs.rule": 1}
"""Projection of a catalogue for `pack_rules`. The lists of stamps are long."""

ACTIVE_PEOPLE: Document = {"deactivated_at": {"$exists": False}, "service": {"$exists": False}}
"""The users who earn packs."""

PackRules = Mapping[str, StampRule]
"""The rules of the packs that people earn, by id of the pack."""


def pack_rules(catalogue: StampCatalogueDocument) -> PackRules:
    """Returns the rules of an organization."""
    rules = {pack["id"]: stored_rule(pack) for pack in catalogue.get("packs", ())}
    return {pack_id: rule for pack_id, rule in rules.items() if rule is not None}


@dataclass(frozen=True, slots=True)
class StampRuleEvaluation:
    """Counts what people have done, and grants packs. Concurrent evaluations of a person are harmless."""

    mongo: Mongo
    ownerships: StampPackOwnerships
    counts: ActivityCounts

    async def progress(self, person: UserKey, packs: Sequence[StampPack], owned: Collection[str]) -> list[int | None]:
        """Returns the count for each pack, up to the threshold: the threshold if it is owned, None without a rule."""
        missing = {pack.id: pack.rule for pack in packs if pack.rule is not None and pack.id not in owned}
        counts = await self._count(person, missing)
        return [_progress(pack.rule, counts if pack.id in missing else {}) for pack in packs]

    async def evaluate(
        self, organization_id: str, rules: PackRules, kinds_by_user: Mapping[str, Collection[StampRuleKind]]
    ) -> int:
        """Grants the packs that people have earned by rules of these kinds. Returns the number of new owners."""
        people = await self._active(organization_id, kinds_by_user)
        owned = await self.ownerships.owned_among(organization_id, people)
        granted = 0
        for user_id in people:
            kinds, has = kinds_by_user[user_id], owned.get(user_id, ())
            missing = {id_: rule for id_, rule in rules.items() if id_ not in has and rule.kind in kinds}
            granted += await self._grant(UserKey(organization_id, user_id), missing)
        return granted

    async def _active(self, organization_id: str, user_ids: Iterable[str]) -> list[str]:
        ids = [user_document_id(organization_id, user_id) for user_id in user_ids]
        users = await self.mongo.find("users", {"_id": {"$in": ids}, **ACTIVE_PEOPLE}, {"_id": 1}) if ids else []
        return [user["_id"]["id"] for user in users]

    async def _grant(self, person: UserKey, rules: PackRules) -> int:
        counts = await self._count(person, rules)
        earned = [pack_id for pack_id, rule in rules.items() if counts[rule.kind] >= rule.threshold]
        return sum([await self.ownerships.grant_earned(person, pack_id) for pack_id in earned])

    async def _count(self, person: UserKey, rules: PackRules) -> Mapping[StampRuleKind, int]:
        """Returns the person's counts of what the rules count, up to the greatest threshold of each kind."""
        limits: defaultdict[StampRuleKind, int] = defaultdict(int)
        for rule in rules.values():
            limits[rule.kind] = max(limits[rule.kind], rule.threshold)
        return {kind: await self.counts.count(person, kind, limit) for kind, limit in limits.items()}


def _progress(rule: StampRule | None, counts: Mapping[StampRuleKind, int]) -> int | None:
    """Returns the count for a rule, up to its threshold. A pack that is owned has no count, and is complete."""
    return None if rule is None else min(rule.threshold, counts.get(rule.kind, rule.threshold))
