"""Whom a publication's changes are told to: the organization's jobs stream, and its author. Written with the change."""

from storage.mongo import Document
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch
from storage.streams.log import jobs_stream

CHANGED = "PublicationChanged"


def emit_changed(batch: Batch, publication: Document) -> None:
    """An event of the jobs stream: at once where that is what is committed to, else by a row."""
    stream = jobs_stream(publication["org"])
    if batch.stream == stream:
        batch.emit(CHANGED, publication["_id"])
    else:
        batch.add_outbox_row(stream, CHANGED, publication["_id"])


def notify_failed(batch: Batch, publication: Document) -> None:
    """A notification that it failed."""
    _tell_author(batch, publication, NotificationKind.PUBLICATION_FAILED)


def notify_unknown(batch: Batch, publication: Document) -> None:
    """A notification that a person has to look."""
    _tell_author(batch, publication, NotificationKind.PUBLICATION_UNKNOWN)


def _tell_author(batch: Batch, publication: Document, kind: NotificationKind) -> None:
    notify(batch, publication["org"], publication["author"], kind, publication_id=publication["_id"])
