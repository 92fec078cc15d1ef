"""Copies of the images of link previews: one for each organization and address, within a quota and a number."""

import asyncio
from pathlib import Path

import pytest

from storage.files.deletion import FileDeletion
from storage.files.objects import FileObjects, open_objects
from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.files.preview_pictures import FRESH_S, KEPT_S, PreviewPictures, preview_picture_id
from storage.files.uploads import FileLimits
from storage.stores import Stores
from tests.storage.test_files import files_in

pytestmark = pytest.mark.anyio

URL = "https://tides.example/a.png"
LIMITS = FileLimits(organization_bytes=100)


def decoded(data: bytes = b"beacon") -> DecodedPicture:
    return DecodedPicture(EncodedPicture("image/webp", 40, 30, data), (), "a-hash")


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    return open_objects(str(tmp_path / "files"))


@pytest.fixture
def pictures(stores: Stores, objects: FileObjects) -> PreviewPictures:
    return PreviewPictures(stores.mongo, objects, LIMITS)


async def usage(stores: Stores) -> list[int]:
    """Returns how many bytes count for the organization."""
    return [each["bytes"] for each in await stores.mongo.find("file_usage", {"_id": {"o": "acme", "u": ""}})]


async def set_age(stores: Stores, age_s: float) -> None:
    """Lets all copies be older by `age_s` seconds."""
    older = [{"$set": {each: {"$subtract": [f"${each}", int(age_s * 1000)]} for each in ("at", "expires_at")}}]
    await stores.mongo["files"].update_many({}, older)


def test_ids_differ_by_organization_and_address() -> None:
    subjects = ("acme", URL), ("zenith", URL), ("acme", f"{URL}?"), ("acm", f"e{URL}")
    assert len({preview_picture_id(*each) for each in subjects}) == len(subjects)


async def test_copy_is_found_by_its_organization_only(pictures: PreviewPictures, objects: FileObjects) -> None:
    assert await pictures.store("acme", URL, decoded())
    file = await pictures.find(preview_picture_id("acme", URL))
    assert file is not None
    assert file.picture is not None
    assert (file.content_type, file.picture.width, file.picture.height) == ("image/webp", 40, 30)
    assert await objects.read_all(file.parts) == b"beacon"
    assert await pictures.find_fresh("zenith", URL) is None


async def test_copies_stored_at_once_leave_one_object(
    pictures: PreviewPictures, stores: Stores, objects: FileObjects, tmp_path: Path
) -> None:
    bodies = [b"beacon", b"smoke", b"fire!!!"]
    assert all(await asyncio.gather(*(pictures.store("acme", URL, decoded(each)) for each in bodies)))
    file = await pictures.find(preview_picture_id("acme", URL))
    assert file is not None
    assert await objects.read_all(file.parts) in bodies
    assert len(files_in(tmp_path)) == 1
    assert await usage(stores) == [file.stored_size]


async def test_day_old_copy_is_served_but_not_fresh(pictures: PreviewPictures, stores: Stores) -> None:
    await pictures.store("acme", URL, decoded())
    assert await pictures.find_fresh("acme", URL) is not None
    await set_age(stores, FRESH_S)
    assert await pictures.find_fresh("acme", URL) is None
    assert await pictures.find(preview_picture_id("acme", URL)) is not None


async def test_copy_ends_after_thirty_days(
    pictures: PreviewPictures, stores: Stores, objects: FileObjects, tmp_path: Path
) -> None:
    deletion = FileDeletion(stores.mongo, objects)
    await pictures.store("acme", URL, decoded())
    await set_age(stores, KEPT_S - 60)
    assert await deletion.delete_expired() == 0
    await set_age(stores, 60)
    assert await deletion.delete_expired() == 1
    assert (files_in(tmp_path), await usage(stores)) == ([], [0])
    assert await stores.mongo["files"].count_documents({}) == 0


async def test_copy_above_the_quota_is_not_stored(pictures: PreviewPictures, stores: Stores, tmp_path: Path) -> None:
    assert not await pictures.store("acme", URL, decoded(b"b" * 101))
    assert await pictures.find(preview_picture_id("acme", URL)) is None
    assert (files_in(tmp_path), await usage(stores)) == ([], [])


async def test_smaller_copy_is_stored_above_the_quota(pictures: PreviewPictures, stores: Stores) -> None:
    await pictures.store("acme", URL, decoded(b"b" * 90))
    await stores.mongo["file_usage"].update_one({"_id": {"o": "acme", "u": ""}}, {"$inc": {"bytes": 100}})
    assert await pictures.store("acme", URL, decoded(b"b" * 80))
    assert await usage(stores) == [180]


@pytest.mark.parametrize("change", [{"user": "ann"}, {"places": ["a community"]}], ids=repr)
async def test_files_that_are_no_copies_are_not_found(
    pictures: PreviewPictures, stores: Stores, change: dict[str, object]
) -> None:
    await pictures.store("acme", URL, decoded())
    await stores.mongo["files"].update_one({}, {"$set": change})
    assert await pictures.find(preview_picture_id("acme", URL)) is None


async def test_copy_that_is_being_deleted_is_not_replaced(
    pictures: PreviewPictures, stores: Stores, tmp_path: Path
) -> None:
    await pictures.store("acme", URL, decoded())
    await stores.mongo["files"].update_one({}, {"$set": {"deleting": True}})
    assert not await pictures.store("acme", URL, decoded(b"smoke"))
    assert len(files_in(tmp_path)) == 1, "The new object stays."


async def test_object_of_a_killed_worker_expires(
    pictures: PreviewPictures, stores: Stores, objects: FileObjects, tmp_path: Path
) -> None:
    id_ = preview_picture_id("acme", URL)
    await pictures._create(id_, "acme")
    await objects.put(id_, b"beacon")
    await set_age(stores, FRESH_S)
    assert await FileDeletion(stores.mongo, objects).delete_expired() == 1
    assert files_in(tmp_path) == []


async def test_oldest_copies_expire_above_the_number(
    pictures: PreviewPictures, stores: Stores, objects: FileObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.files.preview_pictures.MAX_PICTURES", 2)
    for number in range(4):
        await pictures.store("acme", f"{URL}?{number}", decoded())
    await pictures.store("zenith", URL, decoded())
    assert await FileDeletion(stores.mongo, objects).delete_expired() == 2
    kept = [number for number in range(4) if await pictures.find_fresh("acme", f"{URL}?{number}")]
    assert kept == [2, 3]
    assert await pictures.find_fresh("zenith", URL) is not None
