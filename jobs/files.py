"""Files: checks of complete uploads, and the deletion of files that are not attached."""

from typing import Any

import structlog

from jobs.context import JobContext
from jobs.pictures.results import ATTACHMENT, AVATAR, BANNER, STAMP, PictureRefusalReason, RefusedPicture
from storage.errors import Unavailable
from storage.files.content_types import HEAD_BYTES, PICTURES, content_type
from storage.files.pictures import FileRefusal
from storage.files.records import StoredFile, UploadPurpose
from storage.heartbeats import process_name
from storage.metrics import FILE_PRUNING_DELAY_S

LAYOUTS = {
    UploadPurpose.ATTACHMENT: ATTACHMENT,
    UploadPurpose.AVATAR: AVATAR,
    UploadPurpose.BANNER: BANNER,
    UploadPurpose.STAMP: STAMP,
}
"""The renditions of a picture, by the purpose of its upload."""

REFUSALS = {
    PictureRefusalReason.NOT_A_PICTURE: FileRefusal.UNREADABLE,
    PictureRefusalReason.BROKEN: FileRefusal.UNREADABLE,
    PictureRefusalReason.DECODER_ENDED: FileRefusal.UNREADABLE,
    PictureRefusalReason.TOO_MANY_BYTES: FileRefusal.TOO_MANY_PIXELS,
    PictureRefusalReason.TOO_MANY_PIXELS: FileRefusal.TOO_MANY_PIXELS,
    PictureRefusalReason.TOO_MANY_FRAMES: FileRefusal.TOO_MANY_PIXELS,
    PictureRefusalReason.NEEDS_TOO_MUCH_MEMORY: FileRefusal.TOO_SLOW,
    PictureRefusalReason.TOOK_TOO_LONG: FileRefusal.TOO_SLOW,
}
"""The refusal that the uploader sees, by the decoder's reason."""

log = structlog.get_logger(__name__)


async def check_file(ctx: dict[str, Any], _file_id: str) -> None:
    """Checks all complete uploads that are due, this file among them."""
    await check_files(ctx["jobs"])


async def check_files(jobs: JobContext) -> int:
    """Checks all complete uploads that are due, one after the other. Returns their number.

    When the claim of a killed worker ends, another worker checks the file.
    """
    count = 0
    async with jobs.file_checks:
        while (file := await jobs.stores.file_checks.claim()) is not None:
            count += 1
            try:
                await _check(jobs, file)
            except Exception as error:
                # The file is due again when its claim ends. Other files must not wait for it.
                log.exception("file_check_failed", error=type(error).__name__)
    return count


async def _check(jobs: JobContext, file: StoredFile) -> None:
    checks, objects = jobs.stores.file_checks, jobs.stores.file_objects
    head = b"".join([chunk async for chunk in objects.read(file.parts, 0, HEAD_BYTES)])
    found = content_type(head)
    if found in PICTURES:
        await _decode(jobs, file)
    elif file.purpose is not UploadPurpose.ATTACHMENT:
        await checks.refuse(file, FileRefusal.UNREADABLE)
    else:
        await checks.accept(file, found)


async def _decode(jobs: JobContext, file: StoredFile) -> None:
    checks, parts = jobs.stores.file_checks, jobs.stores.file_objects.read(file.parts, 0, file.size)
    result = await jobs.pictures.decode(parts, LAYOUTS[file.purpose])
    if isinstance(result, RefusedPicture):
        log.info("picture_refused", file=file.id, reason=result.reason)
        await checks.refuse(file, REFUSALS[result.reason])
    else:
        await checks.accept_picture(file, result)


async def delete_expired_files(jobs: JobContext) -> int:
    """Deletes all files that have expired or whose messages were deleted, in one worker at a time. Returns how many."""
    deleted, deletion = 0, jobs.stores.file_deletion
    async with jobs.stores.locks.held("delete_expired_files", process_name()) as lock:
        while lock is not None and await deletion.remove_places():
            continue
        while lock is not None and (batch_count := await _delete_batch(jobs)):
            deleted += batch_count
            FILE_PRUNING_DELAY_S.set(await deletion.delay_s())
    # Another worker may delete files now, and reports the delay. The last value of this worker would be out of date.
    FILE_PRUNING_DELAY_S.set(0)
    return deleted


async def _delete_batch(jobs: JobContext) -> int:
    try:
        return await jobs.stores.file_deletion.delete_expired()
    except Unavailable:
        # The sweeper tries again. The metric shows for how long.
        FILE_PRUNING_DELAY_S.set(await jobs.stores.file_deletion.delay_s())
        raise
