"""Content reports: filing, deciding, and the queues that moderators read."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.roles import Moderator
from storage.errors import NotFound
from storage.feed.content_reports.changes import (
    CONTENT_REPORTS,
    EFFECT_LEASE,
    DecideReport,
    FileReport,
    NewReport,
    ReportRuling,
)
from storage.feed.content_reports.documents import ContentReportDocument
from storage.feed.content_reports.records import (
    ContentReport,
    ContentReportState,
    ContentReportSubject,
    content_report,
    reports_stream,
)
from storage.mongo import Document, Mongo, due_filter, seconds_from_now
from storage.mongo.batch_loader import BatchLoader
from storage.streams.sequencer import Sequencer


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """A selection of reports. A field that is None selects all."""

    community_id: str | None = None
    state: ContentReportState | None = None
    subject: ContentReportSubject | None = None
    about_others_than: str | None = None
    """The viewer, who does not see reports about themselves."""

    joined_ids: Collection[str] | None = None
    """The communities that the viewer has joined. Reports of other PRIVATE communities are left out."""


class ContentReportStore:
    """Reads and changes content reports. Every change is committed to the organization's stream of reports."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._reports: AsyncCollection[ContentReportDocument] = mongo[CONTENT_REPORTS]
        self._by_id: BatchLoader[str, ContentReport] = BatchLoader(self._load)

    async def file(self, new: NewReport) -> None:
        """Stores a report, unless the person has reported the subject before.

        Raises: NotFound for an author who is being erased; RateLimited, Conflict.
        """
        await self._sequencer.commit(reports_stream(new.organization_id), FileReport(new))

    async def decide(self, report: ContentReport, moderator: Moderator, ruling: ReportRuling) -> ContentReport:
        """Decides a report and the other open reports of its subject. Raises: NotFound, Conflict, BadUserInput."""
        change = DecideReport(report, moderator, ruling)
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
        self, organization_id: str, report_filter: ReportFilter, after: str | None, limit: int
    ) -> list[ContentReport]:
        """Returns reports, the oldest first: those after the report `after`, or from the oldest if it is None.

        Raises: NotFound if `after` does not exist.
        """
        conditions = _conditions(report_filter)
        if after is not None:
            last = await self.get(organization_id, after)
            conditions["$or"] = [{"at": {"$gt": last.reported_at}}, {"at": last.reported_at, "_id": {"$gt": last.id}}]
        found = await asyncio.gather(
            *(
                self._mongo.find(
                    CONTENT_REPORTS,
                    {"org": organization_id, **place, **conditions},
                    None,
                    [("at", 1), ("_id", 1)],
                    limit,
                )
                for place in _places(report_filter)
            )
        )
        rows: list[ContentReportDocument] = sorted(chain(*found), key=lambda row: (row["at"], row["_id"]))
        return [content_report(row) for row in rows[:limit]]

    async def claim_effect(self) -> ContentReport | None:
        """Claims, for 30 s, a decision that was not carried out in time. Returns None if there is none."""
        is_due: Document = due_filter("effect_due")
        claim = [{"$set": {"effect_due": seconds_from_now(EFFECT_LEASE.total_seconds())}}]
        # A worker that was killed may have left a transaction that locks the report.
        document: ContentReportDocument | None = await self._mongo.write_past_orphans(
            lambda: self._reports.find_one_and_update(is_due, claim)
        )
        return None if document is None else content_report(document)

    async def finish_effect(self, report_id: str, failure: str | None = None) -> None:
        """Stores that a decision was carried out, or `failure`, the reason why it was not."""
        update: Document = {"$unset": {"effect_due": ""}}
        if failure is not None:
            update["$set"] = {"failure": failure}
        await self._reports.update_one({"_id": report_id, "effect_due": {"$exists": True}}, update)

    async def _load(self, ids: Sequence[str]) -> dict[str, ContentReport]:
        rows: list[ContentReportDocument] = await self._mongo.find(CONTENT_REPORTS, {"_id": {"$in": list(ids)}})
        return {row["_id"]: content_report(row) for row in rows}


def _places(report_filter: ReportFilter) -> list[Document]:
    """Returns filters by community. Together they select each report once, and none reads reports that are hidden."""
    if report_filter.community_id is not None:
        return [{"community": report_filter.community_id}]
    if report_filter.joined_ids is None:
        return [{}]
    joined = [{"private": True, "community": {"$in": list(report_filter.joined_ids)}}]
    return [{"private": None}, *(joined if report_filter.joined_ids else ())]


def _conditions(report_filter: ReportFilter) -> Document:
    conditions: Document = {}
    if report_filter.about_others_than is not None:
        conditions["author"] = {"$ne": report_filter.about_others_than}
    if report_filter.state is not None:
        conditions["state"] = report_filter.state.value
    if report_filter.subject is not None:
        conditions["kind"] = report_filter.subject.value
    return conditions
