"""Events and notifications about a publication. They are stored in the commit that changes the publication."""

from datetime import datetime, timedelta

from storage.notifications import NotificationKind, notify
from storage.publishing.documents import PublicationDocument
from storage.streams.changes import Batch
from storage.streams.log import jobs_stream

CHANGED = "PublicationChanged"

LATE_AFTER = timedelta(seconds=60)
"""Publications that are later than this are reported to their authors."""


def emit_changed(batch: Batch, publication: PublicationDocument) -> None:
    """Emits the event in this commit if the batch is for the jobs stream, otherwise through the outbox."""
    stream = jobs_stream(publication["org"])
    if batch.stream == stream:
        batch.emit(CHANGED, publication["_id"])
    else:
        batch.add_outbox_row(stream, CHANGED, publication["_id"])


def notify_failed(batch: Batch, publication: PublicationDocument) -> None:
    """Notifies the author that the publication failed."""
    _notify_author(batch, publication, NotificationKind.PUBLICATION_FAILED)


def notify_unknown(batch: Batch, publication: PublicationDocument) -> None:
    """Notifies the author that the outcome is unknown."""
    _notify_author(batch, publication, NotificationKind.PUBLICATION_UNKNOWN)


def notify_late(batch: Batch, publication: PublicationDocument, published_at: datetime) -> None:
    """Notifies the author if the post was published late, unless the author knows that its outcome was unknown."""
    expected_at = publication.get("late_from", publication["due"])
    if published_at - expected_at > LATE_AFTER and not publication.get("author_notified"):
        _notify_author(batch, publication, NotificationKind.PUBLICATION_LATE)


def notify_attention_once(batch: Batch, publication: PublicationDocument) -> None:
    """Notifies the author that the account needs other credentials, unless the author was notified before."""
    if not publication.get("attention_notified"):
        publication["attention_notified"] = True
        _notify_author(batch, publication, NotificationKind.PUBLICATION_NEEDS_ATTENTION)


def _notify_author(batch: Batch, publication: PublicationDocument, kind: NotificationKind) -> None:
    """Notifies the author. A publication that was tried again may fail again, which is another notification."""
    id_, attempt = publication["_id"], len(publication["attempts"])
    notify(batch, publication["org"], publication["author"], kind, publication_id=id_, attempt=attempt)
