"""Reports: publications that failed, wait for other credentials, have an unknown outcome, or were published late.

A publication is reported in the commit that changes it: to its author, and as an event of the organization's jobs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from storage.publishing.documents import PublicationDocument, ReportMailDocument
from storage.publishing.records import Publication, PublicationState, ScheduledPost, publication_record


class ReportReason(Enum):
    """Why a publication is reported. The value is stored."""

    FAILED = "FAILED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"
    UNKNOWN = "UNKNOWN"
    LATE = "LATE"


@dataclass(frozen=True, slots=True)
class PublicationReport:
    """A report, with the publication and its post as they are now."""

    reason: ReportReason
    publication: Publication
    post: ScheduledPost


def report_ref(publication_id: str, reason: ReportReason, attempt: int) -> str:
    """Returns the reference of a report's event. A publication that was tried again may be reported again."""
    return f"{publication_id}/{reason.value}/{attempt}"


def parse_report_ref(ref: str) -> tuple[str, ReportReason, int]:
    """Returns the publication's id, the reason and the number of attempts of a report."""
    id_, reason, attempt = ref.split("/")
    return id_, ReportReason(reason), int(attempt)


def found_reports(
    refs: Sequence[str], publications: Mapping[str, Publication], posts: Mapping[str, ScheduledPost]
) -> dict[str, PublicationReport]:
    """Returns the reports by reference, without those whose publication or post is missing."""
    reports = {}
    for ref in refs:
        id_, reason, _ = parse_report_ref(ref)
        publication = publications.get(id_)
        post = None if publication is None else posts.get(publication.scheduled_post_id)
        if publication is not None and post is not None:
            reports[ref] = PublicationReport(reason, publication, post)
    return reports


_REPORTED_STATES = {
    ReportReason.FAILED: PublicationState.FAILED,
    ReportReason.NEEDS_ATTENTION: PublicationState.NEEDS_ATTENTION,
    ReportReason.UNKNOWN: PublicationState.UNKNOWN,
    ReportReason.LATE: PublicationState.PUBLISHED,
}
"""The state in which a report is made."""


@dataclass(frozen=True, slots=True)
class ReportMail:
    """A mail to the author of a reported publication."""

    publication: Publication
    reason: ReportReason
    attempt: int
    stored: ReportMailDocument | None
    """The mail as the publication stores it; None for a failure that an earlier release reported."""

    @property
    def id(self) -> str:
        """The same for each try to send the mail."""
        return f"{self.publication.id}-{self.reason.value.lower()}-{self.attempt}"

    @property
    def is_current(self) -> bool:
        """Whether the publication is still as it was reported."""
        return self.publication.state is _REPORTED_STATES[self.reason]


def report_mail(document: PublicationDocument) -> ReportMail:
    """Returns the mail that a publication stores."""
    publication, stored = publication_record(document), document.get("mail")
    if stored is None:
        return ReportMail(publication, ReportReason.FAILED, len(document["attempts"]), None)
    return ReportMail(publication, ReportReason(stored["reason"]), stored["attempt"], stored)
