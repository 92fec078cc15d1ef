"""Avatars and banners: chosen from an upload, shown to people of the organization only, replaced and removed."""

import asyncio
import io
from collections.abc import AsyncIterator

import httpx2
import pytest
from PIL import Image
from starlette.applications import Starlette

from jobs.files import check_files, delete_expired_files
from server.auth.authenticators import ServiceKeyAuthenticator, SessionAuthenticator
from server.auth.credentials import SESSION_COOKIE, CredentialKind, RequestCredentials
from server.auth.viewers import ViewerSessions
from server.http.files import files_routes
from storage.files.records import UploadPurpose
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.pictures.hostile_files import encoded, gradient
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

CREATE = """
mutation ($size: Int!, $purpose: UploadPurpose!) {
  done: createUpload(input: { fileName: "me.png", size: $size, purpose: $purpose }) { fileId }
}
"""
SET = "mutation ($id: ID!) { done: setAvatar(uploadId: $id) { id avatarUrl } }"
REMOVE = "mutation { done: removeAvatar { id avatarUrl } }"
AVATAR = "query ($id: ID!) { user(id: $id) { avatarUrl } }"
SET_BANNER = "mutation ($id: ID!) { done: setBanner(uploadId: $id) { id avatarUrl bannerUrl } }"
REMOVE_BANNER = "mutation { done: removeBanner { id avatarUrl bannerUrl } }"


@pytest.fixture
def sign_in(stores: Stores) -> SignIn:
    return SignIn(stores)


@pytest.fixture
async def client(stores: Stores) -> AsyncIterator[httpx2.AsyncClient]:
    sessions = SessionAuthenticator(stores.sessions, stores.users, stores.clock)
    keys = ServiceKeyAuthenticator(stores.key_recognizer)
    viewers = ViewerSessions({CredentialKind.SESSION: sessions, CredentialKind.SERVICE_KEY: keys})
    app = Starlette(routes=files_routes(stores, viewers, RequestCredentials()))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        yield client


async def as_page(stores: Stores, person: Person, site: str = "same-origin") -> dict[str, str]:
    """Returns the headers with which a browser loads a picture of a page."""
    new = NewSession(person.user.key, SignInMethod.DEMO, roles=frozenset({Role.MEMBER}))
    return {"cookie": f"{SESSION_COOKIE}={await stores.sessions.begin(new)}", "sec-fetch-site": site}


async def upload(person: Person, data: bytes, purpose: UploadPurpose = UploadPurpose.AVATAR) -> str:
    """Uploads a file, which a worker checks, and returns its id."""
    stores = person.stores
    created: str = (await person.run(CREATE, size=len(data), purpose=purpose.value))["done"]["fileId"]
    await stores.uploads.append(await stores.uploads.get(person.user.key, created), data)
    while await check_files(job_context(stores)) == 0:
        continue  # A check is due from the next millisecond on.
    return created


async def choose_avatar(person: Person, colour: str = "red") -> str:
    """Gives a person an avatar, and returns its path."""
    file_id = await upload(person, encoded(Image.new("RGB", (600, 300), colour), "PNG"))
    path: str = (await person.run(SET, id=file_id))["done"]["avatarUrl"]
    return path


