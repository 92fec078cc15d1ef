"""Daily summaries for the team: what failed, waits, is unknown or was late, and to whom this was mailed.

The relay that notifies the team opens a document for the organization. Workers look at open organizations, mail each
person of the team once a day, and close an organization when there is nothing to summarize.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import DuplicateKeyError

from storage.ids import UserKey
from storage.mongo import Document, Mongo, due_filter, seconds_from_now
from storage.publishing.documents import (
    PROBLEMS,
    PUBLICATIONS,
    SUMMARIES,
    AccountDocument,
    PublicationProblemsDocument,
    PublicationSummaryDocument,
)
from storage.publishing.events import LATE_AFTER
from storage.publishing.records import Publication, PublicationState, account_attention, publication_record
from storage.publishing.reports.records import ReportReason
from storage.publishing.reports.team import find_team

MORNING = time(8)
"""Local time from which a person gets the summary of the last day."""

ROUND_S = 600.0
"""How often an open organization is looked at. Also how long a worker's claim of it lasts."""

MAX_LISTED = 100
"""Number of publications of each reason, and of accounts, that a summary counts."""

_LONGEST_LATENESS = timedelta(days=8)


@dataclass(frozen=True, slots=True)
class OrganizationProblems:
    """An organization with reports since an instant. `reports` is their number."""

    organization_id: str
    since: datetime
    reports: int


@dataclass(frozen=True, slots=True)
class SummaryContent:
    """Content of a summary: publications by reason, the newest first, and names of accounts that need attention."""

    publications: dict[ReportReason, Sequence[Publication]] = field(default_factory=dict)
    accounts: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened, and nothing waits for a person."""
        return not (self.accounts or any(self.publications.values()))


def next_morning(after: datetime, time_zone: str) -> datetime:
    """Returns the first local morning after an instant."""
    zone = ZoneInfo(time_zone)
    local = after.astimezone(zone)
    morning = datetime.combine(local.date(), MORNING, zone)
    return morning if morning > local else datetime.combine(local.date() + timedelta(days=1), MORNING, zone)


class PublicationSummaryStore:
    """Finds what to summarize, and records who got a summary on which day."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._problems: AsyncCollection[PublicationProblemsDocument] = mongo[PROBLEMS]
        self._summaries: AsyncCollection[PublicationSummaryDocument] = mongo[SUMMARIES]

    async def claim(self) -> OrganizationProblems | None:
        """Claims an organization to look at, for ROUND_S seconds; None if none is due."""
        later = {"$set": {"due": seconds_from_now(ROUND_S)}}
        claim = partial(self._problems.find_one_and_update, due_filter("due"), [later], sort=[("due", 1)])
        found = await self._mongo.write_past_orphans(claim)
        return None if found is None else OrganizationProblems(found["_id"], found["since"], found["reports"])

    async def close(self, problems: OrganizationProblems) -> None:
        """Closes an organization, unless something was reported since it was claimed."""
        query = {"_id": problems.organization_id, "reports": problems.reports}
        await self._mongo.write_past_orphans(partial(self._problems.delete_one, query))

    async def team(self, organization_id: str, now: datetime) -> list[UserKey]:
        """Returns the people who get summaries."""
        found = await find_team(self._mongo, organization_id, now)
        return [UserKey(organization_id, person["_id"]["id"]) for person in found]

    async def last_sent(self, person: UserKey) -> datetime | None:
        """Returns when the person got the last summary; None if none is known."""
        found = await self._summaries.find_one({"_id": _owner(person)})
        return None if found is None else found["at"]

    async def record(self, person: UserKey, day: str, at: datetime) -> bool:
        """Records the summary of a day; returns False if another worker has recorded it."""
        query = {"_id": _owner(person), "day": {"$ne": day}}
        try:
            await self._summaries.update_one(query, {"$set": {"day": day, "at": at}}, upsert=True)
        except DuplicateKeyError:
            return False
        return True

    async def reopen(self, person: UserKey, day: str, last: datetime | None) -> None:
        """Removes the record of a summary that was not sent. `last` is when the one before was sent."""
        query = {"_id": _owner(person), "day": day}
        if last is None:
            await self._summaries.delete_one(query)
        else:
            await self._summaries.update_one(query, {"$set": {"day": "", "at": last}})

    async def content(self, organization_id: str, since: datetime) -> SummaryContent:
        """Returns what happened since an instant, and what waits for a person."""
        late_ms = {"$subtract": ["$published_at", {"$ifNull": ["$late_from", "$due"]}]}
        is_late = {"$gt": [late_ms, int(LATE_AFTER.total_seconds() * 1000)]}
        recent = {"ts": {"$gte": int((since - _LONGEST_LATENESS).timestamp() * 1_000_000)}}
        failed = {**recent, "$expr": {"$gt": [{"$last": "$attempts.at"}, since]}}
        late = {**recent, "published_at": {"$gt": since}, "author_notified": {"$ne": True}, "$expr": is_late}
        filters: dict[ReportReason, tuple[PublicationState, Document]] = {
            ReportReason.FAILED: (PublicationState.FAILED, failed),
            ReportReason.NEEDS_ATTENTION: (PublicationState.NEEDS_ATTENTION, {}),
            ReportReason.UNKNOWN: (PublicationState.UNKNOWN, {"author_notified": True}),
            ReportReason.LATE: (PublicationState.PUBLISHED, late),
        }
        publications = {
            reason: await self._publications(organization_id, state, filter_)
            for reason, (state, filter_) in filters.items()
        }
        return SummaryContent(publications, await self._accounts(organization_id))

    async def _publications(
        self, organization_id: str, state: PublicationState, filter_: Document
    ) -> Sequence[Publication]:
        query = {"org": organization_id, "state": state.value, **filter_}
        found = await self._mongo.find(PUBLICATIONS, query, sort=[("ts", -1)], limit=MAX_LISTED)
        return [publication_record(each) for each in found]

    async def _accounts(self, organization_id: str) -> Sequence[str]:
        query = {"org": organization_id, "attention": {"$exists": True}}
        found: list[AccountDocument] = await self._mongo.find("accounts", query, limit=MAX_LISTED)
        return [each["name"] for each in found if account_attention(each) is not None]


def _owner(person: UserKey) -> Document:
    return {"o": person.organization_id, "u": person.user_id}
