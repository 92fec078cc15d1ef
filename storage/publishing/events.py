"""Events and reports of a publication. They are stored in the commit that changes the publication."""

from datetime import datetime, timedelta

from storage.notifications import NotificationKind, notify
from storage.publishing.documents import PublicationDocument
from storage.publishing.reports.records import ReportReason, report_ref
from storage.streams.changes import Batch
from storage.streams.log import jobs_stream

CHANGED = "PublicationChanged"
REPORTED = "PublicationReported"
NOTIFY_TEAM = "NotifyTeam"
"""Kind of the outbox rows by which the organization's team is notified (storage/publishing/reports/team.py)."""

KINDS_BY_REASON = {
    ReportReason.FAILED: NotificationKind.PUBLICATION_FAILED,
    ReportReason.NEEDS_ATTENTION: NotificationKind.PUBLICATION_NEEDS_ATTENTION,
    ReportReason.UNKNOWN: NotificationKind.PUBLICATION_UNKNOWN,
    ReportReason.LATE: NotificationKind.PUBLICATION_LATE,
}
"""The kind of the notification about a report."""

LATE_AFTER = timedelta(seconds=60)
"""Publications that are later than this are reported."""


def emit_changed(batch: Batch, publication: PublicationDocument) -> None:
    """Emits the event in this commit if the batch is for the jobs stream, otherwise through the outbox."""
    _emit(batch, publication, CHANGED, publication["_id"])


def report_failed(batch: Batch, publication: PublicationDocument) -> None:
    """Reports that the publication failed."""
    _report(batch, publication, ReportReason.FAILED)


def report_unknown(batch: Batch, publication: PublicationDocument) -> None:
    """Reports that the outcome is unknown."""
    _report(batch, publication, ReportReason.UNKNOWN)


def report_late(batch: Batch, publication: PublicationDocument, published_at: datetime) -> None:
    """Reports that the post was published late, unless its outcome was reported as unknown."""
    expected_at = publication.get("late_from", publication["due"])
    if published_at - expected_at > LATE_AFTER and not publication.get("author_notified"):
        _report(batch, publication, ReportReason.LATE)


def report_attention_once(batch: Batch, publication: PublicationDocument, *, is_mailed: bool) -> bool:
    """Reports that the account needs other credentials, unless this was reported before. Returns whether it was not.

    With `is_mailed`, the author gets a mail, too.
    """
    if publication.get("attention_notified"):
        return False
    publication["attention_notified"] = True
    _report(batch, publication, ReportReason.NEEDS_ATTENTION, is_mailed=is_mailed)
    return True


def _report(batch: Batch, publication: PublicationDocument, reason: ReportReason, *, is_mailed: bool = True) -> None:
    """Notifies the author, emits the event, and plans the mail. The caller puts the publication.

    The team is notified of what the author is mailed, but not of late publications. A publication that was tried again
    may fail again, which is another report.
    """
    id_, attempt = publication["_id"], len(publication["attempts"])
    if is_mailed:
        publication |= {"mail_at": batch.at, "mail": {"reason": reason.value, "attempt": attempt}}
    kind = KINDS_BY_REASON[reason]
    notify(batch, publication["org"], publication["author"], kind, publication_id=id_, attempt=attempt)
    ref = report_ref(id_, reason, attempt)
    _emit(batch, publication, REPORTED, ref)
    if is_mailed:
        batch.add_outbox_row(jobs_stream(publication["org"]), NOTIFY_TEAM, ref)


def _emit(batch: Batch, publication: PublicationDocument, kind: str, ref: str) -> None:
    stream = jobs_stream(publication["org"])
    if batch.stream == stream:
        batch.emit(kind, ref)
    else:
        batch.add_outbox_row(stream, kind, ref)
