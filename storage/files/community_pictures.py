"""Pictures of communities. They belong to the community, so that they stay when their uploader is erased."""

from collections.abc import Sequence

from storage.errors import Conflict, NotFound
from storage.files.documents import FileDocument, FileUsageDocument
from storage.files.records import UploadPurpose, file_record
from storage.files.uploads import FILES, require_picture
from storage.files.usage import USAGE, usage_ids
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, DocumentKey

COMMUNITY_PLACE = "community"


def community_place(community_id: str) -> str:
    """Returns the place of the pictures that a community shows."""
    return f"{COMMUNITY_PLACE}:{community_id}"


def picture_keys(owner: UserKey, file_id: str) -> Sequence[DocumentKey]:
    """Returns the keys of the documents that `give_picture` needs."""
    return [(FILES, file_id), (USAGE, usage_ids(owner)[0])]


def give_picture(batch: Batch, owner: UserKey, file_id: str, purpose: UploadPurpose, community_id: str) -> None:
    """Gives a picture of the owner to a community. It counts for the organization only, and loses the owner's name.

    Raises: NotFound; BadUserInput for a file that is not ready, or was uploaded for another purpose; Conflict for a
    file that is shown elsewhere.
    """
    file: FileDocument | None = batch.get(FILES, file_id)
    if file is None or "deleting" in file or (file["org"], file["user"]) != owner:
        raise NotFound("upload", file_id)
    require_picture(file_record(file), purpose)
    if file.get("places"):
        raise Conflict(f"The file {file_id} is shown already. Upload it again to show it once more.")
    given = file.copy()
    given |= {"user": "", "name": COMMUNITY_PLACE, "places": [community_place(community_id)]}
    given.pop("expires_at", None)
    batch.put(FILES, given)
    usage: FileUsageDocument | None = batch.get(USAGE, usage_ids(owner)[0])
    if usage is not None:
        batch.put(USAGE, {**usage, "bytes": usage["bytes"] - file["size"]})


async def load_picture(mongo: Mongo, session: Session, batch: Batch, file_id: str) -> None:
    """Reads a picture that `release_picture` needs."""
    if batch.get(FILES, file_id) is None:
        for document in await mongo.find(FILES, {"_id": file_id}, session=session, limit=1):
            batch.add_loaded(FILES, document)


def release_picture(batch: Batch, file_id: str) -> None:
    """Lets a picture expire that `load_picture` has read. A worker deletes it."""
    file: FileDocument | None = batch.get(FILES, file_id)
    if file is not None and "deleting" not in file:
        released = file.copy()
        released.pop("places", None)
        released["expires_at"] = batch.at
        batch.put(FILES, released)
