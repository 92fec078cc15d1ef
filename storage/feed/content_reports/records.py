"""Content reports as read from the database."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from storage.feed.content_reports.documents import ContentReportDocument
from storage.streams.log import Stream


class ContentReportSubject(Enum):
    """Kind of a report's subject. The value is stored."""

    MESSAGE = "MESSAGE"
    POST = "POST"
    USER = "USER"


class ContentReportCategory(Enum):
    """Reason of a report. The value is stored."""

    SPAM = "SPAM"
    HARASSMENT = "HARASSMENT"
    HATE = "HATE"
    VIOLENCE = "VIOLENCE"
    SEXUAL = "SEXUAL"
    SELF_HARM = "SELF_HARM"
    PRIVACY = "PRIVACY"
    OTHER = "OTHER"


class ContentReportState(Enum):
    """Progress of a report. The value is stored."""

    OPEN = "OPEN"
    DECIDED = "DECIDED"


class ContentReportDecision(Enum):
    """Decision of a moderator. The value is stored."""

    DISMISS = "DISMISS"
    REMOVE = "REMOVE"
    WARN = "WARN"
    BAN = "BAN"


class ContentReportOutcome(Enum):
    """Effect of a decision. Outside of communities, a ban ends the person's access to the organization."""

    DISMISS = "DISMISS"
    REMOVE = "REMOVE"
    WARN = "WARN"
    BAN = "BAN"
    DEACTIVATE = "DEACTIVATE"


@dataclass(frozen=True, slots=True)
class ContentReport:
    """A report. `community_id` is None if the ADMINs decide.

    `decision`, `note`, `decided_by_id` and `decided_at` are None while the report is open. `ban_until` is None unless
    the decision is a ban with an end. `failure` is None unless the decision could not be carried out.
    """

    id: str
    organization_id: str
    subject: ContentReportSubject
    subject_id: str
    community_id: str | None
    author_id: str
    reporter_id: str
    category: ContentReportCategory
    text: str
    content_text: str
    reported_at: datetime
    state: ContentReportState
    decision: ContentReportDecision | None
    note: str | None
    decided_by_id: str | None
    decided_by_admin: bool
    decided_at: datetime | None
    ban_until: datetime | None
    failure: str | None
    effect_is_due: bool = False
    """Whether the decision has yet to be carried out."""

    @property
    def shown_subject_id(self) -> str:
        """The subject's id for those who decide. It is the report's own id for a message about which the ADMINs decide.

        Such a message is of a conversation or of a PRIVATE community, whose topic its id contains.
        """
        is_hidden = self.subject is ContentReportSubject.MESSAGE and self.community_id is None
        return self.id if is_hidden else self.subject_id

    @property
    def outcome(self) -> ContentReportOutcome | None:
        """The effect of the decision; None while the report is open."""
        if self.decision is None:
            return None
        if self.decision is ContentReportDecision.BAN and self.community_id is None:
            return ContentReportOutcome.DEACTIVATE
        return ContentReportOutcome(self.decision.value)


def reports_stream(organization_id: str) -> Stream:
    """Returns the stream of an organization's content reports."""
    return Stream("reports", organization_id)


def content_report_id(organization_id: str, kind: ContentReportSubject, subject_id: str, reporter_id: str) -> str:
    """Returns the id of a person's report of a subject."""
    parts = (organization_id, kind.value, subject_id, reporter_id)
    # The lengths make the text unambiguous.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def content_report(document: ContentReportDocument) -> ContentReport:
    """Returns the record of a document."""
    decision = document.get("decision")
    return ContentReport(
        id=document["_id"],
        organization_id=document["org"],
        subject=ContentReportSubject(document["kind"]),
        subject_id=document["subject"],
        community_id=document.get("community"),
        author_id=document["author"],
        reporter_id=document["reporter"],
        category=ContentReportCategory(document["category"]),
        text=document["text"],
        content_text=document["content"],
        reported_at=document["at"],
        state=ContentReportState(document["state"]),
        decision=None if decision is None else ContentReportDecision(decision),
        note=document.get("note"),
        decided_by_id=document.get("by"),
        decided_by_admin=document.get("by_admin", False),
        decided_at=document.get("decided_at"),
        ban_until=document.get("until"),
        failure=document.get("failure"),
        effect_is_due="effect_due" in document,
    )
