"""What a publication's author is told: rows for other streams, written with the change itself."""

from urllib.parse import quote

from storage.changes import Batch
from storage.events import Stream
from storage.mongo import Document

CHANGED = "PublicationChanged"


def jobs_stream(organization_id: str) -> Stream:
    """The stream of what works in the background for an organization."""
    return Stream("jobs", quote(organization_id, safe=""))


def tell_changed(batch: Batch, publication: Document) -> None:
    """An event in the organization's jobs stream: at once where that is the stream being committed to."""
    stream = jobs_stream(publication["org"])
    if batch.stream == stream:
        batch.emit(CHANGED, publication["_id"])
    else:
        batch.tell(stream, CHANGED, publication["_id"])


def tell_failed(batch: Batch, publication: Document) -> None:
    """A notification for the author."""


def tell_unknown(batch: Batch, publication: Document) -> None:
    """A notification for the author."""
