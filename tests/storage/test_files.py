"""Files: uploads part by part, quotas, checks, deletion, and types by content."""

import asyncio
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import BadUserInput, Conflict, NotFound, QuotaExceeded, Unavailable
from storage.files.checks import FileChecks
from storage.files.content_types import PICTURES, UNKNOWN, content_type
from storage.files.deletion import FileDeletion
from storage.files.objects import CHUNK_BYTES, FileObjects, open_objects
from storage.files.pictures import DecodedPicture, EncodedPicture, FileRefusal
from storage.files.records import FileState, StoredFile, StoredObject
from storage.files.uploads import MAX_PARTS, FileLimits, OffsetChanged, UploadStore
from storage.files.usage import FileUsage
from storage.ids import UserKey
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ANN = UserKey("acme", "ann")
LIMITS = FileLimits(file_bytes=100, user_bytes=150, organization_bytes=200, open_uploads=3)


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    return open_objects(str(tmp_path / "files"))


@pytest.fixture
async def uploads(stores: Stores, objects: FileObjects) -> UploadStore:
    return UploadStore(stores.mongo, objects, LIMITS)


async def stored(objects: FileObjects, file: StoredFile) -> bytes:
    return await objects.read_all(file.parts)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_parts_make_the_file_in_order(uploads: UploadStore, objects: FileObjects) -> None:
    file = await uploads.create(ANN, "a.txt", 6)
    assert (file.state, file.offset, file.expires_at is not None) == (FileState.RECEIVING, 0, True)
    file = await uploads.append(file, b"bea")
    assert (file.state, file.offset) == (FileState.RECEIVING, 3)
    file = await uploads.append(file, b"con")
    assert (file.state, file.offset, await stored(objects, file)) == (FileState.CHECKING, 6, b"beacon")


async def test_equal_parts_at_once_are_stored_once(uploads: UploadStore, objects: FileObjects, tmp_path: Path) -> None:
    file = await uploads.create(ANN, "a.txt", 20)
    results = await asyncio.gather(*(uploads.append(file, b"beacon") for _ in range(8)), return_exceptions=True)
    assert [type(each) for each in results if isinstance(each, Exception)] == [OffsetChanged] * 7
    assert {each.offset for each in results if isinstance(each, OffsetChanged)} == {6}
    current = await uploads.get(ANN, file.id)
    assert (current.offset, await stored(objects, current)) == (6, b"beacon")
    assert len(files_in(tmp_path)) == 1, "The objects of the losers stay."


async def test_upload_has_a_greatest_number_of_parts(uploads: UploadStore, stores: Stores) -> None:
    file = await uploads.create(ANN, "a.txt", 100)
    parts = [{"key": "k", "size": 0}] * MAX_PARTS
    await stores.mongo["files"].update_one({"_id": file.id}, {"$set": {"parts": parts}})
    with pytest.raises(Conflict):
        await uploads.append(await uploads.get(ANN, file.id), b"b")


async def test_upload_of_another_user_is_not_found(uploads: UploadStore) -> None:
    file = await uploads.create(ANN, "a.txt", 6)
    for owner in (UserKey("acme", "bob"), UserKey("globex", "ann")):
        with pytest.raises(NotFound):
            await uploads.get(owner, file.id)


async def test_file_above_the_greatest_size_is_refused(uploads: UploadStore) -> None:
    with pytest.raises(BadUserInput):
        await uploads.create(ANN, "a.txt", 101)


@pytest.mark.parametrize(
    ("owners", "size", "expected"),
    [
        ([ANN] * 6, 60, 2),
        ([UserKey("acme", f"u{n}") for n in range(6)], 90, 2),
        ([ANN] * 6, 1, 3),
    ],
    ids=["bytes of a user", "bytes of an organization", "open uploads"],
)
async def test_uploads_at_once_stay_within_quotas(
    uploads: UploadStore, stores: Stores, owners: list[UserKey], size: int, expected: int
) -> None:
    created = [uploads.create(owner, "a.txt", size) for owner in owners]
    results = await asyncio.gather(*created, return_exceptions=True)
    assert {type(each) for each in results} == {StoredFile, QuotaExceeded}
    assert sum(isinstance(each, StoredFile) for each in results) == expected
    usages = await stores.mongo.find("file_usage", {"_id": {"o": "acme", "u": ""}})
    assert [each["bytes"] for each in usages] == [expected * size]


async def test_deleted_file_leaves_no_object_and_frees_the_quota(
    stores: Stores, uploads: UploadStore, tmp_path: Path
) -> None:
    deletion = deletion_of(stores, uploads)
    file = await uploads.append(await uploads.create(ANN, "a.txt", 100), b"beacon")
    await stores.mongo["files"].update_one({"_id": file.id}, {"$set": {"places": ["m"]}, "$unset": {"expires_at": ""}})
    assert await deletion.delete_expired() == 0
    assert not await deletion.cancel(file), "An attached file was deleted."
    await stores.mongo["files"].update_one({"_id": file.id}, {"$currentDate": {"expires_at": True}})
    assert await deletion.cancel(file)
    assert (await stores.mongo["files"].count_documents({}), files_in(tmp_path)) == (0, [])
    assert await FileUsage(stores.mongo).of_user(ANN) == 0
    with pytest.raises(NotFound):
        await uploads.append(file, b"more")
    assert files_in(tmp_path) == []


