"""Stored documents of erasures. Instants are aware UTC datetimes by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict

from storage.identity.documents import UserDocumentId

ERASURES = "erasures"


class ErasureDocument(TypedDict):
    """The erasure of a user, in `erasures`. Deleted two years after it was completed."""

    _id: UserDocumentId
    """Organization and user, so that a user has only one erasure."""

    requested_by: str
    """Id of the user who requested the erasure."""

    at: datetime
    """When the erasure was requested."""

    steps_done: int
    """Number of completed steps."""

    changed: int
    """Number of objects that were deleted, emptied or changed so far."""

    due: NotRequired[datetime]
    """When a worker may continue: after the user's requests have ended, and at the end of a worker's claim. Absent once
    the erasure is completed."""

    completed_at: NotRequired[datetime]
    """When the last step ended; absent until then."""


class ExportDocument(TypedDict):
    """The latest export of a person's data, in `exports`. Deleted 7 days after `at`."""

    _id: UserDocumentId
    """Organization and user, so that a user has only one export."""

    key: str
    """Public id. A new request has another one."""

    at: datetime
    """When the export was requested."""

    fence: int
    """Number of attempts to write the file. An attempt with a lower number can't write any more."""

    files_done: int
    """Number of files in the archive so far."""

    chunks: int
    """Number of parts of the archive that the current attempt has stored."""

    bytes: int
    """Size of these parts together."""

    due: NotRequired[datetime]
    """When a worker may begin: at once, and at the end of a worker's claim. Absent once the export has ended."""

    completed_at: NotRequired[datetime]
    """When the archive was complete; absent until then."""

    failure: NotRequired[str]
    """Value of `ExportFailure`; absent unless the export failed."""


class ExportChunkDocumentId(TypedDict):
    """The `_id` of a part of an archive; its order is that of the file."""

    e: str
    """Key of the export."""

    f: int
    """Fence of the attempt that wrote the part."""

    n: int
    """Number of the part, from 0."""


class ExportChunkDocument(TypedDict):
    """A part of an archive, in `export_chunks`. Deleted 7 days after `at`, or when a new export is requested."""

    _id: ExportChunkDocumentId
    org: str
    """Organization id."""

    user: str
    """User id."""

    data: bytes
    """At most 1 MiB."""

    at: datetime
    """When the part was stored."""
