"""Pictures of communities: for people who may see the community, deleted when replaced, and kept after an erasure."""

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
from tests.server.http.test_stamp_files import usage

pytestmark = pytest.mark.anyio

client = test_avatars.client
sign_in = test_avatars.sign_in

SET_EITHER = """
mutation ($id: ID!, $up: ID!) { done: FIELD(communityId: $id, uploadId: $up) { id pictureUrl bannerUrl } }
"""
SET = {
    "pictureUrl": SET_EITHER.replace("FIELD", "setCommunityPicture"),
    "bannerUrl": SET_EITHER.replace("FIELD", "setCommunityBanner"),
}
REMOVE_EITHER = "mutation ($id: ID!) { done: FIELD(communityId: $id) { id pictureUrl bannerUrl } }"
REMOVE = {
    "pictureUrl": REMOVE_EITHER.replace("FIELD", "removeCommunityPicture"),
    "bannerUrl": REMOVE_EITHER.replace("FIELD", "removeCommunityBanner"),
}
PURPOSES = {"pictureUrl": UploadPurpose.AVATAR, "bannerUrl": UploadPurpose.BANNER}
READ = "query ($id: ID!) { community(id: $id) { pictureUrl bannerUrl } }"
HIDE = "mutation ($id: ID!, $to: CommunityVisibility!) { done: updateCommunity(id: $id, visibility: $to) { id } }"
JOIN = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
LEAVE = "mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }"
KICK = "mutation ($id: ID!, $user: ID!) { kickMember(communityId: $id, userId: $user) { id } }"
ARCHIVE = "mutation ($id: ID!) { archiveCommunity(communityId: $id) { id } }"
ROLE = """
mutation ($id: ID!, $user: ID!, $role: CommunityRole!) {
  setCommunityRole(communityId: $id, userId: $user, role: $role) { role }
}
"""
AVATAR = "mutation ($id: ID!) { done: setAvatar(uploadId: $id) { id } }"

EITHER = pytest.mark.parametrize("field", ["pictureUrl", "bannerUrl"])


@pytest.fixture
async def ann(sign_in: SignIn) -> Person:
    return await sign_in("ann")


async def picture(person: Person, field: str, colour: str = "red") -> str:
    return await upload(person, encoded(Image.new("RGB", (1800, 900), colour), "PNG"), PURPOSES[field])


async def choose(person: Person, community: str, field: str, colour: str = "red") -> str:
    """Gives a community a picture, and returns its path."""
    answer = await person.do(SET[field], id=community, up=await picture(person, field, colour))
    path: str = answer[field]
    return path


async def status(client: httpx2.AsyncClient, person: Person, path: str) -> int:
    return (await client.get(path, headers=await as_page(person.stores, person))).status_code


@pytest.mark.parametrize(("field", "size"), [("pictureUrl", (192, 192)), ("bannerUrl", (1500, 500))])
async def test_picture_is_shown_to_the_organization(
    ann: Person, sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient, field: str, size: tuple[int, int]
) -> None:
    community = await ann.create_community("Beacons")
    bob, gus = await sign_in("bob"), await sign_in("gus", organization="globex")
    assert (await bob.run(READ, id=community))["community"] == {"pictureUrl": None, "bannerUrl": None}
    path = await choose(ann, community, field)
    assert (await bob.run(READ, id=community))["community"][field] == path
    answer = await client.get(path, headers=await as_page(stores, bob))
    assert (answer.status_code, Image.open(io.BytesIO(answer.content)).size) == (200, size)
    assert "me.png" not in answer.headers["content-disposition"], "The file has the name that a person gave it."
    assert (await client.get(path)).status_code == 401
    assert await status(client, gus, path) == 404


@EITHER
async def test_private_picture_is_lost_with_the_membership(
    ann: Person, sign_in: SignIn, client: httpx2.AsyncClient, field: str
) -> None:
    community = await ann.create_community("Beacons")
    bob, cat, eve = [await sign_in(name) for name in ("bob", "cat", "eve")]
    admin = await sign_in("zoe", roles=[Role.ADMIN, Role.MEMBER])
    for person in (bob, cat):
        await person.run(JOIN, id=community)
    path = await choose(ann, community, field)
    await ann.run(HIDE, id=community, to="LISTED")
    assert [await status(client, each, path) for each in (ann, bob, cat, eve, admin)] == [200] * 5
    await ann.run(HIDE, id=community, to="PRIVATE")
    assert [await status(client, each, path) for each in (ann, bob, cat, eve, admin)] == [200, 200, 200, 404, 404]
    await bob.run(LEAVE, id=community)
    await ann.run(KICK, id=community, user="cat")
    assert [await status(client, each, path) for each in (ann, bob, cat)] == [200, 404, 404]


