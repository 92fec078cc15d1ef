"""Records of files as read from the database."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from storage.files.documents import FileDocument, ObjectDocument, PictureDocument
from storage.files.pictures import FileRefusal
from storage.ids import UserKey


class FileState(Enum):
    """State of a file. The value is stored."""

    RECEIVING = "RECEIVING"
    CHECKING = "CHECKING"
    READY = "READY"
    REFUSED = "REFUSED"


class UploadPurpose(Enum):
    """Purpose of an upload. The value is stored."""

    ATTACHMENT = "ATTACHMENT"
    AVATAR = "AVATAR"
    BANNER = "BANNER"
    STAMP = "STAMP"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in the object store, and the number of its bytes."""

    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Thumbnail(StoredObject):
    """An object with a smaller version of a picture."""

    content_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Size in pixels, blurhash and smaller versions of a decoded picture; the smallest version is first."""

    width: int
    height: int
    blurhash: str
    thumbnails: tuple[Thumbnail, ...]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An uploaded file, or an upload that is not complete."""

    id: str
    organization_id: str
    owner_id: str
    """Id of the user who uploaded the file; empty for a file of the organization or of a community."""

    name: str
    size: int
    """Size of the complete upload in bytes. The stored bytes of a picture are others, since it was encoded anew."""

    created_at: datetime
    state: FileState
    offset: int
    """Number of bytes of the upload that are stored."""

    parts: tuple[StoredObject, ...]
    content_type: str | None
    refusal: FileRefusal | None
    picture: Picture | None
    places: tuple[str, ...]
    expires_at: datetime | None
    purpose: UploadPurpose = UploadPurpose.ATTACHMENT

    @property
    def owner(self) -> UserKey:
        """The user who uploaded the file."""
        return UserKey(self.organization_id, self.owner_id)

    @property
    def file_id(self) -> str:
        """The id, as clients see it at an attachment of the file."""
        return self.id

    @property
    def url(self) -> str:
        """Path that takes the bytes of the upload, relative to the server's origin."""
        return f"/uploads/{self.id}"

    @property
    def is_picture(self) -> bool:
        """Whether the file is a decoded picture."""
        return self.picture is not None

    @property
    def stored_size(self) -> int:
        """Number of bytes that a download of the file has."""
        return sum(part.size for part in self.parts)


def file_record(document: FileDocument) -> StoredFile:
    """Returns the record of a stored file."""
    refusal, picture = document.get("refusal"), document.get("picture")
    return StoredFile(
        id=document["_id"],
        organization_id=document["org"],
        owner_id=document["user"],
        name=document["name"],
        size=document["size"],
        created_at=document["at"],
        state=FileState(document["state"]),
        offset=document["offset"],
        parts=tuple(_stored_object(part) for part in document["parts"]),
        content_type=document.get("type"),
        refusal=None if refusal is None else FileRefusal(refusal),
        picture=None if picture is None else _picture(picture),
        places=tuple(document.get("places", ())),
        expires_at=document.get("expires_at"),
        purpose=UploadPurpose(document.get("purpose", UploadPurpose.ATTACHMENT.value)),
    )


def _stored_object(document: ObjectDocument) -> StoredObject:
    return StoredObject(document["key"], document["size"])


def _picture(document: PictureDocument) -> Picture:
    thumbnails = tuple(
        Thumbnail(each["key"], each["size"], each["type"], each["width"], each["height"])
        for each in document["thumbnails"]
    )
    return Picture(document["width"], document["height"], document["blurhash"], thumbnails)
