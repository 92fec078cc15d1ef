"""Packs of stamps: names are unique and numbers limited, also when administrators change them at once."""

import asyncio
from collections.abc import Sequence

import pytest

from storage.chat.stamps.packs import MAX_PACKS, MAX_STAMPS, StampPack
from storage.errors import Conflict, Forbidden, NotFound, QuotaExceeded
from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.files.records import FileState, UploadPurpose
from storage.identity.audit import Actor, AuditFilter
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ANN, BOB = Actor("acme", "ann"), Actor("acme", "bob")


@pytest.fixture(autouse=True)
async def administrators(stores: Stores) -> None:
    for actor in (ANN, BOB):
        await stores.users.sign_in(actor.organization_id, actor.user_id, [Role.ADMIN], None, None)


async def upload(stores: Stores, actor: Actor = ANN) -> str:
    """Returns the id of a picture of the actor that can be a stamp."""
    owner = UserKey(actor.organization_id, actor.user_id)
    created = await stores.uploads.create(owner, "lit.png", 6, UploadPurpose.STAMP)
    await stores.uploads.append(created, b"pixels")
    picture = EncodedPicture("image/png", 3, 2, b"pixels")
    while (await stores.uploads.get(owner, created.id)).state is not FileState.READY:
        # A check is due from the next millisecond on.
        if (file := await stores.file_checks.claim()) is not None:
            await stores.file_checks.accept_picture(file, DecodedPicture(picture, [picture], "LKO2"))
    return created.id


def names(packs: Sequence[StampPack]) -> list[list[str]]:
    return [[stamp.name for stamp in pack.stamps] for pack in packs]


async def test_packs_have_their_stamps_in_order(stores: Stores) -> None:
    packs = stores.stamp_packs
    harbour, hills = await packs.create(ANN, "Harbour"), await packs.create(BOB, "Hills")
    await packs.add_stamp(ANN, harbour.id, "lit", await upload(stores))
    changed = await packs.add_stamp(ANN, harbour.id, "tide", await upload(stores))
    assert await packs.list_packs("acme") == [changed, hills]
    assert names([changed]) == [["lit", "tide"]]
    assert await packs.list_packs("globex") == []
    assert await packs.find_by_stamp("acme", "tide") == (changed, changed.stamps[1])
    assert await packs.find_by_stamp("acme", "hill") is await packs.find_by_stamp("globex", "tide") is None


async def test_equal_changes_at_once_take_effect_once(stores: Stores) -> None:
    packs, file_id = stores.stamp_packs, await upload(stores)
    created = await asyncio.gather(*(packs.create(actor, "Harbour") for actor in (ANN, BOB) * 3))
    assert len({pack.id for pack in created}) == 1
    await asyncio.gather(*(packs.add_stamp(ANN, created[0].id, "lit", file_id) for _ in range(5)))
    await asyncio.gather(*(packs.remove_stamp(actor, created[0].id, "lit") for actor in (ANN, BOB)))
    entries = await stores.audit.list_entries("acme", AuditFilter(), None, 100)
    assert sorted(entry.action.value for entry in entries) == ["STAMP_ADDED", "STAMP_PACK_CREATED", "STAMP_REMOVED"]


async def test_name_is_taken_once_by_stamps_added_at_once(stores: Stores) -> None:
    packs = stores.stamp_packs
    ids = [(await packs.create(ANN, name)).id for name in ("Harbour", "Hills")]
    files = [(actor, pack, await upload(stores, actor)) for actor in (ANN, BOB) for pack in ids]
    results = await asyncio.gather(
        *(packs.add_stamp(actor, pack, "lit", file_id) for actor, pack, file_id in files), return_exceptions=True
    )
    assert sorted(isinstance(each, Conflict) for each in results) == [False, True, True, True]
    assert sorted(names(await packs.list_packs("acme"))) == [[], ["lit"]]


async def test_numbers_are_limited_also_for_changes_at_once(stores: Stores) -> None:
    packs = stores.stamp_packs
    for number in range(MAX_PACKS - 1):
        pack = await packs.create(ANN, f"Pack {number}")
    last = await asyncio.gather(
        *(packs.create(actor, f"Last of {actor.user_id}") for actor in (ANN, BOB)), return_exceptions=True
    )
    assert sorted(isinstance(each, QuotaExceeded) for each in last) == [False, True]
    many = [{"name": f"stamp{number}", "file": "none", "at": await stores.mongo.now()} for number in range(MAX_STAMPS)]
    query = {"_id": "acme", "packs.id": pack.id}
    await stores.mongo["stamp_catalogues"].update_one(query, {"$set": {"packs.$.stamps": many}})
    with pytest.raises(QuotaExceeded):
        await packs.add_stamp(ANN, pack.id, "lit", await upload(stores))


async def test_only_administrators_of_the_organization_change_packs(stores: Stores) -> None:
    packs, foreigner = stores.stamp_packs, Actor("globex", "gus")
    await stores.users.sign_in("globex", "gus", [Role.ADMIN], None, None)
    pack = await packs.create(ANN, "Harbour")
    for change in (packs.remove(foreigner, pack.id), packs.remove_stamp(foreigner, pack.id, "lit")):
        with pytest.raises(NotFound):
            await change
    with pytest.raises(NotFound):
        await packs.add_stamp(BOB, pack.id, "lit", await upload(stores, ANN))
    await stores.user_administration.deactivate(ANN, BOB.user_id, "left")
    with pytest.raises(Forbidden):
        await packs.create(BOB, "Hills")
    assert names(await packs.list_packs("acme")) == [[]]
