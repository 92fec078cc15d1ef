"""Stored documents of files. Instants are aware UTC datetimes, by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict


class ObjectDocument(TypedDict):
    """An object in the object store."""

    key: str
    size: int
    """Number of bytes."""


class ThumbnailDocument(ObjectDocument):
    """An object with a smaller version of a picture."""

    type: str
    """Content type."""

    width: int
    """Width in pixels."""

    height: int
    """Height in pixels."""


class PictureDocument(TypedDict):
    """Size and smaller versions of a decoded picture."""

    width: int
    """Width in pixels."""

    height: int
    """Height in pixels."""

    blurhash: str
    thumbnails: list[ThumbnailDocument]
    """Smaller versions, the smallest first."""


class RecordedCallId(TypedDict):
    """The call of a recording."""

    j: str
    """Call job id."""

    r: int
    """Line of the number in the list."""

    n: int
    """Ordinal of the call within its task."""


class FileDocument(TypedDict):
    """An uploaded file, an upload that is not complete, a link preview's image, or a call's recording, in `files`.

    An upload is deleted a day after its creation, unless it is attached; a copy of an image 30 days after it was
    fetched; a recording when a retention rule removes the number that was called.
    """

    _id: str
    """File id, which is also the id of the upload. For a copy, a digest of its organization and remote address; for a
    recording, one of its callId."""

    org: str
    """Organization id."""

    user: str
    """Id of the user who uploads the file; empty for a file of the organization or of a
    community: a stamp, a picture of a community, a copy, or a recording."""

    name: str
    """Name of the file as the user gave it; empty for a copy, and the same for all pictures of communities."""

    size: int
    """Size in bytes that the upload will have, and that counts for the quotas."""

    at: datetime
    """When the upload was created, or the copy fetched."""

    state: str
    """A `FileState`."""

    offset: int
    """Number of bytes that are stored."""

    parts: list[ObjectDocument]
    """The objects that hold the bytes, in order."""

    due: NotRequired[datetime]
    """When a worker has to check the content; absent unless the state is CHECKING."""

    type: NotRequired[str]
    """Content type by the bytes of the file; absent before the check."""

    refusal: NotRequired[str]
    """A `FileRefusal`; absent unless the state is REFUSED."""

    picture: NotRequired[PictureDocument]
    """Absent for a file that is not a decoded picture."""

    purpose: NotRequired[str]
    """An `UploadPurpose`; absent for an attachment and for a copy."""

    places: NotRequired[list[str]]
    """Where the file is attached; absent if nowhere. The owner's library is one of the places."""

    library_alt: NotRequired[str]
    """Alternative text in the owner's library, may be empty; absent for a file that is not in the library."""

    expires_at: NotRequired[datetime]
    """When the file is deleted; absent while it is attached."""

    call: NotRequired[RecordedCallId]
    """The call that was recorded; absent for other files."""

    source: NotRequired[str]
    """Remote address of a recording; absent once it was fetched or given up, and for other files."""

    fetch_at: NotRequired[datetime]
    """When a worker has to fetch the recording; absent once it was fetched or given up, and for other files."""

    fetch_claim: NotRequired[str]
    """Token of the claim of the worker that fetches the recording; absent if none does, and for other files."""

    tries: NotRequired[int]
    """How often workers have claimed the recording; absent for other files."""

    deleting: NotRequired[bool]
    """True while the objects are being deleted; absent before. Clients no longer see the file."""


class AttachmentDocument(TypedDict):
    """A file inside of the message or the post that it is attached to."""

    id: str
    """File id."""

    name: str
    """Name of the file."""

    type: str
    """Content type by the bytes of the file."""

    size: int
    """Number of bytes of a download."""

    alt: NotRequired[str]
    """Alternative text; absent without one."""

    width: NotRequired[int]
    """Width of a picture in pixels; absent for other files."""

    height: NotRequired[int]
    """Height of a picture in pixels; absent for other files."""

    blurhash: NotRequired[str]
    """Absent for files that are no pictures."""

    thumbnail: NotRequired[bool]
    """True for a picture with a smaller version; absent without one."""


class FileRemovalId(TypedDict):
    """The `_id` of a removal: a file, and a place where it was attached."""

    f: str
    """File id."""

    p: str
    """Place, as in `FileDocument.places`."""


class FileRemovalDocument(TypedDict):
    """A file whose subject was deleted, in `file_removals`, until a sweeper has removed the place from the file."""

    _id: FileRemovalId
    at: datetime
    """When to remove the place: when the subject was deleted, or a day after a network got a scheduled post."""


class FileUsageId(TypedDict):
    """The `_id` of a usage."""

    o: str
    """Organization id."""

    u: str
    """User id; empty for the organization."""


class FileUsageDocument(TypedDict):
    """How many bytes the files of a user or an organization have, in `file_usage`."""

    _id: FileUsageId
    bytes: int
    """Sum of the sizes of the files."""

    library: NotRequired[int]
    """Number of files in the user's library; absent for an organization, and before the first one."""
