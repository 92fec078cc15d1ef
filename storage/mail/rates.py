"""Bounce rates by UTC day: the share of bounces among messages with an outcome. A rate of about 2 % harms a sender."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from storage.mail.aggregation import domain_id
from storage.mail.epoch_time import DAY_MS, epoch_ms, midnight
from storage.mail.records import BounceRate
from storage.mongo import Document, Mongo

MIN_SENT = 50
"""Minimum number of messages for a meaningful rate. With fewer, one bounce would raise an alarm."""

DailySums = dict[int, tuple[int, int, int | None]]
"""Sent and bounced messages, and complaints if they are counted, by day."""


class BounceRates:
    """Computes bounce rates from the counters of each day."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def between(self, organization_id: str, domain: str | None, first: int, last: int) -> list[BounceRate]:
        """Returns the rate of each day from `first` to `last`, both included; of all domains if `domain` is None."""
        if domain is None:
            sums = await self._sums_of_organization(organization_id, first, last)
        else:
            sums = await self._sums_of_domain(organization_id, domain)
        nothing = (0, 0, 0 if domain is None else None)
        return [BounceRate(midnight(day), domain, *sums.get(day, nothing)) for day in range(first, last + 1)]

    async def of_days(self, organization_id: str, days: Collection[int]) -> dict[int, BounceRate]:
        """Returns the rates of some days, of all domains together."""
        rates = await self.between(organization_id, None, min(days), max(days))
        return {day_of(rate.day): rate for rate in rates}

    async def _sums_of_organization(self, org: str, first: int, last: int) -> DailySums:
        match = {"_id.org": org, "_id.day": {"$gte": first, "$lte": last}}
        pipeline: list[Document] = [{"$match": match}, {"$group": {"_id": "$_id.day", **_TOTALS}}]
        return {day["_id"]: _sums(day) for day in await self._mongo.aggregate("mail_days", pipeline)}

    async def _sums_of_domain(self, org: str, domain: str) -> DailySums:
        document = await self._mongo["mail_domains"].find_one({"_id": domain_id(org, domain)}, {"by.days": 1})
        counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for entry in document["by"] if document else ():
            for day, success, soft, hard, *_ in entry.get("days", ()):
                counts[day][0] += success
                counts[day][1] += soft + hard
        return {day: (success + bounced, bounced, None) for day, (success, bounced) in counts.items()}

    async def of_day(self, day: int) -> dict[str, BounceRate]:
        """Returns a day's rates of the organizations that sent mail."""
        pipeline: list[Document] = [{"$match": {"_id.day": day}}, {"$group": {"_id": "$_id.org", **_TOTALS}}]
        organizations = await self._mongo.aggregate("mail_days", pipeline)
        return {each["_id"]: BounceRate(midnight(day), None, *_sums(each)) for each in organizations}

    async def worst_domains(self, organization_id: str, day: int, limit: int = 10) -> list[BounceRate]:
        """Returns the domains with the most bounces on a day. Covers each domain's latest three days with mail."""
        pipeline: list[Document] = [
            {"$match": {"org": organization_id, "recent.day": day}},
            *_counts_of_day(day),
            {"$match": {"recent.bounced": {"$gt": 0}}},
            {"$sort": {"recent.bounced": -1, "domain": 1}},
            {"$limit": limit},
        ]
        return [_rate(domain, day) for domain in await self._mongo.aggregate("mail_domains", pipeline)]

    async def highest(self, day: int, above: float = 0.0) -> list[tuple[str, BounceRate]]:
        """Returns the rates above `above` of domains with at least 50 messages on a day, with their organizations.

        The highest come first. Covers the latest three days on which a domain had mail.
        """
        pipeline: list[Document] = [
            {"$match": {"recent.day": day}},
            *_counts_of_day(day),
            {"$match": {"recent.sent": {"$gte": MIN_SENT}}},
            {"$match": {"$expr": {"$gt": ["$recent.bounced", {"$multiply": ["$recent.sent", above]}]}}},
        ]
        domains = await self._mongo.aggregate("mail_domains", pipeline)
        rates = [(domain["org"], _rate(domain, day)) for domain in domains]
        return sorted(rates, key=lambda each: (-each[1].rate, -each[1].sent, each[0], each[1].domain))


def _counts_of_day(day: int) -> list[Document]:
    """Returns the stages that leave each domain with the counts of one of its latest three days with mail."""
    fields = {"org": 1, "domain": 1, "recent": 1}
    return [{"$project": fields}, {"$unwind": "$recent"}, {"$match": {"recent.day": day}}]


def _rate(domain: Document, day: int) -> BounceRate:
    return BounceRate(midnight(day), domain["domain"], domain["recent"]["sent"], domain["recent"]["bounced"])


def day_of(at: datetime) -> int:
    """Returns the UTC day of an instant, counted since the Unix epoch."""
    return epoch_ms(at) // DAY_MS


_TOTALS: Document = {name: {"$sum": f"${name}"} for name in ("success", "soft", "hard", "complaints")}


def _sums(totals: Document) -> tuple[int, int, int]:
    """Returns the numbers of sent and bounced messages, and of complaints."""
    bounced = totals["soft"] + totals["hard"]
    return totals["success"] + bounced, bounced, totals["complaints"]
