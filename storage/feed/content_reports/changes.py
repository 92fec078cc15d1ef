"""Changes of content reports, committed to the organization's stream of reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.chat.documents import CommunityDocument
from storage.chat.memberships import COMMUNITIES, stored_visibility
from storage.chat.moderation_changes import require_future
from storage.chat.records import CommunityVisibility
from storage.chat.rights import load_members, require_rank, role_of_member
from storage.chat.roles import Moderator
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound, RateLimited
from storage.feed.content_reports.documents import ContentReportDocument
from storage.feed.content_reports.records import (
    ContentReport,
    ContentReportCategory,
    ContentReportDecision,
    ContentReportState,
    ContentReportSubject,
    content_report,
    content_report_id,
)
from storage.identity.audit import AuditAction, TargetKind, put_entry
from storage.identity.erased_people import USERS
from storage.identity.records import user_document_id
from storage.identity.rights import HasRole, IsActive, IsNotErased
from storage.identity.roles import Role
from storage.ids import message_key, post_key
from storage.mongo import Document, Mongo, Session
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, Change, DocumentKey, Right

CONTENT_REPORTS = "content_reports"

MAX_OPEN_BY_REPORTER = 100
"""Maximum number of open reports by one person. Further reports are refused."""

MAX_OPEN_OF_SUBJECT = 50
"""Maximum number of open reports of one subject. Further reports are refused: moderators know the subject by then."""

OPEN_REPORT_LIFETIME = timedelta(days=365)
"""How long an open report is kept."""

DECIDED_REPORT_LIFETIME = timedelta(days=180)
"""How long a report is kept after the decision."""

EFFECT_LEASE = timedelta(seconds=30)
"""How long a process has to carry out a decision before another process does it."""

RETRY_AFTER_MS = 3_600_000

DECISIONS_WITH_EFFECT = {ContentReportDecision.REMOVE, ContentReportDecision.BAN}
"""Decisions that are carried out after their commit."""


@dataclass(frozen=True, slots=True)
class NewReport:
    """The validated content of a report. `community_id` is None if the ADMINs decide."""

    organization_id: str
    subject: ContentReportSubject
    subject_id: str
    community_id: str | None
    author_id: str
    reporter_id: str
    category: ContentReportCategory
    text: str
    content_text: str

    @property
    def id(self) -> str:
        """The id of the report."""
        return content_report_id(self.organization_id, self.subject, self.subject_id, self.reporter_id)


@dataclass(slots=True)
class FileReport(Change[None]):
    """Stores a report. Changes nothing if the person has reported the subject before."""

    new: NewReport

    def rights(self) -> Sequence[Right]:
        """Returns that the reporter's account is active, and that the author is not being erased."""
        new = self.new
        return IsActive(new.reporter_id, new.organization_id), IsNotErased(new.author_id, new.organization_id)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the person's earlier report of the subject, and the community that decides."""
        keys: list[DocumentKey] = [(CONTENT_REPORTS, self.new.id)]
        return keys if self.new.community_id is None else [*keys, (COMMUNITIES, self.new.community_id)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Counts the open reports of the reporter and of the subject, each once for all changes of the batch."""
        counts = _counts(batch)
        for name, value, limit in self._limits():
            if (name, value) not in counts:
                query = {"org": self.new.organization_id, name: value, "state": ContentReportState.OPEN.value}
                found = await mongo.find(CONTENT_REPORTS, query, {"_id": 1}, limit=limit, session=session)
                counts[name, value] = len(found)

    def plan(self, batch: Batch) -> None:
        """Puts the report.

        Raises: RateLimited for too many open reports by the person; Conflict for too many open reports of the subject.
        """
        if batch.get(CONTENT_REPORTS, self.new.id) is not None:
            return
        counts = _counts(batch)
        if counts["reporter", self.new.reporter_id] >= MAX_OPEN_BY_REPORTER:
            raise RateLimited(f"{MAX_OPEN_BY_REPORTER} of your reports wait for a decision.", RETRY_AFTER_MS)
        if counts["subject", self.new.subject_id] >= MAX_OPEN_OF_SUBJECT:
            raise Conflict("Many people have reported this already. Moderators will decide.")
        for name, value, _ in self._limits():
            counts[name, value] += 1
        batch.put(CONTENT_REPORTS, self._document(batch))
        batch.emit("ContentReported", self.new.id)

    def _limits(self) -> Sequence[tuple[str, str, int]]:
        """Returns, for each limit, a field of reports, its value, and the maximum number of open reports with it."""
        return (
            ("reporter", self.new.reporter_id, MAX_OPEN_BY_REPORTER),
            ("subject", self.new.subject_id, MAX_OPEN_OF_SUBJECT),
        )

    def _document(self, batch: Batch) -> ContentReportDocument:
        new = self.new
        document: ContentReportDocument = {
            "_id": new.id,
            "org": new.organization_id,
            "kind": new.subject.value,
            "subject": new.subject_id,
            "author": new.author_id,
            "reporter": new.reporter_id,
            "category": new.category.value,
            "text": new.text,
            "content": new.content_text,
            "at": batch.at,
            "state": ContentReportState.OPEN.value,
            "expires_at": batch.at + OPEN_REPORT_LIFETIME,
        }
        if new.community_id is not None:
            document["community"] = new.community_id
            community: CommunityDocument | None = batch.get(COMMUNITIES, new.community_id)
            if community is not None and stored_visibility(community) is CommunityVisibility.PRIVATE:
                document["private"] = True
        return document


@dataclass(frozen=True, slots=True)
class ReportRuling:
    """A moderator's decision about a report, with the reason.

    `ban_until` is None for a ban without an end and for other decisions.
    """

    decision: ContentReportDecision
    note: str
    ban_until: datetime | None


@dataclass(frozen=True, slots=True)
class MayDecideReport(Right):
    """The person moderates the community of the content, or is an ADMIN if the content has none.

    Nobody decides a report about themselves.
    """

    report: ContentReport
    moderator: Moderator

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the moderator's account."""
        return [(USERS, user_document_id(self.report.organization_id, self.moderator.user_id))]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the moderator's membership."""
        if self.report.community_id is not None:
            await load_members(mongo, session, batch, self.report.community_id, [self.moderator.user_id])

    def check(self, batch: Batch) -> None:
        """Raises Forbidden."""
        organization_id, community_id = self.report.organization_id, self.report.community_id
        if self.report.author_id == self.moderator.user_id:
            raise Forbidden("You cannot decide a report about yourself.")
        if community_id is None:
            HasRole(self.moderator.actor_in(organization_id), Role.ADMIN).check(batch)
        else:
            role = role_of_member(batch, community_id, self.moderator.user_id)
            require_rank(batch, organization_id, self.moderator, role, None)


@dataclass(slots=True)
class DecideReport(Change[ContentReport]):
    """Decides a report, and all other open reports of the same subject. Each report is decided once."""

    report: ContentReport
    moderator: Moderator
    ruling: ReportRuling

    def rights(self) -> Sequence[Right]:
        """Returns the right to decide the report."""
        return (MayDecideReport(self.report, self.moderator),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the report."""
        return [(CONTENT_REPORTS, self.report.id)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the open reports of the same subject."""
        query: Document = {
            "org": self.report.organization_id,
            "subject": self.report.subject_id,
            "kind": self.report.subject.value,
            "state": ContentReportState.OPEN.value,
        }
        found: list[ContentReportDocument] = await mongo.find(
            CONTENT_REPORTS, query, limit=MAX_OPEN_OF_SUBJECT, session=session
        )
        for document in found:
            batch.add_loaded(CONTENT_REPORTS, document)
        batch.shared[self.report.subject_id] = [document["_id"] for document in found]

    def plan(self, batch: Batch) -> ContentReport:
        """Puts the decided reports, the notifications and the audit entry.

        Raises: NotFound; Conflict if the report was decided otherwise or by another moderator; BadUserInput.
        """
        document: ContentReportDocument | None = batch.get(CONTENT_REPORTS, self.report.id)
        if document is None:
            raise NotFound("content report", self.report.id)
        if document["state"] != ContentReportState.OPEN.value:
            return self._repeat(document)
        self._check(batch)
        decided = self._decide(batch, document)
        if self.ruling.decision in DECISIONS_WITH_EFFECT:
            decided["effect_due"] = batch.at + EFFECT_LEASE
        for other in self._others(batch):
            self._decide(batch, other)
        if self.ruling.decision is ContentReportDecision.WARN:
            self._warn(batch)
        self._audit(batch)
        return content_report(decided)

    def _others(self, batch: Batch) -> list[ContentReportDocument]:
        """Returns the other open reports of the subject. An earlier change of the batch decides all of them or none."""
        ids = [id_ for id_ in batch.shared[self.report.subject_id] if id_ != self.report.id]
        return [batch.get(CONTENT_REPORTS, id_) for id_ in ids]

    def _repeat(self, document: ContentReportDocument) -> ContentReport:
        """Returns a decided report if the same moderator made the same decision. Raises: Conflict otherwise."""
        if (document["by"], document["decision"]) != (self.moderator.user_id, self.ruling.decision.value):
            raise Conflict(f"The report was decided already: {document['decision']}.")
        return content_report(document)

    def _check(self, batch: Batch) -> None:
        """Raises BadUserInput for a decision that does not fit the subject."""
        if self.ruling.decision is ContentReportDecision.REMOVE and self.report.subject is ContentReportSubject.USER:
            raise BadUserInput("decision", "DISMISS, WARN or BAN, since the report is about a person")
        if self.ruling.ban_until is None:
            return
        if self.ruling.decision is not ContentReportDecision.BAN or self.report.community_id is None:
            raise BadUserInput("banUntil", "no value unless a person is banned from a community")
        require_future("banUntil", self.ruling.ban_until, batch)

    def _decide(self, batch: Batch, document: ContentReportDocument) -> ContentReportDocument:
        """Puts the decision of one report, emits it, and notifies the reporter. Returns the decided report."""
        decided = document.copy()
        decided["state"], decided["decision"] = ContentReportState.DECIDED.value, self.ruling.decision.value
        decided["note"], decided["by"] = self.ruling.note, self.moderator.user_id
        decided["by_admin"], decided["decided_at"] = self.moderator.is_admin, batch.at
        decided["expires_at"] = batch.at + DECIDED_REPORT_LIFETIME
        if self.ruling.ban_until is not None:
            decided["until"] = self.ruling.ban_until
        batch.put(CONTENT_REPORTS, decided)
        batch.emit("ContentReportDecided", decided["_id"])
        self._notify(batch, NotificationKind.REPORT_DECIDED, decided["reporter"], decided["_id"])
        return decided

    def _warn(self, batch: Batch) -> None:
        """Notifies the author of the content."""
        self._notify(batch, NotificationKind.WARNING, self.report.author_id, self.report.id)

    def _notify(self, batch: Batch, kind: NotificationKind, user_id: str, report_id: str) -> None:
        organization_id, subject_id = self.report.organization_id, self.report.subject_id
        message = message_key(subject_id) if self.report.subject is ContentReportSubject.MESSAGE else None
        is_post = self.report.subject is ContentReportSubject.POST
        post = post_key(organization_id, subject_id).timestamp if is_post else None
        notify(batch, organization_id, user_id, kind, message=message, post=post, report_id=report_id)

    def _audit(self, batch: Batch) -> None:
        report = self.report
        actor = self.moderator.actor_in(report.organization_id)
        details = {"decision": self.ruling.decision.value, "subject": report.subject.value}
        if report.shown_subject_id == report.subject_id:
            details["id"] = report.subject_id
        if report.community_id is not None:
            details["community"] = report.community_id
        put_entry(batch, actor, AuditAction.CONTENT_REPORT_DECIDED, TargetKind.USER, report.author_id, **details)


def _counts(batch: Batch) -> dict[tuple[str, str], int]:
    """Returns the numbers of open reports by field and value. Reports of earlier changes of the batch are counted."""
    counts: dict[tuple[str, str], int] = batch.shared.setdefault(CONTENT_REPORTS, {})
    return counts
