"""The walk over all people of an organization, which evaluates the rules for each.

A walk begins when a rule is made or a pack is removed, and a day after the previous walk ended. So it finds what people
did before the rule was made, days that pass, and activity that was missed. It also deletes the ownerships of removed
packs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bson import MaxKey
from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.stamps.documents import StampCatalogueDocument, StampOwnershipDocument
from storage.chat.stamps.ownerships import OWNERSHIPS, StampPackOwnerships, owned_between
from storage.chat.stamps.packs import CATALOGUES
from storage.chat.stamps.rules import StampRuleKind
from storage.feed.stamp_rules.evaluation import PACK_RULES, StampRuleEvaluation, pack_rules
from storage.mongo import Document, Mongo, due_filter, seconds_from_now

PAGE_SIZE = 100
"""Number of people whom a worker evaluates with one claim."""

MAX_PAGES = 5
"""Number of pages that one sweep evaluates at most."""

CLAIM_S = 60
"""How long a worker's claim of a page lasts."""

WALK_EVERY_S = 86_400


@dataclass(frozen=True, slots=True)
class StampRuleWalk:
    """Walks over people in the order of their ids, a page at a time. Workers claim pages."""

    mongo: Mongo
    ownerships: StampPackOwnerships
    evaluation: StampRuleEvaluation

    async def sweep(self) -> int:
        """Evaluates the pages that are due, at most MAX_PAGES. Returns the number of new owners."""
        granted = 0
        for _ in range(MAX_PAGES):
            claimed = await self.claim()
            if claimed is None:
                break
            granted += await self.evaluate_page(claimed)
        return granted

    async def claim(self) -> StampCatalogueDocument | None:
        """Claims the next page of an organization, or returns None. It is due again after CLAIM_S."""
        update, fields = [{"$set": {"due": seconds_from_now(CLAIM_S)}}], {**PACK_RULES, "due": 1, "after": 1}
        claim: Document = {"projection": fields, "sort": [("due", 1)], "return_document": ReturnDocument.AFTER}
        return await self.mongo.write_past_orphans(
            lambda: self._catalogues.find_one_and_update(due_filter("due"), update, **claim)
        )

    async def evaluate_page(self, claimed: StampCatalogueDocument) -> int:
        """Evaluates the people of a page, and makes the next page due. Returns the number of new owners."""
        organization_id, rules = claimed["_id"], pack_rules(claimed)
        low = {"org": organization_id, "id": claimed.get("after", "")}
        query = {"_id": {"$gt": low, "$lt": {"org": organization_id, "id": MaxKey()}}}
        rows = await self.mongo.find("users", query, {"_id": 1}, [("_id", 1)], PAGE_SIZE)
        user_ids: list[str] = [row["_id"]["id"] for row in rows]
        granted = 0
        if user_ids:
            await self._delete_orphans(organization_id, user_ids)
            kinds = list(StampRuleKind)
            granted = await self.evaluation.evaluate(organization_id, rules, dict.fromkeys(user_ids, kinds))
        await self._finish(claimed, user_ids[-1] if len(user_ids) == PAGE_SIZE else None, bool(rules))
        return granted

    async def _delete_orphans(self, organization_id: str, user_ids: Sequence[str]) -> None:
        """Deletes the ownerships of removed packs. Their ids are never used again."""
        rows: list[StampOwnershipDocument] = await self.mongo.find(
            OWNERSHIPS, owned_between(organization_id, user_ids[0], user_ids[-1]), {"_id": 1}
        )
        if not rows:
            return
        # The packs are read after the ownerships: a pack that is missing now had been removed.
        found: list[StampCatalogueDocument] = await self.mongo.find(
            CATALOGUES, {"_id": organization_id}, {"packs.id": 1}
        )
        packs = {pack["id"] for catalogue in found for pack in catalogue.get("packs", ())}
        orphans = [row["_id"] for row in rows if row["_id"]["p"] not in packs]
        if orphans:
            await self.ownerships.delete(orphans)

    async def _finish(self, claimed: StampCatalogueDocument, after: str | None, has_rules: bool) -> None:
        """Makes the next page due, or the next walk. A walk that was begun anew meanwhile stays as it is."""
        values: Document
        if after is not None:
            values = {"after": {"$literal": after}, "due": "$$NOW"}
        else:
            values = {"after": "$$REMOVE", "due": seconds_from_now(WALK_EVERY_S) if has_rules else "$$REMOVE"}
        query = {"_id": claimed["_id"], "due": claimed["due"]}
        await self.mongo.write_past_orphans(lambda: self._catalogues.update_one(query, [{"$set": values}]))

    @property
    def _catalogues(self) -> AsyncCollection[StampCatalogueDocument]:
        return self.mongo[CATALOGUES]