def deletion_of(stores: Stores, uploads: UploadStore) -> FileDeletion:
    return FileDeletion(stores.mongo, uploads._objects)


async def test_interrupted_deletion_is_finished_by_the_sweep(
    stores: Stores, uploads: UploadStore, tmp_path: Path
) -> None:
    file = await uploads.append(await uploads.create(ANN, "a.txt", 100), b"beacon")
    broken = FileDeletion(stores.mongo, BrokenObjects())
    with pytest.raises(Unavailable):
        await broken.cancel(file)
    with pytest.raises(NotFound):
        await uploads.get(ANN, file.id)
    assert await deletion_of(stores, uploads).delete_expired() == 1
    assert files_in(tmp_path) == []
    assert await FileUsage(stores.mongo).of_user(ANN) == 0


class BrokenObjects(FileObjects):
    """An object store that does not answer."""

    def __init__(self) -> None:
        super().__init__(open_objects("memory:///")._store)

    async def delete_all(self, file_id: str, kept: object = ()) -> None:
        raise Unavailable("down")


async def test_range_is_read_across_parts(objects: FileObjects) -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 128)
    parts = [await objects.put("f" * 26, data[at : at + 700_000]) for at in range(0, len(data), 700_000)]
    for start, end in ((0, len(data)), (699_999, 700_001), (5, 5), (1_400_000, len(data))):
        assert b"".join([each async for each in objects.read(parts, start, end)]) == data[start:end]


async def test_missing_object_is_unavailable(objects: FileObjects) -> None:
    with pytest.raises(Unavailable):
        await objects.read_all([StoredObject("none", 5)])
    await objects.delete([StoredObject("none", 5)])


@pytest.mark.parametrize("ends", ["accepted", "refused"])
async def test_second_check_of_a_file_changes_nothing(
    stores: Stores, uploads: UploadStore, objects: FileObjects, tmp_path: Path, ends: str
) -> None:
    """A worker whose claim has ended finishes after another one."""
    checks = FileChecks(stores.mongo, objects)
    await uploads.append(await uploads.create(ANN, "a.png", 6), b"beacon")
    file = await checks.claim()
    assert file is not None
    assert await checks.claim() is None
    picture = EncodedPicture("image/png", 3, 2, b"new")
    decoded = DecodedPicture(picture, [EncodedPicture("image/webp", 1, 1, b"small")], "hash")
    if ends == "accepted":
        await checks.accept_picture(file, decoded)
        before = await uploads.get(ANN, file.id)
        assert await stored(objects, before) == b"new"
        assert [path.read_bytes() for path in sorted(files_in(tmp_path), key=lambda each: each.stat().st_size)] == [
            b"new",
            b"small",
        ]
    else:
        await checks.refuse(file, FileRefusal.UNREADABLE)
        before = await uploads.get(ANN, file.id)
        assert (before.state, before.refusal, files_in(tmp_path)) == (FileState.REFUSED, FileRefusal.UNREADABLE, [])
    objects_before = files_in(tmp_path)
    await checks.accept_picture(file, decoded)
    await checks.refuse(file, FileRefusal.TOO_SLOW)
    assert await uploads.get(ANN, file.id) == before
    assert files_in(tmp_path) == objects_before


def zipped(name: str) -> bytes:
    with zipfile.ZipFile(target := io.BytesIO(), "w") as archive:
        archive.writestr(name, "words")
    return target.getvalue()


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        (b"GIF89a/*<script>*/=1;alert(1)", "image/gif"),
        (b"\xff\xd8\xff\xe0" + zipped("a"), "image/jpeg"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0miafavifmif1", "image/avif"),
        (b"\0\0\0\x14ftypmp42\0\0\0\0mp42", "video/mp4"),
        (b"%PDF-1.7\n<html>", "application/pdf"),
        (zipped("a.docx"), "application/zip"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "text/plain"),
        (b"<!doctype html><script>alert(1)</script>", "text/plain"),
        ("狼煙\n".encode() + b"\xe7\x8b", "text/plain"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"12345678WEBP\0", UNKNOWN),
        (b"MZ\x90\0", UNKNOWN),
        (b"\xff\xfe<\0s\0", UNKNOWN),
        (b"", UNKNOWN),
    ],
)
def test_type_is_found_by_content(head: bytes, expected: str) -> None:
    assert content_type(head) == expected


@given(st.binary(max_size=60))
def test_markup_is_never_a_picture(rest: bytes) -> None:
    for markup in (b"<svg", b"<html", b"<?xml", b"<script"):
        assert content_type(markup + rest) not in PICTURES
    content_type(rest)
