"""Attachments: files of a message or a post. They are attached and removed in the transaction of their subject.

The subject holds everything that a client shows, so that pages read no files. The file holds the places where it is
attached, so that a download finds them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from storage.errors import BadUserInput, Conflict, NotFound
from storage.files.documents import AttachmentDocument, FileDocument, FileRemovalDocument
from storage.files.records import FileState
from storage.files.uploads import FILES, UNATTACHED_KEPT_S
from storage.ids import UserKey
from storage.mongo import Document
from storage.streams.changes import Batch, DocumentKey

REMOVALS = "file_removals"

MAX_PLACES = 200
"""In how many places a file of a library can be attached before it is attached once more. A download checks each."""


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file to attach, and the alternative text, which may be empty unless the file is a picture."""

    file_id: str
    alt_text: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message or a post. A file that is not a picture has no width, height, blurhash and thumbnail."""

    file_id: str
    name: str
    content_type: str
    size: int
    alt_text: str
    width: int | None = None
    height: int | None = None
    blurhash: str | None = None
    has_thumbnail: bool = False

    @property
    def id(self) -> str:
        """Id of the file."""
        return self.file_id

    @property
    def url(self) -> str:
        """Path of the file, relative to the server's origin."""
        return f"/files/{self.file_id}/{quote(self.name, safe='')}"

    @property
    def thumbnail_url(self) -> str | None:
        """Path of a smaller version of a picture. None for other files."""
        if self.width is None:
            return None
        return f"/files/{self.file_id}/thumbnail" if self.has_thumbnail else self.url


def attachment_record(document: AttachmentDocument) -> Attachment:
    """Returns the record of a stored attachment."""
    return Attachment(
        document["id"],
        document["name"],
        document["type"],
        document["size"],
        document.get("alt", ""),
        document.get("width"),
        document.get("height"),
        document.get("blurhash"),
        document.get("thumbnail", False),
    )


def export_attachments(documents: Sequence[AttachmentDocument]) -> list[Document]:
    """Returns what an export holds of the files of a message or a post."""
    return [{"id": each["id"], "altText": each.get("alt", "")} for each in documents]


def file_keys(attachments: Sequence[NewAttachment]) -> list[DocumentKey]:
    """Returns the keys of the files, for the documents that a change needs."""
    return [(FILES, each.file_id) for each in attachments]


def check_attachable(
    batch: Batch, owner: UserKey, attachments: Sequence[NewAttachment], kept: Collection[str] = ()
) -> None:
    """Checks that the owner may attach the files. The batch must have loaded them.

    Files with an id in `kept` are attached to the subject already. Raises: NotFound for files of others; Conflict for a
    file that is attached or not ready; BadUserInput for a picture without an alternative text.
    """
    for index, each in enumerate(attachments):
        file: FileDocument | None = batch.get(FILES, each.file_id)
        if file is None or "deleting" in file:
            raise NotFound("upload", each.file_id)
        if each.file_id not in kept:
            _check_free(file, owner)
        if "picture" in file and not each.alt_text:
            raise BadUserInput(f"attachments[{index}].altText", "a text that describes the picture")


def _check_free(file: FileDocument, owner: UserKey) -> None:
    if (file["org"], file["user"]) != owner:
        raise NotFound("upload", file["_id"])
    if "library_alt" in file:
        _check_places(file)
    elif file.get("places"):
        raise Conflict(
            f"The file {file['_id']} is attached already. Upload it again, or keep it in your library before."
        )
    if file["state"] != FileState.READY.value:
        raise Conflict(f"The file {file['_id']} is {file['state']}. Attach it when its state is READY.")


def _check_places(file: FileDocument) -> None:
    if len(file.get("places", ())) >= MAX_PLACES:
        raise Conflict(f"The file {file['_id']} is attached in {MAX_PLACES} places. Upload it again to attach it more.")


def attachment_documents(batch: Batch, attachments: Sequence[NewAttachment]) -> list[AttachmentDocument]:
    """Returns what the subject stores of files that `check_attachable` has accepted. Attaches nothing."""
    return [attachment_document(batch.get(FILES, each.file_id), each) for each in attachments]


def attach_files(batch: Batch, places: Sequence[str], attachments: Sequence[NewAttachment]) -> list[AttachmentDocument]:
    """Attaches files that `check_attachable` has accepted, and returns what their subjects store."""
    return [_attach(batch, places, each) for each in attachments]


def replace_files(
    batch: Batch, places: Sequence[str], present: Sequence[AttachmentDocument], attachments: Sequence[NewAttachment]
) -> list[AttachmentDocument]:
    """Attaches files that `check_attachable` has accepted, in place of present ones that are not in these places then.

    Present files that are left out expire as files that were never attached. Returns what the subject stores.
    """
    kept = {each.file_id for each in attachments}
    for each in present:
        file: FileDocument | None = batch.get(FILES, each["id"])
        if each["id"] not in kept and file is not None and "deleting" not in file:
            batch.put(FILES, _released(file, places, batch.at + timedelta(seconds=UNATTACHED_KEPT_S)))
    return attach_files(batch, places, attachments)


def _released(file: FileDocument, places: Sequence[str], expires_at: datetime) -> FileDocument:
    """Returns the file without these places. A file of a library keeps the others, and does not expire."""
    if "library_alt" in file:
        return {**file, "places": [place for place in file["places"] if place not in places]}
    return {**file, "places": [], "expires_at": expires_at}


def move_files(
    batch: Batch, attachments: Sequence[AttachmentDocument], removed: str | None, added: str
) -> list[AttachmentDocument]:
    """Attaches files in one more place, and no longer in the place `removed`. The batch must have loaded them.

    Returns the attachments whose files still exist. Those of an erased person do not.
    """
    kept = []
    for each in attachments:
        file: FileDocument | None = batch.get(FILES, each["id"])
        if file is not None and "deleting" not in file:
            places = [place for place in file.get("places", ()) if place != removed]
            batch.put(FILES, {**file, "places": [*places, added]})
            kept.append(each)
    return kept


def remove_files(
    batch: Batch, place: str, attachments: Sequence[AttachmentDocument], after: timedelta = timedelta(0)
) -> None:
    """Removes the files of a deleted subject after a time. A sweeper then deletes those that are attached nowhere else.

    Until that time has passed, the files stay attached in the place.
    """
    for each in attachments:
        removal: FileRemovalDocument = {"_id": {"f": each["id"], "p": place}, "at": batch.at + after}
        batch.put(REMOVALS, removal)


def _attach(batch: Batch, places: Sequence[str], attachment: NewAttachment) -> AttachmentDocument:
    file: FileDocument = batch.get(FILES, attachment.file_id).copy()
    # A file of a library is attached in other places, too.
    file["places"] = list(dict.fromkeys([*file.get("places", ()), *places]))
    file.pop("expires_at", None)
    batch.put(FILES, file)
    return attachment_document(file, attachment)


def attachment_document(file: FileDocument, attachment: NewAttachment) -> AttachmentDocument:
    """Returns what a subject stores of a file that is ready."""
    stored_size = sum(part["size"] for part in file["parts"])
    document: AttachmentDocument = {
        "id": file["_id"],
        "name": file["name"],
        "type": file.get("type", ""),
        "size": stored_size,
    }
    if attachment.alt_text:
        document["alt"] = attachment.alt_text
    if "picture" in file:
        picture = file["picture"]
        document |= {"width": picture["width"], "height": picture["height"], "blurhash": picture["blurhash"]}
        if picture["thumbnails"]:
            document["thumbnail"] = True
    return document
