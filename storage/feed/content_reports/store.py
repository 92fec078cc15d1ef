"""Content reports: filing, deciding, and the queues that moderators read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.moderation_changes import Moderator
from storage.errors import NotFound
from storage.feed.content_reports.changes import (
    CONTENT_REPORTS,
    EFFECT_TIME,
    DecideReport,
    FileReport,
    NewReport,
    Verdict,
)
from storage.feed.content_reports.documents import ContentReportDocument
from storage.feed.content_reports.records import (
    ContentReport,
    ContentReportState,
    ContentReportSubject,
    content_report,
    reports_stream,
)
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.streams.sequencer import Sequencer

_EFFECT_MS = int(EFFECT_TIME.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """Which reports to list. None selects all."""

    community_id: str | None = None
    state: ContentReportState | None = None
    subject: ContentReportSubject | None = None
    hidden_community_ids: Collection[str] = ()
    """Communities that the viewer may not see."""


class ContentReportStore:
    """Reads and changes content reports. Every change is committed to the organization's stream of reports."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._reports: AsyncCollection[ContentReportDocument] = mongo[CONTENT_REPORTS]
        self._by_id: BatchLoader[str, ContentReport] = BatchLoader(self._load)

    async def file(self, new: NewReport) -> None:
        """Stores a report, unless the person has reported the subject before. Raises: RateLimited, Conflict."""
        await self._sequencer.commit(reports_stream(new.organization_id), FileReport(new))

    async def decide(self, report: ContentReport, moderator: Moderator, verdict: Verdict) -> ContentReport:
        """Decides a report and the other open reports of its subject. Raises: NotFound, Conflict, BadUserInput."""
        change = DecideReport(report, moderator, verdict)
        return await self._sequencer.commit(reports_stream(report.organization_id), change)

    async def find(self, organization_id: str, id_: str) -> ContentReport | None:
        """Returns the organization's report of that id, or None."""
        report = await self._by_id.get(id_)
        return report if report is not None and report.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> ContentReport:
        """Returns the organization's report of that id. Raises: NotFound."""
        report = await self.find(organization_id, id_)
        if report is None:
            raise NotFound("content report", id_)
        return report

    async def by_id(self, ids: Sequence[str]) -> Mapping[str, ContentReport]:
        """Returns reports by id."""
        return await self._by_id.find(set(ids))

    async def list_reports(
        self, organization_id: str, wanted: ReportFilter, after: str | None, limit: int
    ) -> list[ContentReport]:
        """Returns reports, the oldest first: those after the report `after`, or from the oldest if it is None.

        Raises: NotFound if `after` does not exist.
        """
        query: Document = {"org": organization_id, **_conditions(wanted)}
        if after is not None:
            last = await self.get(organization_id, after)
            query["$or"] = [{"at": {"$gt": last.reported_at}}, {"at": last.reported_at, "_id": {"$gt": last.id}}]
        rows: list[ContentReportDocument] = await self._mongo.find(
            CONTENT_REPORTS, query, sort=[("at", 1), ("_id", 1)], limit=limit
        )
        return [content_report(row) for row in rows]

    async def claim_effect(self) -> ContentReport | None:
        """Claims a decision that was not carried out in time, for 30 s. Returns None if there is none."""
        due: Document = {"effect_due": {"$exists": True}, "$expr": {"$lte": ["$effect_due", "$$NOW"]}}
        later = [{"$set": {"effect_due": {"$add": ["$$NOW", _EFFECT_MS]}}}]
        document: ContentReportDocument | None = await self._reports.find_one_and_update(due, later)
        return None if document is None else content_report(document)

    async def finish_effect(self, report_id: str, failure: str | None = None) -> None:
        """Stores that a decision was carried out, or why it could not be."""
        update: Document = {"$unset": {"effect_due": ""}}
        if failure is not None:
            update["$set"] = {"failure": failure}
        await self._reports.update_one({"_id": report_id, "effect_due": {"$exists": True}}, update)

    async def _load(self, ids: Sequence[str]) -> dict[str, ContentReport]:
        rows: list[ContentReportDocument] = await self._mongo.find(CONTENT_REPORTS, {"_id": {"$in": list(ids)}})
        return {row["_id"]: content_report(row) for row in rows}


def _conditions(wanted: ReportFilter) -> Document:
    conditions: Document = {}
    if wanted.community_id is not None:
        conditions["community"] = wanted.community_id
    elif wanted.hidden_community_ids:
        conditions["community"] = {"$nin": list(wanted.hidden_community_ids)}
    if wanted.state is not None:
        conditions["state"] = wanted.state.value
    if wanted.subject is not None:
        conditions["kind"] = wanted.subject.value
    return conditions