@EITHER
async def test_replaced_and_removed_pictures_are_deleted(
    ann: Person, stores: Stores, client: httpx2.AsyncClient, field: str
) -> None:
    community = await ann.create_community("Beacons")
    first, second = await choose(ann, community, field), await choose(ann, community, field, "blue")
    assert [await status(client, ann, path) for path in (first, second)] == [404, 200]
    assert await delete_expired_files(job_context(stores)) == 1
    assert (await ann.do(SET[field], id=community, up=second.split("/")[2]))[field] == second
    assert (await usage(stores, "ann"), await usage(stores, "") > 0) == (0, True)
    assert (await ann.do(REMOVE[field], id=community))[field] is None
    assert (await ann.do(REMOVE[field], id=community))[field] is None
    assert await status(client, ann, second) == 404
    assert await delete_expired_files(job_context(stores)) == 1
    assert (await usage(stores, "ann"), await usage(stores, "")) == (0, 0)
    assert await stores.mongo["files"].count_documents({}) == 0


@EITHER
async def test_picture_stays_after_the_erasure_of_its_uploader(
    ann: Person, sign_in: SignIn, stores: Stores, client: httpx2.AsyncClient, field: str
) -> None:
    community, bob = await ann.create_community("Beacons"), await sign_in("bob", roles=[Role.ADMIN, Role.MEMBER])
    path = await choose(ann, community, field)
    assert ann.user is not None
    await stores.erasures.request(Actor("acme", "bob"), "ann", ann.user.handle)
    await make_due(stores)
    assert await erase_users(job_context(stores)) == 1
    assert await status(client, bob, path) == 200
    (file,) = await stores.mongo.find("files", {})
    assert (file["user"], "me.png" in str(file)) == ("", False)


@EITHER
async def test_only_owners_change_pictures(ann: Person, sign_in: SignIn, field: str) -> None:
    community = await ann.create_community("Beacons")
    bob, eve = await sign_in("bob"), await sign_in("eve")
    admin = await sign_in("zoe", roles=[Role.ADMIN, Role.MEMBER])
    await bob.run(JOIN, id=community)
    path = await choose(ann, community, field)
    for role in ("MEMBER", "MODERATOR"):
        await ann.run(ROLE, id=community, user="bob", role=role)
        for person in (bob, eve, admin):
            assert await person.code(SET[field], id=community, up=await picture(person, field)) == "FORBIDDEN"
            assert await person.code(REMOVE[field], id=community) == "FORBIDDEN"
    assert (await ann.run(READ, id=community))["community"][field] == path
    await ann.run(ROLE, id=community, user="bob", role="OWNER")
    assert await choose(bob, community, field) != path
    await ann.run(ROLE, id=community, user="bob", role="MODERATOR")
    assert await bob.code(REMOVE[field], id=community) == "FORBIDDEN"


@EITHER
async def test_unsuitable_upload_is_no_picture(ann: Person, sign_in: SignIn, stores: Stores, field: str) -> None:
    community, bob = await ann.create_community("Beacons"), await sign_in("bob")
    other = "bannerUrl" if field == "pictureUrl" else "pictureUrl"
    for unsuitable in (
        await picture(ann, other),
        await upload(ann, b"<svg onload='alert(1)'>", PURPOSES[field]),
        await upload(ann, encoded(Image.new("RGB", (9, 9)), "PNG"), UploadPurpose.ATTACHMENT),
    ):
        refused = await ann.fails(SET[field], id=community, up=unsuitable)
        assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "uploadId")
    for unknown in (await picture(bob, field), "none"):
        assert await ann.code(SET[field], id=community, up=unknown) == "NOT_FOUND"
    assert await stores.mongo["files"].count_documents({"places": {"$exists": True}}) == 0
    assert (await ann.run(READ, id=community))["community"] == {"pictureUrl": None, "bannerUrl": None}


async def test_file_is_shown_in_one_place(ann: Person, client: httpx2.AsyncClient) -> None:
    beacons, harbour = [await ann.create_community(name) for name in ("Beacons", "Harbour")]
    avatar, given = [await picture(ann, "pictureUrl") for _ in range(2)]
    await ann.run(AVATAR, id=avatar)
    assert await ann.code(SET["pictureUrl"], id=beacons, up=avatar) == "CONFLICT"
    await ann.run(SET["pictureUrl"], id=beacons, up=given)
    assert await ann.code(AVATAR, id=given) == "NOT_FOUND"
    assert await ann.code(SET["pictureUrl"], id=harbour, up=given) == "NOT_FOUND"
    assert [await status(client, ann, f"/files/{each}/thumbnail") for each in (avatar, given)] == [200, 200]


async def test_archived_community_has_pictures_changed_by_owners(ann: Person, client: httpx2.AsyncClient) -> None:
    """As its name and its description, which owners may change too."""
    community = await ann.create_community("Beacons")
    path = await choose(ann, community, "pictureUrl")
    await ann.run(ARCHIVE, id=community)
    assert await status(client, ann, path) == 200
    assert (await ann.do(REMOVE["pictureUrl"], id=community))["pictureUrl"] is None
