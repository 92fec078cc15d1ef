"""Pictures of stamps: they belong to the organization, and are deleted with the stamp."""

import io

import httpx2
import pytest
from PIL import Image

from jobs.erasures import erase_users
from jobs.files import delete_expired_files
from storage.files.records import UploadPurpose
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.pictures.hostile_files import encoded
from tests.jobs.test_erasures import make_due
from tests.resolvers.people import Person, SignIn
from tests.server.http import test_avatars
from tests.server.http.test_avatars import as_page, upload

pytestmark = pytest.mark.anyio

client = test_avatars.client
sign_in = test_avatars.sign_in

CREATE = 'mutation { done: createStampPack(name: "Harbour") { id } }'
ADD = """
mutation ($pack: ID!, $upload: ID!, $name: String = "lit") {
  done: addStamp(input: { packId: $pack, name: $name, uploadId: $upload }) { stamps { id imageUrl thumbnailUrl } }
}
"""
REMOVE = 'mutation ($pack: ID!) { done: removeStamp(packId: $pack, stampName: "lit") { stamps { id } } }'
REMOVE_PACK = "mutation ($pack: ID!) { done: removeStampPack(packId: $pack) { id } }"


@pytest.fixture
async def ann(sign_in: SignIn) -> Person:
    return await sign_in("ann", roles=[Role.ADMIN, Role.MEMBER])


async def picture(ann: Person, purpose: UploadPurpose = UploadPurpose.STAMP) -> str:
    return await upload(ann, encoded(Image.new("RGBA", (640, 400), (200, 0, 0, 90)), "PNG"), purpose)


async def usage(stores: Stores, user_id: str) -> int:
    document = await stores.mongo["file_usage"].find_one({"_id": {"o": "acme", "u": user_id}})
    return 0 if document is None else int(document["bytes"])


async def test_stamp_is_a_picture_for_people_of_the_organization(
    ann: Person, sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    pack = (await ann.do(CREATE))["id"]
    (stamp,) = (await ann.do(ADD, pack=pack, upload=await picture(ann)))["stamps"]
    bob, gus = await sign_in("bob"), await sign_in("gus", organization="globex")
    for path, size in ((stamp["imageUrl"], (320, 200)), (stamp["thumbnailUrl"], (64, 40))):
        answer = await client.get(path, headers=await as_page(stores, bob))
        image = Image.open(io.BytesIO(answer.content))
        assert (answer.status_code, image.size, image.mode) == (200, size, "RGBA")
        assert (await client.get(path, headers=await as_page(stores, gus))).status_code == 404
        assert (await client.get(path)).status_code == 401


@pytest.mark.parametrize("query", [REMOVE, REMOVE_PACK])
async def test_removed_stamp_loses_its_picture_and_bytes(
    ann: Person, stores: Stores, client: httpx2.AsyncClient, query: str
) -> None:
    pack = (await ann.do(CREATE))["id"]
    (stamp,) = (await ann.do(ADD, pack=pack, upload=await picture(ann)))["stamps"]
    assert await usage(stores, "ann") == 0 < await usage(stores, "")
    await ann.run(query, pack=pack)
    assert (await client.get(stamp["imageUrl"], headers=await as_page(stores, ann))).status_code == 404
    assert await delete_expired_files(job_context(stores)) == 1
    assert (await usage(stores, "ann"), await usage(stores, "")) == (0, 0)
    assert await stores.mongo["files"].count_documents({}) == 0


async def test_stamp_stays_after_the_erasure_of_its_uploader(
    ann: Person, sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    bob = await sign_in("bob", roles=[Role.ADMIN, Role.MEMBER])
    (stamp,) = (await ann.do(ADD, pack=(await ann.do(CREATE))["id"], upload=await picture(ann)))["stamps"]
    assert ann.user is not None
    await stores.erasures.request(Actor("acme", "bob"), "ann", ann.user.handle)
    await make_due(stores)
    assert await erase_users(job_context(stores)) == 1
    assert (await client.get(stamp["imageUrl"], headers=await as_page(stores, bob))).status_code == 200


async def test_unsuitable_upload_is_no_stamp(ann: Person, stores: Stores) -> None:
    pack = (await ann.do(CREATE))["id"]
    for unsuitable in (
        await picture(ann, UploadPurpose.AVATAR),
        await upload(ann, b"<svg onload='alert(1)'>", UploadPurpose.STAMP),
    ):
        refused = await ann.fails(ADD, pack=pack, upload=unsuitable)
        assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "uploadId")
    for name in ("", "a", "two words", "é", "a.b", "x" * 33):
        refused = await ann.fails(ADD, pack=pack, upload="none", name=name)
        assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "name")
    attached = await stores.mongo["files"].count_documents({"places": {"$exists": True}})
    assert attached == 0, "A refused upload is attached."
