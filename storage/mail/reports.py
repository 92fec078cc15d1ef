"""Which summaries and alarms were sent: one claim each, so that workers don't send them twice and lose none."""

import secrets

from pymongo import ReturnDocument

from storage.locks import EPOCH
from storage.mongo import Document, Mongo

CLAIM_S = 600
"""Who claimed a report and did not send it within ten minutes has died."""


class ReportStore:
    """Claims by organization, day and kind."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def claim(self, organization_id: str, day: int, kind: str) -> bool:
        """Whether the caller is the one to send it now."""
        token = secrets.token_hex(8)
        claimed_at = {"$ifNull": ["$claimed_at", EPOCH]}
        is_free = {"$and": [{"$not": ["$sent_at"]}, {"$lt": [claimed_at, {"$subtract": ["$$NOW", CLAIM_S * 1000]}]}]}
        mine = {"$mergeObjects": ["$$ROOT", {"token": token, "claimed_at": "$$NOW"}]}
        row = await self._mongo["mail_reports"].find_one_and_update(
            {"_id": {"org": organization_id, "day": day, "kind": kind}},
            [{"$replaceWith": {"$cond": [is_free, mine, "$$ROOT"]}}],
            upsert=True,
            return_document=ReturnDocument.AFTER,
        )
        return row is not None and row.get("token") == token

    async def since(self, day: int, limit: int) -> list[Document]:
        """Reports of that day and later ones, the newest days first: `_id` as claimed, `sent_at` once sent."""
        found = self._mongo["mail_reports"].find({"_id.day": {"$gte": day}})
        return await found.sort([("_id.day", -1), ("_id.org", 1), ("_id.kind", 1)]).limit(limit).to_list(None)

    async def sent(self, organization_id: str, day: int, kind: str) -> None:
        """It was sent, or can't be sent at all."""
        id_ = {"org": organization_id, "day": day, "kind": kind}
        await self._mongo["mail_reports"].update_one({"_id": id_}, [{"$set": {"sent_at": "$$NOW"}}])
