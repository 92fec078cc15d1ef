"""Checks of uploaded files, and the deletion of those that are not attached."""

import asyncio

import pytest

from jobs.files import REFUSALS, check_file, check_files, delete_expired_files
from jobs.pictures.results import PictureRefusalReason
from storage.files.checks import CLAIMED_S
from storage.files.pictures import MAX_PICTURE_BYTES, FileRefusal
from storage.files.records import FileState, StoredFile
from storage.ids import UserKey
from storage.metrics import FILE_PRUNING_DELAY_S
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.pictures.hostile_files import encoded, gps_exif, gradient, png_bomb

pytestmark = pytest.mark.anyio

ANN = UserKey("acme", "ann")
PNG = b"\x89PNG\r\n\x1a\n beacon"


async def upload(stores: Stores, data: bytes) -> StoredFile:
    return await stores.uploads.append(await stores.uploads.create(ANN, "a.png", len(data)), data)


async def test_file_gets_the_type_of_its_content(stores: Stores) -> None:
    file = await upload(stores, b"<svg onload='alert(1)'>")
    assert await check_files(job_context(stores)) == 1
    checked = await stores.uploads.get(ANN, file.id)
    assert (checked.state, checked.content_type, checked.is_picture) == (FileState.READY, "text/plain", False)


async def test_decoded_picture_replaces_the_upload(stores: Stores) -> None:
    picture = encoded(gradient(400, 300), "PNG") + b"archive"
    file, jobs = await upload(stores, picture), job_context(stores)
    await asyncio.gather(*(check_file({"jobs": jobs}, file.id) for _ in range(3)))
    checked = await stores.uploads.get(ANN, file.id)
    assert (checked.state, checked.content_type, checked.is_picture) == (FileState.READY, "image/png", True)
    assert checked.picture is not None
    assert (checked.picture.width, checked.picture.height, len(checked.picture.blurhash)) == (400, 300, 28)
    assert [(each.width, each.height) for each in checked.picture.thumbnails] == [(320, 240)]
    stored = await stores.file_objects.read_all(checked.parts)
    assert stored.startswith(PNG[:8])
    assert b"archive" not in stored


@pytest.mark.parametrize(
    ("picture", "refusal"),
    [
        (PNG, FileRefusal.UNREADABLE),
        (png_bomb(9000, 9000), FileRefusal.TOO_MANY_PIXELS),
        (encoded(gradient(9, 9), "JPEG", exif=gps_exif(1)) + bytes(MAX_PICTURE_BYTES), FileRefusal.TOO_MANY_PIXELS),
    ],
    ids=["damaged", "bomb", "many bytes"],
)
async def test_refused_picture_says_why(stores: Stores, picture: bytes, refusal: FileRefusal) -> None:
    file = await upload(stores, picture)
    await check_files(job_context(stores))
    checked = await stores.uploads.get(ANN, file.id)
    assert (checked.state, checked.refusal, checked.parts) == (FileState.REFUSED, refusal, ())


def test_every_refusal_of_the_decoder_is_mapped() -> None:
    assert set(REFUSALS) == set(PictureRefusalReason)


async def test_check_of_a_killed_worker_is_repeated(stores: Stores) -> None:
    file = await upload(stores, b"beacon")
    assert await stores.file_checks.claim() is not None
    assert await check_files(job_context(stores)) == 0
    ended = [{"$set": {"due": {"$subtract": ["$due", CLAIMED_S * 1000]}}}]
    await stores.mongo["files"].update_one({"_id": file.id}, ended)
    assert await check_files(job_context(stores)) == 1
    assert (await stores.uploads.get(ANN, file.id)).state is FileState.READY


async def test_expired_files_are_deleted_by_one_worker(stores: Stores) -> None:
    files = [await upload(stores, PNG) for _ in range(3)]
    kept = await upload(stores, PNG)
    past = [{"$set": {"expires_at": {"$subtract": ["$$NOW", 60_000]}}}]
    await stores.mongo["files"].update_many({"_id": {"$in": [each.id for each in files]}}, past)
    assert await stores.file_deletion.delay_s() >= 60
    results = await asyncio.gather(*(delete_expired_files(job_context(stores)) for _ in range(2)))
    assert sum(results) == 3
    assert [each["_id"] for each in await stores.mongo.find("files", {})] == [kept.id]
    assert FILE_PRUNING_DELAY_S._value.get() == 0
