"""Stored documents of erasures, exports and retention rules. Instants are aware UTC datetimes of the database."""

from datetime import datetime
from typing import NotRequired, TypedDict

from storage.identity.documents import UserDocumentId

ERASURES = "erasures"


class RetentionRuleDocumentId(TypedDict):
    """The `_id` of a retention rule."""

    org: str
    """Organization id."""

    data: str
    """Value of `RetainedData`."""


class RetentionRuleDocument(TypedDict):
    """How long an organization keeps a kind of data, in `retention_rules`. Deleted when the default is set again."""

    _id: RetentionRuleDocumentId
    days: int
    """Lifetime in days."""

    by: str
    """Id of the administrator who set the lifetime."""

    at: datetime
    """When the lifetime was set."""

    due: datetime
    """When a worker applies the rule next. While a worker applies the rule: the end of the worker's claim."""

    done_until: NotRequired[datetime]
    """The instant before which the rule was applied to all events (MAIL_LEDGER) or messages (DIRECT_MESSAGES); absent
    before the first ones, and for other data. An event's time is that of its aggregation."""


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
    """Number of objects that were deleted, emptied or changed so far. It includes direct messages, so that it is shown
    to operators only."""

    due: NotRequired[datetime]
    """When a worker may begin or continue: at first when requests of the user have ended, then the end of the current
    worker's claim. Absent once the erasure is completed."""

    completed_at: NotRequired[datetime]
    """When the last step was completed; absent until then."""


class ExportDocument(TypedDict):
    """The latest export of a person's data, in `exports`. Deleted 7 days after `at`."""

    _id: UserDocumentId
    """Organization and user, so that a user has only one export."""

    key: str
    """Public id. A new export gets a new id."""

    at: datetime
    """When the export was requested."""

    fence: int
    """Number of attempts to write the archive. An attempt with a lower number can't write any more."""

    files_done: int
    """Number of files in the archive so far."""

    chunks: int
    """Number of parts of the archive that the current attempt has stored."""

    bytes: int
    """Total size of these parts."""

    due: NotRequired[datetime]
    """When a worker may begin: at first the time of the request, then the end of the current worker's claim. Absent
    once the export has ended."""

    completed_at: NotRequired[datetime]
    """When the archive was completed; absent until then."""

    failure: NotRequired[str]
    """Value of `ExportFailure`; absent unless the export failed."""


class ExportChunkDocumentId(TypedDict):
    """The `_id` of a part of an archive. The parts of a file are in the order of these ids."""

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
