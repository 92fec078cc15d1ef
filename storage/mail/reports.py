"""Claims on reports (summaries and alarms), so that each report is sent once."""

import secrets
from dataclasses import dataclass
from datetime import datetime

from pymongo import ReturnDocument

from storage.locks import EPOCH
from storage.mail.documents import ReportDocument
from storage.mail.epoch_time import midnight
from storage.mongo import Mongo

CLAIM_S = 600
"""How many seconds a claim lasts. If the report was not sent by then, another worker may claim it."""


@dataclass(frozen=True, slots=True)
class BounceAlarm:
    """An alarm: too many mails of a day bounced."""

    day: datetime
    """Start of the day."""

    domain: str | None
    """The domain; None for the whole organization."""

    raised_at: datetime
    sent_at: datetime | None
    """When it was sent to the operators, or permanently refused; None until then."""


class MailReportClaims:
    """Stores claims by organization, day and kind."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def claim(self, organization_id: str, day: int, kind: str) -> bool:
        """Claims a report. Returns whether the caller should send it now."""
        token = secrets.token_hex(8)
        claimed_at = {"$ifNull": ["$claimed_at", EPOCH]}
        is_free = {"$and": [{"$not": ["$sent_at"]}, {"$lt": [claimed_at, {"$subtract": ["$$NOW", CLAIM_S * 1000]}]}]}
        claimed = {"$mergeObjects": ["$$ROOT", {"token": token, "claimed_at": "$$NOW"}]}
        row = await self._mongo["mail_reports"].find_one_and_update(
            {"_id": {"org": organization_id, "day": day, "kind": kind}},
            [{"$replaceWith": {"$cond": [is_free, claimed, "$$ROOT"]}}],
            upsert=True,
            return_document=ReturnDocument.AFTER,
        )
        return row is not None and row.get("token") == token

    async def since(self, day: int, limit: int) -> list[ReportDocument]:
        """Returns reports of `day` and later days, the newest first."""
        cursor = self._mongo["mail_reports"].find({"_id.day": {"$gte": day}})
        cursor = cursor.sort([("_id.day", -1), ("_id.org", 1), ("_id.kind", 1)]).limit(limit)
        reports: list[ReportDocument] = await cursor.to_list(None)
        return reports

    async def alarms(self, organization_id: str, limit: int) -> list[BounceAlarm]:
        """Returns the latest alarms of an organization, the newest first."""
        query = {"_id.org": organization_id, "_id.kind": {"$regex": "^alarm"}}
        reports: list[ReportDocument] = await self._mongo.find(
            "mail_reports", query, sort=[("_id.day", -1), ("_id.kind", 1)], limit=limit
        )
        return [_alarm(each) for each in reports]

    async def mark_sent(self, organization_id: str, day: int, kind: str) -> None:
        """Marks a report as sent or permanently refused."""
        id_ = {"org": organization_id, "day": day, "kind": kind}
        await self._mongo["mail_reports"].update_one({"_id": id_}, [{"$set": {"sent_at": "$$NOW"}}])


def _alarm(report: ReportDocument) -> BounceAlarm:
    _, _, domain = report["_id"]["kind"].partition(" ")
    return BounceAlarm(midnight(report["_id"]["day"]), domain or None, report["claimed_at"], report.get("sent_at"))