async def test_avatar_is_a_square_for_people_of_the_organization(
    sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    assert (await bob.run(AVATAR, id="ann"))["user"]["avatarUrl"] is None
    path = await choose_avatar(ann)
    assert (await bob.run(AVATAR, id="ann"))["user"]["avatarUrl"] == path
    page = await as_page(stores, bob)
    for name, side in (("thumbnail", 192), ("me.png", 300)):
        answer = await client.get(path.replace("thumbnail", name), headers=page)
        assert answer.status_code == 200
        assert Image.open(io.BytesIO(answer.content)).size == (side, side)


async def test_small_avatar_is_its_own_thumbnail(sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient) -> None:
    ann = await sign_in("ann")
    file_id = await upload(ann, encoded(gradient(40, 30), "PNG"))
    path = (await ann.run(SET, id=file_id))["done"]["avatarUrl"]
    answer = await client.get(path, headers=await as_page(stores, ann))
    assert Image.open(io.BytesIO(answer.content)).size == (30, 30)


async def test_avatar_is_hidden_from_other_organizations_and_pages(
    sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    ann, gus = await sign_in("ann"), await sign_in("gus", organization="globex")
    path = await choose_avatar(ann)
    assert (await client.get(path)).status_code == 401
    assert (await client.get(path, headers=await as_page(stores, gus))).status_code == 404
    for site in ("cross-site", "same-site"):
        assert (await client.get(path, headers=await as_page(stores, ann, site))).status_code == 403
    assert (await client.get(path, headers=await as_page(stores, ann))).status_code == 200


async def test_upload_is_hidden_until_it_is_the_avatar(
    sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    file_id = await upload(ann, encoded(gradient(30, 30), "PNG"))
    page = await as_page(stores, bob)
    assert (await client.get(f"/files/{file_id}/thumbnail", headers=page)).status_code == 404
    await ann.run(SET, id=file_id)
    assert (await client.get(f"/files/{file_id}/thumbnail", headers=page)).status_code == 200


async def test_replaced_and_removed_avatars_are_deleted(
    sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    ann = await sign_in("ann")
    first, second = await choose_avatar(ann), await choose_avatar(ann, "blue")
    page = await as_page(stores, ann)
    assert await delete_expired_files(job_context(stores)) == 1
    assert (await client.get(second, headers=page)).status_code == 200
    assert (await ann.run(SET, id=second.split("/")[2]))["done"]["avatarUrl"] == second
    assert await delete_expired_files(job_context(stores)) == 0
    assert (await ann.run(REMOVE))["done"]["avatarUrl"] is None
    assert (await ann.run(REMOVE))["done"]["avatarUrl"] is None
    assert await delete_expired_files(job_context(stores)) == 1
    assert await stores.mongo["files"].count_documents({}) == 0
    for path in (first, second):
        assert (await client.get(path, headers=page)).status_code == 404


async def test_unsuitable_upload_is_no_avatar(sign_in: SignIn, stores: Stores) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    picture = encoded(gradient(30, 30), "PNG")
    assert await bob.code(SET, id=await upload(ann, picture)) == "NOT_FOUND"
    attachment = await upload(ann, picture, UploadPurpose.ATTACHMENT)
    refused = await ann.fails(SET, id=attachment)
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "uploadId")
    assert await ann.code(SET, id=await upload(ann, b"<svg onload='alert(1)'>")) == "BAD_USER_INPUT"
    incomplete = (await ann.run(CREATE, size=5, purpose="AVATAR"))["done"]["fileId"]
    assert await ann.code(SET, id=incomplete) == "BAD_USER_INPUT"
    attached = await stores.mongo["files"].count_documents({"places": {"$exists": True}})
    assert attached == 0, "A refused upload is attached."


async def choose_banner(person: Person, colour: str = "red") -> str:
    """Gives a person a banner, and returns its path."""
    picture = encoded(Image.new("RGB", (3000, 2000), colour), "PNG")
    file_id = await upload(person, picture, UploadPurpose.BANNER)
    path: str = (await person.run(SET_BANNER, id=file_id))["done"]["bannerUrl"]
    return path


async def test_banner_is_wide_for_people_of_the_organization(
    sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    ann, bob, gus = await sign_in("ann"), await sign_in("bob"), await sign_in("gus", organization="globex")
    path = await choose_banner(ann)
    answer = await client.get(path, headers=await as_page(stores, bob))
    image = Image.open(io.BytesIO(answer.content))
    assert (answer.status_code, image.size, image.format) == (200, (1500, 500), "WEBP")
    assert (await client.get(path, headers=await as_page(stores, gus))).status_code == 404
    assert (await client.get(path)).status_code == 401


async def test_replaced_banner_is_deleted_and_avatar_stays(
    sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient
) -> None:
    ann = await sign_in("ann")
    avatar, first, second = await choose_avatar(ann), await choose_banner(ann), await choose_banner(ann, "blue")
    assert len({avatar, first, second}) == 3
    assert await delete_expired_files(job_context(stores)) == 1
    removed = (await ann.run(REMOVE_BANNER))["done"]
    assert (removed["avatarUrl"], removed["bannerUrl"]) == (avatar, None)
    assert (await ann.run(REMOVE_BANNER))["done"]["bannerUrl"] is None
    assert await delete_expired_files(job_context(stores)) == 1
    page = await as_page(stores, ann)
    assert [(await client.get(path, headers=page)).status_code for path in (avatar, first, second)] == [200, 404, 404]


async def test_upload_of_another_purpose_is_no_banner(sign_in: SignIn, stores: Stores) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    picture = encoded(gradient(30, 30), "PNG")
    avatar, banner = await upload(ann, picture), await upload(ann, picture, UploadPurpose.BANNER)
    assert await ann.code(SET_BANNER, id=avatar) == await ann.code(SET, id=banner) == "BAD_USER_INPUT"
    assert await bob.code(SET_BANNER, id=banner) == "NOT_FOUND"
    assert await stores.mongo["files"].count_documents({"places": {"$exists": True}}) == 0


@pytest.mark.parametrize(("query", "purpose"), [(SET, UploadPurpose.AVATAR), (SET_BANNER, UploadPurpose.BANNER)])
async def test_of_two_pictures_at_once_one_is_kept(
    sign_in: SignIn, stores: Stores, query: str, purpose: UploadPurpose
) -> None:
    ann = await sign_in("ann")
    ids = [await upload(ann, encoded(gradient(30, 30), "PNG"), purpose) for _ in range(4)]
    await asyncio.gather(*(ann.run(query, id=each) for each in ids))
    assert await stores.mongo["files"].count_documents({"places": {"$exists": True}}) == 1
    assert await delete_expired_files(job_context(stores)) == 3
